"""The record of each call of a tool: one for each outcome, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from msgspec import UNSET

from mcp_core import CallTimeout
from mcp_core.host import (
    ApprovalRequired,
    AuditRecord,
    CallDenied,
    NameCollision,
    ServerUnavailable,
    TooManyCalls,
    UnknownName,
    define,
    digest_arguments,
)
from mcp_core.registry import Server
from mcp_core.runtime.host import CallAnswer, HostLimits
from mcp_trio import PeerError
from tests.core.runtime.host.world import WALL_TIME, FakeSource, opened

if TYPE_CHECKING:
    from types import TracebackType

    from mcp_core.runtime.host import AbstractHost

GIVEN = {"path": "a", "api_key": "abcdefgh"}
MockClock = trio.testing.MockClock


def offering() -> Server:
    server = Server("a")

    @server.tool
    async def work(path: str = "", api_key: str = "") -> str:
        """Work for two seconds."""
        await trio.sleep(2)
        return "done"

    @server.tool
    async def fail(path: str = "", api_key: str = "") -> str:
        """Fail after a second."""
        await trio.sleep(1)
        raise ValueError("hidden")

    return server


class Log:
    """A host with one server, and the records of its calls."""

    def __init__(self, **options: Any) -> None:
        self.records: list[AuditRecord] = []
        self.source = FakeSource("a", offering())
        options = {"approve": "all", "audit": self.records.append} | options
        self._opened = opened([self.source], **options)

    async def __aenter__(self) -> AbstractHost:
        self.host, self.runtime = await self._opened.__aenter__()
        await self.host.wait_settled()
        return self.host

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._opened.__aexit__(exc_type, exc, traceback)

    @property
    def record(self) -> AuditRecord:
        [record] = self.records
        return record


# -- Outcomes --------------------------------------------------------------------------------------


async def test_record_of_a_call_has_all_about_it(autojump_clock: MockClock) -> None:
    """The record holds a digest of the arguments, never the arguments."""
    log = Log()
    async with log as host:
        start = trio.current_time()
        [work] = [each.tool for each in host.tools() if each.tool.name == "work"]
        await host.call("mcp__a__work", GIVEN)
        assert log.record == AuditRecord(
            time=WALL_TIME + start,
            server="a",
            tool="work",
            outcome="ok",
            duration=2.0,
            approved_by="all calls are approved",
            definition=define(work).digest,
            arguments_digest=digest_arguments(GIVEN),
        )


async def test_record_of_a_tool_that_failed(autojump_clock: MockClock) -> None:
    log = Log()
    async with log as host:
        result = await host.call_tool("a", "fail")
        assert result.is_error
        assert (log.record.outcome, log.record.duration) == ("tool error", 1.0)
        assert log.record.error == ""


async def test_record_of_a_call_without_a_result(autojump_clock: MockClock) -> None:
    log = Log()
    async with log as host:
        log.source.server.remove_tool("work")  # the host has not read the list again yet
        with pytest.raises(PeerError, match="Unknown tool"):
            await host.call_tool("a", "work")
        assert (log.record.outcome, log.record.approved_by) == ("error", "all calls are approved")
        assert log.record.error == "Unknown tool: work (-32602)"


async def test_call_whose_name_leads_to_no_tool_is_not_recorded(
    autojump_clock: MockClock,
) -> None:
    log = Log(names=lambda server, name: "same")
    async with log as host:
        with pytest.raises(NameCollision):
            await host.call("same")
        with pytest.raises(UnknownName):
            await host.call("mcp__a__work")
    assert log.records == []


async def test_call_on_the_client_itself_is_not_recorded(autojump_clock: MockClock) -> None:
    log = Log()
    async with log as host:
        await host.client("a").call_tool("work")
        assert log.records == []


async def test_record_of_a_call_that_times_out(autojump_clock: MockClock) -> None:
    log = Log()
    async with log as host:
        with pytest.raises(CallTimeout):
            await host.call_tool("a", "work", timeout=0.5)
        assert log.record.outcome == "timeout"
        assert log.record.duration == pytest.approx(0.5)
        assert log.record.error != ""


async def test_record_of_a_call_that_is_cancelled(autojump_clock: MockClock) -> None:
    log = Log()
    async with log as host:
        with trio.move_on_after(1):
            await host.call_tool("a", "work")
        assert (log.record.outcome, log.record.duration) == ("cancelled", 1.0)


@pytest.mark.parametrize(
    ("options", "error", "approved_by"),
    [
        ({"on_call": lambda *_: "deny"}, CallDenied, "on_call"),
        ({"approve": "ask"}, ApprovalRequired, "the call was not approved"),
        (
            {"on_call": lambda *_: CallAnswer(is_allowed=False, reason="Ann")},
            CallDenied,
            "Ann",
        ),
    ],
)
async def test_record_of_a_call_that_is_denied(
    options: Any, error: type[Exception], approved_by: str, autojump_clock: MockClock
) -> None:
    log = Log(**options)
    async with log as host:
        with pytest.raises(error):
            await host.call_tool("a", "work", GIVEN)
        assert (log.record.outcome, log.record.approved_by) == ("denied", approved_by)
        assert log.record.arguments_digest == digest_arguments(GIVEN)
        assert log.record.duration == 0.0


async def test_record_of_a_call_to_a_server_that_is_not_connected(
    autojump_clock: MockClock,
) -> None:
    log = Log()
    async with log as host:
        host.disable("a")
        with pytest.raises(ServerUnavailable):
            await host.call_tool("a", "work", GIVEN)
        assert (log.record.outcome, log.record.approved_by) == ("error", "")
        assert log.record.error == "the server a is disabled"
        assert log.record.definition == ""


async def test_record_of_a_call_above_the_limit(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    log = Log(limits=HostLimits(calls=1))
    async with log as host:
        nursery.start_soon(host.call_tool, "a", "work")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(TooManyCalls, match="a has 1 calls in flight"):
            await host.call_tool("a", "work")
        assert log.record.outcome == "error"
        assert "has 1 calls in flight" in log.record.error
        await trio.sleep(3)
        assert log.records[1].outcome == "ok"


async def test_record_has_the_arguments_that_were_sent_and_who_approved(
    autojump_clock: MockClock,
) -> None:
    answer = CallAnswer(is_allowed=True, arguments={"path": "b"}, reason="Ann")
    log = Log(approve="ask", on_approve_call=lambda _: answer)
    async with log as host:
        await host.call_tool("a", "work", GIVEN)
        assert log.record.approved_by == "Ann"
        assert log.record.arguments_digest == digest_arguments({"path": "b"})


# -- Arguments -------------------------------------------------------------------------------------


async def test_record_has_no_secrets_if_arguments_are_redacted(autojump_clock: MockClock) -> None:
    log = Log(audit_arguments="redacted")
    async with log as host:
        await host.call_tool("a", "work", GIVEN)
        assert log.record.arguments == {"path": "a", "api_key": "(redacted)"}
        assert log.record.arguments_digest == ""


@pytest.mark.parametrize("verdict", ["allow", "deny"])
async def test_record_has_no_secrets_of_the_configuration(
    verdict: str, autojump_clock: MockClock
) -> None:
    log = Log(audit_arguments="redacted", on_call=lambda *_: verdict)
    async with log as host:
        log.source.secrets = frozenset({"plain words"})
        try:
            await host.call_tool("a", "work", {"path": "my plain words"})
        except CallDenied:
            assert verdict == "deny"
        assert log.record.arguments == {"path": "my (redacted)"}


async def test_error_in_a_record_has_no_secrets(autojump_clock: MockClock) -> None:
    def on_call(*_: Any) -> Any:
        raise ValueError("Authorization: Bearer abcdefghijklmnop, plain words")

    log = Log(on_call=on_call)
    async with log as host:
        log.source.secrets = frozenset({"plain words"})
        with pytest.raises(ValueError, match="Bearer"):
            await host.call_tool("a", "work")
        assert log.record.outcome == "error"
        assert "abcdef" not in log.record.error
        assert "plain words" not in log.record.error


async def test_digest_of_arguments_takes_the_key(autojump_clock: MockClock) -> None:
    log = Log(audit_key=b"key")
    async with log as host:
        await host.call_tool("a", "work", GIVEN)
        assert log.record.arguments_digest == digest_arguments(GIVEN, b"key")
        assert log.record.arguments_digest.startswith("hmac-sha256:")
        assert log.record.arguments is UNSET


@pytest.mark.parametrize("arguments", [{"path": object()}, {"path": float("nan")}])
async def test_arguments_that_are_no_json_have_no_digest(
    arguments: Any, autojump_clock: MockClock
) -> None:
    log = Log(on_call=lambda *_: "deny")
    async with log as host:
        with pytest.raises(CallDenied):
            await host.call_tool("a", "work", arguments)
        assert (log.record.outcome, log.record.arguments_digest) == ("denied", "")


# -- The function ----------------------------------------------------------------------------------


async def test_audit_that_raises_is_logged_and_harms_no_call(autojump_clock: MockClock) -> None:
    def audit(_: AuditRecord) -> None:
        raise OSError("the disk is full")

    log = Log(audit=audit)
    async with log as host:
        assert (await host.call_tool("a", "work")).text == "done"
        [(problem, error)] = log.runtime.errors
        assert (problem, str(error)) == ("audit failed", "the disk is full")


async def test_calls_without_audit_are_not_recorded(autojump_clock: MockClock) -> None:
    log = Log(audit=None)
    async with log as host:
        assert (await host.call_tool("a", "work")).text == "done"
        assert log.runtime.errors == []
