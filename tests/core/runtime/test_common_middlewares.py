"""`Timing`, `RateLimit` and `MaskErrors`: their wrong arguments, and the exact results of each.

`tests/drivers/test_common_middlewares.py` has them in both drivers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from mcp_core import McpError, Rate, ToolError
from mcp_core.registry import Server
from mcp_core.runtime import MaskErrors, RateLimit, Service, Timing
from mcp_core.types import InputRequiredResult, ListRootsRequest
from tests.core.runtime.test_service import Conversation, Quiet, run


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Timing(None), "report is a function of context, seconds and outcome, not None"),  # type: ignore[arg-type]
        (lambda: RateLimit(5), r"such as Rate\(per_second=5, burst=20\), not 5"),  # type: ignore[arg-type]
        (lambda: MaskErrors({"x": "y"}), "a class of exceptions is needed, not 'x'"),  # type: ignore[dict-item]
        (lambda: MaskErrors({KeyboardInterrupt: "y"}), "a class of exceptions is needed"),  # type: ignore[dict-item]
        (lambda: MaskErrors({OSError: 5}), "the text for OSError is a string, not 5"),  # type: ignore[dict-item]
        (lambda: MaskErrors({OSError: ""}), "the text for OSError is empty"),
    ],
)
def test_wrong_argument_is_refused_with_what_is_needed(make: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_middlewares_show_what_they_do() -> None:
    assert repr(RateLimit(Rate(1, 2))) == "RateLimit(Rate(per_second=1, burst=2))"
    assert repr(MaskErrors({OSError: "x", KeyError: "y"})) == "MaskErrors(OSError, KeyError)"
    assert repr(Timing(print)) == "Timing(<built-in function print>)"


# -- Each alone ------------------------------------------------------------------------------------


class Http(NamedTuple):
    """The HTTP request in which a message arrived."""

    client_address: str
    headers: Any = {}  # noqa: RUF012 - no test changes it


class Ticking(Quiet):
    """A runtime whose clock the test moves, and which keeps the errors of hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 50.0
        self.hooks: list[tuple[str, BaseException]] = []

    def monotonic(self) -> float:
        return self.now

    def shared_clock(self) -> float:
        return self.now + 1000

    def report_hook(self, name: str, exc: BaseException) -> None:
        self.hooks.append((name, exc))


class Played(Conversation):
    """A conversation with a `Ticking` runtime, and perhaps with a client's name or address."""

    def __init__(self, server: Server, *, principal: str = "", address: str = "") -> None:
        super().__init__(server)
        self.ticking = Ticking()
        self.service = Service(server, self.conn, self.ticking, principal=principal)
        self._address = address

    def answer(self, name: str) -> Any:
        """Return the result of a tool call, or its error."""
        (job,) = self.call(name)
        job.request.http = Http(self._address) if self._address else None
        try:
            job.done(run(job.run()))
        except Exception as exc:  # noqa: BLE001 - as a runtime does
            job.failed(exc)
        (message,) = self.sent()
        return message.get("result") or message["error"]


def with_middleware(middleware: Any, tool: Any = None) -> Server:
    server = Server("s")
    server.add_tool(tool or (lambda: "fine"), name="work", description="Work.")
    server.middleware(middleware)
    return server


def test_timing_measures_what_is_inside_of_it() -> None:
    """From the time before to the time after, also for a tool that fails."""
    seen: list[Any] = []

    def work() -> str:
        conversation.ticking.now += 2.5
        if len(seen) == 1:
            raise ToolError("no")
        return "fine"

    report = Timing(lambda context, *rest: seen.append((context.method, *rest)))
    conversation = Played(with_middleware(report, work))
    for _ in range(2):
        conversation.answer("work")
    assert seen == [("tools/call", 2.5, "completed"), ("tools/call", 2.5, "failed")]


def test_timing_of_a_tool_that_returns_what_it_asks_is_input_required() -> None:
    outcomes: list[str] = []
    asked = InputRequiredResult(input_requests={"roots": ListRootsRequest()})
    server = with_middleware(Timing(lambda *args: outcomes.append(args[2])), lambda: asked)
    Played(server).answer("work")
    assert outcomes == ["input required"]


def test_report_of_a_timing_that_raises_is_a_failed_hook() -> None:
    conversation = Played(with_middleware(Timing(lambda *_: 1 / 0)))
    assert conversation.answer("work")["content"][0]["text"] == "fine"
    ((name, error),) = conversation.ticking.hooks
    assert name == "the report of a Timing"
    assert isinstance(error, ZeroDivisionError)


REFUSED = {
    "code": 429,
    "message": "too many calls in a short time; try again in 4 s",
    "data": {"retryAfter": 4.0},
}


def test_rate_limit_lets_a_request_through_after_the_time_that_its_error_names() -> None:
    conversation = Played(with_middleware(RateLimit(Rate(per_second=0.25, burst=1))))
    assert "content" in conversation.answer("work")
    assert conversation.answer("work") == REFUSED
    conversation.ticking.now += 3
    assert conversation.answer("work")["data"] == {"retryAfter": 1.0}
    conversation.ticking.now += 1
    assert "content" in conversation.answer("work")
    assert conversation.answer("work") == REFUSED


@pytest.mark.parametrize(
    ("first", "second", "is_together"),
    [
        ({}, {}, True),
        ({"principal": "ada"}, {"principal": "ada"}, True),
        ({"principal": "ada"}, {"principal": "bob"}, False),
        ({"principal": "ada"}, {}, False),
        ({}, {"principal": "None"}, False),
        ({"address": "192.0.2.1"}, {"address": "192.0.2.1"}, True),
        ({"address": "192.0.2.1"}, {"address": "192.0.2.2"}, False),
        ({"address": "192.0.2.1"}, {}, False),
        # A principal counts at every address, and an address without one is another client.
        ({"principal": "ada", "address": "192.0.2.1"}, {"principal": "ada"}, True),
        ({"principal": "ada", "address": "192.0.2.1"}, {"address": "192.0.2.1"}, False),
    ],
)
def test_rate_limit_counts_by_principal_then_address(
    first: Any, second: Any, is_together: bool
) -> None:
    server = with_middleware(RateLimit(Rate(per_second=0.25, burst=1)))
    assert "content" in Played(server, **first).answer("work")
    assert ("code" in Played(server, **second).answer("work")) is is_together


def test_masked_error_is_logged_under_the_reference_that_its_text_has() -> None:
    for error, text in (
        (KeyError("secret"), "broken (reference R1)"),
        (ToolError("known"), "known"),
    ):

        def fail(error: Exception = error) -> str:
            raise error

        conversation = Played(with_middleware(MaskErrors({Exception: "broken"}), lambda: fail()))  # noqa: PLW0108
        answer = conversation.answer("work")
        assert (answer["content"][0]["text"], answer["isError"]) == (text, True)
        logged = [("R1", error)] if isinstance(error, KeyError) else []
        assert conversation.ticking.reports == logged


def test_masked_protocol_error_loses_its_data() -> None:
    class Library(McpError):
        pass

    def fail() -> str:
        raise Library(-7, "secret", {"secret": 1})

    conversation = Played(with_middleware(MaskErrors({Library: "refused"}), fail))
    assert conversation.answer("work") == {"code": -7, "message": "refused (reference R1)"}
