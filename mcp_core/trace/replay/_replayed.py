"""A recorded conversation as a test's server: what it cannot answer fails the test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from mcp_core._text import escape_text
from mcp_core.trace._format import EmptyTrace

from ._recorded import RecordedTrace
from ._server import ReplayServer

__all__ = ["NotRecorded", "ReplayedServer"]

_SHOWN: Final = 20  # requests in the text of a failure
_SHOWN_CHARACTERS: Final = 500  # of each


class NotRecorded(AssertionError):
    """The failure of a test whose client sent a request that a recording cannot answer.

    Args:
        server: the replayed server.

    Attributes:
        missing: a text about each such request, the first 1,000.
    """

    def __init__(self, server: ReplayedServer) -> None:
        replay = server.replay
        count = replay.missing_count
        lines = [f"{server.path}: {count} request{'s' * (count > 1)} cannot be answered from it:"]
        lines += [f"  {escape_text(each[:_SHOWN_CHARACTERS])}" for each in replay.missing[:_SHOWN]]
        if count > _SHOWN:
            lines.append(f"  and {count - _SHOWN} more")
        lines += [f"  the recording has gaps: {each}" for each in replay.trace.warnings]
        lines.append(
            "if they are meant: record the conversation anew, or name values that may differ in"
            ' replayed(..., ignore=["/params/arguments/..."])'
        )
        super().__init__("\n".join(lines))
        self.missing = list(replay.missing)


class ReplayedServer:
    """A recorded conversation as the server of a test: a target of `connect`, in both runtimes.

    It can be connected to several times, at once too. Each connection is a session of its own; a
    recorded response is used once, and the last one again.

    Args:
        trace: the recorded conversations.
        path: the trace's file, for the text of a failure.
        ignore: as of `ReplayServer`.

    Attributes:
        path: the same as the argument.
        replay: the server that answers. Its `notes` have other differences, such as another answer
            to an elicitation; they fail no test.

    Raises:
        EmptyTrace: the trace has no request of a client.
        TypeError: `ignore` is one string.
        ValueError: one of `ignore` isn't a JSON pointer.
    """

    def __init__(
        self, trace: RecordedTrace, *, path: str = "the trace", ignore: Iterable[str] = ()
    ) -> None:
        if isinstance(ignore, str):
            raise TypeError(f"ignore is a list of JSON pointers: write ignore=[{ignore!r}]")
        if not trace.has_requests:
            raise EmptyTrace(
                f"{path} has no request of a client, so there is nothing to replay; record a"
                " conversation: connect(server, record=FILE)"
            )
        self.path = path
        self.replay = ReplayServer(trace, ignore=ignore)

    def __repr__(self) -> str:
        return f"<ReplayedServer {self.path}, {self.replay.missing_count} not found>"

    def check(self) -> None:
        """Fail the test if a request could not be answered so far.

        Raises:
            NotRecorded: there was one.
        """
        if self.replay.missing_count:
            raise NotRecorded(self)

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Call `check` at the end of the block, also if it raises an `Exception`.

        The client's exception is then the cause: most often it only follows from the request.
        """
        try:
            yield
        except Exception as exc:
            if self.replay.missing_count and not isinstance(exc, NotRecorded):
                raise NotRecorded(self) from exc
            raise
        self.check()
