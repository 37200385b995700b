"""`mcp-trio servers get`: print the entry that is used for a server, and its problems.

Values of variables and headers aren't printed: they may be secrets. The query of an address is left
out.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from mcp_core.host import find_variables, hide_values
from mcp_core.urls import redacted_url
from mcp_trio.cli._errors import SERVER_ERROR
from mcp_trio.cli._screen import Screen

from ._places import find_files, read_files, shown_name, unknown_server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from mcp_core.host import (
        ConfigPlace,
        ConfigProblem,
        OmittedServer,
        ScopedServer,
        ServerConfig,
    )

__all__ = ["get"]


def get(name: str, *, config: Path | None, as_json: bool) -> int:
    """Print a server of the configuration files, and return the exit status.

    It is 1 if the server cannot be used: it has a problem, or the administrator denies it.

    Args:
        name: the server's name.
        config: the file, or None.
        as_json: whether to print one JSON document.

    Raises:
        CliError: there is no such server, or no server can be used.
    """
    merged = read_files(find_files(config))
    used = merged.servers.get(name)
    omitted = [each for each in merged.omitted if each.server.name == name]
    problems = [each for each in merged.problems if each.server in (None, name)]
    if used is None and not omitted and all(each.server is None for each in problems):
        raise unknown_server(name, merged, problems)
    screen = Screen(sys.stdout)
    if as_json:
        screen.write_json(_to_json(name, used, omitted, problems))
    else:
        _show(name, used, omitted, problems, screen)
    return 0 if used is not None else SERVER_ERROR


def _to_json(
    name: str,
    used: ScopedServer | None,
    omitted: Sequence[OmittedServer],
    problems: Sequence[ConfigProblem],
) -> dict[str, Any]:
    document: dict[str, Any] = {"name": name}
    if used is not None:
        server = used.server
        document |= {"scope": used.scope, **_place_json(server.place)}
        document |= _facts(server)
        document["variables"] = [
            {
                "kind": each.kind,
                "name": each.name,
                "hasDefault": each.has_default,
                "leavesMachine": each.leaves_machine,
            }
            for each in find_variables(server, used.inputs)
        ]
    document["omitted"] = [
        {
            "scope": each.scope,
            **_place_json(each.server.place),
            "reason": each.reason,
            "explanation": each.explanation,
        }
        for each in omitted
    ]
    document["problems"] = [
        {**_place_json(each.place), "member": each.place.member, "problem": each.problem}
        for each in problems
    ]
    return document


def _place_json(place: ConfigPlace) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}


def _facts(server: ServerConfig) -> dict[str, Any]:
    """Return what the entry says, without secrets, by the names of the document."""
    facts: dict[str, Any] = {"transport": server.transport, "disabled": server.disabled}
    if server.allowed_tools is not None:
        facts["allowedTools"] = list(server.allowed_tools)
    if server.denied_tools:
        facts["deniedTools"] = list(server.denied_tools)
    if server.asks_always:
        facts["asksAlways"] = True
    if server.command is not None:
        facts |= {"command": server.command, "args": list(server.args)}
        facts["env"] = _hidden("env", server.env)
        if server.forwarded:
            facts["forwarded"] = list(server.forwarded)
        if server.env_file is not None:
            facts["envFile"] = server.env_file
        if server.cwd is not None:
            facts["cwd"] = server.cwd
        return facts
    facts["url"] = redacted_url(server.url or "")[1:-1]  # without quotes
    facts["headers"] = _hidden("headers", server.headers)
    facts["headers"] |= {name: f"${{{each}}}" for name, each in server.header_variables.items()}
    if server.bearer_variable is not None:
        facts["headers"]["Authorization"] = f"Bearer ${{{server.bearer_variable}}}"
    return facts


def _tool_names(names: Sequence[str]) -> str:
    return ", ".join(map(shown_name, names))


def _hidden(member: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return variables or headers with hidden values. References are shown."""
    shown: dict[str, str] = hide_values({member: dict(values)})[member]
    return shown


def _show(
    name: str,
    used: ScopedServer | None,
    omitted: Sequence[OmittedServer],
    problems: Sequence[ConfigProblem],
    screen: Screen,
) -> None:
    if used is None:
        screen.write_line((shown_name(name), "bold"), " cannot be used")
    else:
        place = used.server.place
        where = f"  {used.scope}, {place.file}, line {place.line}"
        screen.write_line((shown_name(name), "bold"), where)
        for label, text in _lines(used):
            screen.write_line(f"  {label:10} ", text)
    for each in omitted:
        place = each.server.place
        where = f"{each.scope}, {place.file}, line {place.line}"
        label = "shadows" if each.reason == "shadowed" and used is not None else each.reason
        explanation = "" if label == "shadows" else f": {each.explanation}"
        screen.write_line(f"  {label:10} ", f"{where}{explanation}")
    for problem in problems:
        screen.write_line(("  problem    ", "red"), str(problem))


def _lines(used: ScopedServer) -> list[tuple[str, str]]:
    """Return the facts of a server as labels and texts."""
    facts = _facts(used.server)
    lines = [("transport", facts["transport"])]
    if facts["disabled"]:
        lines.append(("disabled", "yes"))
    if "command" in facts:
        lines.append(("command", shlex.join([facts["command"], *facts["args"]])))
    else:
        lines.append(("url", facts["url"]))
    lines += [(label, facts[label]) for label in ("cwd", "envFile") if label in facts]
    if "allowedTools" in facts:
        lines.append(("allowed", _tool_names(facts["allowedTools"]) or "no tool"))
    if "deniedTools" in facts:
        lines.append(("denied", _tool_names(facts["deniedTools"])))
    if "asksAlways" in facts:
        lines.append(("calls", "each one is asked about"))
    for label in "env", "headers":
        lines += [(label, f"{name}: {value}") for name, value in facts.get(label, {}).items()]
    lines += [("env", f"{name}: from the environment") for name in facts.get("forwarded", ())]
    uses = find_variables(used.server, used.inputs)
    names = list(dict.fromkeys(each.name for each in uses if each.kind != "predefined"))
    if names:
        lines.append(("variables", ", ".join(names)))
    return lines
