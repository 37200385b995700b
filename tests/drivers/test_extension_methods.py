"""Methods of an extension: notifications of both sides, and requests of a server to its client."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from mcp_core import CLIENT_LIMITS, CallTimeout, LocalProtocolError, McpError, PeerError
from mcp_core.registry import Context, DeclarationError, Server
from mcp_core.types import RequestParams
from tests.harness import either
from tests.harness.jsonrpc import D, E, Message, notification, text_of
from tests.harness.wire.lines import ERAS, served

pytestmark = pytest.mark.usefixtures("each_driver")

INBOX: dict[str, Any] = {"com.example/inbox": {}}
NEW = "notifications/inbox/new"
OPEN = "inbox/open"


class Mail(msgspec.Struct):
    sender: str
    size: int = 0


def inbox(extensions: Any = INBOX) -> Server:
    """A server whose tools send what they are given."""
    server = Server("inbox", extensions=extensions)

    @server.tool
    async def tell(context: Context, method: str = NEW, number: int = 1) -> str:
        """Send notifications."""
        for index in range(number):
            await context.notify(method, {"index": index})
        if not number:
            await context.notify(method)
        return "told"

    @server.tool
    async def ask(context: Context, method: str = OPEN, timeout: float = 60.0) -> dict[str, Any]:
        """Send a request."""
        return await context.request(method, {"sender": "Ada"}, timeout=timeout)

    @server.tool
    async def ask_typed(context: Context) -> str:
        """Send a request whose result has a type."""
        mail = await context.request(OPEN, Mail("Ada"), returns=Mail)
        return f"{mail.sender}: {mail.size}"

    return server


@pytest.mark.parametrize("version", ERAS)
async def test_notification_of_an_extension_arrives_before_the_result(version: str) -> None:
    async with served(inbox(), version) as wire:
        await wire.send(wire.calling(1, "tell", {"number": 2}))
        for index in range(2):
            assert await wire.receive() == notification(NEW, {"index": index})
        assert text_of(await wire.receive()) == "told"


@pytest.mark.parametrize("version", ERAS)
async def test_notification_calls_the_clients_callback(version: str) -> None:
    """A plain function and an `async def` get the params as a dict, in order."""
    plain: list[Any] = []
    later: list[Any] = []

    async def slow(params: dict[str, Any]) -> None:
        await either.sleep(1)
        later.append(params)

    options: dict[str, Any] = {"versions": [version], "extensions": INBOX}
    for callback, seen in ((plain.append, plain), (slow, later)):
        async with either.connect(inbox(), on_notification={NEW: callback}, **options) as client:
            assert (await client.call_tool("tell", {"number": 2})).text == "told"
            await client.call_tool("tell", {"method": "notifications/inbox/other"})
            await client.call_tool("tell", {"number": 0})
            await either.sleep(5)
        assert seen == [{"index": 0}, {"index": 1}, {}]


async def test_notification_whose_callback_fails_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(params: dict[str, Any]) -> None:
        raise KeyError("no box")

    options: dict[str, Any] = {"extensions": INBOX, "on_notification": {NEW: fails}}
    async with either.connect(inbox(), **options) as client:
        assert (await client.call_tool("tell")).text == "told"
    assert caplog.messages == [f"on_notification for {NEW} failed"]


@pytest.mark.parametrize("version", ERAS)
async def test_client_sends_a_notification_of_an_extension(version: str) -> None:
    sent: list[Message] = []

    def note(direction: str, data: bytes) -> None:
        if direction == "sent":
            sent.append(msgspec.json.decode(data))

    options: dict[str, Any] = {"versions": [version], "extensions": INBOX, "trace": note}
    async with either.connect(inbox(), **options) as client:
        await client.notify(NEW, {"a": 1})
        await client.notify(NEW)
        await client.list_tools()
    mine = [message for message in sent if message["method"] == NEW]
    assert mine == [notification(NEW, {"a": 1}), {"jsonrpc": "2.0", "method": NEW}]


CLIENT_FAULTS: list[tuple[Any, str, type[Exception], str]] = [
    # extensions, method, error, part of its text
    (None, NEW, LocalProtocolError, 'as in extensions={"com.example/thing": {}}'),
    (INBOX, "notifications/cancelled", LocalProtocolError, "a method of MCP"),
    (INBOX, "tools/list", LocalProtocolError, "a method of MCP"),
    (INBOX, "", LocalProtocolError, "a method has a name, and this one is empty"),
]


@pytest.mark.parametrize(("extensions", "method", "error", "text"), CLIENT_FAULTS)
async def test_client_refuses_a_notification(
    extensions: Any, method: str, error: type[Exception], text: str
) -> None:
    async with either.connect(inbox(), extensions=extensions) as client:
        with pytest.raises(error, match=re.escape(text)):
            await client.notify(method)
        assert await client.list_tools()


async def test_client_that_is_closed_cannot_notify() -> None:
    async with either.connect(Server("any"), extensions=INBOX) as client:
        pass
    with pytest.raises(Exception, match="closed") as caught:
        await client.notify(NEW)
    assert type(caught.value).__name__ == "ConnectionLost"


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("extensions", "method", "text"),
    [
        (
            None,
            NEW,
            'declare the extension that has it, as in extensions={"com.example/thing": {}}',
        ),
        (INBOX, "notifications/message", "a method of MCP, which has a function of its own"),
        (INBOX, "notifications/progress", "a method of MCP"),
        (INBOX, "", "a method has a name, and this one is empty"),
    ],
)
async def test_handler_cannot_send_another_notification(
    extensions: Any, method: str, text: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(inbox(extensions), version) as wire:
        answer = await wire.call(1, "tell", {"method": method})
    assert answer["result"]["isError"]
    [record] = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LocalProtocolError)
    assert text in str(record.exc_info[1])


async def test_plain_def_cannot_send_or_read() -> None:
    """The text names what to write; there is no `notify_nowait`."""
    server = inbox()
    texts: list[str] = []

    @server.tool
    def plain(context: Context) -> str:
        """Try."""
        for call in (
            lambda: context.notify(NEW),
            lambda: context.request(OPEN),
            lambda: context.read_resource("note://a"),
        ):
            with pytest.raises(RuntimeError) as caught:
                call()
            texts.append(str(caught.value))
        return "tried"

    async with either.connect(server, extensions=INBOX) as client:
        assert (await client.call_tool("plain")).text == "tried"
    assert texts == [
        f"a plain def cannot await context.{name}(): write an `async def`"
        for name in ("notify", "request", "read_resource")
    ]


# -- Requests --------------------------------------------------------------------------------------


def answering(callback: Any, **options: Any) -> Any:
    return either.connect(
        inbox(), versions=[D], extensions=INBOX, on_request={OPEN: callback}, **options
    )


async def test_request_of_an_extension_gets_the_callbacks_result() -> None:
    """It may be a dict, a Struct or None, from a plain function or an `async def`."""
    asked: list[Any] = []

    async def later(params: dict[str, Any]) -> Mail:
        asked.append(params)
        await either.sleep(1)
        return Mail(params["sender"], 7)

    for callback, expected in (
        (later, {"sender": "Ada", "size": 7}),
        (lambda params: {"sender": params["sender"]}, {"sender": "Ada"}),
        (lambda params: None, {}),
    ):
        async with answering(callback) as client:
            assert (await client.call_tool("ask")).structured_content == expected
            if expected:
                typed = await client.call_tool("ask_typed")
                assert typed.text == f"Ada: {expected.get('size', 0)}"
    assert asked == [{"sender": "Ada"}, {"sender": "Ada", "size": 0}]


def refuse(params: dict[str, Any]) -> None:
    raise McpError(-5, "not today")


def fail(params: dict[str, Any]) -> None:
    raise KeyError("s3cret")


@pytest.mark.parametrize(
    ("callback", "code", "text", "logged"),
    [
        (refuse, -5, "the client refused inbox/open: not today", False),
        (fail, -32603, "the client refused inbox/open: Internal error", True),
        (lambda params: "text", -32603, "the client refused inbox/open: Internal error", True),
        (lambda params: {"size": {1, 2}}, None, "", False),
    ],
)
async def test_request_whose_callback_fails_is_an_error_in_the_handler(
    callback: Any, code: int | None, text: str, logged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    async with answering(callback) as client:
        if code is None:  # JSON has a set as a list, which the type of the tool's result allows
            result = await client.call_tool("ask")
            assert result.structured_content == {"size": [1, 2]}
        else:
            with pytest.raises(PeerError, match=text) as caught:
                await client.call_tool("ask")
            assert caught.value.code == code
    assert bool(caplog.records) is logged


async def test_request_whose_result_has_another_type_is_an_error() -> None:
    async with answering(lambda params: {"sender": 7}) as client:
        with pytest.raises(PeerError, match="result of inbox/open does not fit: Expected `str`"):
            await client.call_tool("ask_typed")


async def test_request_without_an_answer_times_out_and_is_cancelled() -> None:
    """The handler goes on with `CallTimeout`, and the callback is cancelled."""
    ended: list[str] = []

    async def never(params: dict[str, Any]) -> None:
        try:
            await either.sleep_forever()
        finally:
            ended.append("cancelled")

    server = inbox()

    @server.tool
    async def patient(context: Context) -> str:
        """Ask, and give up."""
        try:
            await context.request(OPEN, timeout=5)
        except CallTimeout as exc:
            return str(exc)
        return "answered"

    options: dict[str, Any] = {"versions": [D], "extensions": INBOX}
    async with either.connect(server, on_request={OPEN: never}, **options) as client:
        result = await client.call_tool("patient")
        assert result.text == "the client has not answered inbox/open for 5 s"
        await either.sleep(1)
        assert ended == ["cancelled"]


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
async def test_request_with_a_timeout_that_is_over_is_refused(timeout: float) -> None:
    server = inbox()

    @server.tool
    async def hasty(context: Context) -> str:
        """Ask, and don't wait."""
        with pytest.raises(ValueError, match="timeout is a number of seconds above 0"):
            await context.request(OPEN, timeout=timeout)
        return "refused"

    async with either.connect(server, versions=[D], extensions=INBOX) as client:
        assert (await client.call_tool("hasty")).text == "refused"


