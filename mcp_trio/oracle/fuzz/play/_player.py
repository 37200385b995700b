"""The player of a case: send what its steps say, wait, and collect the faults.

A step that makes no sense when its turn comes, or calls a denied tool, does nothing. So any part of
a case is a case.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio
from msgspec.structs import replace

from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._case import client_of, own_step
from mcp_trio.oracle.fuzz._revisions import dialect_of
from mcp_trio.oracle.fuzz._sent_request import LOST

from ._clients import ONE_CLIENT
from ._ending import finish
from ._play import Play, ToolNotAllowed
from ._step_table import STEPS
from ._waiting import ends_early

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_core.trace import TraceHeader
    from mcp_trio.oracle.fuzz._call_guard import CallGuard
    from mcp_trio.oracle.fuzz._case import Case, Outcome, Step
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz._session import TargetSession
    from mcp_trio.oracle.fuzz.invariants._checks import CaseChecks

__all__ = ["FreshPlays", "Player", "TargetLike", "play_case"]


class TargetLike(Protocol):
    """A target: what `CommandTarget` and `UrlTarget` have in common."""

    name: str
    kind: str

    async def open(self, *, keep: bool = False) -> TargetSession:
        """Return a fresh session. With `keep` its lines are kept."""

    def header(self) -> TraceHeader:
        """Return the header of a trace of this target."""

    def learn_tools(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Learn how the listed tools are called."""


class Player:
    """A player of cases on one session after the other.

    Args:
        response_timeout: seconds for a response.
        echo: measures how slow the machine is; None to trust it.
        guard: says which messages may be sent; None for all.
        probes: whether each case ends with a request that every server answers.
        wanted: the cause of a fault. A play ends when it is found.
        drops: True for a request, or a batch's list, that the server is known to drop; None if it
            drops none. No step waits for it: the response to the probe shows that the server has
            read it.
        call_times: how long calls of tools may take, which the players of a run share. By default
            nothing is known about any tool.
        checks: the author's own functions, for one play; None without any.
    """

    def __init__(
        self,
        response_timeout: float = 2.0,
        *,
        echo: Echo | None = None,
        guard: CallGuard | None = None,
        probes: bool = True,
        wanted: tuple[str, str] | None = None,
        drops: Callable[[Any], bool] | None = None,
        call_times: CallTimes | None = None,
        checks: CaseChecks | None = None,
    ) -> None:
        self._probes = probes
        self._drops = drops
        self._new_play = partial(
            Play,
            timeout=response_timeout,
            echo=echo,
            guard=guard,
            wanted=wanted,
            call_times=call_times or CallTimes(),
            checks=checks,
        )

    async def play(self, case: Case, session: TargetSession) -> Outcome:
        """Play `case` on `session`, and return its outcome."""
        play = self._new_play(session)
        session.begin_case()
        session.call_times = play.call_times
        if self._drops is not None:
            session.drops = self._drops
        try:
            for place, step in enumerate(case):
                await play.check_results()
                if play.is_found():
                    play.outcome.steps = place
                    break
                await _play_step(play, step)
                if await _ends_early(play):
                    break
            await finish(play, probes=self._probes)
        finally:
            await play.clients.aclose()
        _count_requests(play)
        play.outcome.faults = play.session.take_faults()
        return play.outcome


async def _play_step(play: Play, step: Step) -> None:
    if client_of(step):
        await _play_on_second(play, own_step(step))
        return
    act = STEPS.get(step[0]) or play.session.steps.get(step[0])
    if act is None or (play.session.ended and step[0] != "reconnect"):
        return
    with suppress(ToolNotAllowed):
        await act(play, *step[1:])


async def _ends_early(play: Play) -> bool:
    """Return True if the server answers nothing any more, to one of the clients."""
    if await ends_early(play):
        return True
    return play.clients.other is not None and await play.clients.as_other(ends_early, play)


async def _play_on_second(play: Play, step: Step) -> None:
    """Play a step of the second client, which its first `open` begins."""
    clients = play.clients
    if clients.other is None and step[0] == "open":
        is_begun = await clients.begin_second()
        if not is_begun and ONE_CLIENT not in play.outcome.notes:
            play.outcome.notes.append(ONE_CLIENT)
    if clients.other is not None:
        await clients.as_other(_play_step, play, step)


def _count_requests(play: Play) -> None:
    outcome = play.outcome
    for session in play.clients:
        answers = [each.answer for each in session.requests if each.answer is not None]
        outcome.answered += sum(each is not LOST for each in answers)
        outcome.results += sum("result" in each for each in answers)
        outcome.calls += sum(
            each.method == "tools/call"
            and each.answer not in (None, LOST)
            and (play.guard is None or play.guard.names_allowed_tool(each.message))
            for each in session.requests
        )
        outcome.is_owed |= any(each.was_open for each in session.requests)
        outcome.changers += [each for each in session.changers if each not in outcome.changers]
        outcome.notes += session.notes
        outcome.messages += session.take_messages()


class PlayerFactory(Protocol):
    """A maker of players. See `Player`."""

    def __call__(
        self,
        timeout: float,
        /,
        *,
        probes: bool = ...,
        wanted: tuple[str, str] | None = ...,
        call_times: CallTimes | None = ...,
    ) -> Any:
        """Return a player."""


class FreshPlays:
    """Plays of cases, each alone on a fresh session of a target.

    Args:
        target: opens the sessions.
        new_player: makes a player for each play.
        response_timeout: seconds for a response.
    """

    def __init__(
        self, target: TargetLike, new_player: PlayerFactory, response_timeout: float
    ) -> None:
        self.response_timeout = response_timeout
        self._target = target
        self._new_player = new_player

    @property
    def has_processes(self) -> bool:
        """True if each play starts a process."""
        return self._target.kind == "stdio"

    async def play(
        self,
        case: Case,
        timeout: float | None = None,
        *,
        probes: bool = True,
        wanted: tuple[str, str] | None = None,
        call_times: CallTimes | None = None,
    ) -> Outcome:
        """Play a case. `timeout` takes the place of the usual seconds for a response.

        `call_times` takes the place of what the run knows about its tools.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        seconds = self.response_timeout if timeout is None else timeout
        player = self._new_player(seconds, probes=probes, wanted=wanted, call_times=call_times)
        return await play_case(self._target, case, player)


async def play_case(
    target: TargetLike, case: Case, player: Player | None = None, *, keep: bool = True
) -> Outcome:
    """Play a case on a fresh session of a target, and return its outcome.

    Raises:
        ConnectFailed: the target doesn't start.
    """
    session = await target.open(keep=keep)
    try:
        outcome = await (player or Player()).play(case, session)
    finally:
        with trio.CancelScope(shield=True):
            await session.aclose()
    outcome.header = session.header
    if not dialect_of(session.revision).stateful:  # no handshake shows it
        outcome.header = replace(session.header, server_versions=(session.revision,))
    outcome.lines = list(session.lines or ())
    return outcome
