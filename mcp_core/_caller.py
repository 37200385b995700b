"""A client's side of one conversation, without a runtime: what can be asked, and what becomes of the answer.

Rules of this file:

1. A runtime adds the waiting only: `Caller._call` is its own coroutine, and a `Waiter` wakes it. A typed call hands that
   coroutine on, so that nothing in here is asynchronous and a call is the same under every runtime.
2. What a call can be told beside its arguments is the same for all of them, `CallOptions`; and what a conversation can be
   told is the same whatever carries it, `CallerOptions`.
3. What a callback for log messages raises is reported and ends nothing: no call of the caller's is to blame.

It refuses to know what may be asked in which revision, which is the connection's, and how anyone waits.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack

from . import types as t
from ._cache import ResultCache
from ._calls import Listing, Pending, Waiter
from ._capabilities import has
from ._config import Config
from ._connection import Connection
from ._dialects import ALL
from ._errors import Fault, LocalProtocolError, PeerError, RemoteProtocolError
from ._events import NotificationReceived, PeerReady
from ._methods import Role
from ._outputs import Outputs
from ._standing import Standing
from ._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from ._calls import CallOptions, Params, Steps
    from ._events import Event, Peer, ProgressReceived
    from .types import RequestId

__all__ = ["Caller", "CallerOptions", "client_config"]

_CLIENT, _SERVER = Role.CLIENT, Role.SERVER
_LOG, _SET_LEVEL = "notifications/message", "logging/setLevel"
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_LEVEL: Final = "io.modelcontextprotocol/logLevel"  # the member of a request's `_meta` that does the same

T = TypeVar("T")


class CallerOptions(TypedDict, total=False):
    """What a client can be told about its conversation.

    Keys:
        versions: revisions of MCP to speak; all by default. With several the newest that both sides know is found out; one
            fixes it.
        verdict: the `peer` of an earlier client of the same server: its revision is taken up at once, which saves a probe. It counts
            only if that revision is among `versions`.
        info: what the client calls itself; this library by default.
        extensions: what the client can do beyond MCP, by identifier, each with its settings. Told as the capability
            `extensions` in 2026-07-28, and as `experimental`, which every revision has.
        probe_timeout: seconds of silence after which a server is taken for one that begins with a handshake; 5 by default.
        initialize_timeout: seconds for that handshake; by default it waits, as a process may start slowly.
        keep_alive: seconds of silence after which the server is asked whether it lives; after as many more it is given up. By
            default it never is.
        on_log: called with each log message of the server. What it raises is reported, and ends nothing.
        log_level: the least severe log message wanted; `Caller.set_log_level` changes it. Unless given, "info" if there is an
            `on_log`, else the server is not told.
        cache: whether to use answers again for as long as the server says that they stay fresh (2026-07-28); True by default.
    """

    versions: Iterable[str]
    verdict: Peer | None
    info: t.Implementation | None
    extensions: Mapping[str, Mapping[str, Any]] | None
    probe_timeout: float
    initialize_timeout: float | None
    keep_alive: float | None
    on_log: Callable[[t.LoggingMessageParams], object] | None
    log_level: t.LoggingLevel | None
    cache: bool


class Caller(abc.ABC):
    """One conversation with a server. Every call takes `CallOptions`, and raises beside what it names itself:

    - `PeerError`: the server answered with an error.
    - `CallTimeout`: no answer in time. The server is told that the call is cancelled, as it is when the caller is.
    - `ConnectionLost`: the conversation ended first.
    - `LocalProtocolError`: the server's revision or capabilities do not allow the call; nothing was sent.
    - `RemoteProtocolError`: the answer was no answer to this call.
    - `ValueError`: an option is out of its range; nothing was sent.

    Lists and resources may come from the cache, then nothing is sent (`CallerOptions`, `cache`).

    Args:
        config: `client_config(options)`.
        options: what is said about the conversation.
        clock: the time now, monotonic, in seconds.
    """

    def __init__(self, config: Config, options: CallerOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._conn = Connection(_CLIENT, config)
        self._standing = Standing(self._conn)
        self._cache = ResultCache() if options.get("cache", True) else None
        self._outputs = Outputs()
        self._on_log = options.get("on_log")
        self._log_level = options.get("log_level") or (None if self._on_log is None else "info")
        self._meta: Mapping[str, Any] = {}  # what each request carries beside what the connection adds

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._conn!r}>"

    @property
    def peer(self) -> Peer:
        """Revision, capabilities, name and instructions of the server."""
        peer = self._conn.peer
        assert peer is not None
        return peer

    @property
    def versions_without_probe(self) -> list[str]:
        """After a failed opening: the revisions to speak with the same server, started once more; none if that is no use."""
        return self._standing.versions_without_probe

    # -- What the runtime adds, and what helps it ------------------------------------------------------------------------

    @abc.abstractmethod
    def _call(self, steps: Steps[T], options: CallOptions) -> Coroutine[Any, Any, T]:
        """Make the call: begin a `Waiter` for it, wait, and give its result. It is a checkpoint also if nothing is asked."""

    @abc.abstractmethod
    def _report(self, problem: str, error: BaseException) -> None:
        """Put something that ends no call into the log."""

    def _open(self) -> None:
        """Begin the conversation. `_standing` tells when it is open."""
        self._conn.open(self._clock(), verdict=self._options.get("verdict"))

    def _take(self, event: Event) -> None:
        """Act on one event, without waiting."""
        self._standing.take(event)
        if isinstance(event, NotificationReceived):
            self._heard(event)
        elif isinstance(event, PeerReady):
            self._opened(event.peer)

    def _send(self, method: str, params: Params, waiter: Waiter[Any], options: CallOptions) -> RequestId:
        """Send a request that `waiter` waits for."""
        self._standing.require_alive()
        meta = options.get("meta")
        if self._meta:
            meta = {**self._meta, **(meta or {})}
        progress = options.get("progress") is not None
        return self._conn.send_request(method, params, token=waiter, meta=meta, progress=progress)

    def _drop(self, waiter: Waiter[Any]) -> None:
        """Nobody waits for `waiter` any more: tell the server, unless it has answered."""
        if waiter.id is not None:
            self._conn.send_cancel(waiter.id, "the caller gave up")

    # -- Calls -----------------------------------------------------------------------------------------------------------

    def list_tools(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, list[t.Tool]]:
        """All tools, page after page (server/tools)."""
        return self._call(self._tools(options), options)

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, t.CallToolResult]:
        """Call a tool (server/tools). A tool that failed is a result with `is_error`; `raise_for_error()` raises it.

        Raises:
            RemoteProtocolError: also if `list_tools` has told what the tool gives, and this is something else.
        """
        return self._call(self._tool_call(name, arguments), options)

    def list_resources(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, list[t.Resource]]:
        """All resources, page after page (server/resources)."""
        return self._call(self._pages("resources/list", "resources", options), options)

    def list_resource_templates(
        self, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, list[t.ResourceTemplate]]:
        """All resource templates, page after page (server/resources)."""
        steps = self._pages("resources/templates/list", "resource_templates", options)
        return self._call(steps, options)

    def read_resource(
        self, uri: str, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, t.ReadResourceResult]:
        """Read a resource (server/resources)."""
        return self._call(self._fresh("resources/read", {"uri": uri}, options), options)

    def list_prompts(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, list[t.Prompt]]:
        """All prompts, page after page (server/prompts)."""
        return self._call(self._pages("prompts/list", "prompts", options), options)

    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, t.GetPromptResult]:
        """Get a prompt filled in (server/prompts). Argument values are strings."""
        return self._call(_request("prompts/get", _named(name, arguments)), options)

    def complete(
        self,
        ref: str | t.PromptReference | t.ResourceTemplateReference,
        argument: str,
        value: str,
        *,
        arguments: Mapping[str, str] | None = None,
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, t.Completion]:
        """How the value of an argument of a prompt, or of a variable of a resource template, may go on (server/utilities/completion).

        Args:
            ref: a prompt's name, or the text of a template: what has `{` or `://` in it is taken for one. A reference of
                `mcp_core.types` says which it is.
            argument: the name of the argument or variable.
            value: what there is of it so far.
            arguments: those that are settled already. Revisions before 2025-06-18 cannot say them.
        """
        params = t.CompleteParams(
            ref=_reference(ref) if isinstance(ref, str) else ref,
            argument=t.CompletionArgument(argument, value),
            context=t.CompletionContext(arguments=dict(arguments)) if arguments else None,
        )
        return self._call(_completion(params), options)

    def set_log_level(
        self, level: t.LoggingLevel, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, None]:
        """Hear log messages of `level` and those more severe, from now on (server/utilities/logging).

        Until 2025-11-25 this asks the server; in 2026-07-28 each request says it, and nothing is sent now.

        Raises:
            ValueError: there is no such level.
        """
        _check_level(level)
        return self._call(self._set_level(level), options)

    def ping(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, object]:
        """Find out whether the server answers: `ping`, or in a revision without it `server/discover`."""
        return self._call(_request(self.peer.dialect.ping, None), options)

    def request(
        self, method: str, params: Params = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, Any]:
        """Send any request, whatever is cached: a method of MCP gives its result type, another one a dict."""
        return self._call(_request(method, params), options)

    # -- What they are made of -------------------------------------------------------------------------------------------

    def _fresh(self, method: str, params: Mapping[str, Any] | None, options: CallOptions) -> Steps[Any]:
        """What is kept of an earlier answer, if it is fresh; else what the server says."""
        cache = self._cache
        if cache is None or options.get("meta"):
            return (yield method, params)
        found = cache.find(method, params, self._clock())
        if found is not None:
            return found
        turn = cache.turn
        result = yield method, params
        cache.keep(method, params, result, self._clock(), turn)
        return result

    def _pages(self, method: str, member: str, options: CallOptions) -> Steps[list[Any]]:
        """All pages of a list. A cursor that the server no longer knows is a reason to begin once more."""
        refused = self.peer.dialect.codes[Fault.INVALID_PARAMS]
        listing: Listing[Any] = Listing(method, member)
        again = True
        while listing.wanted:
            try:
                listing.take((yield from self._fresh(method, listing.params, options)))
            except (PeerError, RemoteProtocolError) as exc:
                # What is kept has led to where it does not go on, and would do so again.
                if self._cache is not None:
                    self._cache.forget(method)
                if not (again and listing.params and isinstance(exc, PeerError) and exc.code == refused):
                    raise
                again = False
                listing = Listing(method, member)
        return listing.items

    def _tools(self, options: CallOptions) -> Steps[list[t.Tool]]:
        tools = yield from self._pages("tools/list", "tools", options)
        if not self.peer.dialect.lacks(t.Tool, "output_schema"):
            self._outputs.learn(tools)
        return tools

    def _tool_call(self, name: str, arguments: Mapping[str, Any] | None) -> Steps[t.CallToolResult]:
        result: t.CallToolResult = yield "tools/call", _named(name, arguments)
        fault = self._outputs.fault_of(name, result)
        if fault is not None:
            raise RemoteProtocolError(f"the result of tool {name!r} {fault}")
        return result

    def _set_level(self, level: t.LoggingLevel) -> Steps[None]:
        peer = self.peer
        if _SET_LEVEL in peer.dialect.receives[_SERVER]:
            yield _SET_LEVEL, t.SetLevelParams(level=level)
        elif _logs(peer):
            self._meta = {_LEVEL: level}
        else:
            raise LocalProtocolError(
                "the server did not declare the capability logging, so there is nothing to hear",
                Fault.MISSING_CAPABILITY,
            )

    # -- What comes by itself --------------------------------------------------------------------------------------------

    def _opened(self, peer: Peer) -> None:
        if peer.dialect.lacks(t.CacheableResult, "ttl_ms"):
            self._cache = None
        if self._log_level is None or not _logs(peer):
            return
        if _SET_LEVEL in peer.dialect.receives[_SERVER]:
            self._conn.send_request(
                _SET_LEVEL, t.SetLevelParams(level=self._log_level), token=_Unwatched(self._report)
            )
        else:
            self._meta = {_LEVEL: self._log_level}

    def _heard(self, notification: NotificationReceived) -> None:
        """The server has told something, on whichever stream."""
        name = notification.method.name
        if self._cache is not None:
            self._cache.invalidate(name)
        if name == _TOOLS_CHANGED:
            self._outputs.forget()
        if name == _LOG and self._on_log is not None:
            try:
                self._on_log(notification.params)
            except Exception as exc:  # noqa: BLE001 - rule 3
                self._report("on_log failed", exc)


class _Unwatched(Pending):
    """A request whose answer nobody waits for."""

    def __init__(self, report: Callable[[str, BaseException], None]) -> None:
        self._report = report

    def end(self, result: Any, error: BaseException | None) -> None:
        if isinstance(error, PeerError | RemoteProtocolError):
            self._report("the server did not take the log level", error)

    def progressed(self, event: ProgressReceived) -> None:
        raise AssertionError("nobody asked for progress")  # pragma: no cover


def client_config(options: CallerOptions) -> Config:
    """What a client with these options says about itself. Made before anything is started, it tells what is wrong with them.

    Raises:
        ValueError: a version is no revision of MCP, there is no such log level, an identifier of an extension is none, or a
            number of seconds is out of its range.
    """
    extensions = options.get("extensions")
    told = {name: dict(settings) for name, settings in extensions.items()} if extensions else None
    level = options.get("log_level")
    if level is not None:
        _check_level(level)
    return Config(
        options.get("info") or t.Implementation(name="mcp-trio", version=__version__),
        t.ClientCapabilities(extensions=told, experimental=told),
        versions=options.get("versions", ALL),
        probe_timeout=options.get("probe_timeout", 5.0),
        initialize_timeout=options.get("initialize_timeout"),
        keep_alive=options.get("keep_alive"),
    )


def _request(method: str, params: Params) -> Steps[Any]:
    return (yield method, params)


def _completion(params: t.CompleteParams) -> Steps[t.Completion]:
    result: t.CompleteResult = yield "completion/complete", params
    return result.completion


def _named(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"name": name} if arguments is None else {"name": name, "arguments": arguments}


def _reference(text: str) -> t.PromptReference | t.ResourceTemplateReference:
    if "{" in text or "://" in text:
        return t.ResourceTemplateReference(text)
    return t.PromptReference(text)


def _check_level(level: str) -> None:
    if level not in t.LOGGING_LEVELS:
        raise ValueError(f"there is no log level {level!r}; there are {', '.join(t.LOGGING_LEVELS)}")


def _logs(peer: Peer) -> bool:
    """Whether the server said that it has log messages to send."""
    return has(peer.capabilities, peer.dialect.receives[_CLIENT][_LOG].needs)
