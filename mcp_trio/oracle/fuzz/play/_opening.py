"""The step `open`: how a conversation begins, in order or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import ALL
from mcp_trio.oracle.fuzz._session import (
    UNKNOWN_REVISION,
    dialect_of,
    early_result,
    was_served_early,
    wrong_version,
)

from ._waiting import exchange, wait_until

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._session import SentRequest

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
    if early is not None and was_served_early(early, session):
        play.report(early_result(early, revision))
    if result is None:
        session.spent = True
        return
    selected = result.get("protocolVersion")
    if isinstance(selected, str):
        play.report(wrong_version(asked, selected, play.selected, revision))
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
