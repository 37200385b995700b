"""All that a protected resource decides on each of a table of requests, in `decisions.txt`.

    python -m tests.core.auth.server.decisions

writes the file again. A change of authorization at the server shows in it which grants, denials,
headers and log lines it changes, also for requests that the change isn't about: read that
difference before you commit it.

Each text is a resource with its options. Below it are its metadata, and the decision on each head
and on each message: the grant, or the status, the text, the headers and the reason for the log.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core import types as t
from mcp_core.auth._jose import MAX_TOKEN, InvalidToken
from mcp_core.auth.server._api_keys import ApiKeys
from mcp_core.auth.server._grant import Grant, VerifierUnavailable
from mcp_core.auth.server._introspection import IntrospectionVerifier
from mcp_core.auth.server._jwt import JwtVerifier
from mcp_core.auth.server._protected_resource import AuthDenial, Await, ProtectedResource
from mcp_core.auth.server._resource_server import OAuthResourceServer
from tests.core.auth.minting import (
    EC,
    ISSUER,
    JKT,
    JWKS_URI,
    NO_REPLY,
    NOW,
    RESOURCE,
    STRANGER,
    forge,
    keys_reply,
    proof,
    public,
    token,
)
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from mcp_core.auth._steps import HttpResponse
    from mcp_core.http.wire._messages import Headers

__all__ = ["RESOURCES", "decisions_of", "kept_decisions"]

_FILE: Final = Path(__file__).with_name("decisions.txt")
_KEY: Final = "key-of-alice-4711"
_OTHER_KEY: Final = "key-of-bob-47112"
_ALL: Final = frozenset({"read", "tool", "prompt", "resource", "method", "always"})

_GRANTS: Final[Mapping[str, Grant]] = {
    "none": Grant("alice"),
    "read": Grant("alice", "app", frozenset({"read"})),
    "all": Grant("alice", "app", _ALL),
    "short": Grant("alice", "app", _ALL, NOW - 1, leeway=2),
    "old": Grant("alice", "app", _ALL, NOW),
    "bound": Grant("alice", "app", _ALL, jkt=JKT),
}


def _known(text: str) -> Grant | None:
    if text == "broken":
        raise KeyError(text)
    if text == "down":
        raise VerifierUnavailable("the\x00database", retry_after=7.2)
    if text == "invalid":
        raise InvalidToken("it is\nof another kind")
    return _GRANTS.get(text)


async def _known_later(text: str) -> Grant | None:
    return _known(text)


def _oauth(verifier: Any = _known, **options: Any) -> Callable[[], ProtectedResource]:
    return lambda: OAuthResourceServer(
        options.get("resource", RESOURCE),
        [ISSUER],
        verifier,
        **{name: value for name, value in options.items() if name != "resource"},
    )


_SCOPES: Final[dict[str, Any]] = {
    "scopes": ["always"],
    "tool_scopes": {"t": ["tool"]},
    "prompt_scopes": {"p": ["prompt"]},
    "resource_scopes": {"db://a": ["resource"], "db://{x}/y": ["deep"]},
    "method_scopes": {"ping": ["method"], "tools/list": ["method", "read"]},
}

RESOURCES: Final[dict[str, Callable[[], ProtectedResource]]] = {
    "no options": _oauth(),
    "scopes of all kinds": _oauth(**_SCOPES),
    "scopes by functions": _oauth(
        tool_scopes=lambda name: [name],
        prompt_scopes=lambda name: [name],
        resource_scopes=lambda uri: [uri],
        method_scopes=lambda method: [method.replace("/", "-")],
        satisfies=lambda granted, scope: scope == "always" or "read" in granted,
        scopes_supported=["x", "y"],
        resource_name='A "name"',
    ),
    "a coroutine": _oauth(_known_later),
    "DPoP": _oauth(dpop=True),
    "DPoP with nonces": _oauth(dpop=True, nonce_key=b"n" * 32, scopes=["always"]),
    "the root": _oauth(resource="https://mcp.example.com"),
    "JWT": lambda: OAuthResourceServer(
        RESOURCE, [ISSUER], JwtVerifier(ISSUER, RESOURCE, jwks_uri=JWKS_URI), dpop=True
    ),
    "introspection": lambda: OAuthResourceServer(
        RESOURCE,
        [ISSUER],
        IntrospectionVerifier(
            ISSUER,
            RESOURCE,
            endpoint=f"{ISSUER}/introspect",
            client_id="resource server",
            client_secret="introspection-secret",
        ),
    ),
    "API keys": lambda: ApiKeys({"alice": _KEY, "bob": [_OTHER_KEY, "more-of-bob-47113"]}),
    "API keys with scopes": lambda: ApiKeys(
        {"alice": _KEY, "bob": _OTHER_KEY}, granted_scopes={"alice": ["always", "tool"]}, **_SCOPES
    ),
}


def _bearer(text: str, *more: tuple[bytes, bytes]) -> Headers:
    return [(b"authorization", b"Bearer " + text.encode()), *more]


def _dpop(text: str, *proofs: str) -> Headers:
    return [
        (b"authorization", b"DPoP " + text.encode()),
        *((b"dpop", each.encode()) for each in proofs),
    ]


_PROOFS: Final[dict[str, dict[str, Any]]] = {
    "another method": {"htm": "GET"},
    "another URL": {"htu": "https://mcp.example.com/other"},
    "its URL in other letters": {"htu": "HTTPS://MCP.example.com:443/%6dcp?a=b#c"},
    "where it is served": {"htu": "https://mcp.example.com/served"},
    "another token": {"ath": "x"},
    "60 seconds old": {"iat": NOW - 60},
    "older": {"iat": NOW - 60.001},
    "15 seconds ahead": {"iat": NOW + 15},
    "further ahead": {"iat": NOW + 15.001},
    "no identifier": {"jti": ""},
    "a missing claim": {"without": "ath"},
    "another nonce": {"nonce": "x"},
    "another type": {"header": {"typ": "JWT"}},
    "no key": {"header": {"jwk": None}},
    "an unusable key": {"header": {"jwk": {"kty": "oct", "k": "AA"}}},
    "another key": {"key": STRANGER},
}
_TOKENS: Final[dict[str, dict[str, Any]]] = {
    "another issuer": {"iss": "https://other.example"},
    "another audience": {"aud": "https://other.example"},
    "several audiences": {"aud": ["https://other.example", RESOURCE]},
    "expired": {"exp": NOW - 61},
    "just expired": {"exp": NOW - 59},
    "not yet valid": {"nbf": NOW + 61},
    "no expiry": {"without": "exp"},
    "no subject": {"without": "sub"},
    "no scope": {"without": "scope"},
    "a list of scopes": {"scope": ["a", "b"]},
    "bound": {"cnf": {"jkt": JKT}},
    "bound to a certificate": {"cnf": {"x5t#S256": "x"}},
    "another type": {"header": {"typ": "dpop+jwt"}},
    "an unknown key": {"header": {"kid": "other"}},
}
_HEADS: Final[dict[str, Headers]] = {
    "nothing": [],
    "an empty header": [(b"authorization", b"")],
    "Basic": [(b"authorization", b"Basic YTpi")],
    "Bearer alone": [(b"authorization", b"Bearer")],
    "two tokens": _bearer("all all"),
    "two headers": _bearer("all", (b"authorization", b"Bearer all")),
    "spaces": [(b"Authorization", b"\t bEARER   all \t")],
    "other characters": _bearer("a,b"),
    "the longest token": _bearer("x" * MAX_TOKEN),
    "a longer token": _bearer("x" * (MAX_TOKEN + 1)),
    **{name: _bearer(name) for name in (*_GRANTS, "unknown", "broken", "down", "invalid")},
    "alice's key": _bearer(_KEY),
    "bob's key": _bearer(_OTHER_KEY),
    "alice's key in other letters": _bearer(_KEY.upper()),
    "DPoP without a proof": _dpop("bound"),
    "DPoP with two proofs": _dpop("bound", proof("bound"), proof("bound", jti="p2")),
    "DPoP": _dpop("bound", proof("bound")),
    "DPoP of a token without a key": _dpop("all", proof("all")),
    **{
        f"DPoP: {name}": _dpop("bound", proof("bound", **claims))
        for name, claims in _PROOFS.items()
    },
    "DPoP: another signature": _dpop("bound", proof("bound")[:-8] + "AAAAAAAA"),
    "DPoP: no proof": _dpop("bound", "x"),
    "a JWT": _bearer(token()),
    **{f"a JWT: {name}": _bearer(token(**claims)) for name, claims in _TOKENS.items()},
    "a JWT: another signature": _bearer(forge({"alg": "ES256", "kid": "ec"}, {}, STRANGER)),
    "a JWT: no signature": _bearer(token().rpartition(".")[0] + "."),
}


def _listen(*uris: str) -> Any:
    return t.ListenParams(notifications=t.SubscriptionFilter(resource_subscriptions=list(uris)))


_ARGUMENT: Final = t.CompletionArgument(name="x", value="")
_MESSAGES: Final[dict[str, tuple[str | None, Any]]] = {
    "a notification": (None, None),
    "ping": ("ping", None),
    "tools/list": ("tools/list", None),
    "the tool": ("tools/call", t.CallToolParams(name="t")),
    "another tool": ("tools/call", t.CallToolParams(name="other")),
    "the prompt": ("prompts/get", t.GetPromptParams(name="p")),
    "a completion of the prompt": (
        "completion/complete",
        t.CompleteParams(ref=t.PromptReference("p"), argument=_ARGUMENT),
    ),
    "a completion of the template": (
        "completion/complete",
        t.CompleteParams(ref=t.ResourceTemplateReference("db://{x}/y"), argument=_ARGUMENT),
    ),
    "the resource": ("resources/read", t.ReadResourceParams(uri="db://a")),
    "the template": ("resources/subscribe", t.SubscribeParams(uri="db://b/y")),
    "listen to both": ("subscriptions/listen", _listen("db://a", "db://b/y")),
    "listen to nothing": ("subscriptions/listen", _listen()),
}


# -- What is seen ----------------------------------------------------------------------------------


def _show_decision(found: Grant | AuthDenial | None) -> str:
    if isinstance(found, AuthDenial):
        shown = [f"{found.status} {found.message}"]
        shown += [f"{name.decode()}: {value.decode()}" for name, value in found.headers]
        return " | ".join([*shown, f"log: {found.reason}"]).replace("\n", "\\n")
    if found is None:
        return "allowed"
    scopes = " ".join(sorted(found.scopes))
    return (
        f"{found.principal} of {found.client_id}, [{scopes}], until {found.valid_until}, "
        f"key {found.jkt}"
    )


def _run_coroutine(awaitable: Awaitable[Any]) -> Any:
    iterator = awaitable.__await__()
    try:
        next(iter(iterator))
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def _fetched(url: str, body: bytes) -> HttpResponse:
    if url == JWKS_URI:
        return keys_reply(public(EC))
    if b"token=all&" in body:
        return keys_reply(
            {"active": True, "iss": ISSUER, "aud": RESOURCE, "sub": "alice", "scope": "read"}
        )
    if b"token=old&" in body:
        return keys_reply({"active": True, "aud": RESOURCE, "sub": "alice", "exp": NOW - 61})
    if b"token=bound&" in body:
        return keys_reply(status=401)
    if b"token=down&" in body:
        raise NO_REPLY
    return keys_reply({"active": False})


def _admit(resource: ProtectedResource, method: bytes, headers: Headers) -> str:
    flow = resource.admit(method, b"/served?a=b", headers, NOW)
    reply: Any = None
    steps = []
    try:
        step: Any = next(flow)
        while True:
            try:
                if isinstance(step, Await):
                    steps.append("awaits; ")
                    reply = _run_coroutine(step.awaitable)
                else:
                    steps.append("fetches; ")
                    reply = _fetched(step.request.url, step.request.body)
            except Exception as exc:  # noqa: BLE001 - of the verifier, whichever it is
                step = flow.throw(exc)
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        return "".join(steps) + _show_decision(stop.value)
    except Exception as exc:  # noqa: BLE001 - what passes through to the driver
        return "".join(steps) + f"{type(exc).__name__}: {exc}"


def decisions_of(name: str) -> str:
    """Return what a resource decides on all heads and messages."""
    make = RESOURCES[name]
    resource = make()
    lines = [
        re.sub(" at 0x[0-9a-f]+", "", repr(resource)),
        f"{resource.metadata().decode()} at {' '.join(resource.metadata_paths)}",
        f"fetches {resource.fetches}, reads {resource.credential_headers}",
    ]
    known: dict[str, str] = {}
    for label, headers in _HEADS.items():
        # A resource of its own for each: it remembers proofs, keys and tokens.
        found = _admit(make(), b"POST", headers)
        same = known.setdefault(found, label)
        lines.append(f"{label}: {found}" if same == label else f"{label}: as {same}")
    for granted in ("none", "read", "all"):
        found = _admit(make(), b"GET", _bearer(granted))
        lines.append(f"GET with {granted}: {found}")
    for label, (method, params) in _MESSAGES.items():
        lines.append(f"{label} needs {' '.join(resource.scopes_for(method, params)) or 'nothing'}")
        by_outcome: dict[str, list[str]] = {}
        for granted in ("none", "read", "all", "bound"):
            found = _show_decision(resource.check(_GRANTS[granted], method, params))
            by_outcome.setdefault(found, []).append(granted)
        lines += [f"  with {', '.join(grants)}: {found}" for found, grants in by_outcome.items()]
    for now in (NOW, NOW + 0.999, NOW + 1):
        found = _show_decision(resource.check(_GRANTS["short"], now=now))
        lines.append(f"{now - NOW:g} s later: {found}")
    return "\n".join(lines)


def kept_decisions() -> dict[str, str]:
    """Return the kept text of each resource."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: decisions_of(name) for name in RESOURCES})
