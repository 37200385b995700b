"""Steps that react to what the server has sent: its requests, cursors, states and tasks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import Role
from mcp_trio.oracle.fuzz._answers import altered_state, input_responses, result_of_input
from mcp_trio.oracle.fuzz._fault import TargetFault, level_of, link_of
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._unanswered import wait_for_all
from ._unknown import INVENTED_CURSOR, served_cursor
from ._waiting import exchange, is_waiting, wait_for, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._play import Play

__all__ = ["REACTION_STEPS"]

ASK_TIMEOUT: Final = 0.3  # seconds for a request of the server
FOLLOW_TIMEOUT: Final = 0.8  # seconds that a task is followed
FOLLOW_INTERVAL: Final = 0.04
# Pages that a step follows; twice as many if they go round in a circle.
MAX_PAGES: Final[Mapping[str, int]] = {"all": 50, "rest": 50, "whole": 500}
PAGES_TIMEOUT: Final = 5.0  # seconds for them, so that a slow list doesn't hold up the run


async def _progress(play: Play, place: int) -> None:
    asked = play.session.asked
    if not asked:
        return
    params = asked[place % len(asked)].get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if token is not None:
        await play.notify("notifications/progress", {"progressToken": token, "progress": 1})


async def _respond(play: Play, place: int, how: str) -> None:
    session = play.session
    if not session.asked:
        await wait_until(play, lambda: bool(session.asked) or not is_waiting(play), ASK_TIMEOUT)
    if session.asked:
        await play.respond_to(session.asked.pop(place % len(session.asked)), how)


async def _page(play: Play, method: str, how: str) -> None:
    session = play.session
    known = session.cursors.get(method, [])
    if how == "other":
        known = [] if play.clients.other is None else play.clients.other.cursors.get(method, [])
        if known:
            await play.send(method, {"cursor": known[-1]})
        return
    if how == "stale" and known:
        await play.send(method, {"cursor": known[0]})
        return
    if how in ("stale", "invented"):
        await exchange(play, method, {})  # which shows whether the list has pages
        sent = await play.send(method, {"cursor": INVENTED_CURSOR})
        await wait_for(play, sent)
        given = session.cursors.get(method, ())
        play.report(served_cursor(sent, given, session.revision))
        return
    if how == "rest" and not known:
        return
    result = await exchange(play, method, {"cursor": known[-1]} if how == "rest" else {})
    seen: Counter[str] = Counter()
    end = trio.current_time() + PAGES_TIMEOUT
    while len(seen) < MAX_PAGES.get(how, 1) and (how != "whole" or trio.current_time() < end):
        cursor = None if result is None else result.get("nextCursor")
        # The second round shows that the pages go round for ever.
        if not isinstance(cursor, str) or seen[cursor] == 2:
            return
        seen[cursor] += 1
        result = await exchange(play, method, {"cursor": cursor})


async def _retry(play: Play, place: int, how: str) -> None:
    session = play.session
    if not session.rounds:
        await wait_for_all(play)
    if not session.rounds:
        return
    request = session.rounds.pop(place % len(session.rounds))
    result = request.answer.get("result") if request.answer is not None else None
    params = request.message.get("params")
    if not isinstance(result, dict) or not isinstance(params, dict):
        return
    params = {key: value for key, value in params.items() if key != "inputResponses"}
    asked = result.get("inputRequests")
    responses = input_responses(asked, how) if isinstance(asked, dict) else {}
    if how != "empty" and responses:
        params["inputResponses"] = responses
    state = result.get("requestState")
    if isinstance(state, str):
        if how == "altered":
            state = altered_state(state)
        elif how == "foreign":
            state = "Zm9yZWlnbg"
        elif how == "other":
            state = _other_state(play) or state
        params["requestState"] = state
    sent = await play.send(request.method, params)
    if how not in ("altered", "foreign") or not isinstance(state, str):
        return
    timeout = play.call_times.timeout(sent.name)
    await wait_until(play, lambda: sent.answer is not None, timeout)
    if sent.answer is not None and "result" in sent.answer:
        play.report(
            TargetFault(
                kind="row",
                row="MRTR-13",
                method=request.method,
                level=level_of("MRTR-13"),
                is_certain=False,  # a call that changes nothing needs no protection
                sentence="a requestState that the server did not give is accepted",
                link=link_of("MRTR-13", session.revision),
            )
        )


def _other_state(play: Play) -> str | None:
    """Return the last `requestState` that the other client got, or None."""
    rounds = [] if play.clients.other is None else play.clients.other.rounds
    found = rounds[-1].answer["result"].get("requestState") if rounds else None
    return found if isinstance(found, str) else None


async def _listen(play: Play, wanted: Any) -> None:
    if "subscriptions/listen" in dialect_of(play.session.revision).receives[Role.SERVER]:
        await play.send("subscriptions/listen", {"notifications": wanted})
        await trio.lowlevel.checkpoint()
    elif isinstance(wanted, dict):
        for uri in wanted.get("resourceSubscriptions", ()):
            await play.send("resources/subscribe", {"uri": uri})


async def _task(play: Play, place: int, act: str) -> None:
    session = play.clients.other if act == "other" else play.session
    if session is None:
        return
    if not session.tasks and act not in ("unknown", "other"):
        await wait_for_all(play)
    id = "00000000-no-such-task"
    if act != "unknown":
        if not session.tasks:
            return
        id = session.tasks[-1 - place % len(session.tasks)]
    method = {"unknown": "get", "other": "get"}.get(act, act)
    if act == "follow":
        await _follow(play, id)
        return
    params: dict[str, Any] = {"taskId": id}
    if act == "update":
        params["inputResponses"] = {"mcp-trio-fuzz-none": {"action": "cancel"}}
    await play.send(f"tasks/{method}", params if act != "list" else {})


async def _follow(play: Play, id: str) -> None:
    """Poll a task until it has ended, and give the input that it requires."""
    end = trio.current_time() + FOLLOW_TIMEOUT
    while trio.current_time() < end and not play.is_over():
        task = await exchange(play, "tasks/get", {"taskId": id})
        status = None if task is None else task.get("status")
        if task is None or status in ("completed", "failed", "cancelled"):
            if task is not None and dialect_of(play.session.revision).stateful:
                await exchange(play, "tasks/result", {"taskId": id})
            return
        asked = task.get("inputRequests")
        if isinstance(asked, dict) and asked:
            responses = {key: result_of_input(each) for key, each in asked.items()}
            await exchange(play, "tasks/update", {"taskId": id, "inputResponses": responses})
        await trio.sleep(FOLLOW_INTERVAL)


REACTION_STEPS: Final[Mapping[str, Any]] = {
    "progress": _progress,
    "respond": _respond,
    "page": _page,
    "retry": _retry,
    "listen": _listen,
    "task": _task,
}
