"""Recorded conversations as load: each caller plays a copy of its own, again and again.

1. Caller 0 begins with the first conversation, caller 1 with the second, and so on. At the end of
   one a caller goes on with the next, so that few callers play all of them, too. A turn goes on
   where the last one stopped.
2. Ids, cursors, task ids and states are those that the live server gave to this copy. They are
   forgotten at the conversation's end.
3. A response with such values that was lost is asked for once more. A request that failed has
   given none: those after it are sent all the same, and fail or not.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from mcp_core import McpTrioError
from mcp_core.trace import CallCopy, recorded_load
from mcp_trio.oracle.bench._requests import PreparedCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_core.trace import RecordedCall, RecordedLoad, RecordedTrace
    from mcp_trio.oracle.bench._requests import Worker
    from mcp_trio.oracle.bench._turn import TargetLoad

__all__ = ["NothingToPlay", "Recorded", "RecordedWork"]

# By method: the list that has the names in its params, and the list's member.
_LISTS: Final = {"tools/call": ("tools/list", "tools"), "prompts/get": ("prompts/list", "prompts")}
_MAX_PAGES: Final = 100
_MAX_NAMES: Final = 5


class NothingToPlay(McpTrioError):
    """A trace has no request that can be sent to a target. The text says what it has instead."""


class Recorded:
    """A trace as what a load calls.

    Args:
        trace: the recorded conversations.
        path: its file.
        answers_itself: whether the load answers the server's questions, as `Client` does.
    """

    vary = False

    def __init__(
        self, trace: RecordedTrace, *, path: str = "", answers_itself: bool = False
    ) -> None:
        self._trace = trace
        self._path = path
        self._answers_itself = answers_itself

    def __repr__(self) -> str:
        return f"<Recorded, {self._trace!r}>"

    @cached_property
    def _all(self) -> RecordedLoad:
        """The requests of all revisions."""
        return self._load(None)

    @property
    def count(self) -> int:
        """How many requests can be sent to some target."""
        return sum(map(len, self._all.conversations))

    @property
    def why_empty(self) -> str:
        """Why a trace has no request that can be sent, for an error."""
        return "; ".join(_left_out(self._all)) or "it has no requests"

    @property
    def text(self) -> str:
        """The requests, for a report."""
        return f"the requests of {self._path}"

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that are called."""
        names = (
            (call.params or {}).get("name")
            for calls in self._all.conversations
            for call in calls
            if call.method == "tools/call"
        )
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, from which `calls_of` makes it again."""
        return {"load": self._path, "answers_itself": self._answers_itself}

    @property
    def era(self) -> str | None:
        """The revision of most requests; None if the trace shows none."""
        found = self._all.revisions.most_common(1)
        return found[0][0] if found else None

    def work(self, revision: str) -> RecordedWork:
        """Return the requests for a target that speaks `revision`, which no other one shares.

        Raises:
            NothingToPlay: there is none.
        """
        load = self._load(revision)
        if not load.conversations:
            found = "; ".join(_left_out(load)) or "it has no requests"
            is_other = revision not in self._all.revisions
            hint = ": leave --era out to speak the recorded revision" if is_other else ""
            raise NothingToPlay(f"nothing in it can be sent to this target ({found}){hint}")
        return RecordedWork(load, revision)

    def _load(self, revision: str | None) -> RecordedLoad:
        return recorded_load(self._trace, revision=revision, answers_itself=self._answers_itself)


class RecordedWork:
    """Recorded conversations, for the callers of one target.

    Args:
        load: the requests.
        revision: the revision that the target speaks.

    Attributes:
        reads_answers: whether a request needs the response to an earlier one.
    """

    def __init__(self, load: RecordedLoad, revision: str) -> None:
        self._load = load
        self._revision = revision
        self._prepared = {
            call: PreparedCall(call.method, call.params, call.name, may_continue=True)
            for calls in load.conversations
            for call in calls
        }
        self._workers: dict[int, _Player] = {}
        self.reads_answers = any(call.is_source for call in self._prepared)

    def __repr__(self) -> str:
        return f"<RecordedWork of {len(self._prepared)} requests>"

    @property
    def text(self) -> str:
        """The requests, for a report, such as "40 recorded requests in 3 conversations"."""
        count, conversations = len(self._prepared), len(self._load.conversations)
        return (
            f"{count} recorded request{'s' * (count > 1)}"
            f" in {conversations} conversation{'s' * (conversations > 1)}"
        )

    @property
    def warnings(self) -> list[str]:
        """Sentences about requests that aren't played, or not as they were."""
        found = [f"left out {text}" for text in _left_out(self._load)]
        if self._load.hidden:
            lines = ", ".join(map(str, self._load.hidden))
            found.append(
                f"redacted values are sent as they are in the recording: line {lines};"
                " --record-secrets records all values"
            )
        for revision, count in self._load.revisions.items():
            if revision != self._revision:
                sent = f"{count} requests were recorded in {revision}"
                found.append(f"{sent}, and are sent in {self._revision}")
        failed = sum(call.failed for call in self._prepared)
        if failed:
            found.append(f"{failed} of {len(self._prepared)} requests failed when recorded, too")
        return found

    async def missing(self, load: TargetLoad) -> list[str]:
        """Return sentences about tools and prompts that a target doesn't list.

        Args:
            load: the target. It is asked for its lists.

        Raises:
            TargetGone: as `TargetLoad.ask`.
            ConnectFailed: as `TargetLoad.ask`.
        """
        found = []
        for method, (lister, member) in _LISTS.items():
            wanted = Counter(
                str((call.params or {}).get("name"))
                for call in self._prepared
                if call.method == method
            )
            if not wanted:
                continue
            names = await _names(load, lister, member)
            lacking = Counter({name: n for name, n in wanted.items() if name not in names})
            if lacking:
                shown = [f"{name} ({n})" for name, n in lacking.most_common(_MAX_NAMES)]
                if len(lacking) > _MAX_NAMES:
                    shown.append(f"{len(lacking) - _MAX_NAMES} more")
                found.append(
                    f"{lacking.total()} of {len(self._prepared)} requests name {member} that the"
                    f" target doesn't list: {', '.join(shown)}"
                )
        return found

    def worker(self, number: int, seed: int) -> Worker:
        """Return the player of caller `number`, the same one in each turn."""
        player = self._workers.get(number)
        if player is None:
            player = _Player(self._load.conversations, self._prepared, number)
            self._workers[number] = player
        return player


