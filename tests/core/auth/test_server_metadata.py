"""Discovery as lists of fetched URLs and their replies."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_core.auth import AuthorizationFailed, Fetch, FetchFailed, HttpResponse
from mcp_core.auth._metadata import AuthorizationServerMetadata
from mcp_core.auth._resource_urls import issuer_metadata_urls
from mcp_core.auth._server_metadata import find_server_metadata
from mcp_core.auth.client._challenge import AuthChallenge
from mcp_core.auth.client._discovery import (
    AuthorizationServer,
    find_authorization_server,
    find_resource_metadata,
    find_supported_scopes,
)
from tests.core.auth.play import (
    MISSING,
    OAUTH,
    OIDC,
    PRM,
    Script,
    authority,
    document_reply,
    get,
    play,
    play_to_failure,
    resource,
    server,
    server_metadata,
    status,
)

E = "https://e.com"
URL = f"{E}/mcp"
A = "https://a.com"
HTML = HttpResponse(200, [("content-type", "text/html")], b"<!doctype html>")
PLACE = f"{E}/somewhere.json"


def prm(**more: Any) -> HttpResponse:
    return resource(A, resource=more.pop("resource", URL), **more)


RESOURCES: dict[str, tuple[str, str | None, Script]] = {
    "where the challenge says": (URL, PLACE, [(get(PLACE), prm())]),
    "the path first": (URL, None, [(get(f"{E}{PRM}/mcp"), prm())]),
    "then the root": (
        URL,
        None,
        [(get(f"{E}{PRM}/mcp"), MISSING), (get(f"{E}{PRM}"), prm(resource=E))],
    ),
    "no path, no second place": (E, None, [(get(f"{E}{PRM}"), prm(resource=E))]),
    "the challenge is wrong, the well-known places are not": (
        URL,
        PLACE,
        [(get(PLACE), MISSING), (get(f"{E}{PRM}/mcp"), prm())],
    ),
    "the challenge names a well-known place: not twice": (
        URL,
        f"{E}{PRM}/mcp",
        [(get(f"{E}{PRM}/mcp"), status(403)), (get(f"{E}{PRM}"), prm(resource=E))],
    ),
    **{
        f"{place!r} is no absolute URL": (URL, place, [(get(f"{E}{PRM}/mcp"), prm())])
        for place in (PRM, "prm.json", "//evil.com/prm", "", "e.com/prm", "?x")
    },
    "an empty body": (
        URL,
        None,
        [(get(f"{E}{PRM}/mcp"), HttpResponse(200, [], b"")), (get(f"{E}{PRM}"), prm())],
    ),
    "a page for everything that is unknown": (
        URL,
        None,
        [(get(f"{E}{PRM}/mcp"), HTML), (get(f"{E}{PRM}"), prm(resource=f"{E}/"))],
    ),
    **{
        f"{code} is a miss": (
            URL,
            None,
            [(get(f"{E}{PRM}/mcp"), status(code)), (get(f"{E}{PRM}"), prm())],
        )
        for code in (204, 304, 400, 401, 403, 404, 405, 406, 410, 418)
    },
    "redirects on the same origin": (
        URL,
        None,
        [
            (get(f"{E}{PRM}/mcp"), status(301, ("location", "/x"))),
            (get(f"{E}/x"), status(308, ("location", f"{E}:443/y"))),
            (get(f"{E}:443/y"), status(302, ("location", "z"))),
            (get(f"{E}:443/z"), prm()),
        ],
    ),
}


@pytest.mark.requirement("AC-4", "AC-5", "AC-6", "AC-14")
@pytest.mark.parametrize("name", RESOURCES)
def test_find_resource_tries_urls_in_order(name: str) -> None:
    url, place, script = RESOURCES[name]
    metadata = play(find_resource_metadata(url, place), script)
    assert metadata is not None
    assert metadata.authorization_servers == [A]


MISSES: Script = [(get(f"{E}{PRM}/mcp"), MISSING), (get(f"{E}{PRM}"), MISSING)]


@pytest.mark.requirement("AC-14")
@pytest.mark.parametrize("reply", [MISSING, HTML, HttpResponse(200, [], b"")])
def test_find_resource_nothing_published_returns_none(reply: HttpResponse) -> None:
    script: Script = [(get(f"{E}{PRM}/mcp"), reply), MISSES[1]]
    assert play(find_resource_metadata(URL, None), script) is None


FAILURES: dict[str, tuple[str | None, Script, str]] = {
    **{
        f"{code} is a failure": (None, [(get(f"{E}{PRM}/mcp"), status(code))],
            f"answered {code}. Try again later")
        for code in (429, 500, 502, 503, 504)
    },
    "no answer": (
        None,
        [(get(f"{E}{PRM}/mcp"), FetchFailed("10.0.0.1 is not a public address"))],
        r"cannot be fetched from 'https://e.com/.*': 10\.0\.0\.1 is not a public address",
    ),
    "the challenge promises what is nowhere": (PLACE, [(get(PLACE), MISSING), *MISSES],
        "was not found.*answered 404"),
    "wrong JSON, and nothing else": (None, [(get(f"{E}{PRM}/mcp"), document_reply()), MISSES[1]],
        "was not found: .*cannot be read"),
    "wrong JSON, and a page": (None, [(get(f"{E}{PRM}/mcp"), document_reply(resource=1)),
        (get(f"{E}{PRM}"), HTML)], "cannot be read.* has no JSON"),
    "a list of servers that is no list": (None, [(get(f"{E}{PRM}/mcp"),
        document_reply(resource=URL, authorization_servers=A)), MISSES[1]], "authorization_serv"),
    "the challenge promises a page": (PLACE, [(get(PLACE), HTML), *MISSES], "has no JSON"),
    "a relative place, and nothing": ("/prm", MISSES, "was not found"),
    "too long": (
        None,
        [(get(f"{E}{PRM}/mcp"), HttpResponse(200, [], b" " * 65537)), MISSES[1]],
        "is longer than 65536 bytes",
    ),
    "redirects elsewhere": (
        PLACE,
        [(get(PLACE), status(302, ("location", "https://f.com/x"))), *MISSES],
        "answered 302",
    ),
    "redirects to what is no URL": (PLACE,
        [(get(PLACE), status(302, ("location", "/a b"))), *MISSES], "answered 302"),
    "redirects without end": (
        PLACE,
        [*[(get(PLACE), status(302, ("location", PLACE)))] * 4, *MISSES],
        "answered 302",
    ),
    "redirects nowhere": (PLACE, [(get(PLACE), status(302)), *MISSES], "answered 302"),
    "the place is not https": ("http://e.com/x", [], "resource_metadata .* is not https: 'http://e.com/x'"),
    "the place is in the cloud": ("http://169.254.169.254/latest", [], "is not https"),
    "the place is a script": ("javascript:alert(1)", [], "resource_metadata"),
    "the place has a user": ("https://u:p@e.com/x", [], "contains a user name"),
    "the place is broken": ("https://e.com/\r\nx", [], "characters that do not belong"),
    **{
        f"resource {name}": (None, [(get(f"{E}{PRM}/mcp"), prm(resource=name))],
            "is that of another resource")
        for name in (
            "https://evil.example.com/mcp", f"{E}/mcp2", f"{E}/mcp/x", "http://e.com/mcp",
            f"{E}:444/mcp", "", "mcp",
            f"{E}/mcp#x", "https://u@e.com/mcp", f"{E}.evil.com/mcp",
        )
    },
}  # fmt: skip


@pytest.mark.requirement("AC-7", "AC-14", "AU-1", "AU-3")
@pytest.mark.parametrize("name", FAILURES)
def test_find_resource_unusable_metadata_fails(name: str) -> None:
    place, script, text = FAILURES[name]
    with pytest.raises(AuthorizationFailed, match=text):
        play(find_resource_metadata(URL, place), script)


@pytest.mark.requirement("AC-3")
@pytest.mark.parametrize(
    ("reply", "scopes"),
    [
        (prm(), None),
        (prm(scopes_supported=[]), ()),
        (prm(scopes_supported=["b", "a", "b"]), ("a", "b")),
        (prm(scopes_supported=["b a", "c"]), ("a", "b", "c")),
    ],
)
def test_find_supported_scopes_are_those_of_the_metadata(
    reply: HttpResponse, scopes: tuple[str, ...] | None
) -> None:
    assert play(find_supported_scopes(URL), [(get(f"{E}{PRM}/mcp"), reply)]) == scopes


def test_find_supported_scopes_without_metadata_are_unknown() -> None:
    script: Script = [(get(f"{E}{PRM}/mcp"), MISSING), (get(f"{E}{PRM}"), MISSING)]
    assert play(find_supported_scopes(URL), script) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [(429, "answered 429. Try again later"), (500, "answered 500. Try again later"), (499, None)],
)
def test_find_resource_status_decides_whether_another_place_is_tried(
    code: int, words: str | None
) -> None:
    """A server that fails may have the document there, and another one may be for less."""
    first = (get(f"{E}{PRM}/mcp"), status(code))
    if words is None:
        script = [first, (get(f"{E}{PRM}"), prm())]
        assert play(find_resource_metadata(URL, None), script) is not None
    else:
        assert words in str(play_to_failure(find_resource_metadata(URL, None), [first]))


@pytest.mark.parametrize("code", range(300, 310))
def test_find_resource_status_decides_whether_a_redirect_is_followed(code: int) -> None:
    redirect = status(code, ("location", "/somewhere.json"))
    followed = code in (301, 302, 303, 307, 308)
    second = PLACE if followed else f"{E}{PRM}"
    script = [(get(f"{E}{PRM}/mcp"), redirect), (get(second), prm())]
    assert play(find_resource_metadata(URL, None), script) is not None


def test_find_server_says_where_its_metadata_came_from() -> None:
    far = replace(server(A), address="9.9.9.9")
    near = replace(MISSING, address="10.0.0.1")
    script: Script = [(get(f"{A}{OAUTH}"), near), (get(f"{A}{OIDC}"), far)]
    found = play(find_server_metadata(A, allow_loopback=False), script)
    assert found.address == "9.9.9.9"


def test_find_resource_request_headers() -> None:
    fetch = next(find_resource_metadata(URL, None))
    assert isinstance(fetch, Fetch)
    assert fetch.request.headers == [
        ("accept", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
    ]


T = f"{A}/t"
SERVERS: dict[str, tuple[str, Script]] = {
    "OAuth": (A, [(get(f"{A}{OAUTH}"), server(A))]),
    "OpenID Connect": (A, [(get(f"{A}{OAUTH}"), MISSING), (get(f"{A}{OIDC}"), server(A))]),
    "with a path: inserted": (T, [(get(f"{A}{OAUTH}/t"), server(T))]),
    "with a path: OpenID inserted": (
        T,
        [(get(f"{A}{OAUTH}/t"), MISSING), (get(f"{A}{OIDC}/t"), server(T))],
    ),
    "with a path: OpenID appended": (
        T,
        [
            (get(f"{A}{OAUTH}/t"), status(405)),
            (get(f"{A}{OIDC}/t"), HTML),
            (get(f"{T}{OIDC}"), server(T)),
        ],
    ),
    "with a slash, and only with it": (f"{T}/", [(get(f"{A}{OAUTH}/t"), server(f"{T}/", T))]),
    "without registration": (A, [(get(f"{A}{OAUTH}"), server(A, registration_endpoint=None))]),
    "endpoints of other hosts": (A, [(get(f"{A}{OAUTH}"), server(A, "https://login.b.com"))]),
}


@pytest.mark.requirement("AC-9", "AC-10", "AC-11", "AC-12")
@pytest.mark.parametrize("name", SERVERS)
def test_find_server_tries_urls_in_order(name: str) -> None:
    issuer, script = SERVERS[name]
    found_ = play(find_server_metadata(issuer, allow_loopback=False), script)
    assert (found_.metadata.issuer, found_.address, found_.notes) == (issuer, None, ())


@pytest.mark.requirement("AC-12")
@pytest.mark.parametrize(("named", "own"), [(A, f"{A}/"), (f"{A}/", A)])
def test_find_server_bare_origin_may_have_another_slash(named: str, own: str) -> None:
    """The spelling in the metadata is the issuer from then on."""
    script: Script = [(get(f"{A}{OAUTH}"), server(own, A))]
    found_ = play(find_server_metadata(named, allow_loopback=False), script)
    assert found_.metadata.issuer == own


METADATA_ISSUERS: list[tuple[str, str, str | None]] = [
    ("https://e.com/common/v2.0", "https://e.com/{tenantid}/v2.0", None),
    (A, "https://b.com/t", None),
    (A, A, "and metadata_issuer of the profile is"),
    (A, "https://b.com/t/", "and metadata_issuer of the profile is"),
    (A, "https://B.com/t", "and metadata_issuer of the profile is"),
    (A, "", "and metadata_issuer of the profile is"),
]


@pytest.mark.requirement("AC-12")
@pytest.mark.parametrize(("issuer", "own", "text"), METADATA_ISSUERS)
def test_find_server_metadata_issuer_is_one_exact_value(
    issuer: str, own: str, text: str | None
) -> None:
    wanted = own if text is None else "https://b.com/t"
    place = issuer_metadata_urls(issuer)[0]
    flow = find_server_metadata(issuer, allow_loopback=False, metadata_issuer=wanted)
    script: Script = [(get(place), server(own, A))]
    if text is None:
        assert play(flow, script).metadata.issuer == own
    else:
        with pytest.raises(AuthorizationFailed, match=text):
            play(flow, script)


@pytest.mark.requirement("AC-12")
def test_find_server_metadata_issuer_slash_is_not_optional() -> None:
    """The slash of a bare origin is optional between the two servers, not in the user's setting."""
    script: Script = [(get(f"{A}{OAUTH}"), server("https://b.com/", A))]
    with pytest.raises(AuthorizationFailed, match="metadata_issuer of the profile is"):
        play(find_server_metadata(A, allow_loopback=False, metadata_issuer="https://b.com"), script)


