"""Redirects: which are followed, with what, and why the others aren't."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ConnectionClosed, ErrorReceived, InputProblem, PeerReady, ResultReceived
from mcp_core.http import Head, Url
from mcp_core.http.client._options import HttpClientOptions
from mcp_core.http.client._redirects import redirect_target
from tests.core.http.client.test_http_client_auth import Access
from tests.core.http.client.test_sse_transport import rejected_handshake
from tests.core.http.client_net import (
    URL,
    D,
    E,
    Net,
    discover_result,
    event,
    header,
    initialize_result,
    open_client,
    posted_message,
    send_call,
    type_names,
)
from tests.harness.jsonrpc import A, result, single

if TYPE_CHECKING:
    from mcp_core.http.client._options import HttpCall

HTTPS = "https://server.example/mcp"
# What Starlette sends for `app.mount("/mcp", ...)`, behind a proxy that ends TLS.
DOWNGRADE = "http://server.example/mcp/"


def target_of(location: str | None, *redirected: str, status: int = 307, **options: Any) -> str:
    """Return where a redirect leads, or why it isn't followed."""
    headers = [] if location is None else [(b"location", location.encode())]
    urls = [Url.parse(each) for each in redirected or (URL,)]
    found = redirect_target(urls, Head(status, headers), **options)
    return found if isinstance(found, str) else found.text


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("http://server.example/mcp/", "http://server.example/mcp/"),
        ("http://SERVER.example:80/mcp/", "http://SERVER.example:80/mcp/"),
        ("/mcp/", "http://server.example/mcp/"),
        ("mcp/", "http://server.example/mcp/"),
        ("./mcp/?a=b", "http://server.example/mcp/?a=b"),
        ("../v2/mcp", "http://server.example/v2/mcp"),
        ("//server.example/x", "http://server.example/x"),
        ("/\u00e9", "http://server.example/\u00e9"),
    ],
)
def test_redirect_within_origin_has_target(status: int, location: str, target: str) -> None:
    assert target_of(location, status=status) == target


@pytest.mark.parametrize(
    ("url", "location", "status", "texts"),
    [
        (HTTPS, DOWNGRADE, 307, (
            "from https to http", "connect to https://server.example/mcp/ instead",
            "X-Forwarded-Proto", "--proxy-headers", "--forwarded-allow-ips")),
        (HTTPS, "http://10.0.0.1:8000/mcp/", 308, (
            "to another origin", "connect to http://10.0.0.1:8000/mcp/ instead",
            "X-Forwarded-Proto")),
        (URL, HTTPS, 308, ("to another origin", f"connect to {HTTPS} instead")),
        (URL, "http://server.example:8080/mcp", 307, ("to another origin",)),
        (URL, "//evil.example/mcp", 307, ("to another origin", "http://evil.example/mcp")),
        (URL, "/mcp/", 301, ("may change the method", "http://server.example/mcp/")),
        (URL, "/mcp/", 302, ("may change the method",)),
        (URL, "/mcp/", 303, ("may change the method",)),
        (URL, "/mcp/", 300, ("may change the method",)),
        (URL, "/mcp", 307, ("after 0 others", )),
        (URL, "", 307, ("after 0 others",)),
        *((URL, location, 307, ("without a location that can be used",)) for location in (
            None, "ftp://server.example/", "http://u:p@server.example/", "http://a b/", "/\x00",
            "http://server.example:x/", "/" + "a" * 9000, "/%", "http://[x/",
            "http://server.example/mcp/../admin", "/mcp/%2e%2E/admin", "/mcp/..%2fadmin",
            r"/mcp/..\admin", "/mcp/%252e%252e/admin", "/mcp/..;/admin", "/mcp/.%2e;a=b/admin",
        )),
    ],
)  # fmt: skip
def test_redirect_not_followed_says_why(
    url: str, location: str | None, status: int, texts: tuple[str, ...]
) -> None:
    found = target_of(location, url, status=status)
    for text in texts:
        assert text in found
    assert "u:p" not in found
    assert found.isascii()
    assert found.isprintable()
    assert len(found) < 700


