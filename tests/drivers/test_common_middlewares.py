"""`Timing`, `RateLimit` and `MaskErrors`, on both drivers and in both eras."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcp_core import McpError, PeerError, Rate, ToolError
from mcp_core.drivers import answer_form
from mcp_core.registry import Context, ResourceNotFound, Server, UrlElicitationRequired
from mcp_core.runtime import MaskErrors, RateLimit, Timing
from mcp_core.types import CallToolResult, TextContent
from tests.harness import either
from tests.harness.wire.lines import ERAS

pytestmark = [pytest.mark.usefixtures("each_driver"), pytest.mark.parametrize("version", ERAS)]

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


class Refused(McpError):
    """An exception of a library."""


def build() -> Server:
    server = Server("s")
    raised = {
        "tool error": ToolError("secret"),
        "library": LookupError("secret"),
        "below": KeyError("secret"),
        "group": ExceptionGroup("secret", [LookupError("secret")]),
        "refused": Refused(-7, "secret", {"secret": 1}),
        "page": UrlElicitationRequired("visit", "https://h/"),
        "other": ZeroDivisionError("secret"),
    }

    @server.tool
    def fail(how: str) -> str:
        """Fail."""
        raise raised[how]

    @server.tool
    def fine() -> str:
        """Succeed."""
        return "fine"

    @server.tool
    def failed() -> CallToolResult:
        """Return a failure."""
        return CallToolResult(content=[TextContent("no")], is_error=True)

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for a name."""
        answer = await context.elicit("Who?", FORM)
        return answer.data["name"] if answer.action == "accept" else ""

    @server.tool
    async def wait() -> str:
        """Wait."""
        await either.sleep(1000)
        return ""

    @server.resource("x:{name}")
    def read(name: str) -> str:
        if name == "missing":
            raise ResourceNotFound("no such thing")
        raise LookupError("secret")

    return server


def client_of(server: Server, version: str) -> Any:
    return either.connect(
        server, versions=[version], on_elicit=answer_form(lambda message, form: {"name": "Ada"})
    )


# -- Timing ----------------------------------------------------------------------------------------


async def test_timing_reports_each_outcome(version: str) -> None:
    """With its seconds. A handler that asks is two runs in 2026-07-28."""
    seen: list[tuple[str, str]] = []
    seconds: list[float] = []

    def report(context: Context, took: float, outcome: str) -> None:
        seen.append((getattr(context.params, "name", context.method), outcome))
        seconds.append(took)

    server = build()
    server.middleware(Timing(report))
    async with client_of(server, version) as client:
        for name in "fine", "failed", "ask":
            await client.call_tool(name)
        await client.call_tool("fail", {"how": "tool error"})
        await client.list_tools()
        with either.move_on_after(5):
            await client.call_tool("wait")
        await either.wait_all_tasks_blocked()
    asked = [("ask", "input required")] if version == ERAS[1] else []
    assert seen == [
        ("fine", "completed"),
        ("failed", "failed"),
        *asked,
        ("ask", "completed"),
        ("fail", "failed"),
        ("tools/list", "completed"),
        ("wait", "cancelled"),
    ]
    assert all(took >= 0 for took in seconds)


async def test_report_that_raises_is_logged_and_changes_nothing(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = build()
    server.middleware(Timing(lambda *_: 1 / 0))
    async with client_of(server, version) as client:
        assert (await client.call_tool("fine")).text == "fine"
    assert "the report of a Timing" in caplog.text
    caplog.clear()


# -- RateLimit -------------------------------------------------------------------------------------


async def test_requests_above_the_rate_get_the_time_to_wait(version: str) -> None:
    """Lists count as well as calls, and all clients without a name count together."""
    server = build()
    server.middleware(RateLimit(Rate(per_second=0.001, burst=2)))
    async with client_of(server, version) as client, client_of(server, version) as other:
        await client.call_tool("fine")
        await other.list_tools()
        for refused in client, other:
            with pytest.raises(PeerError, match="too many calls in a short time; try again") as no:
                await refused.call_tool("fine")
            assert no.value.data["retryAfter"] > 900


async def test_rate_counts_by_key(version: str) -> None:
    """A request with an empty one isn't counted."""
    keys = {"fine": "", "failed": "a", "ask": "b"}

    def key(context: Context) -> str:
        return keys[context.params.name]

    server = build()
    server.middleware(RateLimit(Rate(per_second=0.001, burst=1), key=key))
    async with client_of(server, version) as client:
        for _ in range(3):
            assert (await client.call_tool("fine")).text == "fine"
        await client.call_tool("failed")
        with pytest.raises(PeerError, match="too many calls"):
            await client.call_tool("failed")


# -- MaskErrors ------------------------------------------------------------------------------------

TEXTS = {LookupError: "not found", Exception: "broken", Refused: "refused", ToolError: "sorry"}
REFERENCE = r" \(reference \w+\)$"
MASKED = r"^{} \(reference \w+\) \(-\d+\)$"  # the client shows the code


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("tool error", "^sorry" + REFERENCE),
        ("library", "^not found" + REFERENCE),
        ("below", "^not found" + REFERENCE),
        ("group", "^not found" + REFERENCE),
        ("other", "^broken" + REFERENCE),
    ],
)
async def test_masked_exception_of_a_tool_is_a_result_with_its_text(
    version: str, how: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the exception under the reference."""
    server = build()
    server.middleware(MaskErrors(TEXTS))
    async with client_of(server, version) as client:
        result = await client.call_tool("fail", {"how": how})
    assert result.is_error
    assert re.search(text, result.text)
    assert result.text.split()[-1].strip("()") in caplog.text
    assert "secret" in caplog.text
    caplog.clear()


async def test_masked_protocol_error_keeps_its_code(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = build()
    server.middleware(MaskErrors(TEXTS))
    async with client_of(server, version) as client:
        with pytest.raises(PeerError, match=MASKED.format("refused")) as refused:
            await client.call_tool("fail", {"how": "refused"})
        assert (refused.value.code, "secret" in repr(refused.value.data)) == (-7, False)
        with pytest.raises(PeerError, match=MASKED.format("not found")):
            await client.read_resource("x:y")
        with pytest.raises(PeerError, match="no such thing"):
            await client.read_resource("x:missing")
    caplog.clear()


async def test_entry_of_exception_leaves_what_is_meant_for_the_client(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """And an exception without an entry is what it would be without the middleware."""
    server = build()
    server.middleware(MaskErrors({Exception: "broken"}))
    async with client_of(server, version) as client:
        assert (await client.call_tool("fail", {"how": "tool error"})).text == "secret"
        with pytest.raises(PeerError, match="secret"):
            await client.call_tool("fail", {"how": "refused"})
    server = build()
    server.middleware(MaskErrors({KeyError: "no such key"}))
    async with client_of(server, version) as client:
        text = (await client.call_tool("fail", {"how": "library"})).text
        assert "internal error" in text
    assert "secret" in caplog.text
    caplog.clear()


async def test_request_for_input_passes_all_three(version: str) -> None:
    server = build()
    for middleware in (
        Timing(lambda *_: None),
        RateLimit(Rate(per_second=1, burst=9)),
        MaskErrors({Exception: "broken"}),
    ):
        server.middleware(middleware)
    async with client_of(server, version) as client:
        assert (await client.call_tool("ask")).text == "Ada"