def test_find_server_ignored_members_are_noted() -> None:
    reply = server(A, client_id_metadata_document_supported="yes")
    found_ = play(find_server_metadata(A, allow_loopback=False), [(get(f"{A}{OAUTH}"), reply)])
    assert [note.partition(" has ")[2] for note in found_.notes] == [
        "members that cannot be read, and are ignored: client_id_metadata_document_supported"
    ]


NOWHERE: Script = [(get(f"{A}{OAUTH}"), MISSING), (get(f"{A}{OIDC}"), MISSING)]
BAD_SERVERS: dict[str, tuple[str, Script, str]] = {
    "nowhere": (A, NOWHERE,
        "metadata of the authorization server 'https://a.com' was not found: .*404.*404"),
    "a failure": (A, [(get(f"{A}{OAUTH}"), status(503))], "answered 503. Try again later"),
    "not https": ("http://a.com", [], "is not https"),
    "a script": ("javascript:x", [], "the authorization server that the MCP server names"),
    "unreadable": (A, [(get(f"{A}{OAUTH}"), document_reply(issuer=1)), NOWHERE[1]],
        "cannot be read"),
    "pages only": (A, [(get(f"{A}{OAUTH}"), HTML), (get(f"{A}{OIDC}"), HTML)],
        "was not found: .* has no JSON; .* has no JSON"),
    **{
        f"issuer {issuer}": (A, [(get(f"{A}{OAUTH}"), server(issuer, A))],
            "is that of another authorization server")
        for issuer in ("https://attacker.example.com", f"{A}//", f"{A}/x", f"{A}?", f"{A}/#",
            "https://A.com", "https://A.com/", f"{A}:443", f"{A}/%74", "http://a.com/", "/", "")
    },
    **{
        f"issuer {issuer} of a path": (T, [(get(f"{A}{OAUTH}/t"), server(issuer, A))],
            "is that of another authorization server")
        for issuer in (f"{T}/", A, f"{A}/", f"{A}/u")
    },
    **{
        f"{member} unreadable": (
            A,
            [
                (get(f"{A}{OAUTH}"), document_reply(**(server_metadata(A) | {member: 5}))),
                NOWHERE[1],
            ],
            f"cannot be read: .*{member}",
        )
        for member in ("code_challenge_methods_supported", "token_endpoint_auth_methods_supported",
            "authorization_endpoint", "token_endpoint", "registration_endpoint", "scopes_supported")
    },
    **{
        f"{member} {url}": (A, [(get(f"{A}{OAUTH}"), server(A, **{member: url}))],
            f"the {member} of the authorization")
        for member in ("authorization_endpoint", "token_endpoint", "registration_endpoint")
        for url in ("javascript:alert(1)", "http://a.com/x", "file:///x", "https://a.com/$(calc)", "https://u@a.com/",
                    "https://a.com/#x", "--flag", "http://127.0.0.1/x", "",
                    "https://a.com/" + "x" * 9000)
    },
}  # fmt: skip


