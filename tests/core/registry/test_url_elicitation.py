"""URL elicitation: the URL of a page, and the token by which it knows its visitor."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcp_core.registry import (
    Context,
    DeclarationError,
    InvalidUrlElicitation,
    Server,
    UrlElicitation,
    UrlElicitationRequired,
)
from tests.harness.jsonrpc import D, E, text_of
from tests.harness.messages.scripted_client import NOW, ScriptedClient

both_revisions = pytest.mark.parametrize("version", [D, E])

ALICE = "https://issuer.example#sub:alice"
KEYS = {"2026": bytes(range(32))}


class VisitingServer:
    """A server with a page. `visits` has one for each run of a tool."""

    def __init__(self, **options: Any) -> None:
        self.visits: list[UrlElicitation] = []
        self.server = server = Server("site", **options)

        @server.tool
        async def connect(context: Context) -> str:
            """Send the user to the page."""
            visit = context.url_elicitation("connect", lifetime=300)
            self.visits.append(visit)
            url = f"https://example.com/connect?visit={visit.token}"
            answer = await context.elicit_url("Connect.", url, elicitation_id=visit.elicitation_id)
            return answer.action

        @server.tool
        def require(context: Context) -> str:
            """Require a visit."""
            visit = context.url_elicitation("connect")
            self.visits.append(visit)
            raise UrlElicitationRequired(
                "Connect.", f"https://example.com/?visit={visit.token}", visit.elicitation_id
            )

    def token(self, version: str = E) -> str:
        """Let Alice call `connect`, and return the token in the URL."""
        (message,) = ScriptedClient(self.server, version, principal=ALICE).calls("connect")
        if version == E:
            ((_, request),) = message["result"]["inputRequests"].items()
            message = request
        return str(message["params"]["url"].partition("=")[2])


@pytest.mark.requirement("ELIC-20")
@both_revisions
def test_token_verifies_for_its_user_page_and_time(version: str) -> None:
    """Another user or page, 300 seconds or one changed character: each error names its reason."""
    site = VisitingServer()
    token = site.token(version)
    verify = site.server.verify_url_elicitation
    assert verify(token, "connect", principal=ALICE, now=NOW) == site.visits[0].elicitation_id
    assert verify(token, "connect", principal=ALICE, now=NOW + 299) == "07" * 16
    others: list[tuple[dict[str, Any], str]] = [
        ({"principal": "https://issuer.example#sub:bob"}, "another principal"),
        ({"principal": ""}, "another principal"),
        ({"name": "pay"}, "other params"),
        ({"now": NOW + 300}, "expired"),
        ({"token": token[:-1] + ("A" if token[-1] != "A" else "B")}, "altered"),
        ({"token": ""}, "not issued by this server"),
    ]
    for other, reason in others:
        arguments: Any = {"token": token, "name": "connect", "principal": ALICE, "now": NOW} | other
        text = f"'{arguments['name']}' is refused: .*{reason}"
        with pytest.raises(InvalidUrlElicitation, match=text):
            verify(**arguments)


def test_token_verifies_in_another_process_with_the_same_keys() -> None:
    token = VisitingServer(state_keys=KEYS).token()
    other = Server("site", state_keys=KEYS)
    assert other.verify_url_elicitation(token, "connect", principal=ALICE, now=NOW) == "07" * 16
    with pytest.raises(InvalidUrlElicitation, match="this process has issued none"):
        Server("site").verify_url_elicitation(token, "connect", principal=ALICE, now=NOW)


def test_request_state_and_token_of_a_visit_do_not_replace_each_other() -> None:
    site = VisitingServer(state_keys=KEYS)
    stage = ScriptedClient(site.server, E, principal=ALICE)
    (message,) = stage.calls("connect")
    state = message["result"]["requestState"]
    with pytest.raises(InvalidUrlElicitation, match="given for tools/call"):
        site.server.verify_url_elicitation(state, "connect", principal=ALICE, now=NOW)
    (message,) = stage.calls("connect", requestState=site.visits[0].token)
    assert message["error"]["code"] == -32602


@both_revisions
def test_visit_is_the_same_in_each_run(version: str) -> None:
    site = VisitingServer()
    stage = ScriptedClient(site.server, version, principal=ALICE)
    stage.runtime.entropy = lambda size: bytes([len(site.visits)]) * size  # type: ignore[method-assign]
    assert text_of(stage.whole_call("connect", {"action": "accept"})) == "accept"
    assert len(site.visits) == (1 if version == D else 2)
    assert len(set(map(str, site.visits))) == 1
    assert "token" not in repr(site.visits[0])


def test_required_visit_is_the_same_in_each_run() -> None:
    site = VisitingServer()
    stage = ScriptedClient(site.server, E, principal=ALICE)
    stage.runtime.entropy = lambda size: bytes([len(site.visits)]) * size  # type: ignore[method-assign]
    message = stage.whole_call("require", {"action": "accept"})
    assert "Call again once that is done" in text_of(message)
    assert site.visits[0] == site.visits[1]


# -- The URL ---------------------------------------------------------------------------------------


@both_revisions
@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://example.com/login", None),
        ("http://localhost:8000/login", None),
        ("http://127.0.0.1/login", None),
        ("http://[::1]:8000/", None),
        ("http://app.localhost/", None),
        ("http://example.com/login", "http: is not encrypted, .* example.com .* use https:, or"),
        ("http://192.168.0.7/", "use https:"),
        ("http://localhost.example.com/", "use https:"),
        ("nowhere", "neither https nor http"),
        ("https://user:password@example.com/", "url is no http or https URL"),
    ],
)
def test_elicit_url_accepts_encrypted_and_loopback_pages_only(
    version: str, url: str, error: str | None
) -> None:
    """Plain http to another host is refused in the tool, before the user could visit the page."""
    server = Server("s")
    errors: list[str] = []

    @server.tool
    async def page(context: Context) -> str:
        """Send the user to a page."""
        try:
            return (await context.elicit_url("Visit.", url)).action
        except DeclarationError as exc:
            errors.append(str(exc))
            return "refused"

    stage = ScriptedClient(server, version)
    if error is None:
        assert text_of(stage.whole_call("page", {"action": "accept"})) == "accept"
    else:
        assert text_of(stage.whole_call("page")) == "refused"
        (text,) = errors
        assert re.match(f"context.elicit_url: .*{error}", text)


@both_revisions
def test_required_page_without_encryption_is_a_mistake_in_the_log(version: str) -> None:
    server = Server("s")

    @server.tool
    def page() -> str:
        """Require a visit."""
        raise UrlElicitationRequired("Visit.", "http://example.com/")

    stage = ScriptedClient(server, version)
    (message,) = stage.calls("page")
    assert text_of(message) == "The tool failed with an internal error (reference R)."
    (report,) = stage.runtime.reports
    assert "elicitation/create: http: is not encrypted" in str(report)
