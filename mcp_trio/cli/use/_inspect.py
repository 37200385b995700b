"""`mcp-trio inspect`: print what a server offers, as text or as one JSON document.

1. Only declared capabilities are requested; the others are empty lists in the document. If a server
   declares neither tools nor resources nor prompts, all are requested once.
2. A server that declares resources need not implement resource templates.
3. A list that fails doesn't hide the others: its error is printed in its place.
"""

from __future__ import annotations

import math
import sys
import textwrap
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mcp_core import CallTimeout, McpTrioError, Peer
from mcp_trio.cli._arguments import as_list, as_mapping, describe_types
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._screen import Screen, split_lines
from mcp_trio.cli._session import (
    UNDECLARED_TIMEOUT,
    allow_undeclared,
    explain_error,
    is_unknown_list,
    is_unknown_method,
    report_undeclared,
    run_session,
    server_capabilities,
)
from mcp_trio.cli._target import (
    configured_target,
    parse_server_command,
    refuse_unconfigured_options,
)

from ._contract_options import add_contract_options, contract_options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_core.drivers import CallOptions
    from mcp_core.types import Prompt, Resource, ResourceTemplate, Tool
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import CapabilityName, Target

__all__ = ["Inventory", "fetch_inventory", "inspect", "parse"]

_MAX_WIDTH = 100  # columns; longer lines of prose are hard to read
_MAX_COLUMN = 40  # columns of the names of arguments, and of their types
_ERROR_STYLE = "red"
_TEMPLATES = "resourceTemplates"
# The lists, by their names in the document.
_HEADINGS = {
    "tools": "Tools",
    "resources": "Resources",
    _TEMPLATES: "Resource templates",
    "prompts": "Prompts",
}


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "inspect",
        description="Shows what a server offers, or compares it with what it has offered.",
        example="mcp-trio inspect greeter.py\n  mcp-trio inspect http://127.0.0.1:8000/mcp\n"
        "  mcp-trio inspect -- node server.js\n"
        "  mcp-trio inspect --save greeter.contract.json greeter.py\n"
        "  mcp-trio inspect --against greeter.contract.json greeter.py",
    )
    add_contract_options(parser)
    own = words[: words.index("--")] if "--" in words else words
    if "--all" in own:
        return _parse_all(parser, words)
    found, target = parse_server_command(parser, words)
    options = contract_options(parser, found)
    if options is None:
        return partial(inspect, target, as_json=found.json)
    from ._contract import handle_contract

    return partial(handle_contract, target, options)


def _parse_all(parser: argparse.ArgumentParser, words: Sequence[str]) -> Command:
    """Parse the words with `--all`: each server of the configuration files."""
    found = parser.parse_intermixed_args(words)
    if found.words or found.server_name is not None:
        parser.error("--all takes each server of the configuration files: name no server")
    refuse_unconfigured_options(parser, found)
    options = contract_options(parser, found)
    assert options is not None
    from mcp_trio.cli.servers._places import find_files, read_files

    from ._contract import contracts_of_all

    names = read_files(find_files(found.config)).servers
    if not names:
        raise CliError("the configuration files have no servers: `mcp-trio servers list` shows why")
    targets = {name: configured_target(parser, found, name) for name in names}
    return partial(contracts_of_all, targets, options)


@dataclass(frozen=True)
class Inventory:
    """A server and its lists, by their names in the document.

    By the same names, `problems` has what was left out of a list, and `errors` why a list could not
    be read. `status` is the exit status.
    """

    peer: Peer
    lists: dict[str, list[Any]]
    problems: dict[str, list[str]]
    errors: dict[str, CliError]
    status: int


def inspect(target: Target, *, as_json: bool) -> int:
    """Print what the server offers and return the exit status.

    Raises:
        CliError: the connection failed, or every list that the server declares.
    """

    async def body(client: Client) -> int:
        inventory = await fetch_inventory(client, target)
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(_to_json(inventory))
        else:
            _InventoryPrinter(screen).show(inventory)
        return inventory.status

    return run_session(target, body)


