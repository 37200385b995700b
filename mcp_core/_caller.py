"""A client's side of one conversation, without a runtime: what can be asked, and what becomes of the answer.

Rules of this file:

1. A runtime adds the waiting only: `Caller._call` is its own coroutine, and a `Waiter` wakes it. A typed call hands that
   coroutine on, so that nothing in here is asynchronous and a call is the same under every runtime.
2. What a call can be told beside its arguments is the same for all of them, `CallOptions`; and what a conversation can be
   told is the same whatever carries it, `CallerOptions`.
3. What a callback for log messages raises is reported and ends nothing: no call of the caller's is to blame.
4. A call that the server answers with questions is made again with the answers, and its caller sees only what comes of that.
   While the server waits for an answer of ours that it asked for by a request, it may be waiting on behalf of any call: then
   the silence counts for none.

It refuses to know what may be asked in which revision, which is the connection's, and how anyone waits.
"""

from __future__ import annotations

import abc
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from . import types as t
from ._answering import Answering, OpenQuestions, OurTurn, Respondent
from ._cache import ResultCache
from ._caller_options import check_headers, check_level
from ._calls import Listing, Pending, Waiter, loss
from ._capabilities import has
from ._changes import Ears, Listen
from ._connection import Connection
from ._errors import Fault, LocalProtocolError, PeerError, RemoteProtocolError
from ._events import (
    ChangesMissed,
    ConnectionClosed,
    InputRequested,
    NotificationReceived,
    PeerReady,
    RequestCancelled,
    RequestReceived,
)
from ._methods import Role
from ._mrtr import Rounds
from ._outputs import Outputs
from ._standing import Standing
from ._subscriptions import UPDATED, Change, changes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping

    from ._caller_options import CallerOptions
    from ._calls import CallOptions, Params, Steps
    from ._config import Config
    from ._events import Event, Peer, ProgressReceived
    from .types import RequestId

__all__ = ["Caller"]

_CLIENT, _SERVER = Role.CLIENT, Role.SERVER
_LOG, _SET_LEVEL = "notifications/message", "logging/setLevel"
_TOOLS_CHANGED: Final = "notifications/tools/list_changed"
_ROOTS_CHANGED: Final = "notifications/roots/list_changed"
# The options that hear a notification.
_TOLD_TO: Final = {_LOG: "on_log", "notifications/elicitation/complete": "on_elicitation_complete"}
_LEVEL: Final = "io.modelcontextprotocol/logLevel"  # the member of a request's `_meta` that does the same

T = TypeVar("T")