@pytest.mark.requirement("AC-12", "AC-14", "AU-1", "AU-4")
@pytest.mark.parametrize("name", BAD_SERVERS)
def test_find_server_unusable_metadata_fails(name: str) -> None:
    issuer, script, text = BAD_SERVERS[name]
    with pytest.raises(AuthorizationFailed, match=text):
        play(find_server_metadata(issuer, allow_loopback=False), script)


def whole(demand: AuthChallenge | None = None, **more: Any) -> Any:
    return find_authorization_server(URL, demand or AuthChallenge(), **more)


SEEN: Script = [(get(f"{E}{PRM}/mcp"), prm(scopes_supported=["a", "b", "a"]))]


def test_discovery_combines_both_documents() -> None:
    found_ = play(
        whole(AuthChallenge(resource_metadata=PLACE)),
        [(get(PLACE), SEEN[0][1]), (get(f"{A}{OAUTH}"), server(A))],
    )
    assert isinstance(found_, AuthorizationServer)
    assert (found_.issuer, found_.resource, found_.scopes, found_.metadata_url) == (
        A,
        URL,
        ("a", "b"),
        PLACE,
    )


B = "https://b.com"


SPELLINGS: list[tuple[str | None, str | None, str, str, bool]] = [
    # configured, the token's, offered, in the metadata, and whether that is noted
    (None, None, f"{A}/", A, True),
    (None, None, A, f"{A}/", True),
    (None, None, A, A, False),
    (A, None, f"{A}/", A, True),
    (f"{A}/", None, A, A, False),
    (None, A, f"{A}/", A, True),
]


