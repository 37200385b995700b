"""Byte streams, WebSockets and children as lines of a trace."""

from __future__ import annotations

from mcp_core.trace import ChildChannel, StreamChannel, TraceLine, WebSocketChannel, WebSocketClose


def test_stream_has_a_line_for_each_message_and_each_end() -> None:
    channel = StreamChannel(2, 100)
    assert channel.client_data(1, b"a\nb") == [
        TraceLine(t=1, conversation=2, sender="client", raw="a")
    ]
    assert channel.server_data(2, b"x\n") == [
        TraceLine(t=2, conversation=2, sender="server", raw="x")
    ]
    assert channel.server_data(3, b"") == [
        TraceLine(t=3, conversation=2, sender="server", end="closed")
    ]
    # It ended inside a message.
    assert channel.client_data(4, b"") == [
        TraceLine(t=4, conversation=2, sender="client", raw="b", end="closed")
    ]


def test_stream_continues_at_the_next_line_after_a_loss() -> None:
    channel = StreamChannel(1, 100)
    channel.client_data(1, b"half of")
    channel.skip()
    assert channel.client_data(2, b"rest\nnext\n") == [TraceLine(t=2, sender="client", raw="next")]


def test_websocket_has_messages_and_close_codes() -> None:
    channel = WebSocketChannel(1, 4, 3)
    channel.skip()
    assert channel.message(1, ("client", b"ab")) == [
        TraceLine(t=1, exchange=4, sender="client", raw="ab")
    ]
    [line] = channel.message(2, ("server", b"abcd"))
    assert line.truncated is not None
    assert line.truncated.size == 4
    assert channel.close(3, ("server", 1001, "bye")) == [
        TraceLine(
            t=3, exchange=4, sender="server", websocket=WebSocketClose(code=1001, reason="bye")
        )
    ]


def test_child_has_its_command_stderr_and_exit() -> None:
    channel = ChildChannel(1, 100)
    assert channel.spawned(0, "x y") == [TraceLine(t=0, kind="spawn", text="x y")]
    assert channel.stderr(1, b"a\nb\xff") == [TraceLine(t=1, kind="stderr", text="a")]
    assert channel.exited(2, -9) == [
        TraceLine(t=2, kind="stderr", text="b\ufffd"),
        TraceLine(t=2, kind="exit", status=-9),
    ]
    channel.stderr(3, b"lost ")
    channel.skip()
    assert channel.exited(4, 0) == [TraceLine(t=4, kind="exit", status=0)]


def test_package_lists_the_names_that_it_loads_on_first_use() -> None:
    import mcp_core.trace

    assert dir(mcp_core.trace) == sorted(mcp_core.trace.__all__)
    assert {"Judge", "ReplayServer"} <= set(dir(mcp_core.trace))