@pytest.mark.parametrize(
    ("location", "is_followed"),
    [
        ("/mcp/", True),
        ("/mcp/v2?a=b", True),
        ("/mcp?a=b", True),
        ("/mcp2", False),
        ("/", False),
        ("/MCP", False),
        ("/other/mcp", False),
    ],
)
def test_credential_stays_below_its_url(location: str, is_followed: bool) -> None:
    """The resource of the configured URL counts, and not the URL of the last redirect."""
    found = target_of(location, has_credential=True)
    assert ("the credential is for http://server.example/mcp." in found) is not is_followed
    assert target_of(location).startswith("http://")
    path = ("/mcp/a", "http://server.example/other")
    assert "the credential is for" in target_of(path[0], path[1], URL, has_credential=True)
    everywhere = target_of(location, has_credential=True, covers=lambda url: True)
    assert everywhere.startswith("http://")
    nowhere = target_of(location, has_credential=True, covers=lambda url: False)
    assert ("the credential is for" in nowhere) is not is_followed


# -- The client --------------------------------------------------------------------------------


def redirect(net: Net, call: HttpCall, location: str, status: int = 307) -> HttpCall:
    """Redirect a call, and return the one that follows it."""
    net.answer(call, "", status, None, location=location, content_length="0")
    return net.call()


@pytest.mark.parametrize("version", [D, E])
def test_redirected_call_keeps_method_body_and_headers(version: str) -> None:
    """Each request follows by itself: a 307 says nothing about later ones (RFC 9110, 15.4.8)."""
    net = open_client(version)
    for _ in range(2):
        id, call = send_call(net)
        again = redirect(net, call, "/mcp/")
        assert again.key != call.key
        assert again.head.target == b"/mcp/"
        assert (again.head.method, again.head.headers) == (call.head.method, call.head.headers)
        assert (again.body, again.idempotent, again.brief) == (
            call.body,
            call.idempotent,
            call.brief,
        )
        assert header(again, "mcp-session-id") == (None if version == E else "one")
        net.answer(again, result(id, {"content": [], "resultType": "complete"}))
        found = net.events()
        assert type(found[-1]) is ResultReceived
    assert net.dropped == []


def test_redirects_are_named_once() -> None:
    net = open_client(E)
    problems = []
    for _ in range(2):
        id, call = send_call(net)
        again = redirect(net, redirect(net, call, "/mcp/"), "/mcp/v2")
        net.answer(again, result(id, {"content": [], "resultType": "complete"}))
        problems += [each.problem for each in net.events() if isinstance(each, InputProblem)]
    assert "from http://server.example/mcp to http://server.example/mcp/: connect to" in single(
        problems
    )


def test_every_request_of_a_session_follows() -> None:
    """The handshake, `initialized`, the standalone stream, a resumed stream, and DELETE."""
    net = Net(D)
    net.open()
    call = redirect(net, net.call(), "/mcp/")
    net.answer(call, result(1, initialize_result(D)), mcp_session_id="one")
    initialized = net.call()
    assert header(initialized, "mcp-session-id") == "one"
    net.answer(redirect(net, initialized, "/mcp/"))
    get = redirect(net, net.call(), "/mcp/")
    assert (get.head.method, get.head.target, get.long_lived) == (b"GET", b"/mcp/", True)
    net.start_response(get)
    assert any(isinstance(each, PeerReady) for each in net.events())
    id, call = send_call(net)
    call = redirect(net, call, "/mcp/")
    net.start_response(call)
    net.send_body(call, b"id: e1\ndata:\n\n")
    net.end_response(call)
    net.at(2.0)
    resumed = redirect(net, net.call(), "/mcp/")
    assert header(resumed, "last-event-id") == "e1"
    net.start_response(resumed)
    net.send_body(resumed, event(result(id, {"content": []})))
    assert type_names(net.events()) == ["ResultReceived"]
    net.conn.close()
    delete = redirect(net, net.call(), "/mcp/")
    assert (delete.head.method, header(delete, "mcp-session-id")) == (b"DELETE", "one")
    net.answer(delete, "", 204, None)
    assert type_names(net.events()) == ["ConnectionClosed"]
    assert not net.http._state.operations


def test_three_redirects_are_followed_and_no_fourth() -> None:
    net = open_client(E)
    id, call = send_call(net)
    for number in range(3):
        call = redirect(net, call, f"/mcp/{number}")
    net.answer(call, "", 307, None, location="/mcp/3")
    *_, failed = net.events()
    assert isinstance(failed, ErrorReceived)
    assert failed.id == id
    assert str(failed.error) == (
        "tools/call: HTTP status 307, a redirect after 3 others, which is not followed: connect to"
        " http://server.example/mcp/3 instead"
    )
    assert net.new_calls() == []


