"""Each limit of an endpoint, one below, at and above it."""

from __future__ import annotations

import pytest

from mcp_core.http import HostOriginPolicy, HttpLimits, HttpOptions
from mcp_core.http.server._stream import _MESSAGE, _STREAM
from tests.core.http.test_isolation import Fifty, left_over
from tests.harness.wire.router import RouterHarness, initialize

NEAR = [(-1, True), (0, True), (1, False)]


def test_options_have_defaults() -> None:
    """Operators rely on the documented limits, so none of them changes unnoticed."""
    options = HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"))
    assert (options.reply, options.sessions, options.retry, options.comment_interval) == (
        "auto",
        True,
        1.0,
        15.0,
    )
    limits = options.limits
    assert (limits.sessions, limits.uninitialized, limits.initialize, limits.idle) == (
        10_000,
        1_000,
        30,
        1800,
    )
    assert (limits.events, limits.event_age, limits.session_bytes) == (256, 300, 4 << 20)
    assert (limits.all_bytes, limits.queued, limits.streams) == (256 << 20, 1 << 20, 256)
    assert (limits.client_share, limits.bodies, limits.body_time, limits.unread) == (
        0.25,
        64 << 20,
        300,
        16 << 20,
    )
    assert (options.trusted_proxies, options.sse_path, options.subprotocols) == (
        None,
        None,
        ("mcp",),
    )
    assert (options.listen, options.get_stream) == (True, True)
    assert HttpOptions.of().listen
    assert HttpOptions.of().get_stream
    assert not HttpOptions.of(listen=False).listen
    assert not HttpOptions.of(get_stream=False).get_stream


def test_options_of_a_server_are_taken_over() -> None:
    """A wrong option raises when the server is built, with the correction where one is known."""
    usual = HttpOptions.of()
    assert (usual.reply, usual.sessions) == ("auto", True)
    limits = HttpLimits(sessions=5)
    options = HttpOptions.of(
        "0.0.0.0",
        scheme="https",
        hosts=["a.example"],
        reply="sse",
        sessions=False,
        limits=limits,
        trusted_proxies=["10.0.0.0/8"],
    )
    assert (options.reply, options.sessions, options.limits) == ("sse", False, limits)
    assert (usual.limits, usual.trusted_proxies) == (HttpLimits(), None)
    assert repr(options.trusted_proxies) == "<TrustedProxies 10.0.0.0/8>"
    assert options.host_origin_policy.allows_host(b"a.example")
    assert not usual.host_origin_policy.allows_host(b"a.example")
    assert (usual.sse_path, HttpOptions.of(sse_path="/sse").sse_path) == (None, "/sse")
    with pytest.raises(ValueError, match="begin with a slash: write '/sse'"):
        HttpOptions.of(sse_path="sse")
    with pytest.raises(ValueError, match="sse_path needs sessions"):
        HttpOptions.of(sse_path="/sse", sessions=False)
    with pytest.raises(ValueError, match="does not appear to be"):
        HttpOptions.of(trusted_proxies=["proxy.example"])
    with pytest.raises(ValueError, match="is not an origin"):
        HttpOptions.of(origins=["a.example"])


@pytest.mark.parametrize(("more", "fits"), NEAR)
def test_sessions_limit_is_enforced(more: int, fits: bool) -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=3))
    replies = [harness.post(initialize()) for _ in range(3 + more)]
    assert replies[-1].status == (200 if fits else 503)
    assert len(harness.endpoint.sessions) == min(3, 3 + more)


@pytest.mark.parametrize(("more", "fits"), NEAR)
def test_sessions_limit_applies_to_one_shot_requests(more: int, fits: bool) -> None:
    harness = RouterHarness(limits=HttpLimits(sessions=3))
    replies = [harness.call(1, "slow") for _ in range(3 + more)]
    assert replies[-1].status == (0 if fits else 503)
    harness.step(2)
    assert harness.call(1).status == 200
    assert not harness.endpoint.one_shots
    assert left_over(harness) == {}


@pytest.mark.parametrize(("more", "fits"), NEAR)
def test_sessions_limit_counts_requests_of_disconnected_clients(more: int, fits: bool) -> None:
    """Without sessions no client can reconnect, but a disconnect does not cancel the request."""
    harness = RouterHarness(limits=HttpLimits(sessions=3), sessions=False)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "slow", "arguments": {}},
    }
    statuses = []
    for _ in range(3 + more):
        reply = harness.post(call)
        statuses.append(reply.status)
        harness.close_after(reply)
    assert len(harness.jobs) == 3 + min(more, 0)
    assert (statuses[-1] == 0) is fits
    harness.step(3)
    assert left_over(harness) == {}