REFUSED: list[tuple[str, Any, Any, str, str]] = [
    # revision, extensions of the server and of the client, method, part of the text
    (D, INBOX, None, OPEN, "needs a client that declares com.example/inbox"),
    (D, INBOX, {"com.example/else": {}}, OPEN, "needs a client that declares com.example/inbox"),
    (D, None, INBOX, OPEN, "declare the extension that has it"),
    (D, INBOX, INBOX, "roots/list", "a method of MCP"),
    (D, INBOX, INBOX, "", "a method has a name, and this one is empty"),
    (E, INBOX, INBOX, OPEN, "a server sends no requests in revision 2026-07-28"),
]


@pytest.mark.parametrize(("version", "servers", "clients", "method", "text"), REFUSED)
async def test_request_that_may_not_be_sent_is_an_error(
    version: str, servers: Any, clients: Any, method: str, text: str
) -> None:
    """The handler gets the error, and its client no message."""
    seen: list[str] = []
    server = inbox(servers)

    @server.middleware
    async def catching(context: Context, proceed: Any) -> Any:
        try:
            return await proceed()
        except (LocalProtocolError, McpError) as exc:
            seen.append(str(exc))
            raise

    sent: list[Message] = []
    options: dict[str, Any] = {"versions": [version], "extensions": clients}

    def note(_: str, data: bytes) -> None:
        sent.append(msgspec.json.decode(data))

    async with either.connect(server, trace=note, **options) as client:
        with suppress(PeerError):
            assert (await client.call_tool("ask", {"method": method})).is_error
    assert text in seen[0]
    assert method not in [message.get("method") for message in sent]


