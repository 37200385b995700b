"""What one request asks of its client: one way for the author, two for the wire.

Until 2025-11-25 a question is a request of ours, on behalf of the client's (client/elicitation, client/sampling, client/roots).
In 2026-07-28 it is the answer to the client's, which makes its request again (basic/patterns/mrtr). `Asking` is asked in both.

Rules of this file:

1. A runtime adds the waiting only: it enters a `Round`, waits to be woken, and takes its result. Where the question is an
   answer nothing is waited for: entering raises `NeedInput`, before anything else can happen.
2. A question of ours lives no longer than whoever waits for it, nor than the request that it belongs to.
3. Whatever a client does instead of answering, an author sees one exception for it: `McpError`. Not caught, it is the answer.
4. Most requests ask nothing, and pay for nothing: an `Inquiry` is made when it is needed.

What a question is and what an answer is, is in `mcp_core._questions`; rounds and states are in `mcp_core._mrtr`.
"""

from __future__ import annotations

import abc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct, field

from mcp_core._calls import Pending
from mcp_core._errors import (
    ConnectionLost,
    Fault,
    LocalProtocolError,
    McpError,
    PeerError,
    RemoteProtocolError,
    ToolError,
)
from mcp_core._jsonrpc import Unreadable, reader
from mcp_core._mrtr import Inquiry, as_request, pause_before
from mcp_core._seal import BadState
from mcp_core._state import State
from mcp_core._trace_context import trace_context
from mcp_core.types import (
    ElicitParams,
    ElicitRequest,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    URLElicitationRequiredData,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping

    from mcp_core._connection import Connection
    from mcp_core._events import ProgressReceived, RequestReceived
    from mcp_core._mrtr import Problem
    from mcp_core.types import InputRequest, RequestId

    from ._errors import UrlElicitationRequired
    from ._server import Server

__all__ = ["Asking", "RequestHost", "Round", "RuntimeLike", "meta_of"]

T = TypeVar("T")

_ENDING: Final = (State.CLOSING, State.CLOSED)


class RuntimeLike(Protocol):
    """What a handler needs of its runtime. `mcp_core.runtime.Runtime` says what each method does."""

    @property
    def in_worker_thread(self) -> bool: ...
    def pump(self) -> None: ...
    def full(self, id: RequestId) -> bool: ...
    def drain(self, id: RequestId) -> Coroutine[Any, Any, None]: ...
    def release(self, id: RequestId, retry: float | None) -> bool: ...
    def ask(self, asked: Round[T]) -> Coroutine[Any, Any, T]: ...
    def wall_time(self) -> float: ...
    def entropy(self, size: int, /) -> bytes: ...
    def from_thread(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T: ...


class RequestHost(Protocol):
    """What serves a request. `mcp_core.runtime.Service` says what each member is."""

    @property
    def server(self) -> Server: ...
    @property
    def conn(self) -> Connection: ...
    @property
    def runtime(self) -> RuntimeLike: ...
    @property
    def lifespan(self) -> Any: ...
    @property
    def principal(self) -> str: ...
    def remember_page(self, elicitation_id: str) -> None: ...


class Round(abc.ABC, Generic[T]):
    """Questions of ours to a stateful client, side by side, as a runtime sees them.

    Enter `under_way(wake)`, wait until `wake` is called, or for `seconds` at most (None for no limit), and leave it. Then take
    `result()`.
    """

    seconds: float | None = None

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._answers: dict[str, Any] = {}
        self._asked = 0
        self._error: BaseException | None = None
        self._wake: Callable[[], object]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} for {self._asking.request.method.name}, {self._asked} asked>"

    @abc.abstractmethod
    def _begin(self) -> Mapping[str, tuple[str, Struct]]:
        """Method and params of what is to be asked, by key. May raise instead of asking."""

    @abc.abstractmethod
    def _end(self, answers: Mapping[str, Any]) -> T:
        """What comes of the answers."""

    @contextmanager
    def under_way(self, wake: Callable[[], object]) -> Iterator[None]:
        """While it is entered the questions are asked. Who leaves it without the answers gives them up.

        Raises:
            NeedInput: the question is the answer to the request; this run of the handler is over.
            McpError: the client did not offer to answer such questions, or the server is being shut down.
            LocalProtocolError: nobody can be asked this, or the request is over.
        """
        service, request = self._asking.service, self._asking.request
        conn = service.conn
        questions = self._begin()
        if questions and conn.state in _ENDING:
            raise McpError(request.peer.dialect.codes[Fault.BUSY], "the server is being shut down")
        trace = trace_context(meta_of(request)) if questions else None
        self._wake = wake
        sent: list[RequestId] = []
        self._asking.rounds.append(self)
        try:
            for key, (method, params) in questions.items():
                token = _Question(self, key, method)
                sent.append(conn.send_request(method, params, token=token, related=request.id, meta=trace))
                if isinstance(params, ElicitParams) and params.elicitation_id is not None:
                    service.remember_page(params.elicitation_id)
            self._asked = len(sent)
            if sent:
                service.runtime.pump()
            elif self.seconds is None:
                wake()
            yield
        finally:
            self._asking.rounds.remove(self)
            for id in sent:
                conn.send_cancel(id, "the answer is not needed any more")  # nothing happens if it is there
            if len(self._answers) < len(sent):
                service.runtime.pump()

    def take(self, key: str, method: str, answer: Any, error: BaseException | None) -> None:
        """One of the questions has come to its end."""
        if isinstance(error, PeerError):
            refused = f"the client refused {method}: {error.message}"
            error = McpError(error.code, refused, error.data)
        elif isinstance(error, RemoteProtocolError):
            error = self._asking.fault(str(error))
        if error is None:
            self._answers[key] = answer
        else:
            self._error = error
            if isinstance(error, ConnectionLost):
                self._asking.gone = error
        if self._error is not None or len(self._answers) == self._asked:
            self._wake()

    def lose(self, error: BaseException) -> None:
        """No answer will come any more."""
        self._error = self._asking.gone = error
        self._wake()

    def result(self) -> T:
        """What came of it.

        Raises:
            McpError: the client refused to answer, or what it sent is no answer.
            ConnectionLost: the conversation ended first.
            LocalProtocolError: the request that it was asked for is over.
        """
        if self._error is not None:
            raise self._error
        return self._end(self._answers)


class _Question(Pending):
    """One question under way."""

    def __init__(self, asked: Round[Any], key: str, method: str) -> None:
        self._round = asked
        self._key = key
        self._method = method

    def end(self, result: Any, error: BaseException | None) -> None:
        self._round.take(self._key, self._method, result, error)

    def progressed(self, event: ProgressReceived) -> None:
        raise AssertionError("nobody asked for progress")  # pragma: no cover


class _One(Round[T]):
    """One question of a handler that waits for the answer."""

    def __init__(
        self,
        asking: Asking,
        question: InputRequest,
        key: str | None,
        problem: Problem,
        read: Callable[[Any], T],
    ) -> None:
        super().__init__(asking)
        self._question = question
        self._key = key
        self._problem = problem
        self._read = read
        self._known: Any = None

    def _begin(self) -> Mapping[str, tuple[str, Struct]]:
        asking, question = self._asking, self._question
        peer = asking.request.peer
        if not peer.dialect.stateful:
            self._known = asking.inquiry.ask(question, self._key, self._problem)
            return {}
        key, self._known = asking.inquiry.look_up(question, self._key, self._problem)
        if self._known is not None:
            return {}
        return {key: as_request(question, peer, asking.service.runtime.entropy)}

    def _end(self, answers: Mapping[str, Any]) -> T:
        for key, answer in answers.items():
            problem = self._problem(self._question, answer)
            if problem:
                raise self._asking.fault(f"the answer to {self._question.method} does not fit: {problem}")
            self._asking.inquiry.keep(key, answer)
            self._known = answer
        return self._read(self._known)


class _ByHand(Round[None]):
    """What a handler returned as `InputRequiredResult`: questions, or only the wish to be run again a little later."""

    def __init__(self, asking: Asking, returned: InputRequiredResult) -> None:
        super().__init__(asking)
        self._returned = returned
        if not returned.input_requests:
            self.seconds = pause_before(asking.inquiry.round)

    def _begin(self) -> Mapping[str, tuple[str, Struct]]:
        return self._asking.inquiry.nested(self._returned, self._asking.service.runtime.entropy)

    def _end(self, answers: Mapping[str, Any]) -> None:
        self._asking.inquiry.resume(self._returned, answers)


class Asking(Struct, eq=False):
    """Everything that is asked on behalf of one request. `rounds` are those under way; `gone` is what was raised into the
    handler because nobody is there any more to answer, None as long as somebody is."""

    service: RequestHost
    request: RequestReceived
    rounds: list[Round[Any]] = []
    gone: BaseException | None = None
    _inquiry: Inquiry | None = None

    def __repr__(self) -> str:
        return f"<Asking for {self.request.method.name}: {self._inquiry or 'nothing so far'}>"

    @property
    def inquiry(self) -> Inquiry:
        """What was asked and answered, in earlier runs too.

        Raises:
            BadState: the request's `requestState` is none that was given out for it.
        """
        if self._inquiry is None:
            service = self.service
            ring = service.server.key_ring(service.runtime.entropy)
            now = service.runtime.wall_time()
            self._inquiry = Inquiry(self.request, ring, principal=service.principal, now=now)
        return self._inquiry

    def verify(self) -> None:
        """Look at the state that came with the request.

        Raises:
            BadState: it is none that was given out for it. The handler must not run.
        """
        server, dialect = self.service.server, self.request.peer.dialect
        if not dialect.stateful and not server.has_keys:
            raise BadState("none was given out since this process began")
        _ = self.inquiry

    def needs_round(self, outcome: Any) -> bool:
        """Whether a handler returned questions that are requests of their own: put them (`by_hand`), and run it again."""
        return isinstance(outcome, InputRequiredResult) and self.request.peer.dialect.stateful

    @property
    def unanswered(self) -> bool:
        """Whether something was asked that has to become the answer to the request."""
        return self._inquiry is not None and self._inquiry.asking

    def ask(
        self,
        question: InputRequest,
        key: str | None,
        problem: Problem,
        read: Callable[[Any], T],
    ) -> Coroutine[Any, Any, T]:
        """Ask, and wait where there is something to wait for; gives what `read` makes of the answer."""
        runtime = self.service.runtime
        if runtime.in_worker_thread:
            raise RuntimeError(
                "a plain def cannot await an answer: write an `async def`, or return InputRequiredResult"
            )
        return runtime.ask(_One(self, question, key, problem, read))

    def by_hand(self, returned: InputRequiredResult) -> Coroutine[Any, Any, None]:
        """Put what a handler returned to a stateful client. After that the handler is to be run again."""
        return self.service.runtime.ask(_ByHand(self, returned))

    def over(self) -> None:
        """The request is over. Whoever still waits for an answer, perhaps where no cancellation reaches him, is told."""
        for waiting in list(self.rounds):
            waiting.lose(LocalProtocolError("the request is over, and with it what was asked for its sake"))

    def required(self, returned: InputRequiredResult | None) -> InputRequiredResult:
        """The answer to the request: what was asked in it, or what its handler returned.

        Raises:
            McpError, LocalProtocolError: as for `Inquiry.required`.
        """
        return self.inquiry.required(self.service.runtime.wall_time(), returned)

    def page_required(self, wanted: UrlElicitationRequired) -> InputRequiredResult | ErrorData:
        """What a client gets whose user has to visit a page first. Where that is a question it is put once.

        Raises:
            ToolError: the user was asked, and has refused, or is not done there yet.
            McpError: it cannot show pages.
            LocalProtocolError: the URL is none.
        """
        peer, question = self.request.peer, ElicitRequest(wanted.page)
        if not peer.dialect.stateful:
            key = f"visit {wanted.page.url}"
            answer = self.inquiry.response(key, ElicitResult)
            if answer is None:
                return InputRequiredResult(input_requests={key: question})
            if answer.action == "accept":
                raise ToolError(f"{wanted.message} Call again once that is done at {wanted.page.url}")
            raise ToolError(f"{wanted.message} The user refused to visit {wanted.page.url}")
        _, page = as_request(question, peer, self.service.runtime.entropy)
        assert isinstance(page, ElicitParams)
        assert page.elicitation_id is not None
        self.service.remember_page(page.elicitation_id)
        return ErrorData(wanted.code, wanted.message, URLElicitationRequiredData([page]))

    def fault(self, text: str) -> McpError:
        """The client has not answered as it should."""
        return McpError(self.request.peer.dialect.codes[Fault.INTERNAL], text)


class _Described(Struct):
    meta: dict[str, Any] | None = field(name="_meta", default=None)


_read_described: Final = reader(_Described)


def meta_of(request: RequestReceived) -> dict[str, Any]:
    """The whole `_meta` of a request, with members that no revision defines; empty if there is none.

    Raises:
        McpError: it cannot be read.
    """
    try:
        return _read_described(request.raw).meta or {}
    except Unreadable as exc:
        code = request.peer.dialect.codes[Fault.INVALID_PARAMS]
        raise McpError(code, f"_meta cannot be read: {exc}") from None