@pytest.mark.parametrize(("preset", "of_token", "offered", "own", "noted"), SPELLINGS)
def test_discovery_issuer_with_another_slash_is_chosen_and_noted(
    preset: str | None, of_token: str | None, offered: str, own: str, noted: bool
) -> None:
    """The spelling in the metadata is the issuer, and the log names the difference."""
    script: Script = [
        (get(f"{E}{PRM}/mcp"), resource(B, offered, resource=URL)),
        (get(f"{A if preset or of_token else B}{OAUTH}"), server(own, A)),
    ]
    if preset is None and of_token is None:
        script = [
            (get(f"{E}{PRM}/mcp"), resource(offered, resource=URL)),
            (get(f"{A}{OAUTH}"), server(own, A)),
        ]
    found_ = play(whole(configured_issuer=preset, token_issuer=of_token), script)
    assert (found_.issuer, found_.iss) == (own, own)
    assert ["that is its issuer from now on" in note for note in found_.notes] == [True] * noted
    # The cached metadata counts for both spellings.
    again = play(whole(configured_issuer=preset, token_issuer=of_token, cached=found_), script[:1])
    assert (again.metadata, again.notes) == (found_.metadata, found_.notes)


@pytest.mark.requirement("AC-12")
def test_discovery_metadata_issuer_is_for_the_configured_issuer_only() -> None:
    """A hostile MCP server that names its own server doesn't get metadata of another issuer."""
    script: Script = [
        (get(f"{E}{PRM}/mcp"), resource(B, resource=URL)),
        (get(f"{B}{OAUTH}"), server("https://own.com", B)),
    ]
    with pytest.raises(AuthorizationFailed, match="set issuer and metadata_issuer of the profile"):
        play(whole(configured_issuer=A, metadata_issuer="https://own.com"), script)


