"""The part that all kinds of authorization share: credentials, scopes, and challenges.

1. A request's head is authorized first (`admit`): it must have exactly one valid token, in
   `Authorization`. Then each message is authorized when it is read (`check`), because only then the
   needed scopes are known.
2. The responses are: no credentials, 401 without an error; an invalid token, 401 `invalid_token`;
   missing scopes, 403 `insufficient_scope`; a malformed request, 400 `invalid_request`.
3. No text contains a part of a token: not a challenge, not a log line. Texts from clients and the
   application cannot leave the quotes of a challenge.

Sources: 2026-07-28 basic/authorization; RFC 6750.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from mcp_core.auth._jose import MAX_TOKEN
from mcp_core.auth._secret import RedactedStruct, Secret
from mcp_core.auth._steps import Step

from ._grant import Grant
from ._scopes import RequiredScopes, Scopes, is_resource_scope

__all__ = [
    "BEARER",
    "DPOP",
    "EXPIRED",
    "TOKEN",
    "AuthDenial",
    "AuthFlow",
    "Await",
    "Headers",
    "PresentedCredentials",
    "ProtectedResource",
    "printable",
]

Headers: TypeAlias = list[tuple[bytes, bytes]]

BEARER: Final = "Bearer"
DPOP: Final = "DPoP"
TOKEN: Final = re.compile(rb"[A-Za-z0-9\-._~+/]+=*")  # RFC 6750, 2.1: b64token
EXPIRED: Final = "the token has expired"
_NOT_QUOTABLE: Final = re.compile(r"[^\x20\x21\x23-\x5b\x5d-\x7e]")  # RFC 6750, 3


class AuthDenial(Struct, frozen=True):
    """A denial: the response to the client, and a reason for the log.

    Attributes:
        status: the HTTP status: 400, 401, 403, 429 or 503.
        message: why, for the client.
        headers: the response's headers, with the challenges. Their names are in lower case.
        reason: why, for the log. It has no part of a token.
    """

    status: int
    message: str
    headers: Headers
    reason: str


class PresentedCredentials(RedactedStruct, frozen=True):
    """A request's credentials: a token sent as Bearer or DPoP, the latter with a proof."""

    token: Secret
    scheme: str = BEARER
    proof: Secret | None = None


class Await(Struct, frozen=True):
    """A step of `OAuthResourceServer.admit`: await the application verifier's result.

    Await `awaitable`, and send its result into the flow, or throw in the exception.
    """

    awaitable: Awaitable[Grant | None]


# The check of one request: yields steps, and returns its outcome.
AuthFlow: TypeAlias = Generator[Step | Await, Any, Grant | AuthDenial]


