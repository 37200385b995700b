"""Answering what a server asks, from the client's end: who is asked, and what his answer becomes.

A server asks the user, the model or for the roots. Until 2025-11-25 it does so by requests, which belong to no call of ours in
particular; in 2026-07-28 inside the answer to a call, which is then made again with the answers (`_mrtr.Rounds`). Whoever is
asked here, `Respondent`, is told neither.

Rules of this file:

1. What is declared is what there is a callback for.
2. Each question is answered in a task of its own, an `Answering`, so that one that takes its time holds up nothing but whoever
   waits for the answer. The runtime starts and cancels the task, and what comes of it is decided here.
3. A callback may refuse by an `McpError`. A request is answered with that error. Inside a call the refusal to fill in a form is
   an answer; there is none for the other kinds, so that the call ends with the error (client/sampling: no retry).
4. What else a callback raises is a fault of our own side. A request is answered that there was one, and the log has the rest;
   a call ends with it, for there is a caller who can be told. What is no `Exception` is for whoever runs the task.

It refuses to know how anyone waits, and how a question is shown.
Sources: client/elicitation, client/sampling and client/roots of all revisions; basic/patterns/mrtr of 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypedDict

from . import types as t
from ._calls import Turn
from ._errors import Fault, LocalProtocolError, McpError, RemoteProtocolError, single
from ._questions import FormSchema, as_answer, check_question, form_of, question_of, refusal_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from ._calls import Waiter
    from ._connection import Connection
    from ._events import RequestReceived
    from .types import RequestId

__all__ = ["Answering", "AskedOptions", "OpenQuestions", "OurTurn", "Respondent", "answer_form"]

# What client/sampling says for a user who does not want this; it is outside the reserved range.
_REJECTED: Final = -1
_INTERNAL: Final = -32603  # JSON-RPC's own, in every revision


class _Path(Protocol):
    """A path of `pathlib`, whose import is a runtime's business."""

    def as_uri(self) -> str: ...


Place: TypeAlias = t.Root | str | _Path
ElicitAnswer: TypeAlias = t.ElicitResult | Mapping[str, t.ElicitValue] | None
SampleAnswer: TypeAlias = t.CreateMessageResult | None
OnElicit: TypeAlias = Callable[[t.ElicitParams], Awaitable[ElicitAnswer] | ElicitAnswer]
OnSample: TypeAlias = Callable[[t.CreateMessageParams], Awaitable[SampleAnswer] | SampleAnswer]
OnRoots: TypeAlias = Collection[Place] | Callable[[], Awaitable[Collection[Place]] | Collection[Place]]
Fill: TypeAlias = Callable[[str, FormSchema], Awaitable[ElicitAnswer] | ElicitAnswer]


class AskedOptions(TypedDict, total=False):
    """What a client can be told about being asked. A callback may be an `async def` or a plain function, which must not block.
    Each call of one is in a task of its own, and several may run at once.

    Keys:
        on_elicit: answers a question to the user (client/elicitation; since 2025-06-18), given the `types.ElicitParams`. It
            gives what was filled in as a dict, to which defaults of the form are added; None if the user turned away without
            an answer; or a `types.ElicitResult`, as to decline. `answer_form` makes one of a function that fills in forms.
        on_sample: has the model go on (client/sampling), given the `types.CreateMessageParams`. It gives the
            `types.CreateMessageResult`, or None if the user does not want that.
        on_roots: the places that the server may work in (client/roots): paths of `pathlib`, which are absolute, URIs
            beginning with `file://`, or `types.Root`. Or a function without arguments that gives them.
        elicitation: what of asking the user is declared; unless given, forms. With
            `types.ElicitationCapability(form={}, url={})` the server may also send the user to a web page, which
            `on_elicit` learns from `mode` and `url`, and which only its user decides to open.
        sampling: what of asking the model is declared; unless given, neither tools nor context. With
            `types.SamplingCapability(tools={})` `on_sample` may be given tools for the model to use.
    """

    on_elicit: OnElicit | None
    on_sample: OnSample | None
    on_roots: OnRoots | None
    elicitation: t.ElicitationCapability | None
    sampling: t.SamplingCapability | None


