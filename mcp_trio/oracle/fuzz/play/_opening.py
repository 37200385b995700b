"""The step `open`: how a conversation begins, in order or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import ALL
from mcp_trio.oracle.fuzz._fault import row_fault
from mcp_trio.oracle.fuzz._revisions import UNKNOWN_REVISION, dialect_of

from ._waiting import exchange, wait_until

if TYPE_CHECKING:
    from collections.abc import Collection

    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz._sent_request import SentRequest
    from mcp_trio.oracle.fuzz._session import TargetSession

    from ._play import Play

__all__ = ["EARLY_TIMEOUT", "open_conversation"]

EARLY_TIMEOUT: Final = 0.3  # seconds for a response that a server needn't send


async def open_conversation(
    play: Play, revision: str, how: str = "whole", offers: str = "all"
) -> None:
    """Begin a conversation in a revision. See the step `open`."""
    session = play.session
    if revision not in ALL:
        return
    if session.revision:
        if session.revision == revision:
            await _open_again(play, how, offers)
        return
    session.revision, session.offers = revision, offers
    if not dialect_of(revision).stateful:
        session.judge.add_server_version(revision)  # the case is for a server that speaks it
        session.is_open = True
        return
    if how == "none":
        session.spent = True
        return
    early = None
    if how == "late":
        session.spent = True
        early = await _send_early(play)
    asked = UNKNOWN_REVISION if how == "unknown" else revision
    result = await exchange(play, "initialize", session.initialize_params(asked))
    if early is not None and _was_served_early(early, session):
        play.report(_early_result(early, revision))
    if result is None:
        session.spent = True
        return
    selected = result.get("protocolVersion")
    if isinstance(selected, str):
        play.report(_wrong_version(asked, selected, play.selected, revision))
        play.selected.add(selected)
    if how == "half":
        session.spent = True
        return
    if selected != revision:
        session.spent = True
        if selected not in ALL:
            return  # a client disconnects
        session.revision = str(selected)
    await session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    session.is_open = True
    if how == "twice":
        session.spent = True
        await play.send("initialize", session.initialize_params(revision))


async def _open_again(play: Play, how: str, offers: str) -> None:
    """Go on with a conversation that an earlier case has opened, or this one."""
    session = play.session
    if not dialect_of(session.revision).stateful:
        session.offers = offers  # each request has its own
    elif how == "twice":
        await play.send("initialize", session.initialize_params(session.revision))


async def _send_early(play: Play) -> SentRequest:
    request = await play.send("tools/list", {})
    await wait_until(play, lambda: request.answer is not None, EARLY_TIMEOUT)
    return request


def _wrong_version(
    asked: str, selected: str, spoken: Collection[str], revision: str
) -> TargetFault | None:
    """Return the fault of selecting a wrong revision, None if the choice is right.

    It is wrong to select a revision that doesn't exist, or another one than a requested one that
    the server speaks.

    Args:
        asked: the requested revision.
        selected: the server's choice.
        spoken: the revisions that the server is known to speak.
        revision: the conversation's revision.
    """
    if selected == UNKNOWN_REVISION:
        sentence = f"{asked} was requested, which does not exist, and the server selects it"
    elif selected != asked and asked in spoken:
        sentence = f"{asked} was requested, which the server speaks, and it answers {selected}"
    else:
        return None
    return row_fault("LIFE-4", "initialize", sentence, revision)


def _early_result(request: SentRequest, revision: str) -> TargetFault:
    """Return the fault of serving a request before the handshake."""
    sentence = f"the request {request.method} has a result before initialize"
    return row_fault("LIFE-10", request.method, sentence, revision)


def _was_served_early(early: SentRequest, session: TargetSession) -> bool:
    """Return True if a request before `initialize` got its result before the handshake.

    A process that is still starting answers both at once, in order. Over HTTP, a server without
    sessions can't know which of two requests came first.
    """
    initialize = session.requests[-1]
    if early.answer is None or "result" not in early.answer or not session.is_stateful:
        return False
    return initialize.answer is None or early.answered_at < initialize.answered_at
