"""One exchange of a proxy: the framing of the response, the proxy's own answers, and the end."""

from __future__ import annotations

import pytest

from mcp_core.http import (
    GatewayError,
    ProxiedEnd,
    ProxiedExchange,
    gateway_timeout,
    proxy_error_response,
)

LENGTH = (b"Content-Length", b"3")
CHUNKED = (b"Transfer-Encoding", b"chunked")
CLOSE = (b"Connection", b"close")


def begun(
    method: bytes = b"GET", *, is_http_1_1: bool = True, keep_alive: bool = True
) -> ProxiedExchange:
    return ProxiedExchange(method, is_http_1_1=is_http_1_1, keep_alive=keep_alive)


def passed(exchange: ProxiedExchange) -> ProxiedExchange:
    """Return the exchange with everything that a complete one has."""
    exchange.request_received = True
    exchange.request_sent = True
    exchange.response_passed = True
    return exchange


# -- The head of the response ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "method", "received", "sent", "is_chunked"),
    [
        (200, b"GET", [LENGTH], [LENGTH], False),
        (200, b"GET", [CHUNKED], [CHUNKED], True),
        (200, b"GET", [CHUNKED, LENGTH], [CHUNKED], True),
        (200, b"GET", [], [CHUNKED], True),
        (204, b"GET", [], [], False),
        (304, b"GET", [LENGTH], [LENGTH], False),
        (304, b"GET", [CHUNKED], [], False),
        (200, b"HEAD", [LENGTH], [LENGTH], False),
        (200, b"HEAD", [CHUNKED], [CHUNKED], False),
        (200, b"HEAD", [], [], False),
        (200, b"GET", [LENGTH, CLOSE], [LENGTH], False),
    ],
)
def test_response_is_framed_for_the_client(
    status: int,
    method: bytes,
    received: list[tuple[bytes, bytes]],
    sent: list[tuple[bytes, bytes]],
    is_chunked: bool,
) -> None:
    exchange = begun(method)
    assert exchange.receive_head(status, received) == sent
    assert (exchange.status, exchange.is_chunked) == (status, is_chunked)
    assert passed(exchange).finish(server_is_idle=True).keeps_client
    last = begun(method, keep_alive=False)
    assert last.receive_head(status, received) == [*sent, CLOSE]
    assert not passed(last).finish(server_is_idle=True).keeps_client


@pytest.mark.parametrize(
    ("method", "received", "sent"),
    [
        (b"GET", [LENGTH], [LENGTH, CLOSE]),
        (b"GET", [CHUNKED], [CLOSE]),
        (b"GET", [], [CLOSE]),
        (b"HEAD", [CHUNKED], [CLOSE]),
    ],
)
def test_client_with_http_1_0_gets_no_chunks(
    method: bytes, received: list[tuple[bytes, bytes]], sent: list[tuple[bytes, bytes]]
) -> None:
    exchange = begun(method, is_http_1_1=False)
    assert exchange.receive_head(200, received) == sent
    assert not exchange.is_chunked
    assert not passed(exchange).finish(server_is_idle=True).keeps_client


def test_interim_responses_are_for_http_1_1() -> None:
    assert begun().passes_interim
    assert not begun(is_http_1_1=False).passes_interim


# -- The proxy's own answers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "error", "status", "reason", "traced"),
    [
        ("closed", None, 502, "the server closed the connection without an answer", "reset"),
        ("closed", "cut", 502, "the server closed the connection without an answer", "reset"),
        ("reset", None, 502, "the server reset the connection", "reset"),
        (
            "timeout",
            None,
            504,
            "the server does not react any more: its machine or the network is down",
            "timeout",
        ),
        (None, "a bad line", 502, "the server's answer is not HTTP/1.1: a bad line", "reset"),
    ],
)
def test_missing_response_has_status_and_cause(
    end: str | None, error: str | None, status: int, reason: str, traced: str
) -> None:
    answer = begun().missing_response(end, error)  # type: ignore[arg-type]
    assert answer is not None
    assert (answer.status, answer.reason, answer.end) == (status, reason, traced)
    assert answer.note == f"the proxy answered {status}: {reason}"


@pytest.mark.parametrize(("end", "error"), [("closed", None), ("timeout", None), (None, "bad")])
def test_response_whose_head_has_passed_is_not_replaced(end: str | None, error: str | None) -> None:
    exchange = begun()
    exchange.receive_head(200, [LENGTH])
    assert exchange.missing_response(end, error) is None  # type: ignore[arg-type]


def test_server_that_does_not_accept_is_a_timeout() -> None:
    expected = GatewayError("a.test:1 did not accept a connection within 2.5 s", 504)
    assert gateway_timeout("a.test:1", 2.5) == expected


def test_error_response_is_plain_text_and_closes() -> None:
    headers, body = proxy_error_response("not\x1b this")
    assert body == rb"mcp-trio proxy: not\u001b this" + b"\n"
    assert dict(headers) == {
        b"content-type": b"text/plain; charset=utf-8",
        b"content-length": b"%d" % len(body),
        b"connection": b"close",
    }


# -- The end ---------------------------------------------------------------------------------------

KEEPS = ProxiedEnd(ended_by=None, keeps_client=True, keeps_server=True, lingers=False)


@pytest.mark.parametrize(
    ("change", "is_idle", "expected"),
    [
        ({}, True, KEEPS),
        ({}, False, ProxiedEnd(None, True, False, False)),
        ({"request_sent": False}, True, ProxiedEnd(None, True, False, False)),
        # The client still sends the body, and must get to read the response.
        ({"request_received": False}, True, ProxiedEnd(None, False, True, True)),
        ({"response_passed": False}, True, ProxiedEnd("server", False, False, False)),
        ({"client_disconnected": True}, True, ProxiedEnd("client", False, False, False)),
        (
            {"client_disconnected": True, "response_passed": False},
            True,
            ProxiedEnd("client", False, False, False),
        ),
    ],
)
def test_end_decides_about_both_connections(
    change: dict[str, bool], is_idle: bool, expected: ProxiedEnd
) -> None:
    exchange = begun()
    exchange.receive_head(200, [LENGTH])
    passed(exchange)
    for name, value in change.items():
        setattr(exchange, name, value)
    assert exchange.finish(server_is_idle=is_idle) == expected


def test_client_that_wants_no_more_is_let_read_the_response() -> None:
    exchange = begun(keep_alive=False)
    exchange.receive_head(200, [LENGTH])
    expected = ProxiedEnd(None, keeps_client=False, keeps_server=True, lingers=True)
    assert passed(exchange).finish(server_is_idle=True) == expected


def test_repr_has_method_and_status() -> None:
    exchange = begun(b"POST")
    assert repr(exchange) == "<ProxiedExchange POST, status 0>"
