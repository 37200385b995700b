"""The grant of an access token, read from the claims in the token or in an introspection response.

1. A claim that is present but invalid rejects the token. Null counts as absent, because servers
   write it. Claims that aren't needed aren't read.
2. A `Grant` doesn't contain the token, so it cannot leak it; nor does the text of an exception.
3. Nothing here decides whether the claims are authentic. The caller has verified that.

Sources: RFC 7519, 7662, 7800, 8693, 9068.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from mcp_core._errors import McpTrioError
from mcp_core.auth._jose import InvalidToken, parse_members
from mcp_core.auth._steps import Flow
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader

__all__ = [
    "Grant",
    "TokenVerifier",
    "VerifierUnavailable",
    "accepted_audiences",
    "grant_from_claims",
    "read_claims",
    "scopes_from_claims",
]

_MAX_TIME: Final = 2.0**53  # seconds; the largest integer that every JSON parser reads exactly

Claims: TypeAlias = Mapping[str, Any]


class VerifierUnavailable(McpTrioError):
    """A failure to decide whether a token is valid.

    The authorization server did not respond, or its response was unusable, or it was asked too
    often. This isn't the client's mistake: it keeps the token and tries again.

    Args:
        texts: what failed, usually one text. It is for the log, not for the client.
        retry_after: the seconds after which to try again, for the client.
    """

    def __init__(self, *texts: object, retry_after: float = 5.0) -> None:
        super().__init__(*texts)
        self.retry_after = retry_after


class Grant(Struct, frozen=True):
    """The result of a successful token check: who sends the request, and what it may do.

    Attributes:
        principal: the owner of sessions, tasks and states. It is unique across issuers and never
            empty.
        client_id: the program that sends the request, None if it isn't known.
        scopes: the scopes that the token has.
        expires_at: when the token expires, in seconds since 1970, None for never.
        claims: all the token's claims. The repr doesn't show them.
        jkt: the thumbprint of the key that the token is bound to (RFC 9449), or None.
        leeway: the seconds for which the grant is accepted after it expired, because clocks differ.

    Raises:
        ValueError: `principal` is empty, or `scopes` isn't a frozenset.
    """

    principal: str
    client_id: str | None = None
    scopes: frozenset[str] = frozenset()
    expires_at: float | None = None
    claims: Claims = {}
    jkt: str | None = None
    leeway: float = 0.0

    @property
    def valid_until(self) -> float | None:
        """The time at which the grant ends, in seconds since 1970, or None if it has no expiry."""
        return None if self.expires_at is None else self.expires_at + self.leeway

    def __post_init__(self) -> None:
        if not self.principal:
            raise ValueError("the principal of a grant must not be empty")
        if not isinstance(self.scopes, frozenset):
            raise ValueError("the scopes of a grant must be a frozenset of texts")

    def __repr__(self) -> str:
        scopes = " ".join(sorted(self.scopes))
        return (
            f"<Grant to {self.principal!r} by {self.client_id!r}, scopes={scopes!r}, until "
            f"{self.expires_at}>"
        )

    __rich_repr__ = None  # type: ignore[assignment]


class TokenVerifier(Protocol):
    """A verifier of access tokens, as `JwtVerifier` and `IntrospectionVerifier` are."""

    def verify(self, token: str, now: float) -> Flow[Grant]:
        """Verify an access token, and return its grant.

        This is a flow, whose steps the driver executes. `token` is the text after the scheme in the
        header. `now` is in seconds since 1970.

        Raises:
            InvalidToken: the token isn't valid.
            VerifierUnavailable: that cannot be decided now.
        """


# A function from a token to its grant, `async` or not. None and `InvalidToken` both reject the
# token.
VerifierFunction: TypeAlias = Callable[[str], Grant | None | Awaitable[Grant | None]]

_read_claims = reader(dict[str, Any])


def read_claims(payload: bytes) -> dict[str, Any]:
    """Decode claims from JSON.

    A repeated name is rejected, because parsers disagree about its meaning (RFC 7519, section 4).

    Raises:
        InvalidToken: it isn't a JSON object, or a name is repeated.
    """
    try:
        members = parse_members(payload)
        if bytes(members.get("cnf", b""))[:1] == b"{":
            parse_members(bytes(members["cnf"]))
        return _read_claims(payload)
    except InvalidPayload:
        raise InvalidToken("the claims of the token cannot be read") from None


def accepted_audiences(audience: str | Iterable[str]) -> frozenset[str]:
    """Return the audience names to accept.

    A URL with a host and no path is accepted with and without a slash at the end, because libraries
    add or remove it (RFC 3986, 6.2.3).

    Raises:
        ValueError: there is no name, or an empty one.
    """
    names = {audience} if isinstance(audience, str) else set(audience)
    if not names or "" in names:
        raise ValueError(
            "an audience is required: the URI of this server, for which its tokens are issued"
        )
    for name in tuple(names):
        scheme, _, rest = name.partition("://")
        host, slash, path = rest.partition("/")
        if scheme in ("https", "http") and host and not path:
            names.add(f"{scheme}://{host}" if slash else name + "/")
    return frozenset(names)


def grant_from_claims(
    claims: Claims,
    *,
    issuer: str,
    audience: Collection[str],
    now: float,
    leeway: float,
    require_expiry: bool,
    client_ids: Collection[str] = (),
) -> Grant:
    """Check the audience and the times of claims, and build the grant.

    `client_ids` are the clients whose access tokens need no audience, see `JwtVerifier`.
    `require_expiry` is True if a token without `exp` is rejected. `leeway` is the number of seconds
    by which clocks may differ.

    Raises:
        InvalidToken: a claim is invalid, the audience is another one, or the token isn't valid
            now.
    """
    _check_audience(claims, audience, client_ids)
    expires_at = _check_time(claims, now, leeway, require_expiry=require_expiry)
    client = _text_claim(claims, "client_id") or _text_claim(claims, "azp")
    subject = _text_claim(claims, "sub")
    # The prefixes keep a user apart from a client with the same name.
    if subject:
        principal = f"{issuer}#sub:{subject}"
    elif client:
        principal = f"{issuer}#client:{client}"
    else:
        raise InvalidToken("the token does not say whose it is: it has neither sub nor client_id")
    return Grant(
        principal=principal,
        client_id=client,
        scopes=scopes_from_claims(claims),
        expires_at=expires_at,
        claims=claims,
        jkt=_key_thumbprint(claims),
        leeway=leeway,
    )


def scopes_from_claims(claims: Claims) -> frozenset[str]:
    """Return the scopes of the claims.

    Standard is `scope` as a space-separated text (RFC 8693, 4.2). Some servers call it `scp`, or
    write a list.

    Raises:
        InvalidToken: the scopes cannot be read.
    """
    value = claims.get("scope")
    if value is None:
        value = claims.get("scp") or ""
    names = value.split(" ") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidToken("the scopes of the token cannot be read")
    return frozenset(filter(None, names))


def _check_audience(claims: Claims, audience: Collection[str], client_ids: Collection[str]) -> None:
    """Raise `InvalidToken` unless `aud` names one of `audience`.

    Only a token without `aud`, and marked as an access token, is judged by `client_ids` instead.
    """
    if "aud" not in claims and claims.get("token_use") == "access":
        if isinstance(claims.get("client_id"), str) and claims["client_id"] in client_ids:
            return
        raise InvalidToken(
            "the token does not say for whom it is (aud), and its client_id is not in client_ids "
            "of the verifier"
        )
    value = claims.get("aud")
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidToken("the token does not say for whom it is (aud)")
    if not any(name in audience for name in names):
        raise InvalidToken("the token is for another audience: ask for one for this resource")


def _check_time(claims: Claims, now: float, leeway: float, *, require_expiry: bool) -> float | None:
    """Raise `InvalidToken` unless the claims are valid at `now`. Return the expiry."""
    expires_at = _time_claim(claims, "exp")
    not_before = _time_claim(claims, "nbf")
    issued_at = _time_claim(claims, "iat")
    if expires_at is None:
        if require_expiry:
            raise InvalidToken("the token does not say when it expires (exp)")
    elif now >= expires_at + leeway:
        raise InvalidToken("the token has expired")
    if not_before is not None and now < not_before - leeway:
        raise InvalidToken("the token is not valid yet")
    if issued_at is not None and now < issued_at - leeway:
        raise InvalidToken("the token was issued in the future")
    return expires_at


def _time_claim(claims: Claims, name: str) -> float | None:
    """Return a claim as seconds since 1970, None if absent."""
    value = claims.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value < _MAX_TIME:
        raise InvalidToken(f"a time of the token cannot be read ({name})")
    return float(value)


def _text_claim(claims: Claims, name: str) -> str | None:
    """Return a claim as printable text, None if absent."""
    value = claims.get(name)
    if value is None:
        return None
    # Unprintable characters could forge log lines, or make two names look equal.
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidToken(f"a name in the token cannot be read ({name})")
    return value


def _key_thumbprint(claims: Claims) -> str | None:
    """Return the thumbprint of the key that the token is bound to, None for a bearer token.

    Of the confirmation methods of RFC 7800 only DPoP's is supported. A token with any other is
    rejected.
    """
    cnf = claims.get("cnf")
    if cnf is None:
        return None
    if (
        not isinstance(cnf, dict)
        or set(cnf) != {"jkt"}
        or not isinstance(cnf["jkt"], str)
        or not cnf["jkt"]
    ):
        raise InvalidToken("the token is bound to a key in a way that is not supported (cnf)")
    return cnf["jkt"]