class Caller(abc.ABC):
    """One conversation with a server. Every call takes `CallOptions`, and raises beside what it names itself:

    - `PeerError`: the server answered with an error.
    - `CallTimeout`: no answer in time. The server is told that the call is cancelled, as it is when the caller is.
    - `ConnectionLost`: the conversation ended first.
    - `LocalProtocolError`: the server's revision or capabilities do not allow the call, or there are `headers` and nothing that
      carries them; nothing was sent.
    - `RemoteProtocolError`: the answer was no answer to this call; or in its place the server asks what this client did not
      offer to answer, or asks on and on.
    - `McpError`: in its place the server asks for the model or the roots (2026-07-28), and the callback refuses.
    - `ValueError`: an option is out of its range, or a header cannot be sent; nothing was sent.
    - `AuthRequired`: over HTTP, the server wants an access token.

    What else a callback raises that the server's answer to a call has led to is raised by that call.

    Lists and resources may come from the cache, then nothing is sent (`CallerOptions`, `cache`).

    Args:
        config: `client_config(options)`.
        options: what is said about the conversation.
        clock: the time now, monotonic, in seconds.
        sleep: lets so many seconds go by.
    """

    def __init__(
        self,
        config: Config,
        options: CallerOptions,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._options = options
        self._clock, self._sleep = clock, sleep
        self._conn = Connection(_CLIENT, config)
        self._standing = Standing(self._conn)
        self._cache = ResultCache() if options.get("cache", True) else None
        self._outputs = Outputs()
        self._log_level = options.get("log_level") or (None if options.get("on_log") is None else "info")
        self._meta: Mapping[str, Any] = {}  # what each request carries beside what the connection adds
        self._respondent = Respondent(options)
        self._questions = OpenQuestions(self._conn, self._respondent, self._run, self.hold, self._report)
        self._ears: Ears | None = None
        self._waiting: dict[Waiter[Any], None] = {}
        self._held = 0  # for how many answers of ours the server waits

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
    def _awaited(self, work: Awaitable[T]) -> Coroutine[Any, Any, T]:
        """A coroutine of what can be awaited."""

    @abc.abstractmethod
    def _run(self, answering: Answering) -> None:
        """Run it in a task of its own, which lives no longer than the conversation, and call `_pump` after its end."""

    @abc.abstractmethod
    def _pump(self) -> None:
        """Something may be queued, or there may be events: see to it, without waiting."""

    @abc.abstractmethod
    def _report(self, problem: str, error: BaseException) -> None:
        """Put something that ends no call into the log."""

    def _open(self) -> None:
        """Begin the conversation. `_standing` tells when it is open."""
        self._conn.open(self._clock(), verdict=self._options.get("verdict"))

    def _later(self, seconds: float, then: Callable[[], object]) -> None:
        """Do something after some time, unless the conversation is over by then."""
        self._run(Answering(partial(self._sleep, seconds), lambda _, error: None if error else then()))

    def _take(self, event: Event) -> None:
        """Act on one event, without waiting."""
        self._standing.take(event)
        act = _ACTS.get(type(event))
        if act is not None:
            act(self, event)
        if self._ears is not None:
            self._ears.take(event)

    def _send(self, method: str, params: Params, waiter: Waiter[Any], options: CallOptions) -> RequestId:
        """Send a request that `waiter` waits for."""
        self._standing.require_alive()
        if waiter not in self._waiting:
            self._waiting[waiter] = None
            waiter.held += self._held
        meta = options.get("meta")
        if self._meta:
            meta = {**self._meta, **(meta or {})}
        progress = options.get("progress") is not None
        headers = options.get("headers")
        if headers:
            if not self._conn.has_headers:
                raise LocalProtocolError("headers go nowhere on a pipe")
            check_headers(headers)
        return self._conn.send_request(
            method, params, token=waiter, meta=meta, progress=progress, headers=headers
        )

    def _drop(self, waiter: Waiter[Any]) -> None:
        """Nobody waits for `waiter` any more: tell the server, unless it has answered."""
        self._waiting.pop(waiter, None)
        waiter.leave_turn()
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
        return self._call(self._tool_call(name, arguments, options), options)

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
        return self._call(self._once("prompts/get", _named(name, arguments)), options)

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
        check_level(level)
        return self._call(self._set_level(level), options)

    def ping(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, object]:
        """Find out whether the server answers: `ping`, or in a revision without it `server/discover`."""
        return self._call(self._once(self.peer.dialect.ping, None), options)

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool | Iterable[str] = False,
        uris: Iterable[str] = (),
        timeout: float | None = 60.0,
    ) -> Listen:
        """Hear of changes for as long as a block lasts: `async with client.listen(tools=True) as changes:`, and in it
        `async for change in changes:`. Each `Change` has a `list` or a `uri`; `changes.honoured` tells what of the wishes the
        server will tell. Any number of blocks may be open at once.

        What has changed is told once, however often it changed before it was looked at. A `uri` may be that of a part of a
        resource that is listened to.

        Args:
            tools: the list of tools.
            prompts: the list of prompts.
            resources: the list of resources if True; or URIs of resources, as `uris`.
            uris: of resources, one by one.
            timeout: seconds for the block to begin, as for calls.

        *Resource handling*: at the end of the block the server is told that nobody listens any more.

        Raises:
            LocalProtocolError: at the beginning: the server tells nothing of what is wanted.
            PeerError: at the beginning: it refused. In the loop: it ended the listening and said why.
            ConnectionLost: at the beginning or in the loop, after the last change: changes may have been missed. If only the stream
                on which they come is lost, it is begun anew, and everything counts as changed unless nothing was missed; after five
                failures in a row that is over.
            CallTimeout: at the beginning.
            ValueError: nothing is wanted.
            TypeError: one string is given for URIs.
        """
        if isinstance(resources, str) or isinstance(uris, str):
            raise TypeError("give several URIs as a list, one too")
        some = () if isinstance(resources, bool) else resources
        wanted = changes(tools=tools, prompts=prompts, resources=resources is True, uris=(*some, *uris))
        if self._ears is None:
            self._ears = Ears(self._conn, self._standing, self._call, self._awaited, self._pump, self._later)
        return Listen(self._ears, wanted, {"timeout": timeout})

    def roots_changed(self) -> None:
        """Tell the server that the roots are others now (client/roots). This waits for nothing. In 2026-07-28 there is nothing
        to tell: a server asks for the roots whenever it wants to know them.

        Raises:
            LocalProtocolError: there is no `on_roots`.
            ConnectionLost: the conversation is over.
        """
        self._standing.require_alive()
        if _ROOTS_CHANGED in self.peer.dialect.receives[_SERVER]:
            self._conn.send_notification(_ROOTS_CHANGED)
            self._pump()

    def request(
        self, method: str, params: Params = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, Any]:
        """Send any request, whatever is cached: a method of MCP gives its result type, another one a dict."""
        return self._call(self._once(method, params), options)

    # -- What they are made of -------------------------------------------------------------------------------------------

    def _once(self, method: str, params: Params) -> Steps[Any]:
        """What the server says."""
        result = yield method, params
        if isinstance(result, InputRequested):
            return (yield from self._answered(method, params, result))
        return result

    def _answered(self, method: str, params: Params, asked: InputRequested) -> Steps[Any]:
        """What the server says in the end to a request that it has answered with questions."""
        config, respondent = self._conn.config, self._respondent
        rounds = Rounds(method, params, self.peer, config.capabilities)
        answer: Any = asked
        while isinstance(answer, InputRequested):
            questions = rounds.take(answer.requests, answer.state)
            if len(questions) > config.limits.in_flight:
                raise RemoteProtocolError(f"{method}: the server asks {len(questions)} questions at once")
            work: dict[str, Callable[[], Awaitable[Any]]] = {
                key: partial(respondent.answer_in_retry, question) for key, question in questions.items()
            }
            rounds.answer((yield OurTurn(self._run, work or {"": partial(self._sleep, rounds.pause)})))
            answer = yield method, rounds.params
        return answer

    def _fresh(self, method: str, params: Mapping[str, Any] | None, options: CallOptions) -> Steps[Any]:
        """What is kept of an earlier answer, if it is fresh; else what the server says."""
        cache = self._cache
        if cache is None or options.get("meta") or options.get("headers"):
            return (yield from self._once(method, params))
        found = cache.find(method, params, self._clock())
        if found is not None:
            return found
        turn = cache.turn
        result = yield method, params
        if isinstance(result, InputRequested):
            return (yield from self._answered(method, params, result))  # what the user says now is not kept
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

    def hold(self, more: int) -> None:
        """The server waits for `more` things of our own side, such as an answer or a login: until they are there (`-more`), its silence
        ends no call."""
        self._held += more
        for waiter in self._waiting:
            waiter.hold(more)

    def forget(self) -> None:
        """Use none of the answers again that were kept: they may have been for another user."""
        if self._cache is not None:
            self._cache = ResultCache()

    def _tools(self, options: CallOptions) -> Steps[list[t.Tool]]:
        tools = yield from self._pages("tools/list", "tools", options)
        if not self.peer.dialect.lacks(t.Tool, "output_schema"):
            self._outputs.learn(tools)
        return tools

    def _tool_call(
        self, name: str, arguments: Mapping[str, Any] | None, options: CallOptions
    ) -> Steps[t.CallToolResult]:
        params = _named(name, arguments)
        result: t.CallToolResult
        try:
            result = yield from self._once("tools/call", params)
        except PeerError as exc:
            if not (self._conn.has_headers and exc.code == self.peer.dialect.codes[Fault.HEADER_MISMATCH]):
                raise
            # Which arguments travel in headers is in the list of tools, and ours is too old (2026-07-28, basic/transports).
            if self._cache is not None:
                self._cache.forget("tools/list")
            yield from self._tools(options)
            result = yield from self._once("tools/call", params)
        fault = self._outputs.fault_of(name, result)
        if fault is not None:
            raise RemoteProtocolError(f"the result of tool {name!r} {fault}")
        return result

    def _set_level(self, level: t.LoggingLevel) -> Steps[None]:
        peer = self.peer
        if _SET_LEVEL in peer.dialect.receives[_SERVER]:
            yield _SET_LEVEL, t.SetLevelParams(level=level)
            self._log_level = level
        elif _logs(peer):
            self._meta = {_LEVEL: level}
        else:
            raise LocalProtocolError(
                "the server did not declare the capability logging, so there is nothing to hear",
                Fault.MISSING_CAPABILITY,
            )

    # -- What comes by itself --------------------------------------------------------------------------------------------

    def _opened(self, event: PeerReady) -> None:
        """The conversation is open; or it is open again, in a new session, which knows nothing of the old one."""
        peer = event.peer
        self._outputs.forget()
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
            self._cache.invalidate(name, self._just(notification))
        if name == _TOOLS_CHANGED:
            self._outputs.forget()
        option = _TOLD_TO.get(name)
        callback: Any = self._options.get(option) if option is not None else None
        if callback is not None:
            try:
                callback(notification.params)
            except Exception as exc:  # noqa: BLE001 - rule 3
                self._report(f"{option} failed", exc)

    def _just(self, notification: NotificationReceived) -> str | None:
        """The URI of the one resource that a notification is about, if we know that it is about this and no part of another."""
        if notification.method.name != UPDATED or self._ears is None:
            return None
        uri: str = notification.params.uri
        return uri if self._ears.wants(Change(uri=uri)) else None

    def _missed(self, event: ChangesMissed) -> None:
        """The tools may be others. Nothing is cached where changes are told on a stream that can be missed."""
        self._outputs.forget()

    def _asked(self, request: RequestReceived) -> None:
        self._questions.take(request)

    def _withdrawn(self, event: RequestCancelled) -> None:
        self._questions.cancel(event.id)

    def _over(self, event: ConnectionClosed) -> None:
        """Calls that have no request under way wait for nothing any more, too."""
        for waiter in list(self._waiting):
            waiter.end(None, loss(event))


