"""`mcp-trio inspect`: print what a server offers, as text or as one JSON document.

Only declared capabilities are requested; the others are empty lists in the document. A server that
declares resources need not implement resource templates.
"""

from __future__ import annotations

import math
import sys
import textwrap
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from mcp_core import Fault, Peer, PeerError
from mcp_core.types import Prompt, Resource, ResourceTemplate, Tool
from mcp_trio.cli._arguments import as_list, as_mapping, describe_types
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._screen import Screen, split_lines
from mcp_trio.cli._session import run_session, server_capabilities
from mcp_trio.cli._target import parse_server_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.drivers import CallOptions
    from mcp_trio._client import Client
    from mcp_trio.cli._parser import Command
    from mcp_trio.cli._session import Target

__all__ = ["inspect", "parse"]

_MAX_WIDTH = 100  # columns; longer lines of prose are hard to read
_MAX_COLUMN = 40  # columns of the names of arguments, and of their types
_LISTS = ("tools", "resources", "resourceTemplates", "prompts")  # as the document names them


def parse(words: Sequence[str]) -> Command:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = server_parser(
        "inspect",
        description="Shows what a server offers.",
        example="mcp-trio inspect greeter.py\n  mcp-trio inspect http://127.0.0.1:8000/mcp\n"
        "  mcp-trio inspect -- node server.js",
    )
    found, target = parse_server_command(parser, words)
    return partial(inspect, target, as_json=found.json)


@dataclass(frozen=True)
class _Inventory:
    peer: Peer
    tools: list[Tool]
    resources: list[Resource]
    templates: list[ResourceTemplate]
    prompts: list[Prompt]
    # By the list's name in the document: what could not be read.
    problems: dict[str, list[str]]


def inspect(target: Target, *, as_json: bool) -> int:
    """Print what the server offers and return the exit status.

    Raises:
        CliError: the connection failed.
    """

    async def body(client: Client) -> int:
        inventory = await _fetch_inventory(client, target)
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(_to_json(inventory))
        else:
            _InventoryPrinter(screen).show(inventory)
        return 0

    return run_session(target, body)


async def _fetch_inventory(client: Client, target: Target) -> _Inventory:
    declared = server_capabilities(client)
    problems: dict[str, list[str]] = {name: [] for name in _LISTS}
    has_resources = declared.resources is not None

    def options(name: str) -> CallOptions:
        return {"timeout": target.timeout, "problems": problems[name]}

    return _Inventory(
        client.peer,
        await target.list_tools(client, problems["tools"]) if declared.tools is not None else [],
        await client.list_resources(**options("resources")) if has_resources else [],
        await _list_templates(client, options("resourceTemplates")) if has_resources else [],
        await client.list_prompts(**options("prompts")) if declared.prompts is not None else [],
        problems,
    )


async def _list_templates(client: Client, options: CallOptions) -> list[ResourceTemplate]:
    try:
        return await client.list_resource_templates(**options)
    except PeerError as exc:
        if exc.code == client.peer.dialect.codes[Fault.METHOD_NOT_FOUND]:
            return []
        raise


def _to_json(inventory: _Inventory) -> dict[str, Any]:
    peer = inventory.peer
    server = {
        **(msgspec.to_builtins(peer.info) if peer.info is not None else {}),
        "protocolVersion": peer.dialect.version,
        "capabilities": peer.capabilities,
        **({"instructions": peer.instructions} if peer.instructions else {}),
    }
    problems = {name: found for name, found in inventory.problems.items() if found}
    return {
        "server": server,
        "tools": inventory.tools,
        "resources": inventory.resources,
        "resourceTemplates": inventory.templates,
        "prompts": inventory.prompts,
        **({"problems": problems} if problems else {}),
    }


class _InventoryPrinter:
    """The inventory of a server as text on `screen`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        # Lines are wrapped on a terminal only.
        self._width = min(screen.width(_MAX_WIDTH), _MAX_WIDTH) if screen.terminal else None

    def show(self, inventory: _Inventory) -> None:
        """Print the server and all that it offers."""
        self._print_server(inventory.peer)
        for name, heading, entries, show in (
            ("tools", "Tools", inventory.tools, self._print_tool),
            ("resources", "Resources", inventory.resources, self._print_resource),
            (
                "resourceTemplates",
                "Resource templates",
                inventory.templates,
                self._print_template,
            ),
            ("prompts", "Prompts", inventory.prompts, self._print_prompt),
        ):
            problems = inventory.problems[name]
            if entries or problems:
                self._screen.write_line()
                self._screen.write_line((f"{heading} ({len(entries)})", "bold underline"))
                for entry in entries:
                    show(cast("Any", entry))
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

    def _print_prose(self, text: str | None, indent: int) -> None:
        for line in split_lines(text.strip()) if text else ():
            wrapped = (
                [line]
                if self._width is None
                else textwrap.wrap(line, max(self._width - indent, 20))
            )
            for part in wrapped or [""]:
                self._screen.write_line((" " * indent + part).rstrip())

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
