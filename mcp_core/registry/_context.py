"""What a handler may know about the call it serves, and say while it runs.

Rules of this file:

1. `Context` is the same in every runtime: facts come from the request, what is said goes to the connection, and only the
   waiting is the runtime's.
2. A handler that was cancelled may still say something: nothing is sent for a request that is over.
3. A plain `def` cannot wait. In a worker thread it may block instead; elsewhere what a peer does not read is not queued
   without end, but dropped.
4. What is asked reads the same for the author in every revision. How it travels is in `_asking.py`.

This file does not know how anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from mcp_core import types as t
from mcp_core._questions import misfit
from mcp_core._trace_context import trace_context

from ._asking import meta_of
from ._form import Accepted, Form, Refused, as_form

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from mcp_core._events import Granted, Peer
    from mcp_core.types import LoggingLevel, RequestId

    from ._asking import Asking

    # A context that says nothing about its lifespan may have any.
    L = TypeVar("L", default=Any)
else:
    from typing import TypeVar

    L = TypeVar("L")

__all__ = ["Context"]

T = TypeVar("T")
R = TypeVar("R", t.ElicitResult, t.CreateMessageResult, t.ListRootsResult)


class Context(Generic[L]):
    """One request, from the point of view of the function that answers it.

    Annotate a parameter with it, at any position, and it is filled in::

        @server.tool
        async def count(to: int, context: Context) -> int:
            "Count slowly."
            for step in range(to):
                await context.progress(step, to)
            return to

    `Context[Database]` tells the type checker what the server's `lifespan` gives. It is good only while the handler runs. In a
    plain `def` use the methods that end in `_nowait`.

    `server` is the server it was declared on, `lifespan` the value of the server's lifespan (None if it has none), and
    `state` a place for what middleware wants to tell the handler.
    """

    __slots__ = ("_asking", "_conn", "_meta", "_request", "_runtime", "lifespan", "server", "state")

    def __init__(self, asking: Asking) -> None:
        service = asking.service
        self._asking = asking
        self._request = asking.request
        self._conn = service.conn
        self._runtime = service.runtime
        self._meta: dict[str, Any] | None = None
        self.server = service.server
        self.lifespan: L = service.lifespan
        self.state: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Context {self.method} id={self.request_id!r}>"

    # -- Facts -----------------------------------------------------------------------------------------------------------

    @property
    def request_id(self) -> RequestId:
        """The id that the peer gave the request."""
        return self._request.id

    @property
    def method(self) -> str:
        """What is asked for: `"tools/call"`, `"resources/read"` and so on."""
        return self._request.method.name

    @property
    def params(self) -> Any:
        """The params of the request, an object of the method's type in `mcp_core.types`. Not to be changed."""
        return self._request.params

    @property
    def peer(self) -> Peer:
        """Who asks: revision, capabilities and, for display only, its name."""
        return self._request.peer

    @property
    def principal(self) -> str:
        """Who asks, as authenticated: the same for all tokens of one user at one issuer. Empty where nobody is."""
        return self._asking.service.principal

    @property
    def grant(self) -> Granted | None:
        """What the token of this very request grants: `scopes`, `client_id`, `claims`, but not the token. None where nobody guards."""
        return self._request.grant

    @property
    def meta(self) -> dict[str, Any]:
        """The whole `_meta` of the request, with members that no revision defines; empty if there is none.

        Raises:
            McpError: a member that no revision defines, and which nobody had read before, cannot be read.
        """
        if self._meta is None:
            self._meta = meta_of(self._request)
        return self._meta

    @property
    def trace(self) -> dict[str, str]:
        """The trace that this request is part of: its `traceparent`, `tracestate` and `baggage` (W3C Trace Context), as far as
        they are there and well-formed. A call to another server joins the same trace with `meta=context.trace`.

        Raises:
            McpError: as for `meta`.
        """
        return trace_context(self.meta)

    # -- Saying something ------------------------------------------------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Tell the peer how far the work is; nothing is sent if it did not ask for progress.

        `progress` must grow with each call and may have any unit, the one of `total`. Waits while the peer is
        slow to read (basic/utilities/progress).

        Raises:
            LocalProtocolError: a number is infinite or none.
            RuntimeError: this is a plain `def`, in a thread.
        """
        return self._say(lambda: self._conn.send_progress(self.request_id, progress, total, message))

    def progress_nowait(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """The same without waiting, for a plain `def`."""
        self._say_nowait(lambda: self._conn.send_progress(self.request_id, progress, total, message))

    def log(self, level: LoggingLevel, data: Any, *, logger: str | None = None) -> Coroutine[Any, Any, None]:
        """Send the peer a log message about this request; nothing is sent if it does not want to hear that level.

        Before 2026-07-28 a peer that said nothing hears `"info"` and above; there, a request has to ask for log messages.
        Waits while the peer is slow to read. No secrets: a log message goes to whoever runs the client (server/utilities/logging).

        Args:
            level: `"debug"`, `"info"`, `"notice"`, `"warning"`, `"error"`, `"critical"`, `"alert"` or `"emergency"`.
            data: text, or anything that JSON can say.
            logger: what part of the server speaks.

        Raises:
            LocalProtocolError: there is no such level, or the server was declared with `logging=False`.
            TypeError, ValueError: `data` cannot be said in JSON.
            RuntimeError: this is a plain `def`, in a thread.
        """
        return self._say(lambda: self._conn.send_log(level, data, logger=logger, related=self.request_id))

    def log_nowait(self, level: LoggingLevel, data: Any, *, logger: str | None = None) -> None:
        """The same without waiting, for a plain `def`."""
        self._say_nowait(lambda: self._conn.send_log(level, data, logger=logger, related=self.request_id))

    def _say(self, send: Callable[[], bool]) -> Coroutine[Any, Any, None]:
        runtime = self._runtime
        if runtime.in_worker_thread:
            raise RuntimeError("a plain def cannot await: use the method that ends in _nowait")
        if send():
            runtime.pump()
        return runtime.drain(self.request_id)

    def _say_nowait(self, send: Callable[[], bool]) -> None:
        runtime = self._runtime
        if runtime.in_worker_thread:
            runtime.from_thread(lambda: self._say(send))
        elif not runtime.full(self.request_id) and send():
            runtime.pump()

    def close_stream(self, retry: float | None = None) -> bool:
        """Let the client go while the work goes on: the response ends here, and the client comes back for what is said from now
        on, in `retry` seconds if that is given. For work that takes longer than somebody wants to hold a connection for.

        Only a session of 2025-11-25 over HTTP knows how to come back; elsewhere nothing happens, and this is False
        (basic/transports, Sending Messages to the Server).
        """
        released = self._runtime.release(self.request_id, retry)
        if released:
            self._runtime.pump()
        return released

    # -- Asking, and waiting for the answer ------------------------------------------------------------------------------

    @overload
    def elicit(
        self, message: str, form: Form[T] | type[T], *, key: str | None = None
    ) -> Coroutine[Any, Any, Accepted[T] | Refused]: ...
    @overload
    def elicit(
        self, message: str, form: Mapping[str, Any], *, key: str | None = None
    ) -> Coroutine[Any, Any, Accepted[dict[str, Any]] | Refused]: ...
    def elicit(self, message: str, form: Any, *, key: str | None = None) -> Coroutine[Any, Any, Any]:
        """Ask the user to fill in a form, and wait for it (client/elicitation)::

            answer = await context.elicit("Where would you like to sit?", Seats)
            if answer.action != "accept":
                return "Nothing was booked."
            return f"Booked {answer.data.count} seats."

        In a tool, a prompt or a resource that is an `async def`. In 2026-07-28 nobody waits: the handler ends here, the client
        asks its user, and the handler is *run again from its beginning*, where the question has its answer at once. So, for
        clients of that revision:

        - What comes before the last question runs once more for each of them. It must do no harm to run it again: read, and
          leave what changes something for after the last answer.
        - A question must read the same each time, or else it is another one and is asked for ever, ten times at most. One with
          the time or a price in it needs a `key`, under which its answer is found again.
        - Questions that tasks ask side by side are put in one round.
        - What the user has answered so far is in the hands of the client meanwhile: signed, so that it cannot be changed, but not
          hidden. It is good for ten minutes.

        Args:
            message: what is asked for, and why.
            form: a Struct, dataclass or TypedDict as described at `Form`, a `Form`, or a JSON Schema.
            key: a name for the question, if it does not read the same each time; unique in this request.

        Returns:
            `Accepted` with an object of the form's type as `data`, or `Refused`.

        Raises:
            McpError: the client did not offer to show forms, answered with an error, or filled in something else. Not caught,
                it is the answer to the request.
            ConnectionLost: the conversation ended first.
            DeclarationError: `form` is none.
            LocalProtocolError: only a tool, a prompt or a resource can ask; the client's revision has no such fields; or the
                request is over.
            RuntimeError: this is a plain `def`, in a thread.
        """
        made = as_form(form)
        return self._asking.ask(made.question(message), key, made.problem, made.read)

    def elicit_url(
        self, message: str, url: str, *, elicitation_id: str | None = None, key: str | None = None
    ) -> Coroutine[Any, Any, Accepted[None] | Refused]:
        """Ask the user to visit a page: to log in somewhere, to pay, or to enter what no client may see (client/elicitation).

        `Accepted` says that the user agreed to open it, not that he is done there. Who opens it has to prove there that he is
        the user: the link alone is no proof. All else is as for `elicit`.

        Args:
            message: what it is for.
            url: the page, best `https:`. It holds no secret and nothing about the user.
            elicitation_id: a name for this visit that is not used twice. With it, `Server.elicitation_complete` tells the client
                that the user is done there (2025-11-25; the other revisions have no such thing).
            key: as for `elicit`.

        Raises:
            McpError: the client did not offer to show pages, or answered with an error.
            LocalProtocolError: also if `url` is no `http:` or `https:` URL, or has a password in it.
            Exception: all else that `elicit` raises.
        """
        if self.peer.dialect.lacks(t.ElicitParams, "elicitation_id"):
            elicitation_id = None  # so that it is not what makes one question another
        params = t.ElicitParams(message=message, mode="url", url=url, elicitation_id=elicitation_id)
        return self._asking.ask(t.ElicitRequest(params), key, misfit, _consent)

    def sample(
        self,
        messages: str | Sequence[t.SamplingMessage],
        *,
        max_tokens: int,
        system_prompt: str | None = None,
        model_preferences: t.ModelPreferences | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tools: Sequence[t.Tool] | None = None,
        tool_choice: Literal["auto", "required", "none"] | None = None,
        key: str | None = None,
    ) -> Coroutine[Any, Any, t.CreateMessageResult]:
        """Ask the client's model to go on with a conversation, and wait for what it says (client/sampling).

        What is said at `elicit` about being run again holds here too. Deprecated in 2026-07-28.

        Args:
            messages: what was said so far; a text is said by the user.
            max_tokens: how long the answer may be.
            system_prompt: the client may change or ignore it, as all that follows but the tools.
            model_preferences: which model to take.
            temperature: of the model.
            stop_sequences: where to end.
            include_context: what else the model is to know. Left out if the client did not say that it can grant that.
            metadata: for the provider of the model.
            tools: what the model may use. Its uses come back as content; whoever asked carries them out, and asks again with
                the results as messages.
            tool_choice: whether it may, must or must not use them.
            key: as for `elicit`.

        Raises:
            McpError: the client did not offer its model (with tools), or its user refused.
            LocalProtocolError: also if `messages` do not answer each use of a tool before they go on.
            Exception: all else that `elicit` raises.
        """
        if isinstance(messages, str):
            messages = [t.SamplingMessage("user", t.TextContent(messages))]
        params = t.CreateMessageParams(
            messages=list(messages),
            max_tokens=max_tokens,
            system_prompt=system_prompt,
            model_preferences=model_preferences,
            temperature=temperature,
            stop_sequences=list(stop_sequences) if stop_sequences is not None else None,
            include_context=include_context,
            metadata=dict(metadata) if metadata is not None else None,
            tools=list(tools) if tools is not None else None,
            tool_choice=t.ToolChoice(tool_choice) if tool_choice is not None else None,
        )
        return self._asking.ask(t.CreateMessageRequest(params), key, misfit, _itself)

    def roots(self, *, key: str | None = None) -> Coroutine[Any, Any, list[t.Root]]:
        """Ask in which places the client wants us to work (client/roots). They are guidance, and keep nobody out.

        What is said at `elicit` about being run again holds here too. Deprecated in 2026-07-28.

        Raises:
            McpError: the client has no roots to tell of, or refused.
            Exception: all else that `elicit` raises.
        """
        return self._asking.ask(t.ListRootsRequest(), key, misfit, _roots)

    # -- Asking by hand --------------------------------------------------------------------------------------------------

    @overload
    def input_response(self, key: str, kind: Form[T]) -> Accepted[T] | Refused | None: ...
    @overload
    def input_response(self, key: str, kind: type[R]) -> R | None: ...
    def input_response(self, key: str, kind: Any) -> Any:
        """The answer to a question that this handler returned in an earlier run; None if there is none yet. ::

            @server.tool
            def book(flight: str, context: Context) -> str | InputRequiredResult:
                answer = context.input_response("seats", SEATS)
                if answer is None:
                    return InputRequiredResult(input_requests={"seats": SEATS.question("How many seats?")})
                if answer.action != "accept":
                    return "Nothing was booked."
                return f"{answer.data.count} seats on {flight}"

        Whoever returns an `InputRequiredResult` is run again with the answers to its `input_requests`, those of earlier rounds
        included, and with its `request_state`. With a state and no questions it is run again a little later. So it goes in every
        revision, in a plain `def` too, ten times at most.

        `kind` is a `Form`, or the type of the result: `ElicitResult`, `CreateMessageResult`, `ListRootsResult`. A form that is
        not filled in as it should be counts as no answer.

        Raises:
            McpError: what the client sent is no such answer.
        """
        inquiry = self._asking.inquiry
        if not isinstance(kind, Form):
            return inquiry.response(key, kind)
        result = inquiry.response(key, t.ElicitResult)
        return None if result is None or kind.problem(kind.question(""), result) else kind.read(result)

    @property
    def request_state(self) -> str | None:
        """The `request_state` of the `InputRequiredResult` that this handler returned in its last run; None in the first one."""
        return self._asking.inquiry.state


def _consent(result: t.ElicitResult) -> Accepted[None] | Refused:
    return Accepted(None) if result.action == "accept" else Refused(result.action)


def _itself(result: t.CreateMessageResult) -> t.CreateMessageResult:
    return result


def _roots(result: t.ListRootsResult) -> list[t.Root]:
    return result.roots
