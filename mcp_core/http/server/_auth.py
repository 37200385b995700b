"""Authorization of an endpoint's requests: of the head first, then of each message in the body.

1. The check runs after `Host` and `Origin` and before everything else. No byte of the body is
   read before it has succeeded.
2. Each message in a body is authorized before any of them is processed. If one is denied, the
   whole body is denied. A stream is resumed only with the scopes that its requests needed.
3. An exception in the resource server denies access. Each denial is one line in the log, without
   any part of a token. Clients without a valid token can cause denials at will, so warnings are
   rare.

Tokens are checked by `mcp_core.auth`: its `OAuthResourceServer` is a `ResourceServerLike`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import UNSET, Struct

from mcp_core.http.wire._messages import ErrorResponse, Headers, RequestHead
from mcp_core.protocol.jsonrpc._body import ParsedBody
from mcp_core.protocol.jsonrpc._codec import BadMessage
from mcp_core.protocol.messages._events import GrantLike
from mcp_core.protocol.revisions._config import Config
from mcp_core.protocol.revisions._declared_uris import with_declared_uris
from mcp_core.protocol.revisions._methods import Role
from mcp_core.types import CallToolParams

if TYPE_CHECKING:
    from msgspec import Raw


__all__ = [
    "AUTHORIZED_VERBS",
    "AuthCheck",
    "AuthDenialLike",
    "EndpointAuth",
    "ResourceServerLike",
    "check_scope_names",
]

# The response to any other method is the same for every client, so it needs no token.
AUTHORIZED_VERBS: Final = frozenset((b"GET", b"POST", b"DELETE"))
_INFO, _WARNING, _ERROR = 20, 30, 40  # as in `logging`
_CALL_TOOL: Final = "tools/call"
_WARNING_INTERVAL: Final = 10.0  # seconds; as long as between two fetches of keys that fail
_CHECK_FAILED: Final = ErrorResponse(
    500, "the authorization check failed: see the log of the server"
)
_CHECK_TIMED_OUT: Final = ErrorResponse(
    503, "the token cannot be checked now; try again later", [(b"retry-after", b"5")]
)


class AuthDenialLike(Protocol):
    """A resource server's denial. See `mcp_core.auth.AuthDenial`."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def message(self) -> str:
        """Why, for the client."""

    @property
    def headers(self) -> Headers:
        """The response's headers. Their names are in lower case."""

    @property
    def reason(self) -> str:
        """Why, for the log."""


class ResourceServerLike(Protocol):
    """The resource server of an endpoint. See `mcp_core.auth.OAuthResourceServer`."""

    @property
    def fetches(self) -> bool:
        """True if `admit` is known to yield steps that send HTTP requests."""

    @property
    def metadata_paths(self) -> tuple[str, ...]:
        """The paths at which clients look for the metadata, the resource's own path first.

        Empty without metadata. The other paths belong to the whole host. The
        metadata is served there only if no other resource claims them.
        """

    @property
    def credential_headers(self) -> Collection[str]:
        """The names, in lower case, of headers that `admit` reads beside `Authorization`.

        Handlers don't see these headers.
        """

    def metadata(self) -> bytes:
        """Return the protected resource metadata (RFC 9728) as JSON."""

    def check_names(
        self, tools: Collection[str], prompts: Collection[str], methods: Collection[str]
    ) -> None:
        """Check that each name with scopes exists, as `OAuthResourceServer.check_names` does.

        Raises:
            ValueError: a name is none of these.
        """

    def admit(
        self, method: bytes, target: bytes, headers: Headers, now: float
    ) -> Generator[Any, Any, GrantLike | AuthDenialLike]:
        """Authorize a request's head. Return its token's grant, or a denial.

        The generator yields each step that the driver has to run. The parameters are as for
        `OAuthResourceServer.admit`.
        """

    def scopes_for(self, method: str | None, params: Any = None) -> tuple[str, ...]:
        """Return the scopes that a message needs. `params` are the decoded params of `method`.

        `method` is None for a message that needs no more than every request does.
        """

    def check_scopes(
        self, grant: Any, needed: Iterable[str], now: float | None = None
    ) -> AuthDenialLike | None:
        """Return a denial unless `grant` has all `needed` scopes. None stands for "allowed".

        With `now`, in seconds since 1970, the expiry is checked too.
        """


class ServerLike(Protocol):
    """A server with its declarations' names. See `mcp_core.registry.Server`."""

    def declared_names(self) -> tuple[Collection[str], Collection[str], Collection[str]]:
        """Return the names of its tools, its prompts and its own methods."""