class _Player:
    """Plays conversations for one caller."""

    def __init__(
        self,
        conversations: Sequence[tuple[RecordedCall, ...]],
        prepared: Mapping[RecordedCall, PreparedCall],
        number: int,
    ) -> None:
        self._prepared = prepared
        self._calls = self._draw(conversations, number)
        self._last: RecordedCall | None = None  # a source whose response hasn't come
        self._copy = CallCopy()
        self._was_repeated = False

    def _draw(
        self, conversations: Sequence[tuple[RecordedCall, ...]], number: int
    ) -> Iterator[RecordedCall]:
        while True:
            for place in range(len(conversations)):
                self._copy = CallCopy()
                yield from conversations[(number + place) % len(conversations)]

    def next_call(self, answer: Mapping[str, Any] | None) -> PreparedCall:
        """Return the next request, or the last one again if it isn't over."""
        last, self._last = self._last, None
        if last is not None and answer is not None:
            seconds = self._copy.receive(last, answer)
            if seconds is not None:
                return self._prepare(last)._replace(think=seconds)
        elif last is not None and not self._was_repeated:
            self._was_repeated = True
            return self._prepare(last)
        self._was_repeated = False
        return self._prepare(next(self._calls))

    def _prepare(self, call: RecordedCall) -> PreparedCall:
        if call.is_source:
            self._last = call
        prepared = self._prepared[call]
        return prepared if call.is_fixed else prepared._replace(params=self._copy.params(call))


def _left_out(load: RecordedLoad) -> list[str]:
    """Return what isn't played, each with its count and lines."""
    found = []
    for each in load.left_out:
        lines = ", ".join(map(str, each.lines))
        more = ", …" if each.count > len(each.lines) else ""
        found.append(f"{each.count}: {each.what}" + (f" (line {lines}{more})" if lines else ""))
    return found


async def _names(load: TargetLoad, method: str, member: str) -> set[str]:
    """Return the names in a target's list, as far as it can be read."""
    found: set[str] = set()
    params: dict[str, Any] | None = None
    for _ in range(_MAX_PAGES):
        result = (await load.ask(method, params)).get("result")
        entries = result.get(member) if isinstance(result, dict) else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get("name"), str):
                found.add(entry["name"])
        cursor = result.get("nextCursor") if isinstance(result, dict) else None
        if not cursor:
            break
        params = {"cursor": cursor}
    return found