def test_redirects_in_a_circle_end() -> None:
    net = open_client(E)
    _, call = send_call(net)
    call = redirect(net, call, "/mcp/")
    net.answer(call, "", 308, None, location="/mcp")
    assert "a redirect after 1 others" in str(net.events()[-1].error)
    assert net.new_calls() == []


@pytest.mark.parametrize(
    ("headers", "dropped"),
    [
        ({"content_length": "0"}, 0),
        ({"content_length": "170"}, 0),
        ({"content_length": "70000"}, 1),
        ({"content_length": "x"}, 1),
        ({}, 1),
    ],
)
def test_body_of_redirect_is_read_only_if_it_is_short(
    headers: dict[str, str], dropped: int
) -> None:
    """A short body leaves the connection usable. Another one may be endless."""
    net = open_client(E)
    _, call = send_call(net)
    net.start_response(call, 307, location="/mcp/", **headers)
    again = net.call()
    assert net.dropped == [call.key][:dropped]
    net.send_body(call, b"data: {}\n\n")
    net.end_response(call)
    assert net.new_calls() == []
    assert again.key in net.http._state.operations


def test_cancelled_before_the_redirected_call_is_sent() -> None:
    """Nothing was handled, so the server hears neither of the call nor of its cancellation."""
    net = open_client(D)
    id, call = send_call(net)
    net.delays_calls = True
    again = redirect(net, call, "/mcp/")
    net.conn.send_cancel(id)
    assert net.new_calls() == []
    assert net.dropped == [again.key]


def test_redirect_of_a_cancelled_call_is_not_followed() -> None:
    """The server would run a call whose cancellation it has ignored, since it didn't know it."""
    net = open_client(D)
    id, call = send_call(net)
    net.conn.send_cancel(id)
    assert posted_message(net.call())["method"] == "notifications/cancelled"
    net.answer(call, "", 307, location="/mcp/")
    assert net.new_calls() == []
    assert net.events() == []


@pytest.mark.parametrize("status", [301, 307])
@pytest.mark.parametrize("location", [DOWNGRADE, "/other?token=hunter2", "http://other.example/"])
def test_error_of_a_redirect_has_no_query(status: int, location: str) -> None:
    """A key may stand there, and errors are logged."""
    url = f"{HTTPS}?key=hunter2"
    assert "hunter2" not in target_of(f"{location}?k=hunter2", url, status=301)
    text = target_of(location, url, status=status, has_credential=True)
    assert "followed" in text
    assert "hunter2" not in text


def test_deadline_of_a_redirected_notification_stays() -> None:
    net = open_client(D)
    net.now = 5.0
    net.conn.send_notification("notifications/roots/list_changed")
    call = net.call()
    deadline = net.http.next_deadline()
    net.now = 10.0
    redirect(net, call, "/mcp/")
    assert net.http.next_deadline() == deadline == 35.0


def test_event_stream_of_2024_follows_and_resolves_its_endpoint() -> None:
    """The endpoint is relative to where the stream is (RFC 3986, 5.1.3); its POST follows too."""
    net, first, get = rejected_handshake(A)
    net.events()
    deadline = net.http.next_deadline()
    get = redirect(net, get, "/base/sse/")
    assert net.http.next_deadline() == deadline
    net.start_response(get)
    net.send_body(get, event("messages?session=1", event="endpoint"))
    post = net.call()
    assert post.head.target == b"/base/sse/messages?session=1"
    problems = [each for each in net.events() if isinstance(each, InputProblem)]
    assert "from http://server.example/base/sse to" in single(problems).problem
    post = redirect(net, post, "/base/sse/messages/?session=1")
    assert post.body == first.body
    assert net.events() == []  # the user didn't choose that URL
    net.answer(post, "Accepted", 202, "text/plain")
    net.send_body(get, event(result(1, initialize_result(A)), event="message"))
    assert any(isinstance(each, PeerReady) for each in net.events())