def check_scope_names(
    protected: Iterable[tuple[ServerLike, ResourceServerLike | None]],
) -> None:
    """Check that each name to which a resource server gives scopes exists in one of its servers.

    Call it when serving begins, after the servers' lifespans were entered: they may declare
    tools. `protected` has each server with what authorizes its requests.

    Raises:
        ValueError: a name doesn't exist. Its scopes would protect nothing.
    """
    found: dict[int, tuple[ResourceServerLike, list[set[str]]]] = {}
    for server, resource_server in protected:
        if resource_server is not None:
            _, names = found.setdefault(
                id(resource_server), (resource_server, [set(), set(), set()])
            )
            for known, more in zip(names, server.declared_names(), strict=True):
                known.update(more)
    for resource_server, names in found.values():
        resource_server.check_names(*names)


class EndpointAuth(Struct):
    """The authorization of one endpoint.

    Attributes:
        resource_server: decides about each request.
        wall_time: returns seconds since 1970, because token expiry isn't on a monotonic clock.
        log: the method of that name of a `logging.Logger`.
        warned_at: the last warning's time, by `wall_time`.
    """

    resource_server: ResourceServerLike
    wall_time: Callable[[], float]
    log: Callable[..., object]
    warned_at: float = -math.inf

    def log_line(self, text: str, level: int = _INFO, exc: BaseException | None = None) -> None:
        """Write one line, `text`, to the log, with a traceback if `exc` is given.

        `level` is one of `logging`; default INFO.
        """
        self.log(level, "%s", text, exc_info=exc)

    def expiry(self, grant: GrantLike, now: float) -> float:
        """Return when `grant` expires, by the monotonic clock of `now`; infinite if never."""
        until = grant.valid_until
        return math.inf if until is None else now + until - self.wall_time()

    def authorize_body(
        self, grant: GrantLike, body: ParsedBody, config: Config
    ) -> ErrorResponse | frozenset[str]:
        """Return the scopes that `body` needs, or an error response unless `grant` has them all.

        `config` belongs to the connection that gets the body. This decodes the params of its
        messages (`ParsedBody.decode_params`), for the connection too.
        """
        needed: set[str] = set()
        try:
            now = self.wall_time()
            for method, params in _guarded_messages(body, config):
                scopes = self.resource_server.scopes_for(method, params)
                denial = self.resource_server.check_scopes(grant, scopes, now)
                if denial is not None:
                    return self.denial_response(b"POST", denial, method)
                needed.update(scopes)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 3; user code may run
            return self.failure_response(b"POST", exc)
        return frozenset(needed)

    def authorize_calls(
        self, grant: GrantLike, tools: Iterable[str], method: str
    ) -> ErrorResponse | frozenset[str]:
        """Return the scopes that calls of `tools` need, or an error response if `grant` lacks one.

        This is for a request of `method`, about what such calls have returned. The challenge names
        the scopes of all of them, so that the client requests them together.
        """
        try:
            scopes = self._scopes_for_calls(tools)
            denial = self.resource_server.check_scopes(grant, scopes)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 3; user code may run
            return self.failure_response(b"POST", exc)
        if denial is not None:
            return self.denial_response(b"POST", denial, method)
        return frozenset(scopes)

    def may_call(self, grant: GrantLike, tool: str) -> bool:
        """Return True if `grant` has the scopes that a call of `tool` needs."""
        try:
            return self.resource_server.check_scopes(grant, self._scopes_for_calls([tool])) is None
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - as above
            self.failure_response(b"POST", exc)
            return False

    def _scopes_for_calls(self, tools: Iterable[str]) -> list[str]:
        scopes: dict[str, None] = {}
        for tool in tools:
            params = CallToolParams(name=tool)
            scopes.update(dict.fromkeys(self.resource_server.scopes_for(_CALL_TOOL, params)))
        return list(scopes)

    def authorize_resume(self, grant: GrantLike, needed: Iterable[str]) -> ErrorResponse | None:
        """Return an error response unless `grant` has the scopes that the requests had `needed`.

        A client may present another token of the same user to resume their stream.
        """
        try:
            denial = self.resource_server.check_scopes(grant, needed)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - as above
            return self.failure_response(b"GET", exc)
        return None if denial is None else self.denial_response(b"GET", denial)

    def denial_response(
        self, verb: bytes, denial: AuthDenialLike, method: str | None = None
    ) -> ErrorResponse:
        """Log `denial` and return it as a response.

        `verb` is the request's HTTP method, `method` the denied MCP method, None for the head of a
        request.
        """
        request = verb.decode("ascii") if method is None else f"{verb.decode('ascii')} {method}"
        # A 5xx isn't the client's mistake, so an operator should see it.
        level = _INFO if denial.status < 500 else self._warning_level()
        self.log_line(f"{request} refused with {denial.status}: {denial.reason}", level)
        return ErrorResponse(denial.status, denial.message, denial.headers)

    def failure_response(self, verb: bytes, exc: BaseException) -> ErrorResponse:
        """Log `exc`, an exception from the resource server, and return a response without it.

        `verb` is the request's HTTP method.
        """
        verb_text = verb.decode("ascii")
        self.log_line(
            f"{verb_text} refused with 500: the authorization check raised an exception",
            _ERROR,
            exc,
        )
        return _CHECK_FAILED

    def timeout_response(self, verb: bytes) -> ErrorResponse:
        """Log that the check took too long, and return a response: retry later.

        `verb` is the request's HTTP method.
        """
        verb_text = verb.decode("ascii")
        text = f"{verb_text} refused with 503: the authorization check took too long"
        self.log_line(text, self._warning_level())
        return _CHECK_TIMED_OUT

    def _warning_level(self) -> int:
        """Return the level of a line for operators: WARNING, or INFO soon after a warning."""
        now = self.wall_time()
        if 0 <= now - self.warned_at < _WARNING_INTERVAL:
            return _INFO
        self.warned_at = now
        return _WARNING


