"""Messages with a fault that has one meaning: they are read, and the log says so once."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import Host as AsyncioHost
from mcp_core import CallTimeout, InvalidToolResult, RemoteProtocolError
from mcp_core.drivers import client_config
from mcp_core.host import CallDenied
from mcp_core.registry import Server
from mcp_core.runtime.host import ServerSource
from mcp_core.types import CallToolResult, PromptMessage, TextContent, UnknownContent
from mcp_trio.host import Host as TrioHost
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
from tests.harness.wire.lines import Wire, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.runtime import AbstractClient
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
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (lambda line: BOM + line, "a byte order mark was left out"),
        (
            lambda line: line.replace(b"done", rb"don\ud83d"),
            "half of a surrogate pair was read as U+FFFD",
        ),
    ],
)
async def test_client_reads_a_line_with_a_fault_that_has_one_meaning(
    version: str, data: Any, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As programs print them: a mark before the first line, a half of an emoji that was cut."""
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        line = encoded(result((await wire.receive())["id"], {"content": CONTENT}))
        await wire.send(data(line))
        await call_task.ended.wait()
        assert call_task.result.text in {"done", "don\ufffd"}
    assert warnings_of(caplog) == [f"a message of the server: {problem}"]


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("spelling", ['"0%d"', '" %d"', '"%d.0"', "%d.5", f'"%d{"0" * 20}"'])
async def test_client_takes_no_response_whose_id_is_only_like_that_of_a_call(
    version: str, spelling: str
) -> None:
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        call_task = CallTask(nursery, lambda: client.call_tool("t", timeout=5))
        id = (await wire.receive())["id"]
        answer = encoded(result(id, {"content": CONTENT}))
        assert answer.count(b'"id":%d' % id) == 1
        await wire.send(answer.replace(b'"id":%d' % id, b'"id":' + spelling.encode() % id))
        await call_task.ended.wait()
        assert isinstance(call_task.error, CallTimeout)


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("member", ["name", "uri"])
async def test_client_refuses_half_of_a_pair_in_a_name_or_uri(version: str, member: str) -> None:
    """Two of them could become one."""
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        call_task = CallTask(nursery, lambda: client.call_tool("t", timeout=5))
        id = (await wire.receive())["id"]
        link = {"type": "resource_link", "uri": "x:1", "name": "n", member: "x:?"}
        answer = encoded(result(id, {"content": [link]}))
        await wire.send(answer.replace(b"x:?", rb"x:\ud83d"))
        await call_task.ended.wait()
        assert isinstance(call_task.error, RemoteProtocolError)
        assert "the response to tools/call is invalid" in str(call_task.error)


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


async def test_client_reads_a_notification_whose_params_are_null() -> None:
    """The change of the list is known, so the next call asks for the list."""
    async with connected(D, {"tools": {"listChanged": True}}) as (client, wire):
        async with either.open_nursery() as nursery:
            seen: list[Any] = []

            async def follow() -> None:
                async with client.listen(tools=True) as changes:
                    async for change in changes:
                        seen.append(change.list)
                        return

            nursery.start_soon(follow)
            await either.wait_all_tasks_blocked()
            method = "notifications/tools/list_changed"
            await wire.send({"jsonrpc": "2.0", "method": method, "params": None})
        assert seen == ["tools"]


class Waiting:
    """A server whose tool waits until `go` is set, and notes how many calls were cancelled."""

    def __init__(self) -> None:
        self.go = either.Event()
        self.cancelled: list[str] = []
        self.server = Server("waits")

        @self.server.tool
        async def wait(name: str) -> str:
            """Wait."""
            try:
                await self.go.wait()
            except either.Cancelled:
                self.cancelled.append(name)
                raise
            return name


async def test_cancellation_of_an_id_in_another_form_cancels_the_only_request() -> None:
    waiting = Waiting()
    async with served(waiting.server, D) as wire:
        await wire.send(wire.calling(3, "wait", {"name": "three"}))
        await either.wait_all_tasks_blocked()
        await wire.notify("notifications/cancelled", {"requestId": "03"})
        await either.wait_all_tasks_blocked()
        assert waiting.cancelled == []
        await wire.notify("notifications/cancelled", {"requestId": "3"})
        await either.wait_all_tasks_blocked()
        assert waiting.cancelled == ["three"]
        assert await wire.is_silent()


async def test_cancellation_of_an_id_that_two_requests_could_mean_cancels_the_exact_one() -> None:
    waiting = Waiting()
    async with served(waiting.server, D) as wire:
        await wire.send(wire.calling(3, "wait", {"name": "number"}))
        await wire.send(wire.calling("3", "wait", {"name": "text"}))
        await either.wait_all_tasks_blocked()
        await wire.notify("notifications/cancelled", {"requestId": "3"})
        await either.wait_all_tasks_blocked()
        assert waiting.cancelled == ["text"]
        waiting.go.set()
        answer = await wire.receive()
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (3, "number")
        assert await wire.is_silent()


