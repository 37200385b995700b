"""The handshake of a load: which revision it speaks with the target."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import trio

from mcp_core import ALL, DIALECTS, ConnectFailed, Dialect, escape_text

from ._templates import INFO

__all__ = ["DISCOVER_TIMEOUT", "Ask", "Handshake", "negotiate", "server_name"]

DISCOVER_TIMEOUT: Final = 5.0  # seconds for a server that may not know `server/discover`
_MAX_NAME: Final = 100  # characters of a server's name
_META: Final = "io.modelcontextprotocol/"

# Sends a request in a dialect, and returns the response: a message, or None if it isn't JSON.
Ask = Callable[[Dialect, str, dict[str, Any]], Awaitable[Any]]


class Handshake(NamedTuple):
    """The result of a handshake: the revision, and the server's name and capabilities."""

    dialect: Dialect
    server: str
    capabilities: Mapping[str, Any]


async def negotiate(
    ask: Ask, era: str | None, timeout: float, *, beside: bool = False
) -> Handshake:
    """Return the revision that the target speaks, after `server/discover` or `initialize`.

    After `initialize` the caller sends `notifications/initialized`.

    Args:
        ask: sends a request.
        era: the only revision to ask for; None for the newest.
        timeout: seconds for each response.
        beside: whether `initialize` may be sent while `server/discover` has no response yet. A
            program that is still starting responds to both later.

    Raises:
        ConnectFailed: the target doesn't speak the revision, or doesn't respond.
    """
    if era is not None and era not in DIALECTS:
        raise ConnectFailed(f"there is no revision {era!r}; there are {', '.join(ALL)}")
    dialects = [DIALECTS[era]] if era is not None else [DIALECTS[each] for each in ALL]
    modern = next((each for each in dialects if not each.stateful), None)
    stateful = next((each for each in dialects if each.stateful), None)
    reasons: list[str] = []
    found: list[Handshake] = []
    failures: list[Exception] = []
    discovered = trio.Event()

    async def attempt(
        each: Callable[[], Awaitable[Handshake | str]], scope: trio.CancelScope
    ) -> None:
        try:
            result = await each()
        except Exception as exc:  # noqa: BLE001  raised after the nursery, which would wrap it
            failures.append(exc)
            scope.cancel()
            return
        if isinstance(result, Handshake):
            found.append(result)
            scope.cancel()
        else:
            reasons.append(result)
        discovered.set()

    async with trio.open_nursery() as nursery:
        scope = nursery.cancel_scope
        if modern is not None:
            limit = timeout if era is not None or beside else min(timeout, DISCOVER_TIMEOUT)
            discover = partial(_discover, ask, modern, limit)
            if beside and stateful is not None:
                nursery.start_soon(attempt, discover, scope)
                with trio.move_on_after(DISCOVER_TIMEOUT):
                    await discovered.wait()
            else:
                await attempt(discover, scope)
        if stateful is not None and not scope.cancel_called:
            await attempt(partial(_initialize, ask, stateful, era, timeout), scope)
    if found:
        return found[0]
    if failures:
        raise failures[0]
    wanted = f"{era} with it" if era is not None else "MCP with it"
    raise ConnectFailed(f"cannot speak {wanted}: {reasons[-1]}")


async def _discover(ask: Ask, dialect: Dialect, timeout: float) -> Handshake | str:
    """Return what `server/discover` shows, or why the target doesn't speak the revision."""
    with trio.move_on_after(timeout):
        message = await ask(dialect, "server/discover", {})
        result = message.get("result") if isinstance(message, dict) else None
        versions = result.get("supportedVersions") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(versions, list):
            return _problem(message)
        if not any(DIALECTS.get(str(each)) is dialect for each in versions):
            return f"it speaks {_shown(', '.join(map(str, versions)))}"
        info = _members(result, "_meta").get(f"{_META}serverInfo")
        return Handshake(dialect, server_name(info), _members(result, "capabilities"))
    return f"it did not respond to server/discover within {timeout:g} s"


async def _initialize(
    ask: Ask, dialect: Dialect, era: str | None, timeout: float
) -> Handshake | str:
    """Return what `initialize` shows, or why the target doesn't speak the revision."""
    params = {"protocolVersion": dialect.version, "capabilities": {}, "clientInfo": INFO}
    with trio.move_on_after(timeout):
        message = await ask(dialect, "initialize", params)
        result = message.get("result") if isinstance(message, dict) else None
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        if not isinstance(result, dict) or not isinstance(version, str):
            return _problem(message)
        selected = DIALECTS.get(version)
        if selected is None or not selected.stateful:
            return f"it speaks {_shown(version)}, which is unknown here"
        if era is not None and DIALECTS[era] is not selected:
            return f"it speaks {version}; try --era {version}"
        info = result.get("serverInfo")
        return Handshake(selected, server_name(info), _members(result, "capabilities"))
    return f"it did not respond to initialize within {timeout:g} s"


def server_name(info: Any) -> str:
    """Return the name and version of a server, "" if it doesn't say."""
    if not isinstance(info, dict):
        return ""
    words = [info.get("name"), info.get("version")]
    return _shown(" ".join(word for word in words if isinstance(word, str)))


def _problem(found: Any) -> str:
    error = found.get("error") if isinstance(found, dict) else None
    if isinstance(error, dict):
        text = _shown(str(error.get("message")))
        return f"it responds with the error {error.get('code')}: {text}"
    return "its response isn't JSON-RPC; is that an MCP server?"


def _members(result: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = result.get(name)
    return found if isinstance(found, dict) else {}


def _shown(text: str) -> str:
    return escape_text(text)[:_MAX_NAME]