class AuthCheck:
    """The authorization of one request's head, which may need I/O.

    Call `begin` first. While `step` isn't None the driver runs that step and passes the outcome
    to `send` or `throw`. Their `now` is on the endpoint's clock, monotonic, in seconds.

    Args:
        auth: the endpoint's authorization.
        head: the request's head.
        on_granted: called with the grant and the time. If it raises an exception, `on_denied` is
            called as well.
        on_denied: called with the response to send and the time.

    Attributes:
        step: the step that the driver has to run; None before and after the check.
    """

    __slots__ = ("_auth", "_flow", "_head", "_on_denied", "_on_granted", "step")

    def __init__(
        self,
        auth: EndpointAuth,
        head: RequestHead,
        *,
        on_granted: Callable[[GrantLike, float], object],
        on_denied: Callable[[ErrorResponse, float], object],
    ) -> None:
        self._auth = auth
        self._head = head
        self._on_granted = on_granted
        self._on_denied = on_denied
        self._flow: Generator[Any, Any, GrantLike | AuthDenialLike] | None = None
        self.step: Any = None

    def __repr__(self) -> str:
        return f"<AuthCheck, {'waiting' if self.step is not None else 'done'}>"

    def begin(self, now: float) -> None:
        """Start the check. Most checks need no I/O and are decided when this returns."""
        head = self._head

        def start() -> Any:
            wall_time = self._auth.wall_time()
            server = self._auth.resource_server
            self._flow = server.admit(head.method, head.target, head.headers, wall_time)
            return next(self._flow)

        self._resume(start, now)

    def send(self, reply: Any, now: float) -> None:
        """Resume the check with `reply`, the result of `step`. Then look at `step` again."""
        assert self._flow is not None
        flow = self._flow
        self._resume(lambda: flow.send(reply), now)

    def throw(self, exc: BaseException, now: float) -> None:
        """Resume the check with `exc`, the exception of `step`. Then look at `step` again."""
        assert self._flow is not None
        flow = self._flow
        self._resume(lambda: flow.throw(exc), now)

    def time_out(self, now: float) -> None:
        """Deny the request if the check is still undecided. Otherwise do nothing."""
        if self.step is not None:
            self.step = None
            self._on_denied(self._auth.timeout_response(self._head.method), now)

    def _resume(self, advance: Callable[[], Any], now: float) -> None:
        verb = self._head.method
        try:
            outcome = self._run_to_next_step(advance)
            if self.step is not None:
                return
            # Only a grant has a principal. The classes are in `auth`, which `http` may not import.
            if hasattr(outcome, "principal"):
                self._on_granted(outcome, now)
            else:
                self._on_denied(self._auth.denial_response(verb, outcome), now)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - rule 3; user code may call sys.exit
            self._on_denied(self._auth.failure_response(verb, exc), now)

    def _run_to_next_step(self, advance: Callable[[], Any]) -> Any:
        """Set `step` to the flow's next step, or return the flow's result if it has ended."""
        self.step = None
        try:
            self.step = advance()
        except StopIteration as end:
            return end.value


def _guarded_messages(body: ParsedBody, config: Config) -> Iterator[tuple[str | None, Any]]:
    """Yield the MCP method and the decoded params of each message in `body`.

    The method is None for a message that needs no more than any request does. There is at least
    one, so that the resource server is asked about every body.
    """
    rows = config.receivable[Role.SERVER]

    def find_reader(method: str) -> Callable[[Raw | bytes], Any] | None:
        row = rows.get(method)
        return row.read_params if row is not None else None

    if not body.messages:
        yield None, None
    for message, decoded in zip(body.messages, body.decode_params(find_reader), strict=True):
        # An invalid message counts as harmless here: the connection gets the same parse, and
        # rejects it with the right JSON-RPC error.
        if isinstance(message, BadMessage) or decoded is None or decoded.error:
            yield None, None
        else:
            assert message.method is not UNSET
            yield message.method, decoded.params
            if config.declared is not None:
                # A scope may be for the declared spelling, or for the client's.
                most = config.limits.uris
                params = with_declared_uris(message.method, decoded.params, config.declared, most)
                if params is not decoded.params:
                    yield message.method, params
