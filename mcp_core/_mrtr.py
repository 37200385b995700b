"""Asking for input: multi round-trip requests, from both ends, and the same questions as requests of their own.

In 2026-07-28 (basic/patterns/mrtr) a server does not ask its client, it answers: `input_required`, with questions. The client
puts them to its user or model and makes the request again, with the answers. Before, a question was a request of the server's
(client/elicitation, client/sampling, client/roots). The questions are the same: objects of `types.InputRequest`.

Rules of this file:

1. Between two rounds a server keeps nothing. All it has to know again is in `requestState`: the answers so far, which keys
   were asked for, how many rounds there were. So the retry may reach another instance, or the same one after a restart.
2. A handler is run again from its beginning, and `Inquiry.ask` gives what was answered before. A question that has no answer
   is registered and ends the run (`NeedInput`); once registered it is asked, whatever the handler makes of that.
3. An answer belongs to a question, not to a place in the handler: its key is a digest of the question and its occurrence,
   so that tasks may ask in any order. The answer given first stays; a later one cannot change it.

What may be asked and answered is in `_questions.py`. It refuses to know how anyone waits, what time it is, and how a question
is shown.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast, overload

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from . import types as t
from ._capabilities import has
from ._errors import Fault, LocalProtocolError, McpError, RemoteProtocolError
from ._jsonrpc import Unreadable, encode, reader
from ._methods import INPUTS
from ._questions import QUESTIONS, as_answer, check_question, form_of, misfit, require
from ._seal import BadState, Binding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._dialects import Dialect
    from ._events import Peer, RequestReceived
    from ._methods import Method
    from ._seal import KeyRing

__all__ = ["ROUNDS", "Inquiry", "NeedInput", "Problem", "Rounds", "as_request", "pause_before"]

# How often one request may be answered with `input_required`. A form of ten pages is longer than people bear; what goes on
# after that is a question whose text changes each time, or a peer that never answers.
ROUNDS: Final = 10

_ANSWERS: Final[Mapping[type[Struct] | None, Method]] = {row.result: row for row in INPUTS}

# What is wrong with an answer to a question, None if nothing is.
Problem: TypeAlias = Callable[[Any, Any], str | None]
R = TypeVar("R", t.ElicitResult, t.CreateMessageResult, t.ListRootsResult)

_canonical: Final = msgspec.json.Encoder(order="sorted").encode
_read_any: Final[Callable[[Raw], Any]] = reader(Any)


# -- The server's side ------------------------------------------------------------------------------------------------------


class NeedInput(BaseException):
    """Raised through a handler that has asked what nobody answered yet: its run is over, and there will be another one.

    It is no `Exception`, so that no handler takes it for a failure of its own.
    """


class _Progress(Struct, array_like=True):
    """What is sealed in `requestState`."""

    round: int
    answers: dict[str, Raw]
    asked: list[str]
    own: str | None


_read_progress = reader(_Progress)


class Inquiry:
    """What one request has been told so far, and what it has to ask.

    *Asking where it is needed*: `ask` in the handler. When the run is over, and whatever came of it, look at `asking` first:
    if it is true the answer to the request is `required(now)`. What runs before the last question runs once in each round,
    so it must be harmless to run it again; and a question must read the same each time, or have a key.

    *Asking by hand*: the handler returns an `InputRequiredResult`, whose `request_state` is its own; the answer is
    `required(now, returned)`. The next run finds that state in `state` and all answers, of earlier rounds too, in
    `responses`. A stateful peer gets the `nested` requests instead; then `resume`, and the handler is run again.

    *Putting off*, because there is too much to do now: answer with `required(now)` without running the handler.

    Args:
        request: what is being answered, of any method and revision.
        ring: signs and checks `requestState`.
        principal: who is asking, as authenticated; empty where nobody is.
        now: seconds since 1970.
        rounds: how often the request may be answered with `input_required`.

    Raises:
        BadState: the request's `requestState` is none that was given out for it. The handler must not run.
    """

    def __init__(
        self, request: RequestReceived, ring: KeyRing, *, principal: str, now: float, rounds: int = ROUNDS
    ) -> None:
        self._request = request
        self._ring = ring
        self._principal = principal
        self._rounds = rounds
        self._bound: Binding | None = None
        self._occurrences: dict[str, int] = {}
        self._asked: dict[str, t.InputRequest] = {}  # in this run, with an answer or without
        self._needs: dict[str, t.InputRequest] = {}  # those without
        self._kept: set[str] = set()  # answers to what was asked: they travel on
        self.responses: dict[str, Raw] = {}
        self.round = 0  # how often the request was answered with `input_required`
        self.state: str | None = None
        if self._unable() is None:
            self.responses.update(request.params.input_responses or {})
            if request.params.request_state is not None:
                self._restore(request.params.request_state, now)

    def __repr__(self) -> str:
        return (
            f"<Inquiry of {self._request.method.name} after {self.round} rounds,"
            f" {len(self.responses)} answers, {len(self._needs)} questions>"
        )

    @property
    def asking(self) -> bool:
        """Whether something was asked that has no answer: then the answer to the request is `required`."""
        return bool(self._needs)

    @overload
    def ask(
        self, question: t.ElicitRequest, key: str | None = None, problem: Problem = misfit
    ) -> t.ElicitResult: ...
    @overload
    def ask(
        self, question: t.CreateMessageRequest, key: str | None = None, problem: Problem = misfit
    ) -> t.CreateMessageResult: ...
    @overload
    def ask(
        self, question: t.ListRootsRequest, key: str | None = None, problem: Problem = misfit
    ) -> t.ListRootsResult: ...
    def ask(self, question: t.InputRequest, key: str | None = None, problem: Problem = misfit) -> Any:
        """The client's answer. Tasks that ask side by side ask in one round if each comes here before it waits for anything.

        `key` is for a question that does not read the same each time. An answer counts for whatever is asked under its key.
        `problem` tells what is wrong with an answer, None if nothing is.

        Raises:
            NeedInput: there is none yet, or one that does not fit. It will be asked for.
            McpError: the client did not offer to answer such questions, or what it sent cannot be read as an answer.
            LocalProtocolError: this request cannot ask, nobody can be asked this, or the key stands for another question.
        """
        unable = self._unable()
        if unable:
            raise LocalProtocolError(unable)
        key, answer = self.look_up(question, key, problem)
        if answer is not None:
            return answer
        self._needs[key] = question
        raise NeedInput(key)

    def look_up(
        self, question: t.InputRequest, key: str | None = None, problem: Problem = misfit
    ) -> tuple[str, Any]:
        """The key of a question and the answer to it, None if there is none yet, whatever the peer's revision.

        Raises:
            McpError, LocalProtocolError: as for `ask`.
        """
        request = self._request
        if not request.method.input_ok:
            raise LocalProtocolError(_cannot_ask(request.method))
        require([question], request.peer)
        if key is None:
            digest = _digest(question)
            count = self._occurrences[digest] = self._occurrences.get(digest, 0) + 1
            key = f"{digest}.{count}"
        if self._asked.setdefault(key, question) != question:
            raise LocalProtocolError(f"two different questions have the key {key!r}")
        answer = self._read(key, QUESTIONS[type(question)])
        return key, None if answer is None or problem(question, answer) else answer

    def keep(self, key: str, answer: t.Result) -> None:
        """A stateful client has answered the question under `key`: should the handler be run again, it is not asked again."""
        self.responses[key] = Raw(encode(answer))

    def response(self, key: str, kind: type[R]) -> R | None:
        """The answer under a key of `InputRequiredResult.input_requests`, as `ElicitResult` or what else the question was
        for; None if there is none yet. Whether it fits the form is not looked at.

        Raises:
            McpError: what the client sent cannot be read as such an answer.
        """
        return cast("R | None", self._read(key, _ANSWERS[kind]))

    def required(self, now: float, returned: t.InputRequiredResult | None = None) -> t.InputRequiredResult:
        """The answer to the request: what was asked, or else what the handler returned, or else to come again later.

        `now` is in seconds since 1970.

        Raises:
            McpError: the client did not offer to answer such questions, there were too many rounds, or the answers so far are
                too long.
            LocalProtocolError: this request cannot ask, or nobody can be asked this.
        """
        problem = self._unable()
        if problem:
            raise LocalProtocolError(problem)
        questions, own = self._needs, self.state
        if questions or returned is None:
            returned = t.InputRequiredResult()
        else:
            questions, own = self._checked(returned), returned.request_state
        self._check_rounds()
        kept = {key: raw for key, raw in self.responses.items() if key in self._kept and key not in questions}
        progress = _Progress(self.round + 1, kept, list(questions), own)
        peer = self._request.peer
        try:
            state = self._ring.seal(encode(progress), self._binding(), now)
        except LocalProtocolError as exc:
            raise McpError(peer.dialect.codes[exc.fault], str(exc)) from None
        return replace(
            returned,
            input_requests={key: _granted(question, peer) for key, question in questions.items()} or None,
            request_state=state,
            result_type="input_required",
        )

    def nested(
        self, returned: t.InputRequiredResult, entropy: Callable[[int], bytes]
    ) -> dict[str, tuple[str, Struct]]:
        """For a stateful peer: method and params of the requests that stand for what the handler returned, by key.

        Wait `pause_before(round)` seconds if there are none. Then `resume` and run the handler again.

        Raises:
            McpError: the client did not offer to answer such questions, or there were too many rounds.
            LocalProtocolError: nobody can be asked this.
        """
        questions = self._checked(returned)
        self._check_rounds()
        return {key: as_request(question, self._request.peer, entropy) for key, question in questions.items()}

    def resume(self, returned: t.InputRequiredResult, answers: Mapping[str, t.Result]) -> None:
        """The `nested` requests were answered: the next run of the handler finds `answers`, and the state it returned."""
        self.round += 1
        self._occurrences.clear()
        self._asked.clear()
        self.state = returned.request_state
        self.responses.update({key: Raw(encode(answer)) for key, answer in answers.items()})

    def _unable(self) -> str | None:
        """Why this request cannot be answered with `input_required`."""
        request = self._request
        if not request.method.input_ok:
            return _cannot_ask(request.method)
        if request.peer.dialect.lacks(t.InputResponseParams, "request_state"):
            return f"in revision {request.peer.dialect.version} a question is a request of its own"
        return None

    def _checked(self, returned: t.InputRequiredResult) -> dict[str, t.InputRequest]:
        """The questions that the handler returned, once it is clear that they may be asked."""
        if not self._request.method.input_ok:
            raise LocalProtocolError(_cannot_ask(self._request.method))
        questions = returned.input_requests or {}
        if not questions and returned.request_state is None:
            raise LocalProtocolError("input_required has inputRequests, requestState or both")
        require(questions.values(), self._request.peer)
        return questions

    def _check_rounds(self) -> None:
        if self.round >= self._rounds:
            code = self._request.peer.dialect.codes[Fault.INTERNAL]
            raise McpError(code, f"{self._request.method.name} still needs input after {self.round} rounds")

    def _read(self, key: str, row: Method) -> Any:
        raw = self.responses.get(key)
        if raw is None:
            return None
        self._kept.add(key)
        try:
            return row.read_result(raw)
        except Unreadable as exc:
            code = self._request.peer.dialect.codes[Fault.INVALID_PARAMS]
            raise McpError(code, f"inputResponses.{key} is no answer to {row.name}: {exc}") from None

    def _restore(self, state: str, now: float) -> None:
        try:
            progress = _read_progress(self._ring.open(state, self._binding(), now))
        except Unreadable:
            raise BadState("its content is none of ours") from None
        self.round = progress.round
        self.state = progress.own
        # Of what comes now, answers to what was asked are kept, even if this run does not get to asking again. Other ones
        # are not, or a peer could make the state grow as it likes.
        self._kept.update(key for key in progress.asked if key in self.responses)
        self._kept.update(progress.answers)
        self.responses.update(progress.answers)

    def _binding(self) -> Binding:
        if self._bound is None:
            method, params = self._request.method, self._request.params
            self._bound = Binding(self._principal, method.name, _salient(method, params))
        return self._bound


def _cannot_ask(method: Method) -> str:
    return f"{method.name} cannot ask for input: only a tool, a prompt or a resource can, while it is called, got or read"


def _salient(method: Method, params: Any) -> str:
    """The digest of what is asked for: the name or URI, and the arguments.

    Arguments are compared as values. A client that keeps them in a hash table may write the members of an object in another
    order when it makes the request again. `1` and `1.0` are two values all the same.
    """
    arguments = getattr(params, "arguments", None)  # a resource has none
    if isinstance(arguments, Raw):
        try:
            arguments = _read_any(arguments)
        except Unreadable:
            # Nobody can read them, but they can be the same bytes again.
            arguments = sha256(bytes(arguments)).hexdigest()
    return _digest([getattr(params, method.name_field), arguments or None])


def _digest(value: Any) -> str:
    return urlsafe_b64encode(sha256(_canonical(value)).digest())[:-1].decode()


def _granted(question: t.InputRequest, peer: Peer) -> t.InputRequest:
    """The question without wishes that the client did not say it can grant (client/sampling, Capabilities)."""
    if not isinstance(question, t.CreateMessageRequest):
        return question
    wish = question.params.include_context
    if wish is None or wish == "none" or peer.dialect.lacks(t.SamplingCapability, "context"):
        return question
    if has(peer.capabilities, ("sampling", "context")):
        return question
    return replace(question, params=replace(question.params, include_context=None))


# -- The same questions to a stateful peer ------------------------------------------------------------------------------------


def as_request(
    question: t.InputRequest, peer: Peer, entropy: Callable[[int], bytes]
) -> tuple[str, t.RequestParams]:
    """Method and params of the request that puts `question` to a peer with a handshake, in words of its revision.

    Raises:
        McpError: the client did not offer to answer such questions.
        LocalProtocolError: nobody can be asked this, or not in that revision.
    """
    require([question], peer)
    dialect = peer.dialect
    params: t.RequestParams
    if isinstance(question, t.ElicitRequest):
        params = question.params
        if params.mode != "url":
            params = replace(params, requested_schema=_schema_in(dialect, question))
        elif params.elicitation_id is None:  # a revision without it leaves it out
            params = replace(params, elicitation_id=entropy(16).hex())
    elif isinstance(question, t.CreateMessageRequest):
        params = cast("t.CreateMessageRequest", _granted(question, peer)).params
        params = replace(params, messages=[_message_in(dialect, message) for message in params.messages])
    else:
        params = question.params or t.ListRootsParams()
    return question.method, params


def _schema_in(dialect: Dialect, question: t.ElicitRequest) -> dict[str, Any] | None:
    """The schema of a form; where choices have no titles of their own, with `enumNames`."""
    if not dialect.lacks(t.StringSchema, "one_of"):
        return question.params.requested_schema
    form = form_of(question)
    for name, field in form.properties.items():
        if isinstance(field, t.StringSchema) and field.one_of is not None:
            values = [option.const for option in field.one_of]
            titles = [option.title for option in field.one_of]
            form.properties[name] = replace(field, enum=values, enum_names=titles)
    schema: dict[str, Any] = msgspec.to_builtins(dialect.fit(form))
    return schema


def _message_in(dialect: Dialect, message: t.SamplingMessage) -> t.SamplingMessage:
    """A message with one block instead of a list, in the revisions before the one that brought lists for the use of tools."""
    if not isinstance(message.content, list) or not dialect.lacks(t.CreateMessageParams, "tools"):
        return message
    if len(message.content) != 1:
        raise LocalProtocolError(f"in revision {dialect.version} a message has exactly one block")
    return replace(message, content=message.content[0])


# -- The client's side --------------------------------------------------------------------------------------------------------


def pause_before(retry: int) -> float:
    """Seconds to wait before making a request again that the server put off for the `retry`-th time in a row, from 0 on."""
    return min(0.1 * 2.0 ** min(retry, 6), 5.0)


class Rounds:
    """One request of ours, from the first try to the answer: how to make it again each time the server asks for input.

    Send `params` with `method`. If the answer is `InputRequested`, hand its parts to `take`, which gives the questions. Let
    all of them be answered, side by side if you like, or wait `pause` seconds if there are none; hand the answers to
    `answer`, and send the new `params`, under a new id and with the same `_meta`.

    Args:
        params: of the first try, as for `Connection.send_request`.
        peer: the server.
        capabilities: our own.
        rounds: how often the server may ask.
    """

    def __init__(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None,
        peer: Peer,
        capabilities: t.ClientCapabilities,
        *,
        rounds: int = ROUNDS,
    ) -> None:
        self.method = method
        self.params = params
        self.round = 0
        self.questions: dict[str, t.InputRequest] = {}  # of this round
        self._dialect = peer.dialect
        self._capabilities = capabilities
        self._rounds = rounds
        self._state: str | None = None
        self.pause = 0.0  # seconds to wait before the next try; questions take their time by themselves
        self._put_off = 0  # rounds in a row without a question

    def __repr__(self) -> str:
        return f"<Rounds of {self.method}, {self.round} so far, {len(self.questions)} questions>"

    def take(
        self, requests: Mapping[str, t.InputRequest] | None, state: str | None
    ) -> dict[str, t.InputRequest]:
        """The server asks `requests`; gives the questions, by key.

        Raises:
            RemoteProtocolError: it asks too often, or what we did not offer to answer, or what nobody can be asked.
        """
        if self.round >= self._rounds:
            raise RemoteProtocolError(f"{self.method}: the server still asks after {self.round} rounds")
        self.questions = dict(requests or {})
        for question in self.questions.values():
            check_question(question, self._capabilities)
        self.round += 1
        self._state = state
        self.pause = 0.0 if self.questions else pause_before(self._put_off)
        self._put_off = 0 if self.questions else self._put_off + 1
        return self.questions

    def answer(self, answers: Mapping[str, t.Result]) -> None:
        """Put together the `params` of the next try: the original ones, the answers, the server's state untouched.

        Raises:
            LocalProtocolError: a question has no answer, or one that does not fit.
        """
        responses: dict[str, Raw] = {}
        for key, question in self.questions.items():
            if key not in answers:
                raise LocalProtocolError(f"{question.method} has no answer, so the request is not made again")
            responses[key] = Raw(self._dialect.encode(as_answer(question, answers[key])))
        if isinstance(self.params, Struct):
            self.params = replace(self.params, input_responses=responses or None, request_state=self._state)
            return
        params = {**(self.params or {})}
        for name, value in (("inputResponses", responses or None), ("requestState", self._state)):
            params.pop(name, None)
            if value is not None:
                params[name] = value
        self.params = params