async def fetch_inventory(client: Client, target: Target) -> Inventory:
    """Request the lists that the server declares, or all if it declares none.

    Raises:
        McpTrioError: each list that it declares failed; this is the first error.
    """
    peer = client.peer
    if not allow_undeclared(client, "tools", "resources", "prompts"):
        return await _fetch_declared(client, target)
    # The server has kept to what it declares, so nothing of this is a failure of the command.
    timeout = min(target.timeout, UNDECLARED_TIMEOUT)
    lists, problems, failures = await _fetch_lists(client, target, timeout)
    for name, exc in list(failures.items()):
        if is_unknown_list(client, exc) or isinstance(exc, CallTimeout):
            del failures[name]
    found = lists.keys() | failures.keys()
    if found:
        names: tuple[CapabilityName, ...] = ("tools", "resources", "prompts")
        report_undeclared(target, *(name for name in names if name in found))
    return Inventory(peer, lists, problems, _explained(target, failures), 0)


async def _fetch_declared(client: Client, target: Target) -> Inventory:
    """Request the lists that the server declares.

    Raises:
        McpTrioError: each of them failed; this is the first error.
    """
    lists, problems, failures = await _fetch_lists(client, target, target.timeout)
    templates = failures.get(_TEMPLATES)
    if templates is not None and is_unknown_method(client, templates):
        del failures[_TEMPLATES]
        lists[_TEMPLATES] = []
    if failures and not lists:
        raise next(iter(failures.values()))
    errors = _explained(target, failures)
    status = max((error.status for error in errors.values()), default=0)
    return Inventory(client.peer, lists, problems, errors, status)


async def _fetch_lists(
    client: Client, target: Target, timeout: float
) -> tuple[dict[str, list[Any]], dict[str, list[str]], dict[str, McpTrioError]]:
    """Request the lists one after the other.

    Return those that were read, what was left out of them, and the errors of the others.
    """
    declared = server_capabilities(client)
    problems: dict[str, list[str]] = {name: [] for name in _HEADINGS}

    def options(name: str) -> CallOptions:
        return {"timeout": timeout, "problems": problems[name]}

    requests: dict[str, Callable[[], Awaitable[list[Any]]]] = {}
    if declared.tools is not None:
        requests["tools"] = partial(target.list_tools, client, timeout, problems["tools"])
    if declared.resources is not None:
        requests["resources"] = partial(client.list_resources, **options("resources"))
        requests[_TEMPLATES] = partial(client.list_resource_templates, **options(_TEMPLATES))
    if declared.prompts is not None:
        requests["prompts"] = partial(client.list_prompts, **options("prompts"))
    lists: dict[str, list[Any]] = {}
    failures: dict[str, McpTrioError] = {}
    for name, request in requests.items():
        try:
            lists[name] = await request()
        except McpTrioError as exc:
            failures[name] = exc
    return lists, problems, failures


def _explained(target: Target, failures: dict[str, McpTrioError]) -> dict[str, CliError]:
    return {name: _explain(target, exc) for name, exc in failures.items()}


def _explain(target: Target, exc: McpTrioError) -> CliError:
    explained = explain_error(target, exc)
    if explained is None:
        raise exc
    return explained


def _to_json(inventory: Inventory) -> dict[str, Any]:
    peer = inventory.peer
    server = {
        **(msgspec.to_builtins(peer.info) if peer.info is not None else {}),
        "protocolVersion": peer.dialect.version,
        "capabilities": peer.capabilities,
        **({"instructions": peer.instructions} if peer.instructions else {}),
    }
    errors = {name: str(error) for name, error in inventory.errors.items()}
    problems = {name: found for name, found in inventory.problems.items() if found}
    return {
        "server": server,
        **{name: inventory.lists.get(name, []) for name in _HEADINGS},
        **({"problems": problems} if problems else {}),
        **({"errors": errors} if errors else {}),
    }


