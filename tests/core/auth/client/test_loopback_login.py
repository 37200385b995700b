"""`LoopbackLogin`: the start page works once, and the redirect counts once."""

from __future__ import annotations

from html import unescape
from urllib.parse import urlsplit

import pytest

from mcp_core.auth import Browse, LoopbackLogin
from tests.core.auth.play import AS, MCP, Entropy

REDIRECT = "http://127.0.0.1:4711/callback/of-as"
PAGE = f"{AS}/authorize?client_id=c&x=a'b&state=CANARY-state"
CALLBACK = "/callback/of-as?state=CANARY-state&code=CANARY-code"


def new_login(*new_scopes: str) -> tuple[LoopbackLogin, str]:
    """Return a login and the target of its start page."""
    login = LoopbackLogin(Browse(PAGE, REDIRECT, MCP, new_scopes), Entropy())
    return login, urlsplit(login.start_url).path


def test_start_url_shows_nothing_of_the_login() -> None:
    login, start = new_login()
    assert login.start_url == f"http://127.0.0.1:4711{start}"
    assert len(start) >= 43
    for text in "CANARY", "localhost:1002", "authorize":
        assert text not in login.start_url + repr(login)
    assert start not in repr(login)


def test_start_page_leads_to_login_once() -> None:
    login, start = new_login()
    assert login.is_start(start)
    assert not login.is_start(start[:-1])
    reply = login.respond("GET", start)
    assert (reply.status, reply.header("location"), reply.body) == (303, PAGE, b"")
    assert reply.header("cache-control") == "no-store"
    assert reply.header("referrer-policy") == "no-referrer"
    again = login.respond("GET", start)
    assert (again.status, again.header("location")) == (404, None)
    assert b"CANARY" not in again.body


@pytest.mark.parametrize("method", ["HEAD", "POST", "OPTIONS"])
def test_start_page_other_method_does_not_use_it_up(method: str) -> None:
    login, start = new_login()
    assert login.respond(method, start).status == 404
    assert login.respond("GET", start).status == 303


def test_start_page_shows_new_scopes_before_login() -> None:
    """The page does not lead on by itself, so that the user can read it."""
    login, start = new_login("files:write", "<b>&")
    reply = login.respond("GET", start)
    text = reply.body.decode()
    assert (reply.status, reply.header("location")) == (200, None)
    assert "refresh" not in text
    assert "<b>" not in text
    for shown in ("<code>files:write</code>", "<code><b>&</code>", f'href="{PAGE}"', MCP):
        assert shown in unescape(text)


def test_start_page_for_file_leads_on_by_itself() -> None:
    login, _ = new_login()
    assert f'<meta http-equiv="refresh" content="0;url={PAGE}">' in unescape(login.start_page())
    assert "'" not in login.start_page()


def test_redirect_is_accepted_once() -> None:
    login, _ = new_login()
    reply = login.respond("GET", CALLBACK)
    assert reply.status == 200
    assert b"CANARY" not in reply.body
    assert login.callback == f"http://127.0.0.1:4711{CALLBACK}"
    for later in CALLBACK, CALLBACK.replace("CANARY-code", "injected"):
        assert login.respond("GET", later).status == 404
    assert login.callback == f"http://127.0.0.1:4711{CALLBACK}"


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", CALLBACK.replace("CANARY-state", "another")),
        ("GET", CALLBACK.replace("state=CANARY-state&", "")),
        ("GET", CALLBACK.replace("/of-as", "")),
        ("GET", CALLBACK.replace("/of-as", "/of-another")),
        ("GET", CALLBACK.replace("/callback", "//evil.example/callback")),
        ("GET", f"http://evil.example{CALLBACK}"),
        ("POST", CALLBACK),
        ("GET", "/"),
        ("GET", "*"),
    ],
)
def test_other_request_gets_404_and_changes_nothing(method: str, target: str) -> None:
    login, _ = new_login()
    reply = login.respond(method, target)
    assert (reply.status, login.callback) == (404, None)
    assert b"CANARY" not in reply.body
    assert login.respond("GET", CALLBACK).status == 200


def test_not_found_is_the_page_of_other_requests() -> None:
    login, _ = new_login()
    assert login.not_found() == login.respond("GET", "/other")
    assert login.respond("HEAD", "/other").body == b""