@pytest.mark.parametrize(("more", "fits"), NEAR)
def test_uninitialized_limit_is_enforced(more: int, fits: bool) -> None:
    harness = RouterHarness(limits=HttpLimits(uninitialized=3))
    harness.session()
    replies = [
        harness.get() if number % 2 else harness.post(initialize()) for number in range(3 + more)
    ]
    assert replies[-1].status == (200 if fits else 503)


@pytest.mark.parametrize(("more", "lives"), [(-0.1, True), (0, False), (0.1, False)])
def test_initialize_timeout_is_enforced(more: float, lives: bool) -> None:
    harness = RouterHarness(limits=HttpLimits(initialize=30))
    harness.post(initialize())
    harness.wait(30 + more)
    assert bool(harness.endpoint.sessions) is lives


@pytest.mark.parametrize(("more", "lives"), [(-0.1, True), (0, False), (0.1, False)])
def test_idle_timeout_is_enforced(more: float, lives: bool) -> None:
    harness = RouterHarness(limits=HttpLimits(idle=60))
    client = harness.session()
    harness.wait(30)
    client.call(1)
    harness.wait(60 + more)
    assert bool(harness.endpoint.sessions) is lives


def test_idle_timeout_ignores_handlers_without_a_client() -> None:
    harness = RouterHarness(limits=HttpLimits(idle=60))
    client = harness.session()
    reply = client.call(1, "slow", steps=10_000)
    harness.wait(1000)
    assert harness.endpoint.sessions  # its client waits
    harness.close_after(reply)
    harness.wait(120)
    harness.step(2)
    assert (harness.endpoint.sessions, harness.jobs) == ({}, {})


@pytest.mark.parametrize(("more", "fits"), NEAR)
def test_streams_limit_is_enforced(more: int, fits: bool) -> None:
    harness = RouterHarness(limits=HttpLimits(streams=3))
    client = harness.session()
    replies = [client.call(number, "slow", steps=100) for number in range(3 + more)]
    assert (replies[-1].status == 0) is fits
    assert replies[-1].status in (0, 429)


def test_streams_limit_evicts_retained_streams() -> None:
    harness = RouterHarness(limits=HttpLimits(streams=3))
    client = harness.session()
    for number in range(20):
        reply = client.call(number, "count", progress=True, to=1)
        harness.step(3)
        assert reply.ended
    session = harness.endpoint.sessions[client.id]
    assert list(session.streams) == [b"0", b"19", b"20", b"21"]
    assert client.get(b"19-0").status == 200
    assert client.get(b"18-0").status == 400
    assert left_over(harness) == {}


@pytest.mark.parametrize(("more", "fits"), NEAR)
def test_events_limit_is_enforced(more: int, fits: bool) -> None:
    run = Fifty(limits=HttpLimits(events=10))
    run.emit(1)
    run.harness.close_after(run.reply)
    run.emit(10 + more - 1)
    assert (run.resume(b"2-0").status == 200) is fits


@pytest.mark.parametrize(("more", "fits"), [(-0.1, True), (0, False), (0.1, False)])
def test_event_age_is_enforced(more: float, fits: bool) -> None:
    run = Fifty(limits=HttpLimits(event_age=100))
    run.emit(1)
    run.finish()
    run.harness.wait(100 + more)
    assert (run.resume(b"2-0").status == 200) is fits


@pytest.mark.parametrize("name", ["session_bytes", "all_bytes"])
@pytest.mark.parametrize(("more", "fits"), [(-1, False), (0, True), (1, True)])
def test_byte_limits_are_enforced(name: str, more: int, fits: bool) -> None:
    size = len(
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":50}}'
    )
    room = _STREAM + 3 * (_MESSAGE + size)
    run = Fifty(limits=HttpLimits(**{name: room + more}))
    run.emit(3)
    assert run.reply.exchange.stream is not None
    assert run.reply.exchange.stream.bytes == (3 * size if fits else 2 * size)
    assert (run.resume(b"2-0").status == 200) is fits


@pytest.mark.parametrize(("more", "broken"), [(-1, True), (0, False), (1, False)])
def test_queued_limit_closes_the_stream(more: int, broken: bool) -> None:
    """Only a message behind more than the limit is too much: a single one may have any size."""
    size = len(
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":50}}'
    )
    run = Fifty(limits=HttpLimits(queued=size + more))
    run.emit(1)
    run.harness.read = lambda exchange: None  # type: ignore[method-assign]
    run.emit(2)
    assert run.reply.exchange.mode.name == ("DONE" if broken else "STREAM")


@pytest.mark.parametrize("reply", ["auto", "sse"])
def test_queued_limit_does_not_apply_to_a_response(reply: str) -> None:
    harness = RouterHarness(limits=HttpLimits(queued=10), reply=reply)
    assert harness.call(1, text="x" * 50_000).message_text == "x" * 50_000
    assert harness.session().call(1, text="x" * 50_000).message_text == "x" * 50_000