_ACTS: Final[Mapping[type, Callable[[Caller, Any], None]]] = {
    ChangesMissed: Caller._missed,
    NotificationReceived: Caller._heard,
    PeerReady: Caller._opened,
    RequestReceived: Caller._asked,
    RequestCancelled: Caller._withdrawn,
    ConnectionClosed: Caller._over,
}


class _Unwatched(Pending):
    """A request whose answer nobody waits for."""

    def __init__(self, report: Callable[[str, BaseException], None]) -> None:
        self._report = report

    def end(self, result: Any, error: BaseException | None) -> None:
        if isinstance(error, PeerError | RemoteProtocolError):
            self._report("the server did not take the log level", error)

    def progressed(self, event: ProgressReceived) -> None:
        raise AssertionError("nobody asked for progress")  # pragma: no cover


def _completion(params: t.CompleteParams) -> Steps[t.Completion]:
    result: t.CompleteResult = yield "completion/complete", params
    return result.completion


def _named(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"name": name} if arguments is None else {"name": name, "arguments": arguments}


def _reference(text: str) -> t.PromptReference | t.ResourceTemplateReference:
    if "{" in text or "://" in text:
        return t.ResourceTemplateReference(text)
    return t.PromptReference(text)


def _logs(peer: Peer) -> bool:
    """Whether the server said that it has log messages to send."""
    return has(peer.capabilities, peer.dialect.receives[_CLIENT][_LOG].needs)
