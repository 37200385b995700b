"""Directed conversations, which show what an operator breaks.

A talk is a revision and messages in their order. Each message but a `now(...)` is followed by a
wait until the server is silent. A message that depends on responses is a function of all messages
of the server so far.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from mcp_trio.oracle.fuzz._probe import probe
from mcp_trio.oracle.fuzz._revisions import dialect_of
from mcp_trio.oracle.fuzz.client._client_play import ClientPlayer
from mcp_trio.oracle.fuzz.play._play import Play
from mcp_trio.oracle.fuzz.play._player import play_case
from mcp_trio.oracle.fuzz.play._waiting import exchange
from tests.oracle_score.campaign import run_repeatable
from tests.oracle_score.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_trio.oracle.fuzz._session import TargetSession
    from tests.oracle_score.http_wrapper import HttpMutantTarget
    from tests.oracle_score.operators import MutantPlace

__all__ = [
    "Now",
    "Talk",
    "TalkShown",
    "Visit",
    "call",
    "cancel",
    "note",
    "now",
    "play_talk",
    "request",
    "talk",
    "visit",
]

Json = dict[str, Any]
SILENCE: Final = 1.0  # seconds of the clock that jumps
LIVE_SILENCE: Final = 0.3  # seconds
_IDS: Final = itertools.count(1)


class Now(NamedTuple):
    """A message after which the next one follows at once."""

    message: Any


class TalkShown(NamedTuple):
    """The outcome of a talk.

    Attributes:
        rows: what the judge says that the server has broken.
        said: the server's messages.
        unanswered: the methods of requests without a response, apart from cancelled ones.
        ended: why the conversation is over, "" if it isn't.
    """

    rows: frozenset[str]
    said: list[Json]
    unanswered: list[str]
    ended: str

    def response(self, id: int | str) -> Json:
        """Return the first response to a request, or an empty message."""
        return next(
            (each for each in self.said if each.get("id") == id and "method" not in each), {}
        )


class Talk(NamedTuple):
    """A directed conversation.

    Attributes:
        revision: its revision.
        messages: what the client sends after the handshake.
        offers: the client's capabilities: all or none.
        breach: says whether the breach is shown that no judged message shows.
        handshake: False if the first message comes before the handshake.
    """

    revision: str
    messages: Sequence[Any]
    offers: str = "all"
    breach: Callable[[TalkShown], bool] | None = None
    handshake: bool = True


class Visit(NamedTuple):
    """A directed conversation over HTTP: steps of the fuzzer, or a function that plays it.

    Attributes:
        steps: the steps, after which the judge has to name the row.
        played: returns True if the breach is shown.
    """

    steps: Sequence[Any] = ()
    played: Callable[[HttpMutantTarget], Awaitable[bool]] | None = None


def visit(steps: Sequence[Any] = (), **more: Any) -> Visit:
    """Return a conversation of steps, or over HTTP."""
    return Visit(steps, **more)


def talk(revision: str, *messages: Any, **more: Any) -> Talk:
    """Return a talk."""
    return Talk(revision, messages, **more)


def request(method: str, id: int | str | None = None, **params: Any) -> Json:
    """Return a request."""
    id = f"w{next(_IDS)}" if id is None else id
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(tool: str, id: int | str | None = None, *, progress: Any = None, **arguments: Any) -> Json:
    """Return a call of a tool; `progress` is its progress token."""
    meta = {} if progress is None else {"_meta": {"progressToken": progress}}
    return request("tools/call", id, name=tool, arguments=arguments, **meta)


def note(method: str, **params: Any) -> Json:
    """Return a notification."""
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def cancel(id: int | str) -> Json:
    """Return the cancellation of a request."""
    return note("notifications/cancelled", requestId=id)


def now(message: Any) -> Now:
    """Return a message after which the next one follows at once."""
    return Now(message)


def play_talk(place: MutantPlace) -> TalkShown:
    """Play the talk of a mutant's place."""

    async def main() -> TalkShown:
        async with trio.open_nursery() as nursery:
            target = SERVERS[place.server].target(place, nursery)
            if isinstance(place.talk, Visit):
                shown = await _play_visit(target, place)
            else:
                silence = LIVE_SILENCE if SERVERS[place.server].needs else SILENCE
                shown = await _play(target, place.talk, silence)
            nursery.cancel_scope.cancel()
        return shown

    if SERVERS[place.server].needs:
        return trio.run(main)
    return run_repeatable(main, 1)  # type: ignore[no-any-return]


async def _play_visit(target: Any, place: MutantPlace) -> TalkShown:
    assert isinstance(place.talk, Visit)
    if place.talk.played is not None:
        is_shown = await place.talk.played(target)
        return TalkShown(frozenset({place.row} if is_shown else ()), [], [], "")
    if SERVERS[place.server].is_client:
        session = await target.open()
        outcome = await ClientPlayer(SILENCE).play(list(place.talk.steps), session)
        return TalkShown(frozenset(each.row for each in outcome.faults), [], [], "")
    await probe(target)  # the target learns which headers repeat arguments
    outcome = await play_case(target, list(place.talk.steps))
    return TalkShown(frozenset(each.row for each in outcome.faults), [], [], "")


async def _play(target: Any, found: Talk, silence: float) -> TalkShown:
    session = await target.open(keep=True)
    play = Play(session, silence)
    session.begin_case()
    session.revision, session.offers = found.revision, found.offers
    if not dialect_of(found.revision).stateful:
        session.judge.add_server_version(found.revision)
        session.is_open = True
    elif found.handshake:
        await exchange(play, "initialize", session.initialize_params(found.revision))
        await session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        session.is_open = True
    for each in found.messages:
        message = each.message if isinstance(each, Now) else each
        if callable(message):
            message = message(_said(session))
        if isinstance(message, bytes):
            await session.send_bytes(message)
        elif message is not None:
            await session.send(_with_meta(message, session))
        if not isinstance(each, Now):
            await _wait_for_silence(play)
    rows = {each.row for each in session.take_faults()}
    rows |= {
        each.row for each in session.judge.close() if each.side == "server" and each.is_certain
    }
    cancelled = {
        each.get("params", {}).get("requestId")
        for each in found.messages
        if isinstance(each, dict) and each.get("method") == "notifications/cancelled"
    }
    unanswered = [
        each.method
        for each in session.requests
        if each.answer is None
        and each.id not in cancelled
        and each.method != "subscriptions/listen"
    ]
    shown = TalkShown(frozenset(rows), _said(session), unanswered, session.ended)
    await session.aclose()
    return shown


def _with_meta(message: Json, session: TargetSession) -> Json:
    """Return a request with the `_meta` of its revision."""
    if "id" not in message or "method" not in message:
        return message
    params = message.get("params", {})
    if not isinstance(params, dict):
        return message
    meta = {**session.meta(), **params.get("_meta", {})}
    return {**message, "params": {**params, "_meta": meta}} if meta else message


async def _wait_for_silence(play: Play) -> None:
    session = play.session
    while not session.ended:
        if session.asked:
            await play.respond_to(session.asked.pop(0), "right")
        elif not await session.wait_changed(trio.current_time() + play.timeout):
            return


def _said(session: Any) -> list[Json]:
    found = []
    for line in session.lines or ():
        if line.sender == "server" and line.raw is not None:
            try:
                message = json.loads(line.raw)
            except ValueError:
                continue
            if isinstance(message, dict):
                found.append(message)
    return found