@pytest.mark.parametrize("where", ["POST", "GET", "stream", "sse"])
def test_redirect_to_another_origin_fails_its_request(where: str) -> None:
    """Only the standalone stream may be missing without an error."""
    location = "http://evil.example/mcp"
    if where == "sse":
        net, _, get = rejected_handshake(A)
        net.answer(get, "", 307, None, location=location)
        closed = net.events()[-1]
        assert isinstance(closed, ConnectionClosed)
        assert "405" in str(closed.error)  # it is about the URL that the user gave
    else:
        net = open_client(D, stream=where == "GET")
        if where == "GET":
            net.end_response(_stream_call(net))
            net.at(2.0)
            net.answer(net.call(), "", 307, None, location=location)
            assert net.events() == []
        else:
            id, call = send_call(net)
            if where == "stream":
                net.start_response(call)
                net.send_body(call, b"id: e1\ndata:\n\n")
                net.end_response(call)
                net.at(2.0)
                call = net.call()
            net.answer(call, "", 307, None, location=location)
            failed = net.event()
            assert (failed.id, location in str(failed.error)) == (id, True)
    assert net.new_calls() == []


def _stream_call(net: Net) -> Any:
    stream = next(iter(net.http._state.operations.values()))
    assert stream.call is not None
    return stream.call


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "cookie"])
def test_configured_credential_is_not_sent_to_another_path(name: str) -> None:
    options = HttpClientOptions(headers={name: "secret"}, allow_cleartext=True)
    for location, follows in (("/mcp/", True), ("/other", False)):
        net = Net(E, options=options)
        net.open()
        net.answer(net.call(), "", 307, None, location=location, content_length="0")
        calls = net.new_calls()
        assert [header(each, name) for each in calls] == ["secret"][: int(follows)]
        if not follows:
            closed = net.events()[-1]
            assert "the credential is for http://server.example/mcp. If" in str(closed.error)
            assert "secret" not in str(closed.error)


class Covering(Access):
    """An authorizer whose token is valid for the whole host, or for nothing more than its URL."""

    def __init__(self, *, host: bool) -> None:
        super().__init__()
        self.host = host
        self.asked: list[str] = []

    def covers(self, url: str) -> bool:
        self.asked.append(url)
        return self.host


@pytest.mark.parametrize("host", [True, False])
def test_token_follows_only_where_its_resource_covers_the_path(host: bool) -> None:
    """The signature of the new request is for its own URL."""
    access = Covering(host=host)
    net = Net(E, options=HttpClientOptions(authorizer=access))
    net.open()
    call = redirect(net, net.call(), "/mcp/")
    assert access.asked == []  # it is below the URL of the server
    net.http.sign(call)
    assert access.requests[-1] == ("POST", "http://server.example/mcp/")
    assert net.http.is_retry_worthwhile(call, Head(401, []))
    assert access.responses[-1][2] == "http://server.example/mcp/"
    net.answer(call, "", 307, None, location="/other")
    assert access.asked == ["http://server.example/other"]
    assert len(net.new_calls()) == host


def test_key_in_a_header_does_not_follow_a_token_for_the_whole_host() -> None:
    access = Covering(host=True)
    options = HttpClientOptions(
        authorizer=access, headers={"x-api-key": "secret"}, allow_cleartext=True
    )
    net = Net(E, options=options)
    net.open()
    net.answer(net.call(), "", 307, None, location="/other")
    assert net.new_calls() == []
    assert access.asked == []


def test_probe_that_is_redirected_elsewhere_closes_with_the_reason() -> None:
    net = Net(D, E, url=HTTPS)
    net.open()
    call = net.call()
    assert posted_message(call)["method"] == "server/discover"
    net.answer(call, "", 307, None, location=DOWNGRADE)
    while calls := net.new_calls():
        net.answer(single(calls), "", 307, None, location=DOWNGRADE)
    closed = net.events()[-1]
    assert isinstance(closed, ConnectionClosed)
    assert "from https to http" in str(closed.error)
    assert "X-Forwarded-Proto" in str(closed.error)


def test_probe_that_is_redirected_within_the_origin_is_answered() -> None:
    net = Net(D, E)
    net.open()
    call = redirect(net, net.call(), "/mcp/")
    net.answer(call, result(posted_message(call)["id"], discover_result()))
    assert type_names(net.events()) == ["InputProblem", "PeerReady"]


def test_redirect_of_the_last_request_is_not_named() -> None:
    """The end of the connection is its last event."""
    net = open_client(D)
    net.conn.close()
    delete = redirect(net, net.call(), "/mcp/")
    net.answer(delete, "", 204, None)
    assert type_names(net.events()) == ["ConnectionClosed"]
