"""`mcp-trio inspect`: what a server offers, for people to read or as one JSON document.

Rule: what a server does not declare is not asked for, and is an empty list in the document. A server that declares
resources need not know templates.
"""

from __future__ import annotations

import math
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from mcp_core import Fault, Peer, PeerError
from mcp_core.types import Prompt, Resource, ResourceTemplate, Tool

from ._arguments import describe
from ._screen import Screen
from ._talk import declared_by, talk

if TYPE_CHECKING:
    from mcp_trio import Client

    from ._talk import Target

__all__ = ["inspect"]

_WIDEST = 100  # longer lines of prose are hard to read on any terminal


@dataclass(frozen=True)
class _Offer:
    peer: Peer
    tools: list[Tool]
    resources: list[Resource]
    templates: list[ResourceTemplate]
    prompts: list[Prompt]


def inspect(target: Target, *, as_json: bool) -> int:
    """Show what the server offers; returns the exit status.

    Raises:
        Problem: no conversation came about, or it went wrong.
    """

    async def body(client: Client) -> int:
        offer = await _ask(client, target.timeout)
        screen = Screen(sys.stdout)
        if as_json:
            screen.write_json(_document(offer))
        else:
            _Page(screen).show(offer)
        return 0

    return talk(target, body)


async def _ask(client: Client, timeout: float) -> _Offer:
    declared = declared_by(client)
    return _Offer(
        client.peer,
        await client.list_tools(timeout=timeout) if declared.tools is not None else [],
        await client.list_resources(timeout=timeout) if declared.resources is not None else [],
        await _templates(client, timeout) if declared.resources is not None else [],
        await client.list_prompts(timeout=timeout) if declared.prompts is not None else [],
    )


async def _templates(client: Client, timeout: float) -> list[ResourceTemplate]:
    try:
        return await client.list_resource_templates(timeout=timeout)
    except PeerError as exc:
        if exc.code == client.peer.dialect.codes[Fault.METHOD_NOT_FOUND]:
            return []
        raise


def _document(offer: _Offer) -> dict[str, Any]:
    peer = offer.peer
    server = {
        **(msgspec.to_builtins(peer.info) if peer.info is not None else {}),
        "protocolVersion": peer.dialect.version,
        "capabilities": peer.capabilities,
        **({"instructions": peer.instructions} if peer.instructions else {}),
    }
    return {
        "server": server,
        "tools": offer.tools,
        "resources": offer.resources,
        "resourceTemplates": offer.templates,
        "prompts": offer.prompts,
    }


class _Page:
    """The offer as text."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        # Only a terminal has a width to fold for.
        self._width = min(screen.width(_WIDEST), _WIDEST) if screen.terminal else None

    def show(self, offer: _Offer) -> None:
        self._server(offer.peer)
        for heading, entries, show in (
            ("Tools", offer.tools, self._tool),
            ("Resources", offer.resources, self._resource),
            ("Resource templates", offer.templates, self._template),
            ("Prompts", offer.prompts, self._prompt),
        ):
            if entries:
                self._screen.say()
                self._screen.say((f"{heading} ({len(entries)})", "bold underline"))
                for entry in entries:
                    show(cast("Any", entry))

    def _server(self, peer: Peer) -> None:
        info = peer.info
        name = f"{info.name} {info.version}" if info is not None else "a server that does not say its name"
        self._screen.say((name, "bold"), f", speaking revision {peer.dialect.version}")
        if info is not None:
            for text in info.title, info.description, info.website_url:
                self._prose(text, 2)
        self._screen.say("  capabilities: ", ", ".join(_names(peer.capabilities)) or "none")
        if peer.instructions:
            self._screen.say("  instructions:")
            self._prose(peer.instructions, 4)

    def _tool(self, tool: Tool) -> None:
        self._entry(tool.name, tool.title, tool.description)
        schema = tool.input_schema
        properties = schema.get("properties") or {}
        required = schema.get("required") or ()
        rows = []
        for name, wanted in properties.items():
            says = wanted if isinstance(wanted, dict) else {}
            need = "required" if name in required else "optional"
            if "default" in says:
                need = f"default {msgspec.json.encode(says['default']).decode()}"
            rows.append((name, f"{describe(wanted, schema)}, {need}", says.get("description")))
        self._arguments(rows)

    def _prompt(self, prompt: Prompt) -> None:
        self._entry(prompt.name, prompt.title, prompt.description)
        self._arguments(
            [
                (argument.name, "required" if argument.required else "optional", argument.description)
                for argument in prompt.arguments or ()
            ]
        )

    def _resource(self, resource: Resource) -> None:
        size = f"{resource.size} bytes" if resource.size is not None else None
        self._entry(
            resource.uri, resource.title or resource.name, resource.description, resource.mime_type, size
        )

    def _template(self, template: ResourceTemplate) -> None:
        name = template.title or template.name
        self._entry(template.uri_template, name, template.description, template.mime_type)

    def _entry(self, name: str, title: str | None, description: str | None, *facts: str | None) -> None:
        aside = ", ".join(fact for fact in (title, *facts) if fact)
        self._screen.say("  ", (name, "bold cyan"), (f"  ({aside})" if aside else "", "dim"))
        self._prose(description, 6)

    def _arguments(self, rows: list[tuple[str, str, str | None]]) -> None:
        names = max((len(name) for name, _, _ in rows), default=0)
        kinds = max((len(kind) for _, kind, _ in rows), default=0)
        for name, kind, description in rows:
            text = (description or "").strip()
            room = math.inf if self._width is None else self._width - (6 + names + 2 + kinds + 2)
            aside = text if len(text) <= room and "\n" not in text else ""
            padded = f"{kind:{kinds}}  " if aside else kind
            self._screen.say("      ", (f"{name:{names}}", "green"), "  ", (padded, "dim"), aside)
            if not aside:
                self._prose(text, 6 + names + 4)

    def _prose(self, text: str | None, indent: int) -> None:
        for line in (text or "").strip().splitlines():
            folded = [line] if self._width is None else textwrap.wrap(line, max(self._width - indent, 20))
            for part in folded or [""]:
                self._screen.say((" " * indent + part).rstrip())


def _names(capabilities: Any) -> list[str]:
    """The capabilities as dotted names: `tools`, `tools.listChanged`."""
    found: list[str] = []
    for name, value in msgspec.to_builtins(capabilities).items():
        inner = [key for key, on in value.items() if on is True] if isinstance(value, dict) else []
        found += [name, *(f"{name}.{key}" for key in inner)]
    return found