class _InventoryPrinter:
    """The inventory of a server as text on `screen`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        # Lines are wrapped on a terminal only.
        self._width = min(screen.width(_MAX_WIDTH), _MAX_WIDTH) if screen.terminal else None

    def show(self, inventory: Inventory) -> None:
        """Print the server and all that it offers."""
        self._print_server(inventory.peer)
        printers: dict[str, Callable[[Any], None]] = {
            "tools": self._print_tool,
            "resources": self._print_resource,
            _TEMPLATES: self._print_template,
            "prompts": self._print_prompt,
        }
        for name, heading in _HEADINGS.items():
            error = inventory.errors.get(name)
            entries = inventory.lists.get(name, [])
            problems = inventory.problems[name]
            if error is None and not entries and not problems:
                continue
            title = heading if error is not None else f"{heading} ({len(entries)})"
            self._screen.write_line()
            self._screen.write_line((title, "bold underline"))
            if error is not None:
                self._print_prose(str(error), 2, _ERROR_STYLE)
            for entry in entries:
                printers[name](entry)
            for problem in problems:
                self._screen.write_line(("  problem: ", "bold red"), problem)

    def _print_server(self, peer: Peer) -> None:
        info = peer.info
        name = f"{info.name} {info.version}" if info is not None else "a server without a name"
        self._screen.write_line((name, "bold"), f", speaking revision {peer.dialect.version}")
        if info is not None:
            self._print_fact(info.title)
            self._print_prose(info.description, 4)
            self._print_fact(info.website_url)
        self._screen.write_line(
            "  capabilities: ", ", ".join(_capability_names(peer.capabilities)) or "none"
        )
        if peer.instructions:
            self._screen.write_line("  instructions:")
            self._print_prose(peer.instructions, 4)

    def _print_tool(self, tool: Tool) -> None:
        self._print_entry(tool.name, tool.title, tool.description)
        schema = tool.input_schema
        properties = as_mapping(schema.get("properties"))
        required = as_list(schema.get("required"))
        rows = []
        for name, schema_of_name in properties.items():
            details = as_mapping(schema_of_name)
            need = "required" if name in required else "optional"
            if "default" in details:
                need = f"default {msgspec.json.encode(details['default']).decode()}"
            rows.append(
                (
                    name,
                    f"{describe_types(schema_of_name, schema)}, {need}",
                    details.get("description"),
                )
            )
        self._print_arguments(rows)

    def _print_prompt(self, prompt: Prompt) -> None:
        self._print_entry(prompt.name, prompt.title, prompt.description)
        self._print_arguments(
            [
                (
                    argument.name,
                    "required" if argument.required else "optional",
                    argument.description,
                )
                for argument in prompt.arguments or ()
            ]
        )

    def _print_resource(self, resource: Resource) -> None:
        size = f"{resource.size} bytes" if resource.size is not None else None
        self._print_entry(
            resource.uri,
            resource.title or resource.name,
            resource.description,
            resource.mime_type,
            size,
        )

    def _print_template(self, template: ResourceTemplate) -> None:
        name = template.title or template.name
        self._print_entry(template.uri_template, name, template.description, template.mime_type)

    def _print_entry(
        self, name: str, title: str | None, description: str | None, *facts: str | None
    ) -> None:
        aside = ", ".join(fact for fact in (title, *facts) if fact)
        self._screen.write_line("  ", (name, "bold cyan"), (f"  ({aside})" if aside else "", "dim"))
        self._print_prose(description, 6)

    def _print_arguments(self, rows: list[tuple[str, str, object]]) -> None:
        # Not wider than `_MAX_COLUMN`: one long name would widen all other lines.
        name_width = min(max((len(name) for name, _, _ in rows), default=0), _MAX_COLUMN)
        kind_width = min(max((len(kind) for _, kind, _ in rows), default=0), _MAX_COLUMN)
        for name, kind, description in rows:
            text = description.strip() if isinstance(description, str) else ""
            used = 6 + name_width + 2 + kind_width + 2
            free = math.inf if self._width is None else self._width - used
            aside = text if len(text) <= free and "\n" not in text else ""
            padded = f"{kind:{kind_width}}  " if aside else kind
            self._screen.write_line(
                "      ", (f"{name:{name_width}}", "green"), "  ", (padded, "dim"), aside
            )
            if not aside:
                self._print_prose(text, 6 + name_width + 4)

    def _print_prose(self, text: str | None, indent: int, style: str = "") -> None:
        for line in split_lines(text.strip()) if text else ():
            wrapped = (
                [line]
                if self._width is None
                else textwrap.wrap(line, max(self._width - indent, 20))
            )
            for part in wrapped or [""]:
                self._screen.write_line(((" " * indent + part).rstrip(), style))

    def _print_fact(self, text: str | None) -> None:
        if text:
            self._screen.write_line(f"  {text}")


def _capability_names(capabilities: Any) -> list[str]:
    """Return the capabilities as dotted names: `tools`, `tools.listChanged`."""
    found: list[str] = []
    for name, value in msgspec.to_builtins(capabilities).items():
        inner = (
            [key for key, enabled in value.items() if enabled is True]
            if isinstance(value, dict)
            else []
        )
        found += [name, *(f"{name}.{key}" for key in inner)]
    return found