@pytest.mark.requirement("AC-12")
def test_discovery_metadata_issuer_keys_nothing() -> None:
    script: Script = [
        (get(f"{E}{PRM}/mcp"), resource(f"{A}/", resource=URL)),
        (get(f"{A}{OAUTH}"), server("https://own.com", A)),
    ]
    options: dict[str, Any] = {"configured_issuer": A, "metadata_issuer": "https://own.com"}
    found_ = play(whole(**options), script)
    assert (found_.issuer, found_.iss) == (A, "https://own.com")
    assert play(whole(**options, cached=found_), script[:1]).iss == "https://own.com"


def test_discovery_relative_place_is_noted_and_not_stored() -> None:
    script: Script = [(get(f"{E}{PRM}/mcp"), prm()), (get(f"{A}{OAUTH}"), server(A))]
    found_ = play(whole(AuthChallenge(resource_metadata=PRM)), script)
    assert found_.metadata_url is None
    assert ["is not an absolute URL in quotes" in note for note in found_.notes] == [True]


@pytest.mark.requirement("AC-8")
@pytest.mark.parametrize(
    ("preset", "token_issuer", "chosen"),
    [(None, None, A), (B, None, B), (None, B, B), (A, B, A), ("https://c.com", "https://d.com", A)],
)
def test_discovery_several_issuers_prefers_configured_then_current(
    preset: str | None, token_issuer: str | None, chosen: str
) -> None:
    script: Script = [
        (get(f"{E}{PRM}/mcp"), resource(A, B, resource=URL)),
        (get(f"{chosen}{OAUTH}"), server(chosen)),
    ]
    assert play(whole(configured_issuer=preset, token_issuer=token_issuer), script).issuer == chosen


