"""A fixed set of API keys: which credentials are accepted, and what no text contains."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from mcp_core import types as t
from mcp_core.auth import ApiKeys, AuthDenial, Grant, Secret
from mcp_core.auth._jose import MAX_TOKEN
from mcp_core.http import EndpointAuth
from tests.core.auth.minting import NOW, run_without_steps
from tests.harness.wire.router import GET, POST, RouterHarness

ANN, OLD, BOB, EVE = (f"{name}-CANARY-0123456789" for name in ("ann", "old", "bob", "eve"))
REFUSED = "the API key was refused: the key is none of those that this server accepts"
DIGEST = f"sha256:{sha256(BOB.encode()).hexdigest()}"


def keys(**options: Any) -> ApiKeys:
    return ApiKeys({"ann": [ANN, Secret(OLD)], "bob": DIGEST}, **options)


def admit(by: ApiKeys, *credentials: str, method: bytes = b"POST") -> Grant | AuthDenial:
    headers = [(b"authorization", each.encode()) for each in credentials]
    return run_without_steps(by.admit(method, b"/mcp", headers, NOW))


@pytest.mark.parametrize(
    ("key", "owner"), [(ANN, "ann"), (OLD, "ann"), (BOB, "bob")], ids=["first", "second", "hashed"]
)
def test_known_key_grants_to_its_owner(key: str, owner: str) -> None:
    assert admit(keys(), f"Bearer {key}") == Grant(owner)
    assert admit(keys(), f"bearer  {key}", method=b"GET") == Grant(owner)


@pytest.mark.parametrize(
    ("credentials", "status", "challenge"),
    [
        ([], 401, "Bearer"),
        (["Basic abc"], 401, "Bearer"),
        (["DPoP abc"], 401, "Bearer"),
        ([f"Bearer {EVE}"], 401, f'Bearer error="invalid_token", error_description="{REFUSED}"'),
        ([f"Bearer {ANN}="], 401, 'Bearer error="invalid_token"'),
        ([f"Bearer {DIGEST.removeprefix('sha256:')}"], 401, 'Bearer error="invalid_token"'),
        ([f"Bearer {DIGEST}"], 400, 'Bearer error="invalid_request"'),
        ([f"Bearer {ANN}", f"Bearer {ANN}"], 400, 'Bearer error="invalid_request"'),
        (["Bearer " + "x" * (MAX_TOKEN + 1)], 401, 'Bearer error="invalid_token"'),
    ],
)  # fmt: skip
def test_other_credentials_are_denied_without_an_issuer(
    credentials: list[str], status: int, challenge: str
) -> None:
    """No `resource_metadata` may start a login that can't succeed; no text repeats the key."""
    denial = admit(keys(), *credentials)
    assert isinstance(denial, AuthDenial)
    assert denial.status == status
    [(name, value)] = denial.headers
    assert name == b"www-authenticate"
    if challenge == "Bearer":
        assert value == b"Bearer"
        assert "an API key is needed" in denial.message
    else:
        assert value.decode().startswith(challenge)
    assert b"resource_metadata" not in value
    for text in (denial.message, denial.reason, value.decode()):
        assert "CANARY" not in text


def test_scopes_are_those_of_the_owner() -> None:
    """A key has fixed scopes: 403 names the missing ones, and no scopes means none granted."""
    by = keys(
        granted_scopes={"ann": ["read", "write"], "bob": ["read"]},
        scopes=["read"],
        tool_scopes={"erase": ["write"]},
    )
    erase = t.CallToolParams(name="erase")
    ann, bob = admit(by, f"Bearer {ANN}"), admit(by, f"Bearer {BOB}")
    assert isinstance(ann, Grant)
    assert isinstance(bob, Grant)
    assert by.check(ann, "tools/call", erase, NOW) is None
    assert by.check(bob, "tools/list", None, NOW) is None
    denial = by.check(bob, "tools/call", erase, NOW)
    assert denial is not None
    assert (denial.status, denial.message) == (403, "the key lacks scopes that this request needs")
    assert denial.headers[0][1].endswith(b'scope="read write"')
    without = keys(scopes=["read"])
    refused = admit(without, f"Bearer {ANN}", method=b"GET")
    assert isinstance(refused, AuthDenial)
    assert refused.status == 403
    with pytest.raises(ValueError, match="did you mean 'erase'"):
        keys(tool_scopes={"erse": ["write"]}).check_names(["erase"], [], [])


def test_no_metadata_is_published() -> None:
    by = keys()
    assert (by.metadata_paths, by.metadata()) == ((), b"")
    log: list[object] = []
    auth = EndpointAuth(by, lambda: NOW, lambda *args, **options: log.append((args, options)))
    harness = RouterHarness(auth=auth)
    assert repr(harness.router) == "<Router of 1 endpoints and 0 plain routes>"
    target = b"/.well-known/oauth-protected-resource/mcp"
    assert harness.send(b"GET", GET, target=target).status == 404
    refused = harness.send(b"POST", [*POST, (b"authorization", f"Bearer {EVE}".encode())])
    assert refused.status == 401
    assert "CANARY" not in f"{log}{refused.headers}{refused.body!r}"
    assert log


@pytest.mark.parametrize(
    ("mapping", "options", "problem"),
    [
        ({}, {}, "there is no key"),
        ({"ann": []}, {}, "there is no key"),
        ({ANN: "ann"}, {}, "shorter than 16 characters.*from names to keys"),
        ({"ann": "x" * 15}, {}, "token_urlsafe"),
        ({"ann": "CANARY with blanks and more"}, {}, "other than A-Z"),
        ({"ann": "x" * (MAX_TOKEN + 1)}, {}, f"more than {MAX_TOKEN}"),
        ({"ann": "sha256:CANARY"}, {}, "64 lower-case"),
        ({"ann": DIGEST.upper().replace("SHA", "sha")}, {}, "64 lower-case"),
        ({"ann": ANN, "bob": ANN}, {}, "two owners"),
        ({"ann": BOB, "bob": DIGEST}, {}, "two owners"),
        ({"": ANN}, {}, "principal"),
        ({"ann": ANN}, {"granted_scopes": {"anne": ["read"]}}, "owner without a key"),
        ({"ann": ANN}, {"granted_scopes": {"ann": "read"}}, "single text"),
        ({"ann": ANN}, {"scopes": ["a b"]}, "not a valid scope"),
    ],
)
def test_unusable_keys_raise_without_being_shown(mapping: Any, options: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        ApiKeys(mapping, **options)
    assert "CANARY" not in str(caught.value)


def test_key_of_minimum_length_is_accepted() -> None:
    assert admit(ApiKeys({"ann": "x" * 16}), "Bearer " + "x" * 16) == Grant("ann")


def test_keys_are_not_shown_nor_kept() -> None:
    by = keys()
    assert repr(by) == "<ApiKeys: 3>"
    assert "CANARY" not in repr(vars(by))
