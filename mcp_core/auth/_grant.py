"""What a good token grants, and how it is read from what an authorization server says of a token: in the token itself, or when
it is asked.

Rules of this file:

1. A claim that is there and cannot be read refuses the token: nothing is guessed. Null counts as absent, since servers write
   it. What is not asked for is not looked at.
2. The principal is told with its issuer, and a user is never the client of the same name. Nobody is the empty text.
3. A token that is bound to a key is good with a proof of that key only. Of the ways to bind one (RFC 7800) DPoP is known
   here, and whatever is bound in another way is refused.
4. No text has anything in it of a token, and a `Grant` does not have the token at all: it cannot be passed on by accident.

It does not know whether the claims may be believed. RFC 7519, 7662, 7800, 8693, 9068.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from msgspec import Struct

from mcp_core._errors import McpTrioError
from mcp_core._jsonrpc import Unreadable, reader

from ._jose import BadToken, members_of

if TYPE_CHECKING:
    from ._steps import Flow

__all__ = [
    "Grant",
    "Verifier",
    "VerifierUnavailable",
    "audiences",
    "grant_of",
    "read_claims",
    "scopes_in",
]

_LATEST: Final = 2.0**53  # seconds; every JSON implementation is exact up to there

Claims: TypeAlias = Mapping[str, Any]


class VerifierUnavailable(McpTrioError):
    """Whether a token is good cannot be told now: the authorization server did not answer, or not sensibly. That is no fault of
    the client, who keeps the token and tries again. The text, for the log, says what was tried."""


class Grant(Struct, frozen=True):
    """Who asks, and what that one may do.

    `principal` is the name under which sessions, tasks and states are kept, unique among all issuers and never empty. `client_id`
    is the program that asks. `expires_at` is in seconds since 1970, and `leeway` the seconds for which it is still good then, since
    clocks differ. `claims` is all that was said; printed are neither they nor, since it is not here, the token. `jkt` is the
    thumbprint of the key to which the token is bound (RFC 9449), if it is.
    """

    principal: str
    client_id: str | None = None
    scopes: frozenset[str] = frozenset()
    expires_at: float | None = None
    claims: Claims = {}
    jkt: str | None = None
    leeway: float = 0.0

    @property
    def good_until(self) -> float | None:
        """When what was granted ends, in seconds since 1970; None if it does not say."""
        return None if self.expires_at is None else self.expires_at + self.leeway

    def __post_init__(self) -> None:
        if not self.principal:
            raise ValueError("a grant has a principal: the empty text is nobody")
        if not isinstance(self.scopes, frozenset):
            raise ValueError("the scopes of a grant are a frozenset of texts")

    def __repr__(self) -> str:
        scopes = " ".join(sorted(self.scopes))
        return (
            f"<Grant to {self.principal!r} by {self.client_id!r}, scopes={scopes!r}, until {self.expires_at}>"
        )

    __rich_repr__ = None  # type: ignore[assignment]


class Verifier(Protocol):
    """Something that knows which tokens are good.

    `verify` is a flow: whoever runs it does the steps. `now` is in seconds since 1970.

    Raises:
        BadToken: it is not good.
        VerifierUnavailable: that cannot be told now.
    """

    def verify(self, token: str, now: float) -> Flow[Grant]: ...


# Whatever else decides about a token: None, or `BadToken`, is a refusal. It may be `async`.
VerifierFunction: TypeAlias = Callable[[str], "Grant | None | Awaitable[Grant | None]"]

_read_claims = reader(dict[str, Any])


def read_claims(payload: bytes) -> dict[str, Any]:
    """Claims as JSON. A name that stands twice has no meaning that all would agree on (RFC 7519, section 4).

    Raises:
        BadToken: it is no JSON object, or one with such a name.
    """
    try:
        members = members_of(payload)
        if bytes(members.get("cnf", b""))[:1] == b"{":
            members_of(bytes(members["cnf"]))
        return _read_claims(payload)
    except Unreadable:
        raise BadToken("the claims of the token cannot be read") from None


def audiences(audience: str | Iterable[str]) -> frozenset[str]:
    """The names under which we are meant. A URL of nothing but a host has two spellings, of which libraries add the one and drop the
    other (RFC 3986, 6.2.3).

    Raises:
        ValueError: there is none.
    """
    names = {audience} if isinstance(audience, str) else set(audience)
    if not names or "" in names:
        raise ValueError("an audience is wanted: the URI of this server, for which its tokens are issued")
    for name in tuple(names):
        scheme, _, rest = name.partition("://")
        host, slash, path = rest.partition("/")
        if scheme in ("https", "http") and host and not path:
            names.add(f"{scheme}://{host}" if slash else name + "/")
    return frozenset(names)


def grant_of(
    claims: Claims, *, issuer: str, audience: Collection[str], now: float, leeway: float, expires: bool
) -> Grant:
    """The grant that these claims are, to somebody whom `issuer` knows. `expires`: it has to say until when.

    Raises:
        BadToken: it is none, is not for us, or not now.
    """
    _check_audience(claims, audience)
    expires_at = _check_time(claims, now, leeway, expires=expires)
    client = _text(claims, "client_id") or _text(claims, "azp")
    subject = _text(claims, "sub")
    if subject:
        principal = f"{issuer}#sub:{subject}"
    elif client:
        principal = f"{issuer}#client:{client}"
    else:
        raise BadToken("the token does not say whose it is: it has neither sub nor client_id")
    return Grant(
        principal=principal,
        client_id=client,
        scopes=scopes_in(claims),
        expires_at=expires_at,
        claims=claims,
        jkt=_bound_to(claims),
        leeway=leeway,
    )


def scopes_in(claims: Claims) -> frozenset[str]:
    """`scope` is a text with spaces (RFC 8693, 4.2), and what others call `scp`, or write as a list, means the same."""
    value = claims.get("scope")
    if value is None:
        value = claims.get("scp") or ""
    names = value.split(" ") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadToken("the scopes of the token cannot be read")
    return frozenset(filter(None, names))


def _check_audience(claims: Claims, audience: Collection[str]) -> None:
    value = claims.get("aud")
    named = [value] if isinstance(value, str) else value
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise BadToken("the token does not say for whom it is (aud)")
    if not any(name in audience for name in named):
        raise BadToken("the token is for another audience: ask for one for this resource")


def _check_time(claims: Claims, now: float, leeway: float, *, expires: bool) -> float | None:
    expires_at, not_before, issued = (_time(claims, name) for name in ("exp", "nbf", "iat"))
    if expires_at is None:
        if expires:
            raise BadToken("the token does not say when it expires (exp)")
    elif now >= expires_at + leeway:
        raise BadToken("the token has expired")
    if not_before is not None and now < not_before - leeway:
        raise BadToken("the token is not valid yet")
    if issued is not None and now < issued - leeway:
        raise BadToken("the token was issued in the future")
    return expires_at


def _time(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value < _LATEST:
        raise BadToken(f"a time of the token cannot be read ({name})")
    return float(value)


def _text(claims: Claims, name: str) -> str | None:
    value = claims.get(name)
    if value is None:
        return None
    # Such a name is written into logs, and compared with others.
    if not isinstance(value, str) or not value or not value.isprintable():
        raise BadToken(f"a name in the token cannot be read ({name})")
    return value


def _bound_to(claims: Claims) -> str | None:
    cnf = claims.get("cnf")
    if cnf is None:
        return None
    if not isinstance(cnf, dict) or set(cnf) != {"jkt"} or not isinstance(cnf["jkt"], str) or not cnf["jkt"]:
        raise BadToken("the token is bound to a key in a way that is not understood here (cnf)")
    return cnf["jkt"]