class Respondent:
    """Our own side, as the one who is asked. `capabilities` are what it can answer.

    Raises:
        ValueError: something is declared and there is no callback for it, or a place is no root.
        TypeError: a single string is given for the roots.
    """

    __slots__ = ("_on_roots", "_one_argument", "capabilities")

    def __init__(self, options: AskedOptions) -> None:
        on_elicit, on_sample = options.get("on_elicit"), options.get("on_sample")
        on_roots = self._on_roots = options.get("on_roots")
        self._one_argument: dict[type, Callable[[Any], Any] | None] = {
            t.ElicitRequest: on_elicit,
            t.CreateMessageRequest: on_sample,
        }
        elicitation, sampling = options.get("elicitation"), options.get("sampling")
        for declared, callback, needed in (
            (elicitation, on_elicit, "elicitation needs on_elicit"),
            (sampling, on_sample, "sampling needs on_sample"),
        ):
            if declared is not None and callback is None:
                raise ValueError(f"{needed} to answer what is asked then")
        if on_roots is not None and not callable(on_roots):
            _check_places(on_roots)
        self.capabilities = t.ClientCapabilities(
            elicitation=elicitation or (None if on_elicit is None else t.ElicitationCapability()),
            sampling=sampling or (None if on_sample is None else t.SamplingCapability()),
            roots=None if on_roots is None else t.RootsCapability(list_changed=True),
        )

    def __repr__(self) -> str:
        return f"<Respondent with {self.capabilities}>"

    def answer(self, question: t.InputRequest) -> Awaitable[t.Result]:
        """Awaited, it asks whom it concerns and gives the answer.

        Raises:
            McpError: our own side refuses.
            LocalProtocolError: it gave what is no answer.
            Exception: it failed.
        """
        return _Answer(self, question)

    def answer_in_retry(self, question: t.InputRequest) -> Awaitable[t.Result]:
        """The same for a question inside the answer to a call: there a user who turns away is an answer."""
        return _AnswerInRetry(self, question)

    def ask(self, question: t.InputRequest) -> Any:
        """What the callback gives, which may be something to await."""
        if isinstance(question, t.ListRootsRequest):
            return self._on_roots() if callable(self._on_roots) else self._on_roots
        callback = self._one_argument[type(question)]
        assert callback is not None, "nobody is asked what was not declared"
        return callback(question.params)


class _Answer:
    def __init__(self, respondent: Respondent, question: t.InputRequest) -> None:
        self._respondent = respondent
        self._question = question

    def __await__(self) -> Generator[Any, Any, t.Result]:
        answer = self._respondent.ask(self._question)
        if isinstance(answer, Awaitable):
            answer = yield from answer.__await__()
        return as_answer(self._question, _said(self._question, answer))


class _AnswerInRetry(_Answer):
    def __await__(self) -> Generator[Any, Any, t.Result]:
        try:
            return (yield from super().__await__())
        except Exception as exc:
            refusal = single(exc)
            if isinstance(refusal, McpError):
                return refusal_of(self._question, refusal)
            raise


def _said(question: t.InputRequest, answer: Any) -> Any:
    """What a callback gave, as the result that it stands for."""
    if isinstance(question, t.ElicitRequest):
        if answer is None:
            return t.ElicitResult(action="cancel")
        if isinstance(answer, Mapping):
            return t.ElicitResult(action="accept", content={**_defaults(question), **answer})
    elif isinstance(question, t.CreateMessageRequest):
        if answer is None:
            raise McpError(_REJECTED, "the user rejected the request")
    elif not isinstance(answer, t.Result):
        return t.ListRootsResult(roots=[_root(place) for place in answer])
    return answer


def _defaults(question: t.ElicitRequest) -> dict[str, t.ElicitValue]:
    if question.params.mode == "url":
        return {}
    fields = form_of(question).properties
    return {name: field.default for name, field in fields.items() if field.default is not None}


def _root(place: Place) -> t.Root:
    if isinstance(place, t.Root):
        return place
    return t.Root(uri=place if isinstance(place, str) else place.as_uri())


def _check_places(places: Collection[Place]) -> None:
    if isinstance(places, str):
        raise TypeError("on_roots is several places, not one string")
    question = t.ListRootsRequest()
    try:
        as_answer(question, _said(question, places))
    except LocalProtocolError as exc:
        raise ValueError(str(exc)) from None


def answer_form(fill: Fill) -> OnElicit:
    """An `on_elicit` of a function that fills in forms: `connect(server, on_elicit=answer_form(fill))`.

    `fill(message, form)` is given the words for the user and the `FormSchema`, whose `properties` are the fields by name and
    whose `required` names those that must be there. It gives what was filled in as a dict, None if the user turned away, or an
    `types.ElicitResult`; or an awaitable of these. Fields that it leaves out get their defaults. A page to visit is declined.
    """

    def on_elicit(params: t.ElicitParams) -> Awaitable[ElicitAnswer] | ElicitAnswer:
        if params.mode == "url":
            return t.ElicitResult(action="decline")
        return fill(params.message, form_of(t.ElicitRequest(params)))

    return on_elicit


