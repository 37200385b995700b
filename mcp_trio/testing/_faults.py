"""Play a stored case of the fuzzer against a server, for the tests that it writes."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

import trio

from mcp_core import ConnectFailed, escape_text
from mcp_trio.streams._child import with_cure

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Outcome
    from mcp_trio.oracle.fuzz._session import TargetSession
    from mcp_trio.oracle.fuzz.invariants._checks import Checks

__all__ = ["find_client_faults", "find_faults"]

_PLAYS: Final = 3
_ENDING: Final = ("disconnect", "reconnect", "delete")  # steps that end the conversation in order
_SHOWN: Final = 200  # characters of an error of the server


def find_faults(
    target: str | Sequence[str],
    steps: Sequence[tuple[Any, ...]],
    *,
    env: Mapping[str, str] | None = None,
    inherit_env: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    response_timeout: float = 2.0,
    call_timeout: float = 10.0,
    invariants: str | os.PathLike[str] | ModuleType | None = None,
) -> dict[str, str]:
    """Play a case of `mcp-trio fuzz` against a server, and return what the server does wrong.

    The case is played on a fresh process, up to three times until a fault is found. A play that
    cannot show anything is an error: one in which the server sends no response, or refuses the
    conversation. So a test that calls this doesn't pass because its server is missing. Do not call
    it inside `trio.run`: it has its own.

    Args:
        target: the words of the command that starts the server, or its URL.
        steps: the case, as the tests and the reports of `mcp-trio fuzz` have it.
        env, inherit_env, cwd: for a command, as in `mcp_trio.connect_stdio`.
        headers: for a URL, sent with each request.
        response_timeout: seconds that the server may take for a response.
        call_timeout: seconds that a tool's first call may take, and later ones at most. Later ones
            may take three times as long as the tool's slowest call that succeeded.
        invariants: a Python file with checks of your own, or a module. See
            `mcp_trio.testing.invariants`.

    Returns:
        a sentence for each fault, by the requirement's id, such as `RPC-7`, or by the invariant's
        name. The end of the process after its first response is `crash`. Empty if there is no
        fault.

    Raises:
        ConnectFailed: the server doesn't start, cannot be reached, refuses the conversation, or
            ends or stays silent before its first response.
        InvariantError: the file of invariants is wrong, or one of its functions is broken.
        ValueError: this version doesn't know a step, or a step's words have another shape, or it is
            of a second client that no step opens; or the steps need `invariants`.
    """
    played = list(steps)
    _check_steps(played, "server")
    checks = _checks(played, invariants)
    return trio.run(
        _find,
        target,
        played,
        env,
        inherit_env,
        cwd,
        headers,
        response_timeout,
        call_timeout,
        checks,
    )


def _checks(
    steps: Sequence[tuple[Any, ...]], source: str | os.PathLike[str] | ModuleType | None
) -> Checks | None:
    """Return the checks of a file, None without one.

    Raises:
        InvariantError: the file is wrong.
        ValueError: the steps need a file, and there is none; or the file lacks a value.
    """
    from mcp_trio.oracle.fuzz.invariants._stored import needed_names

    needed = needed_names(steps)
    if source is None and not needed:
        return None
    if source is None:
        raise ValueError(
            f"the case hands {', '.join(sorted(needed))} from one call to the next: give the file"
            " that provides it, invariants=FILE"
        )
    from mcp_trio.oracle.fuzz.invariants._checks import Checks
    from mcp_trio.oracle.fuzz.invariants._load import load_invariants

    found = load_invariants(source)
    if missing := needed.difference(found.known):
        raise ValueError(
            f"the case hands {', '.join(sorted(missing))} from one call to the next, and no"
            f" @after_call in {found.source} provides it"
        )
    return Checks(found)


def _check_steps(steps: Sequence[tuple[Any, ...]], side: Literal["client", "server"]) -> None:
    """Check that no step would be left out: what is left of a case can show nothing.

    Raises:
        ValueError: a step cannot be played.
    """
    from mcp_trio.oracle.fuzz._case import check_case

    try:
        check_case(steps, side)
    except ValueError as exc:
        raise ValueError(f"the case cannot be played: {exc}") from None


async def _find(
    target: str | Sequence[str],
    steps: list[tuple[Any, ...]],
    env: Mapping[str, str] | None,
    inherit_env: bool,
    cwd: str | os.PathLike[str] | None,
    headers: Mapping[str, str] | None,
    response_timeout: float,
    call_timeout: float,
    checks: Checks | None,
) -> dict[str, str]:
    from mcp_trio._nursery import open_quiet_nursery
    from mcp_trio.oracle.fuzz._call_times import CallTimes
    from mcp_trio.oracle.fuzz._case import own_step
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz._probe import probe
    from mcp_trio.oracle.fuzz._revisions import dialect_of
    from mcp_trio.oracle.fuzz._stdio import CommandTarget
    from mcp_trio.oracle.fuzz.invariants._declared import InvariantError
    from mcp_trio.oracle.fuzz.play._player import Player

    echo = Echo()
    await echo.begin()
    async with open_quiet_nursery() as nursery:
        played: Any
        if isinstance(target, str):
            from mcp_trio.oracle.fuzz._http import UrlTarget

            played = UrlTarget(target, nursery, headers=dict(headers or {}))
            own = list(map(own_step, steps))
            modern = [
                each[1] for each in own if each[0] == "open" and not dialect_of(each[1]).stateful
            ]
            if modern and any(each[0] == "call" or "tools/call" in each for each in own):
                await probe(played, (modern[0],))  # headers of calls depend on the list of tools
        else:
            played = CommandTarget(
                target, nursery, env=env, inherit_env=inherit_env, cwd=cwd, ahead=0
            )

        async def play(case: list[tuple[Any, ...]]) -> tuple[Outcome, TargetSession]:
            session = await played.open()
            try:
                player = Player(
                    response_timeout,
                    echo=echo,
                    call_times=CallTimes(call_timeout),
                    checks=None if checks is None else checks.begin(),
                )
                outcome = await player.play(case, session)
            finally:
                with trio.CancelScope(shield=True):
                    await session.aclose()
            return outcome, session

        for _ in range(_PLAYS):
            outcome, session = await play(steps)
            if not outcome.results:
                reason = await _reason_for_silence(outcome, session, steps, play)
                if reason:
                    text = with_cure(reason, _cure(target, cwd))
                    raise ConnectFailed(f"no conversation with the server: {text}")
            found = {each.row: each.sentence for each in outcome.faults}
            if not found and checks is not None and checks.failure:
                raise InvariantError(f"{checks.invariants.source}: {checks.failure}")
            if found:
                return found
    return {}


async def _reason_for_silence(
    outcome: Outcome,
    session: TargetSession,
    steps: list[tuple[Any, ...]],
    play: Callable[[list[tuple[Any, ...]]], Awaitable[tuple[Outcome, TargetSession]]],
) -> str:
    """Return why a play without a result shows nothing; empty if the target is a server.

    A case can ask for nothing, or for errors only. Then a plain conversation decides.
    """
    from mcp_core import ALL
    from mcp_trio.oracle.fuzz._revisions import dialect_of

    ends = any(step[0] in _ENDING for step in steps)
    if not outcome.answered and (outcome.is_owed or (session.ended and not ends)):
        return _describe_silence(session)
    spoken = [each[1] for each in steps if each[0] == "open" and each[1:2] and each[1] in ALL]
    legacy = next(each for each in ALL if dialect_of(each).stateful)
    for revision in spoken[:1] or (legacy, ALL[0]):
        control, session = await play([("open", revision, "whole", "all")])
        if control.results:
            return ""
    return _describe_silence(session)


def _describe_silence(session: TargetSession) -> str:
    from mcp_trio.oracle.fuzz._session import RECONNECTED

    for request in session.requests:
        error = request.answer.get("error") if request.answer is not None else None
        if isinstance(error, dict):
            text = escape_text(str(error.get("message", ""))[:_SHOWN])
            code = escape_text(repr(error.get("code"))[:_SHOWN])
            return f"it answers {request.method} with the error {code}: {text}"
    reason = "" if session.ended == RECONNECTED else session.ended
    return f"{reason or 'it did not respond'}{session.describe()}"


def _cure(target: str | Sequence[str], cwd: str | os.PathLike[str] | None) -> str:
    if isinstance(target, str):
        return "Start the server, or correct its URL"
    place = escape_text(str(Path(cwd or ".").absolute()))
    return (
        f"Its command was started in {place}: correct TARGET, `cwd` or the environment variables"
        " so that it starts there"
    )


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

    The client is started up to three times, until a fault is found. A play in which it sends no
    request is an error, because it cannot show anything. Do not call it inside `trio.run`: it has
    its own.

    Args:
        command: the words of the command that starts the client, with `{server}` or `{url}`.
        steps: the case, as the tests and the reports of `mcp-trio fuzz` have it.
        env, inherit_env, cwd: as in `mcp_trio.connect_stdio`.
        response_timeout: seconds that the client may take for the response to a ping.

    Returns:
        a sentence for each fault, by the requirement's id, such as `RPC-7`. The end of the
        process by a signal is `crash`; a process that doesn't end is `hang`; one that follows
        pages or rounds without end is `endless`. Empty if there is no fault.

    Raises:
        ConnectFailed: the client doesn't start, or sends no request.
        ValueError: this version doesn't know a step, or a step's words have another shape.
    """
    played = list(steps)
    _check_steps(played, "client")
    return trio.run(_find_client, command, played, env, inherit_env, cwd, response_timeout)


async def _find_client(
    command: Sequence[str],
    steps: list[tuple[Any, ...]],
    env: Mapping[str, str] | None,
    inherit_env: bool,
    cwd: str | os.PathLike[str] | None,
    response_timeout: float,
) -> dict[str, str]:
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz.client._client_play import ClientPlayer
    from mcp_trio.oracle.fuzz.client._client_target import ClientTarget

    echo = Echo()
    await echo.begin()
    target = ClientTarget(
        command, env=env, inherit_env=inherit_env, cwd=None if cwd is None else os.fspath(cwd)
    )
    for _ in range(_PLAYS):
        session = await target.open()
        outcome = await ClientPlayer(response_timeout, echo=echo).play(steps, session)
        if not session.server.requests:
            reason = f"it has sent no request{session.describe()}"
            text = with_cure(reason, _cure(command, cwd))
            raise ConnectFailed(f"no conversation with the client: {text}")
        found = {each.row: each.sentence for each in outcome.faults}
        if found:
            return found
    return {}