def test_discovery_same_issuer_uses_cached_metadata() -> None:
    known = authority(issuer=A)
    assert play(whole(cached=known), SEEN).metadata is known.metadata
    script: Script = [
        (get(f"{E}{PRM}/mcp"), resource(B, resource=URL)),
        (get(f"{B}{OAUTH}"), server(B)),
    ]
    assert play(whole(cached=known), script).issuer == B


@pytest.mark.parametrize("servers", [[], None])
def test_discovery_no_issuer_named_fails(servers: list[str] | None) -> None:
    script: Script = [
        (get(f"{E}{PRM}/mcp"), document_reply(resource=URL, authorization_servers=servers))
    ]
    with pytest.raises(AuthorizationFailed, match="names no authorization server"):
        play(whole(), script)


@pytest.mark.requirement("AC-5")
def test_discovery_without_metadata_uses_configured_issuer() -> None:
    found_ = play(whole(configured_issuer=A), [*MISSES, (get(f"{A}{OAUTH}"), server(A))])
    assert (found_.issuer, found_.resource, found_.scopes) == (A, URL, None)


@pytest.mark.requirement("AC-1", "AC-2")
@pytest.mark.parametrize("issuer", [E, f"{E}/"])
def test_discovery_server_of_2025_03_26_uses_its_metadata(issuer: str) -> None:
    found_ = play(whole(), [*MISSES, (get(f"{E}{OAUTH}"), server(issuer, f"{E}/oauth"))])
    assert (found_.issuer, found_.resource, found_.guessed) == (issuer, URL, False)
    assert found_.metadata.token_endpoint == f"{E}/oauth/token"


@pytest.mark.requirement("AC-1", "AC-2")
def test_discovery_server_of_2025_03_26_without_metadata_uses_defaults() -> None:
    """The default endpoints keep the port and drop the path; the host is lowercase."""
    url = "https://api.E.com:8443/v1/mcp"
    root = "https://api.e.com:8443"
    script: Script = [
        (get(f"{root}{PRM}/v1/mcp"), MISSING),
        (get(f"{root}{PRM}"), MISSING),
        (get(f"{root}{OAUTH}"), MISSING),
    ]
    guess = play(find_authorization_server(url, AuthChallenge()), script)
    assert guess == AuthorizationServer(
        resource="https://api.e.com:8443/v1/mcp",
        metadata=AuthorizationServerMetadata(
            issuer=root,
            authorization_endpoint=f"{root}/authorize",
            token_endpoint=f"{root}/token",
            registration_endpoint=f"{root}/register",
            code_challenge_methods_supported=["S256"],
            token_endpoint_auth_methods_supported=["none"],
        ),
        guessed=True,
    )
    shown = (guess.scopes, guess.metadata_url, guess.address, guess.metadata_issuer, guess.notes)
    assert shown == (None, None, None, None, ())
    assert (guess.iss, guess.metadata.scopes_supported) == (root, None)


OLD: list[tuple[HttpResponse, str]] = [
    (server("https://attacker.example.com", E), "has the metadata of another authorization server"),
    (HTML, "was not found: .*has no JSON"),
    (HttpResponse(200, [], b""), "was not found: .*has no JSON"),
    (document_reply(), "was not found: .*cannot be read"),
    (status(500), "answered 500"),
    (server(E, "http://e.com"), "is not https"),
]


@pytest.mark.requirement("AC-2", "AC-14")
@pytest.mark.parametrize(("reply", "text"), OLD)
def test_discovery_server_of_2025_03_26_unusable_metadata_fails(
    reply: HttpResponse, text: str
) -> None:
    failure = play_to_failure(whole(), [*MISSES, (get(f"{E}{OAUTH}"), reply)])
    assert isinstance(failure, AuthorizationFailed)
    assert re.search(text, str(failure))


@pytest.mark.requirement("AC-2")
def test_discovery_page_everywhere_leads_to_no_guessed_endpoint() -> None:
    pages: Script = [(place, HTML) for place, _ in MISSES]
    failure = play_to_failure(whole(), [*pages, (get(f"{E}{OAUTH}"), HTML)])
    assert isinstance(failure, AuthorizationFailed)
    assert "has no JSON" in str(failure)
    # Metadata that is there is used, although pages answer elsewhere.
    found_ = play(whole(), [*pages, (get(f"{E}{OAUTH}"), server(E))])
    assert (found_.issuer, found_.guessed) == (E, False)