@pytest.mark.parametrize("version", [D, E])
async def test_client_gets_progress_whose_token_has_another_form(version: str) -> None:
    """The token as a text is the call's. One that is only like it belongs to no call."""
    seen: list[Any] = []

    def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        call_task = CallTask(nursery, lambda: client.call_tool("t", progress=note))
        request = await wire.receive()
        token = request["params"]["_meta"]["progressToken"]
        for spelling, progress in ((f"{token}", 1), (f"0{token}", 2), (f"{token + 1}", 3)):
            params = {"progressToken": spelling, "progress": progress, "message": spelling}
            await wire.notify("notifications/progress", params)
        await wire.send(result(request["id"], {"content": CONTENT}))
        await call_task.ended.wait()
    assert seen == [(1, f"{token}")]


# -- Results that are read by their usable parts ---------------------------------------------------

SCHEMA: Message = {"type": "object"}
GOOD: Message = {"name": "good", "inputSchema": SCHEMA}
# An entry that cannot be read, and the answer, in each list of a server.
LISTS: list[tuple[str, str, Message, str]] = [
    ("list_tools", "tools", GOOD, "tools[1] 'bad' was left out: Object missing required"),
    ("list_prompts", "prompts", {"name": "good"}, "prompts[1] was left out: Expected `object`"),
    ("list_resources", "resources", {"name": "a", "uri": "x:a"}, "resources[1] 'bad' was left out"),
    (
        "list_resource_templates",
        "resourceTemplates",
        {"name": "a", "uriTemplate": "x:{a}"},
        "resourceTemplates[1] 'bad' was left out",
    ),
]
BAD: dict[str, Any] = {"prompts": 5}
CACHED: Message = {"ttlMs": 60_000, "cacheScope": "private"}


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(("call", "member", "good", "problem"), LISTS)
async def test_client_leaves_out_an_entry_that_cannot_be_read_and_names_it(
    version: str,
    call: str,
    member: str,
    good: Message,
    problem: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The other entries are there, also from the cache, and one warning names what isn't."""
    bad = BAD.get(member, {"name": "bad"})
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        for _ in range(2):
            found: list[str] = []
            options = {"problems": found}
            task = CallTask(nursery, lambda options=options: getattr(client, call)(**options))  # type: ignore[misc]
            if version == D or not _:
                id = (await wire.receive())["id"]
                await wire.send(result(id, {member: [good, bad], **CACHED}))
            await task.ended.wait()
            assert len(task.result) == 1
            [line] = found
            assert line.startswith(problem)
    [warning] = warnings_of(caplog)
    assert problem in warning


@pytest.mark.parametrize("version", [D, E])
async def test_client_pages_that_deviate_make_at_most_a_hundred_lines_and_one(
    version: str,
) -> None:
    """A server chooses how many pages there are."""
    found = ["of another call"]
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        for ended in False, True:  # the second time most pages come from the cache
            task = CallTask(nursery, lambda: client.list_tools(problems=found))
            for number in range(130):
                page: Message = {"tools": [GOOD, {"name": f"b{number}"}], **CACHED}
                if number < 129:
                    page["nextCursor"] = f"{number}"
                if version == D or not ended:
                    await wire.send(result((await wire.receive())["id"], page))
            await task.ended.wait()
            assert len(task.result) == 130
            other, *lines, last = found
            assert (other, len(lines)) == ("of another call", 100)
            assert "'b99' was left out" in lines[-1]
            assert last == "tools/list: 30 more lines about further pages were left out"
            del found[1:]


async def test_client_list_that_is_cancelled_keeps_the_lines_of_its_pages() -> None:
    found: list[str] = []
    async with connected() as (client, wire), either.open_nursery() as nursery:
        task = CallTask(nursery, lambda: client.list_tools(problems=found, timeout=5))
        page: Message = {"tools": [GOOD, {"name": "bad"}], "nextCursor": "2"}
        await wire.send(result((await wire.receive())["id"], page))
        await task.ended.wait()
        assert isinstance(task.error, CallTimeout)
    assert len(found) == 1


@pytest.mark.parametrize("version", [D, E])
async def test_client_list_of_nothing_but_unreadable_entries_raises(version: str) -> None:
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        task = CallTask(nursery, client.list_tools)
        await wire.send(result((await wire.receive())["id"], {"tools": [{"name": "bad"}] * 1000}))
        await task.ended.wait()
        assert isinstance(task.error, RemoteProtocolError)
        assert "the result of tools/list is invalid" in str(task.error)


@pytest.mark.parametrize("version", [D, E])
async def test_client_gets_a_block_of_an_unknown_type_with_its_siblings(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is left out, so nothing is logged."""
    content = [*CONTENT, {"type": "widget", "html": "<b>"}]
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        task = CallTask(nursery, lambda: client.call_tool("t"))
        await wire.send(result((await wire.receive())["id"], {"content": content}))
        await task.ended.wait()
        block, unknown = task.result.content
        assert (block.text, unknown) == ("done", UnknownContent("widget", {"html": "<b>"}))
        assert task.result.text == "done"
        task = CallTask(nursery, lambda: client.get_prompt("p"))
        messages = [{"role": "user", "content": content[1]}]
        await wire.send(result((await wire.receive())["id"], {"messages": messages}))
        await task.ended.wait()
        assert task.result.messages == [PromptMessage("user", unknown)]
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("of_client", "of_call", "outcome"),
    [
        (None, None, "raises"),
        (None, "warn", "names"),
        (None, "off", "ignores"),
        ("warn", None, "names"),
        ("warn", "error", "raises"),
        ("off", None, "ignores"),
    ],
)
async def test_client_output_that_does_not_fit_is_treated_as_the_option_says(
    version: str,
    of_client: Any,
    of_call: Any,
    outcome: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The tool has run: its result is never lost, as the error carries it."""
    options: Any = {} if of_client is None else {"check_output": of_client}
    problems: list[str] = []
    of_this: Any = {"problems": problems} | ({} if of_call is None else {"check_output": of_call})
    output = {"type": "object", "properties": {"rows": {"type": "integer"}}}
    async with connected(version, **options) as (client, wire), either.open_nursery() as nursery:
        listing = CallTask(nursery, client.list_tools)
        tools = [GOOD | {"outputSchema": output}]
        await wire.send(result((await wire.receive())["id"], {"tools": tools}))
        await listing.ended.wait()
        task = CallTask(nursery, lambda: client.call_tool("good", **of_this))
        answer = {"content": [], "structuredContent": {"rows": "3"}}
        await wire.send(result((await wire.receive())["id"], answer))
        await task.ended.wait()
    text = "the result of tool 'good' does not fit its outputSchema: rows: \"3\" is not of type"
    assert (len(problems), len(warnings_of(caplog))) == ((1, 1) if outcome == "names" else (0, 0))
    assert all(line.startswith(text) for line in problems)
    if outcome == "raises":
        assert isinstance(task.error, InvalidToolResult)
        assert task.error.problem.startswith(text)
        assert task.error.result.structured_content == {"rows": "3"}
    else:
        assert task.result.structured_content == {"rows": "3"}


async def test_client_line_about_an_output_has_no_hidden_characters() -> None:
    """The place in the output is a name that the server has chosen."""
    problems: list[str] = []
    output = {"type": "object", "additionalProperties": {"type": "integer"}}
    async with connected(D) as (client, wire), either.open_nursery() as nursery:
        listing = CallTask(nursery, client.list_tools)
        tools = [GOOD | {"outputSchema": output}]
        await wire.send(result((await wire.receive())["id"], {"tools": tools}))
        await listing.ended.wait()
        options: Any = {"problems": problems, "check_output": "warn"}
        task = CallTask(nursery, lambda: client.call_tool("good", **options))
        answer = {"content": [], "structuredContent": {"\x1b[2J\u202e": "3"}}
        await wire.send(result((await wire.receive())["id"], answer))
        await task.ended.wait()
    [line] = problems
    assert line.isprintable()
    assert line.isascii()


@pytest.mark.parametrize(
    ("version", "answer"),
    [
        (D, {"error": "refused"}),
        (E, {"error": "refused"}),
        (D, {"toolResult": {"rows": 3}}),
        (E, {"toolResult": {"rows": 3}}),
        (D, {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}),
    ],
)
async def test_client_result_of_another_kind_is_no_empty_one(version: str, answer: Any) -> None:
    async with connected(version) as (client, wire), either.open_nursery() as nursery:
        task = CallTask(nursery, lambda: client.call_tool("t"))
        await wire.send(result((await wire.receive())["id"], answer))
        await task.ended.wait()
        assert isinstance(task.error, RemoteProtocolError)
        assert "missing required field `content`" in str(task.error)


async def test_client_option_check_output_of_another_value_raises() -> None:
    async with connected() as (client, wire):
        for wrong in ("ignore", None):
            with pytest.raises(ValueError, match='check_output is "error", "warn" or "off", not'):
                await client.call_tool("t", check_output=wrong)
        assert await wire.is_silent()
    with pytest.raises(ValueError, match="check_output"):
        client_config({"check_output": "ignore"})  # type: ignore[typeddict-item]


@pytest.mark.parametrize("version", [D, E])
async def test_server_that_returns_a_block_of_an_unknown_type_gets_an_error(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that passes on what another has sent must replace the block: it sends exactly."""
    server = Server("passes on")
    unknown = UnknownContent("widget", {"html": "<b>"})

    @server.tool
    def alone() -> Any:
        """Return the block."""
        return unknown

    @server.tool
    def among() -> Any:
        """Return it in a list."""
        return [TextContent("hi"), unknown]

    @server.tool
    def inside() -> CallToolResult:
        """Return it in a result."""
        return CallToolResult(content=[TextContent("hi"), unknown])

    @server.prompt
    def prompt() -> Any:
        """Return it as a message."""
        return unknown

    async with served(server, version) as wire:
        for id, name in enumerate(("alone", "among", "inside"), 1):
            await wire.send(wire.calling(id, name, {}))
            assert (await wire.receive())["result"]["isError"]
        await wire.send(wire.asking(9, "prompts/get", {"name": "prompt"}))
        assert (await wire.receive())["error"]["code"] == -32603
    assert "no revision of MCP has content of the type 'widget'" in caplog.text


@pytest.mark.parametrize("version", [D, E])
async def test_client_connects_to_a_server_whose_capability_is_no_object(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The list of tools in place of `{}` declares them, and the subscription isn't guessed."""
    offers: Message = {"tools": [GOOD], "resources": {"subscribe": "yes"}, "prompts": False}
    async with connected(version, offers) as (client, wire), either.open_nursery() as nursery:
        task = CallTask(nursery, client.list_tools)
        await wire.send(result((await wire.receive())["id"], {"tools": [GOOD]}))
        await task.ended.wait()
        assert [tool.name for tool in task.result] == ["good"]
        declared = client.peer.capabilities
        assert (declared.resources.subscribe, declared.prompts) == (None, None)
    assert len(warnings_of(caplog)) == 3
    assert "capabilities.tools was read as an empty object" in caplog.text


BROKEN: Message = {"name": "bad\x1b hunter2hunter2", "inputSchema": None}


class DeviatingSource(ServerSource):
    """A server in this process that has an entry and a content block that cannot be read."""

    name = "played"
    secrets = frozenset({"hunter2hunter2"})

    def connect(self, options: Any, inputs: Any, launch: Any) -> Any:
        return self._connect(options)

    @asynccontextmanager
    async def _connect(self, options: Any) -> AsyncIterator[AbstractClient]:
        ours, theirs = either.memory_pair()
        options["versions"] = [D]
        async with either.open_nursery() as nursery:
            nursery.start_soon(self._serve, Wire(theirs, D))
            async with either.connect_stream(ours, **options) as client:
                yield client
            nursery.cancel_scope.cancel()

    async def _serve(self, peer: Wire) -> None:
        await peer.open_as_server({"tools": {}})
        tools = [GOOD | {"annotations": {"readOnlyHint": True, "destructiveHint": "no"}}, BROKEN]
        content = [{"type": "widget", "html": "<b>"}, {"type": "text"}, *CONTENT]
        async for message in peer:
            is_list = message["method"] == "tools/list"
            await peer.answer(message, {"tools": tools} if is_list else {"content": content})

    def same_as(self, other: Any) -> bool:
        return self is other


async def test_host_uses_what_can_be_read_and_names_the_rest() -> None:
    """A block of an unknown type is passed on unchanged, and no tool counts as harmless."""
    host_type: Any = TrioHost if either.on_trio() else AsyncioHost
    questions: list[Any] = []

    def approve(question: Any) -> bool:
        questions.append(question)
        return True

    async with host_type({}, on_approve_call=approve) as host:
        host.add_source(DeviatingSource())
        await host.wait_settled()
        catalog = host.catalog("played")
        assert [tool.name for tool in catalog.tools] == ["good"]
        assert catalog.problems == {}
        hints, entry = catalog.left_out["tools"]
        assert hints.startswith("tools[0].annotations was left out: ")
        assert entry.startswith("tools[1] 'bad\\x1b (redacted)' was left out: ")
        problems: list[str] = []
        found = await host.call_tool("played", "good", problems=problems)
        assert found.content == [UnknownContent("widget", {"html": "<b>"}), TextContent("done")]
        assert len(problems) == len(questions) == 1
        with pytest.raises(CallDenied, match=r"not all of its tools could be read: .*, and 1 more"):
            await host.call_tool("played", "bad")
