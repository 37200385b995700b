"""Messages with a fault that has one meaning: they are read, and the log says so once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import CallTimeout
from mcp_core.registry import Server
from tests.harness import either
from tests.harness.jsonrpc import (
    D,
    E,
    encoded,
    error,
    request,
    result,
)
from tests.harness.wire.client import CallTask, connected
from tests.harness.wire.lines import served

if TYPE_CHECKING:
    from tests.harness.jsonrpc import Message

pytestmark = pytest.mark.usefixtures("each_driver")

BOM = b"\xef\xbb\xbf"
CONTENT = [{"type": "text", "text": "done"}]


def warnings_of(log: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno == level]


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("respelled", "problem"),
    [
        ({"id": "%d"}, "a response has the id '{}' in place of {}"),
        ({"id": 0.5}, "a message of the server: an id such as 3.0 was read as 3"),
        ({"error": None}, None),
        ({"method": None}, "a message of the server: null was read as an absent member: method"),
    ],
)
async def test_client_reads_a_response_with_a_fault_that_has_one_meaning(
    version: str, respelled: Message, problem: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """The response is the call's, as many clients read it, and one warning says what is wrong."""
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        for _ in range(2):
            call_task = CallTask(nursery, lambda: client.call_tool("t"))
            id = (await wire.receive())["id"]
            message: Message = {"jsonrpc": "2.0", "id": id, "result": {"content": CONTENT}}
            if "id" in respelled:
                message["id"] = str(id) if respelled["id"] == "%d" else float(id)
            await wire.send({**message, **{k: v for k, v in respelled.items() if k != "id"}})
            await call_task.ended.wait()
            assert call_task.result.text == "done"
            if problem is not None and _ == 0:
                assert warnings_of(caplog) == [problem.format(id, id)]
    assert len(warnings_of(caplog)) == (problem is not None)


@pytest.mark.parametrize("version", [D, E])
async def test_client_error_without_an_id_fails_no_call_and_explains_its_timeout(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The tool may be running: only the timeout, which repeats the error, ends the call."""
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        calls = [CallTask(nursery, lambda: client.call_tool("t", timeout=5)) for _ in range(2)]
        first = await wire.receive()
        await wire.receive()
        await wire.send(error(None, -32700, "out of memory"))
        await wire.send(error(None, -32700, "out of memory"))
        await wire.send(result(first["id"], {"content": CONTENT}))
        for call_task in calls:
            await call_task.ended.wait()
    done, failed = sorted(calls, key=lambda each: each.error is not None)
    assert done.result.text == "done"
    text = "the server sent an error without an id: out of memory (-32700)"
    assert isinstance(failed.error, CallTimeout)
    assert text in str(failed.error)
    assert warnings_of(caplog) == [text]


def greeting_server() -> Server:
    server = Server("greets")

    @server.tool
    def greet(name: str) -> str:
        """Greet."""
        return f"hi {name}"

    return server


@pytest.mark.parametrize(
    ("version", "data", "problem"),
    [
        (D, lambda call: BOM + call("Ann"), "a byte order mark was left out"),
        (E, lambda call: BOM + call("Ann"), "a byte order mark was left out"),
        (
            D,
            lambda call: call("A?").replace(b"?", rb"\ud83d"),
            "half of a surrogate pair was read as U+FFFD",
        ),
        (
            E,
            lambda call: call("A?").replace(b"?", rb"\ude00"),
            "half of a surrogate pair was read as U+FFFD",
        ),
    ],
)
async def test_server_reads_a_request_with_a_fault_that_has_one_meaning(
    version: str, data: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with served(greeting_server(), version) as wire:
        for id in (1, 2):
            call = lambda name, id=id: encoded(wire.calling(id, "greet", {"name": name}))  # noqa: E731
            await wire.send(data(call))
            [block] = (await wire.receive())["result"]["content"]
            assert block["text"] in {"hi Ann", "hi A\ufffd"}
    assert warnings_of(caplog, logging.INFO) == [f"a message of the client: {problem}"]
    assert warnings_of(caplog) == []


async def test_server_reads_params_that_are_null_as_absent() -> None:
    async with served(greeting_server(), D) as wire:
        await wire.send(request(1, "tools/list") | {"params": None})
        [tool] = (await wire.receive())["result"]["tools"]
        assert tool["name"] == "greet"
        await wire.send(request(2, "tools/call") | {"params": {"name": "greet", "_meta": None}})
        assert (await wire.receive())["result"]["isError"]


@pytest.mark.parametrize("version", [D, E])
async def test_client_reads_meta_that_is_null_as_absent(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In a result, in what it lists and contains, in a notification and in a request."""
    logged: list[Any] = []
    block = {"type": "text", "text": "done", "_meta": None}
    listed: Message = {"name": "t", "inputSchema": {"type": "object"}, "_meta": None}
    options: Any = {"on_log": logged.append}
    async with connected(version, **options) as (client, wire), either.open_nursery() as nursery:
        lists = CallTask(nursery, client.list_tools)
        id = (await wire.receive())["id"]
        complete = {"_meta": None, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        await wire.send(result(id, {"tools": [listed], **complete}))
        await lists.ended.wait()
        assert [each.meta for each in lists.result] == [None]
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        id = (await wire.receive())["id"]
        if version == D:
            note = {"level": "error", "data": "x", "_meta": None}
            await wire.send({"jsonrpc": "2.0", "method": "notifications/message", "params": note})
            await wire.send(request(1, "ping") | {"params": {"_meta": None}})
            assert (await wire.receive())["result"] == {}
        await wire.send(result(id, {"content": [block], "_meta": None, "resultType": "complete"}))
        await call_task.ended.wait()
        assert (call_task.result.meta, call_task.result.content[0].meta) == (None, None)
    assert len(logged) == (version == D)
    assert warnings_of(caplog) == []