CALLBACK_FAULTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"on_request": {OPEN: print}}, ValueError, "declare the extension that has it"),
    ({"on_notification": {NEW: print}}, ValueError, "declare the extension that has it"),
    (
        {"on_request": {"elicitation/create": print}, "extensions": INBOX},
        ValueError,
        "each of MCP's has an option, such as on_elicit",
    ),
    (
        {"on_notification": {"notifications/message": print}, "extensions": INBOX},
        ValueError,
        "each of MCP's has an option",
    ),
    (
        {"on_request": {OPEN: print}, "on_notification": {OPEN: print}, "extensions": INBOX},
        ValueError,
        "has a callback in on_request and one in on_notification",
    ),
    ({"on_request": {OPEN: None}, "extensions": INBOX}, TypeError, "which isn't a function"),
    ({"on_request": {"": print}, "extensions": INBOX}, ValueError, "no method with an empty name"),
]


@pytest.mark.parametrize(("options", "error", "text"), CALLBACK_FAULTS)
async def test_callbacks_that_cannot_be_used_raise_before_connecting(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        async with either.connect(Server("any"), **options):
            raise AssertionError("connected")


async def test_method_with_an_empty_name_is_neither_declared_nor_requested() -> None:
    server = inbox()
    with pytest.raises(DeclarationError, match="a method has a name"):
        server.method("", params=RequestParams)(lambda params: {})
    async with either.connect(server, extensions=INBOX) as client:
        with pytest.raises(LocalProtocolError, match="a method has a name"):
            await client.request("")


async def test_notification_as_a_request_is_not_a_method() -> None:
    """And the other way round: what has the wrong form reaches no callback."""
    called: list[Any] = []
    options: dict[str, Any] = {
        "versions": [D],
        "extensions": INBOX,
        "on_notification": {NEW: called.append},
        "on_request": {OPEN: called.append},
    }
    async with either.connect(inbox(), **options) as client:
        with pytest.raises(PeerError, match="is not a method that a client"):
            await client.call_tool("ask", {"method": NEW})
        assert (await client.call_tool("tell", {"method": OPEN})).text == "told"
    assert called == []


async def test_requests_that_are_too_large_together_are_rejected() -> None:
    """A slow callback holds the params: their size counts as that of MCP's own requests does."""
    server = Server("flood", extensions=INBOX)

    @server.tool
    async def flood(context: Context, size: int) -> str:
        """Send two large requests at once."""
        errors: list[str] = []

        async def one() -> None:
            try:
                await context.request(OPEN, {"text": "x" * size})
            except McpError as exc:
                errors.append(exc.message)

        async with either.open_nursery() as nursery:
            nursery.start_soon(one)
            nursery.start_soon(one)
        return " ".join(errors)

    async def slow(params: dict[str, Any]) -> None:
        await either.sleep(1)

    limits = msgspec.structs.replace(CLIENT_LIMITS, message=1000)
    options: dict[str, Any] = {"versions": [D], "extensions": INBOX, "limits": limits}
    async with either.connect(server, on_request={OPEN: slow}, **options) as client:
        text = (await client.call_tool("flood", {"size": 700})).text
    assert text == "the client refused inbox/open: too many large requests at once; ask again later"