class Answering:
    """Something that our own side does in a task of its own.

    Set `stop` to what cancels that task. In the task await this object, once; say what came of it with `done` or `failed`; and
    in any case `dropped` last: it counts only if nothing else was said.
    """

    __slots__ = ("_end", "_start", "stop")

    def __init__(
        self, start: Callable[[], Awaitable[Any]], end: Callable[[Any, BaseException | None], object]
    ) -> None:
        self.stop: Callable[[], object] = _nothing
        self._start = start
        self._end: Callable[[Any, BaseException | None], object] | None = end

    def __repr__(self) -> str:
        return f"<Answering, {'over' if self._end is None else 'under way'}>"

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._start().__await__()

    def done(self, answer: Any) -> None:
        """The answer is here."""
        self._over(answer, None)

    def failed(self, exc: BaseException) -> None:
        """Our own side raised `exc`.

        Raises:
            BaseException: `exc`, if it is no `Exception` and so meant for more than this task.
        """
        if not isinstance(exc, Exception):
            raise exc
        self._over(None, single(exc))

    def dropped(self) -> None:
        """The task was cancelled."""
        self._over(None, McpError(_INTERNAL, "the question was given up"))

    def abandon(self) -> None:
        """Nobody wants to know what comes of it."""
        if self._end is not None:
            self._end = None
            self.stop()

    def _over(self, answer: Any, error: BaseException | None) -> None:
        end, self._end = self._end, None
        if end is not None:
            end(answer, error)


class OpenQuestions:
    """The requests of a stateful server that our own side answers.

    Args:
        conn: where they come from.
        respondent: who answers them.
        run: runs an `Answering` in a task.
        hold: called with 1 when the server has begun to wait for an answer, with -1 when it has one.
        report: puts something that ends no call into the log.
    """

    __slots__ = ("_answerings", "_conn", "_hold", "_report", "_respondent", "_run")

    def __init__(
        self,
        conn: Connection,
        respondent: Respondent,
        run: Callable[[Answering], object],
        hold: Callable[[int], object],
        report: Callable[[str, BaseException], object],
    ) -> None:
        self._conn, self._respondent = conn, respondent
        self._run, self._hold, self._report = run, hold, report
        self._answerings: dict[RequestId, Answering] = {}

    def __repr__(self) -> str:
        return f"<OpenQuestions: {len(self._answerings)} by {self._conn!r}>"

    def take(self, request: RequestReceived) -> None:
        """Have a request answered."""
        question = question_of(request.method.name, request.params)
        try:
            check_question(question, self._conn.config.capabilities)
        except RemoteProtocolError as exc:
            self._conn.send_error(request.id, t.ErrorData(request.peer.dialect.codes[exc.fault], str(exc)))
            return
        start = partial(self._respondent.answer, question)
        answering = self._answerings[request.id] = Answering(start, partial(self._answered, request))
        self._hold(1)
        self._run(answering)

    def cancel(self, id: RequestId) -> None:
        """The server wants no answer any more."""
        if id in self._answerings:
            self._answerings[id].stop()

    def _answered(self, request: RequestReceived, answer: t.Result, error: BaseException | None) -> None:
        del self._answerings[request.id]
        self._hold(-1)
        try:
            if error is None:
                self._conn.send_result(request.id, answer)
                return
            if isinstance(error, McpError):
                self._conn.send_error(request.id, t.ErrorData(error.code, error.message, error.data))
                return
        except Exception as exc:  # noqa: BLE001 - it cannot be said, and what others made may fail in any way
            error = exc
        self._report(f"{request.method.name} could not be answered", error)
        code = request.peer.dialect.codes[Fault.INTERNAL]
        self._conn.send_error(request.id, t.ErrorData(code, "Internal error"))


class OurTurn(Turn):
    """What our own side does before a call is made again: `work`, by key, side by side. What came of it is given by key; the
    first failure is the end, and stops the rest."""

    ours = True

    def __init__(
        self, run: Callable[[Answering], object], work: Mapping[str, Callable[[], Awaitable[Any]]]
    ) -> None:
        self._run = run
        self._work = work
        self._answers: dict[str, Any] = {}
        self._answerings: list[Answering] = []

    def __repr__(self) -> str:
        return f"<OurTurn, {len(self._answers)} of {len(self._work)} answers>"

    def begin(self, waiter: Waiter[Any]) -> None:
        for key, start in self._work.items():
            self._answerings.append(Answering(start, partial(self._answered, waiter, key)))
        for answering in self._answerings:
            self._run(answering)

    def stop(self) -> None:
        for answering in self._answerings:
            answering.abandon()

    def _answered(self, waiter: Waiter[Any], key: str, answer: Any, error: BaseException | None) -> None:
        self._answers[key] = answer
        if error is not None:
            waiter.end(None, error)
        elif len(self._answers) == len(self._work):
            waiter.end(self._answers, None)


def _nothing() -> None:
    """What stops nothing."""
