"""Play a stored case of the fuzzer against a server, for the tests that it writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import trio

from mcp_core import ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_trio.fuzz._session import TargetSession

__all__ = ["find_client_faults", "find_faults"]

_PLAYS = 3


def find_faults(
    target: str | Sequence[str],
    steps: Sequence[tuple[Any, ...]],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    response_timeout: float = 2.0,
) -> dict[str, str]:
    """Play a case of `mcp-trio fuzz` against a server, and return what the server does wrong.

    The case is played on a fresh process, up to three times until a fault is found. Do not call it
    inside `trio.run`: it has its own.

    Args:
        target: the words of the command that starts the server, or its URL.
        steps: the case, as the tests and the reports of `mcp-trio fuzz` have it.
        env, inherit_env, cwd: for a command, as in `mcp_trio.connect_stdio`.
        headers: for a URL, sent with each request.
        response_timeout: seconds that the server may take for a response.

    Returns:
        a sentence for each fault, by the id of the requirement, such as `RPC-7`. The end of the
        process is `crash`. Empty if there is no fault.

    Raises:
        ConnectFailed: the server does not start, cannot be reached, or sends nothing at all.
    """
    return trio.run(_find, target, list(steps), env, inherit_env, cwd, headers, response_timeout)


async def _find(
    target: str | Sequence[str],
    steps: list[tuple[Any, ...]],
    env: Mapping[str, str] | None,
    inherit_env: bool,
    cwd: str | os.PathLike[str] | None,
    headers: Mapping[str, str] | None,
    response_timeout: float,
) -> dict[str, str]:
    from mcp_trio._nursery import open_quiet_nursery
    from mcp_trio.fuzz._echo import Echo
    from mcp_trio.fuzz._play import Player
    from mcp_trio.fuzz._probe import probe
    from mcp_trio.fuzz._session import is_modern
    from mcp_trio.fuzz._stdio import CommandTarget

    echo = Echo()
    await echo.begin()
    found: dict[str, str] = {}
    reason = ""
    async with open_quiet_nursery() as nursery:
        played: Any
        if isinstance(target, str):
            from mcp_trio.fuzz._http import UrlTarget

            played = UrlTarget(target, nursery, headers=dict(headers or {}))
            modern = [each[1] for each in steps if each[0] == "open" and is_modern(each[1])]
            if modern and any(each[0] == "call" or "tools/call" in each for each in steps):
                await probe(played, (modern[0],))  # headers of calls depend on the list of tools
        else:
            played = CommandTarget(
                target, nursery, env=env, inherit_env=inherit_env, cwd=cwd, ahead=0
            )
        for _ in range(_PLAYS):
            session = await played.open()
            try:
                outcome = await Player(response_timeout, echo=echo).play(steps, session)
            finally:
                with trio.CancelScope(shield=True):
                    await session.aclose()
            found = {each.row: each.sentence for each in outcome.faults}
            if found:
                return found
            reason = "" if outcome.messages else _reason_for_silence(steps, session)
    if reason:
        raise ConnectFailed(f"no conversation with the server: {reason}")
    return found


def _reason_for_silence(steps: list[tuple[Any, ...]], session: TargetSession) -> str:
    """Return why a server has sent nothing in a play; empty if a correct one need not."""
    if any(step[0] in ("disconnect", "reconnect") for step in steps):
        return ""
    is_requested = bool(session.revision) and steps[0][2:3] != ("none",)
    if not session.ended and not is_requested:
        return ""
    return f"{session.ended or 'it did not respond'}{session.describe()}"


def find_client_faults(
    command: Sequence[str],
    steps: Sequence[tuple[Any, ...]],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    response_timeout: float = 2.0,
) -> dict[str, str]:
    """Play a case of `mcp-trio fuzz --client`, and return what the client does wrong.

    The client is started up to three times, until a fault is found. Do not call it inside
    `trio.run`: it has its own.

    Args:
        command: the words of the command that starts the client, with `{server}` or `{url}`.
        steps: the case, as the tests and the reports of `mcp-trio fuzz` have it.
        env, inherit_env, cwd: as in `mcp_trio.connect_stdio`.
        response_timeout: seconds that the client may take for the response to a ping.

    Returns:
        a sentence for each fault, by the id of the requirement, such as `RPC-7`. The end of the
        process by a signal is `crash`; a process that does not end is `hang`. Empty if there is no
        fault.

    Raises:
        ConnectFailed: the client does not start, or fails before it sends anything.
    """
    return trio.run(_find_client, command, list(steps), env, inherit_env, cwd, response_timeout)


async def _find_client(
    command: Sequence[str],
    steps: list[tuple[Any, ...]],
    env: Mapping[str, str] | None,
    inherit_env: bool,
    cwd: str | os.PathLike[str] | None,
    response_timeout: float,
) -> dict[str, str]:
    from mcp_trio.fuzz._echo import Echo
    from mcp_trio.fuzz.client._client_play import ClientPlayer
    from mcp_trio.fuzz.client._client_target import ClientTarget

    echo = Echo()
    await echo.begin()
    target = ClientTarget(
        command, env=env, inherit_env=inherit_env, cwd=None if cwd is None else os.fspath(cwd)
    )
    found: dict[str, str] = {}
    reason = ""
    for _ in range(_PLAYS):
        session = await target.open()
        outcome = await ClientPlayer(response_timeout, echo=echo).play(steps, session)
        found = {each.row: each.sentence for each in outcome.faults}
        if found:
            return found
        is_silent = not outcome.messages and bool(session.exit_status)
        reason = f"it has sent no message{session.describe()}" if is_silent else ""
    if reason:
        raise ConnectFailed(f"no conversation with the client: {reason}")
    return found