class ProtectedResource(abc.ABC):
    """The part of authorization that doesn't depend on how a token is verified.

    The arguments are as for `OAuthResourceServer`.

    Raises:
        ValueError: a scope is invalid, or a URI template.
    """

    # What a client has to send, for texts.
    _credential: ClassVar[str] = "access token"
    # The paths of its metadata; none if it publishes none.
    metadata_paths: tuple[str, ...] = ()
    # True if the verifier is known to fetch something, so that the driver needs an HTTP client.
    fetches: bool = False
    # The names, in lower case, of headers beside `Authorization` that a client authenticates with.
    credential_headers: tuple[str, ...] = ()

    def __init__(
        self,
        *,
        scopes: Iterable[str],
        tool_scopes: Scopes | None,
        resource_scopes: Scopes | None,
        prompt_scopes: Scopes | None,
        method_scopes: Scopes | None,
        satisfies: Callable[[frozenset[str], str], bool] | None,
    ) -> None:
        self._required = RequiredScopes(
            scopes,
            methods=method_scopes,
            tools=tool_scopes,
            prompts=prompt_scopes,
            resources=resource_scopes,
        )
        self._satisfies = satisfies or _is_listed
        # The schemes that are accepted, each with its own parameters of a challenge.
        self._schemes: dict[str, dict[str, str]] = {BEARER: {}}
        # Parameters of every challenge.
        self._challenge_parameters: dict[str, str] = {}

    def metadata(self) -> bytes:
        """Return the document to serve at each of `metadata_paths`; empty without any."""
        return b""

    def check_names(
        self, tools: Collection[str], prompts: Collection[str], methods: Collection[str]
    ) -> None:
        """Check that each name that is given scopes exists: a misspelled one protects nothing.

        The entries of mappings are checked, but for resources. Functions aren't.

        Args:
            tools: the names of the server's tools.
            prompts: its prompts' names.
            methods: its methods beside the specification's.

        Raises:
            ValueError: a name is none of the server's. The text names a similar one.
        """
        self._required.check_names(tools, prompts, methods)

    def challenge(
        self,
        error: str | None = None,
        description: str | None = None,
        scopes: Iterable[str] | None = None,
        *,
        scheme: str = BEARER,
    ) -> Headers:
        """Build the `WWW-Authenticate` headers of a denial.

        There is one for Bearer, and one for DPoP if bound tokens are accepted (RFC 6750, section 3;
        RFC 9449, section 7.1).

        Args:
            error: the error code, such as "invalid_token". None if the client made no mistake.
            description: the error for people.
            scopes: the scopes that the request needs; default the scopes that every request needs.
            scheme: the scheme, "Bearer" or "DPoP", whose challenge has the error.
        """
        wanted = self._required.always if scopes is None else scopes
        common = {
            "scope": " ".join(scope for scope in wanted if is_resource_scope(scope)),
            **self._challenge_parameters,
        }
        problem = {"error": error or "", "error_description": description or ""}
        headers = []
        for name, extra in self._schemes.items():
            parameters = (problem if name == scheme else {}) | common | extra
            text = ", ".join(
                f'{key}="{_sanitize_quoted(value)}"' for key, value in parameters.items() if value
            )
            headers.append((b"www-authenticate", f"{name} {text}".rstrip(" ").encode()))
        return headers

    # -- The head of a request ---------------------------------------------------------------------

    @abc.abstractmethod
    def admit(self, method: bytes, target: bytes, headers: Headers, now: float) -> AuthFlow:
        """Authorize a request's head. Return its token's grant, or a denial.

        This is a flow, which usually ends without a step. The driver executes the steps. Scopes are
        checked here too, except for a POST: for its messages call `check`.

        Args:
            method: the request's method, such as `b"POST"`.
            target: path and query, as in the request's first line.
            headers: its headers, as pairs of name and value.
            now: the time in seconds since 1970.
        """

    def read_credentials(self, headers: Headers) -> PresentedCredentials | AuthDenial:
        """Return the credentials in the `headers` of a request, not verified, or a denial.

        Only `Authorization` is read, and `DPoP` for its proof. A token in the query or the body is
        ignored (RFC 6750, section 2.1).
        """
        values = [
            value.strip(b" \t") for name, value in headers if name.lower() == b"authorization"
        ]
        if len(values) > 1:
            return self._deny(400, "invalid_request", "there is more than one Authorization header")
        word, _, rest = (values[0] if values else b"").partition(b" ")
        word = word.lower()
        if word == b"bearer":
            scheme = BEARER
        elif word == b"dpop" and DPOP in self._schemes:
            scheme = DPOP
        else:
            # A client without credentials, or with others, made no mistake (RFC 6750, 3.1): no
            # error code.
            text = f"an {self._credential} is needed, in an Authorization header"
            if word:
                text += f" that begins with {' or '.join(self._schemes)}"
            return self._deny(401, None, text)
        token = rest.lstrip(b" ")
        if len(token) > MAX_TOKEN:
            problem = f"the token is longer than {MAX_TOKEN} characters"
            return self._refuse(problem, scheme)
        if not TOKEN.fullmatch(token):
            problem = (
                "the Authorization header must have one token after its scheme, and nothing else"
            )
            return self._deny(400, "invalid_request", problem, scheme=scheme)
        proof = None
        if scheme == DPOP:
            proofs = [value.strip(b" \t") for name, value in headers if name.lower() == b"dpop"]
            if len(proofs) != 1:
                problem = "exactly one DPoP header with a proof is required"
                return self._deny(401, "invalid_dpop_proof", problem, scheme=scheme)
            proof = Secret(proofs[0].decode("latin-1"))
        return PresentedCredentials(Secret(token.decode()), scheme, proof)

    # -- Each message of a request -----------------------------------------------------------------

    def check(
        self, grant: Grant, method: str | None = None, params: Any = None, now: float | None = None
    ) -> AuthDenial | None:
        """Authorize one message. Return None if `grant` covers it, or a denial.

        `method` is a request's method, `params` its decoded params. Without them the message
        needs no more than every request does: a notification, a response, a stream. With `now`, in
        seconds since 1970, the expiry is checked too: a body may arrive long after its head.
        """
        return self.check_scopes(grant, self.scopes_for(method, params), now)

    def scopes_for(self, method: str | None, params: Any = None) -> tuple[str, ...]:
        """Return all scopes that a message needs, each once.

        `method` is a request's method, `params` its decoded params. Without them the message
        needs no more than every request does.
        """
        return self._required.of(method, params)

    def check_scopes(
        self, grant: Grant, needed: Iterable[str], now: float | None = None
    ) -> AuthDenial | None:
        """Return None if `grant` has all `needed` scopes, or a denial.

        With `now`, in seconds since 1970, the expiry is checked too.
        """
        scheme = DPOP if grant.jkt else BEARER
        if now is not None and grant.valid_until is not None and now >= grant.valid_until:
            return self._refuse(EXPIRED, scheme)
        needed = tuple(needed)
        missing = [scope for scope in needed if not self._satisfies(grant.scopes, scope)]
        if not missing:
            return None
        noun = self._credential.rpartition(" ")[2]
        description = f"the {noun} lacks scopes that this request needs"
        # The challenge names all needed scopes at once, so that the client requests them together.
        denial = self._deny(403, "insufficient_scope", description, needed, scheme=scheme)
        reason = f"{description}: {' '.join(missing)!r} missing"
        return AuthDenial(denial.status, denial.message, denial.headers, reason)

    def _refuse(self, problem: str, scheme: str = BEARER) -> AuthDenial:
        """Build the denial of a token that was sent and isn't valid (RFC 6750, 3.1)."""
        text = f"the {self._credential} was refused: {problem}"
        challenges = self.challenge("invalid_token", text, scheme=scheme)
        return AuthDenial(401, text, challenges, printable(problem))

    def _deny(
        self,
        status: int,
        error: str | None,
        message: str,
        scopes: Iterable[str] | None = None,
        *,
        scheme: str = BEARER,
    ) -> AuthDenial:
        """Build a denial with challenges. `error` is None if the client made no mistake."""
        description = None if error is None else message
        challenges = self.challenge(error, description, scopes, scheme=scheme)
        return AuthDenial(status, message, challenges, printable(message))


def printable(text: str) -> str:
    """Replace unprintable characters, so that `text` stays on one line of the log."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _sanitize_quoted(text: str) -> str:
    """Replace characters that may not stand in a quoted string of a challenge."""
    return _NOT_QUOTABLE.sub("?", text)


def _is_listed(granted: frozenset[str], scope: str) -> bool:
    return scope in granted
