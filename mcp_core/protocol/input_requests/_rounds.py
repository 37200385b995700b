"""Requesting input from a client: multi round-trip requests, for both sides.

In 2026-07-28 (basic/patterns/mrtr) a server that needs input responds with `input_required` and its
input requests. The client has its user or model answer them, and retries the request with the
responses. In earlier revisions each input request is a JSON-RPC request of its own
(client/elicitation, client/sampling, client/roots). Both use objects of `types.InputRequest`.

1. A server stores nothing between two rounds. `requestState` holds all it needs: the responses so
   far, the keys that were requested, the number of rounds, and what must not be computed twice. So
   the retry may reach another instance, or the same one after a restart.
2. A handler is run again from its beginning, and `ServerRoundTrips.ask` returns what was answered
   before. An input request without a response is registered and ends the run (`NeedInput`). Once
   registered it is sent, even if the handler catches the exception.
3. A response belongs to an input request, not to a line in the handler. Its key is a digest of the
   input request and its number of occurrence, so that tasks may ask in any order.

Which input requests and responses are valid is in `_kinds.py`.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast, overload

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError, McpError, RemoteProtocolError
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.protocol.jsonrpc._unencodable import encode_exactly
from mcp_core.protocol.revisions._capabilities import is_declared
from mcp_core.protocol.revisions._methods import INPUTS

from ._kinds import (
    INPUT_REQUESTS,
    check_input_request,
    check_response,
    find_error,
    form_schema,
    require_capabilities,
)
from ._request_state import InvalidRequestState, StateBinding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.protocol.messages._events import Peer, RequestReceived
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.protocol.revisions._methods import Method

    from ._request_state import KeyRing

__all__ = [
    "MAX_ROUNDS",
    "ClientRoundTrips",
    "ErrorFinder",
    "NeedInput",
    "ServerRoundTrips",
    "retry_delay",
    "to_request",
    "without_undeclared_context",
]

# How often one request may be answered with `input_required`. Few users complete a form of ten
# pages. More rounds mean an input request whose text changes each time, or a client that never
# answers.
MAX_ROUNDS: Final = 10

_ANSWERS: Final[Mapping[type[Struct] | None, Method]] = {row.result: row for row in INPUTS}

# Returns what is wrong with the response to an input request, or None.
ErrorFinder: TypeAlias = Callable[[Any, Any], str | None]
R = TypeVar("R", t.ElicitResult, t.CreateMessageResult, t.ListRootsResult)

_canonical: Final = msgspec.json.Encoder(order="sorted").encode
_read_any: Final[Callable[[Raw], Any]] = reader(Any)


# -- The server side -----------------------------------------------------------------------------


class NeedInput(BaseException):
    """Ends the run of a handler that requested input which has no response yet.

    The handler will be run again. It isn't an `Exception`, so that no handler treats it as a
    failure of its own.
    """


class _SealedResponses(Struct, array_like=True):
    """The content of `requestState`."""

    round: int
    responses: dict[str, Raw]
    requested_keys: list[str]
    handler_state: str | None
    computed: dict[str, Raw] = {}  # apart from `responses`, whose keys a client may choose


_read_state = reader(_SealedResponses)


class ServerRoundTrips:
    """The input requests of one request: those answered so far, and those to send.

    *Asking where input is needed*: call `ask` in the handler. After each run, however it ended,
    check `input_required` first: if it is true, respond to the request with
    `input_required_result(now)`. Code before the last `ask` runs once in each round, so it must be
    harmless to run it again. An input request must be the same in each run, or have a key.

    *Returned input requests*: the handler returns an `InputRequiredResult` with a `request_state`
    of its own; respond with `input_required_result(now, returned)`. The next run finds that state
    in `state`, and all responses, of earlier rounds too, in `responses`. To a stateful peer, send
    the `nested_requests` instead, then call `resume` and run the handler again.

    *Deferring* a request under load: respond with `input_required_result(now)` without running the
    handler.

    Args:
        request: the request to respond to, of any method and revision.
        ring: signs and checks `requestState`.
        principal: the client's authenticated principal, or "".
        now: seconds since 1970.
        max_rounds: how often the request may be answered with `input_required`.

    Raises:
        InvalidRequestState: the request's `requestState` wasn't issued for it. Do not run the
            handler.
    """

    def __init__(
        self,
        request: RequestReceived,
        ring: KeyRing,
        *,
        principal: str,
        now: float,
        max_rounds: int = MAX_ROUNDS,
    ) -> None:
        self._request = request
        self._ring = ring
        self._principal = principal
        self._max_rounds = max_rounds
        self._bound: StateBinding | None = None
        self._occurrences: dict[str, int] = {}
        self._asked: dict[str, t.InputRequest] = {}  # in this run, answered or not
        self._unanswered: dict[str, t.InputRequest] = {}  # those without a response
        # Keys of responses to input requests that we sent. Only these go into the next state.
        self._keys_to_keep: set[str] = set()
        self.responses: dict[str, Raw] = {}
        self._computed: dict[str, Raw] = {}
        self.round = 0  # how often the request was answered with `input_required`
        self.state: str | None = None
        if self._find_obstacle() is None:
            self.responses.update(request.params.input_responses or {})
            if request.params.request_state is not None:
                self._restore(request.params.request_state, now)

    def __repr__(self) -> str:
        return (
            f"<ServerRoundTrips of {self._request.method.name} after {self.round} rounds,"
            f" {len(self.responses)} answers, {len(self._unanswered)} questions>"
        )

    @property
    def input_required(self) -> bool:
        """True if requested input has no response: then respond with `input_required_result`."""
        return bool(self._unanswered)

    @overload
    def ask(
        self,
        question: t.ElicitRequest,
        key: str | None = None,
        find_error: ErrorFinder = find_error,
    ) -> t.ElicitResult: ...
    @overload
    def ask(
        self,
        question: t.CreateMessageRequest,
        key: str | None = None,
        find_error: ErrorFinder = find_error,
    ) -> t.CreateMessageResult: ...
    @overload
    def ask(
        self,
        question: t.ListRootsRequest,
        key: str | None = None,
        find_error: ErrorFinder = find_error,
    ) -> t.ListRootsResult: ...
    def ask(
        self, question: t.InputRequest, key: str | None = None, find_error: ErrorFinder = find_error
    ) -> Any:
        """Return the client's response.

        Tasks that ask concurrently ask in one round, if each calls this before it waits for
        anything.

        Args:
            question: the input request.
            key: names an input request that isn't the same in each run. A response counts for any
                input request under its key.
            find_error: returns what is wrong with a response, or None.

        Raises:
            NeedInput: there is no response yet, or an invalid one. The input request will be sent.
            McpError: the client did not declare the capability, or its response cannot be decoded.
            LocalProtocolError: this method cannot request input, the input request is invalid, or
                the key was used for another one.
        """
        obstacle = self._find_obstacle()
        if obstacle:
            raise LocalProtocolError(obstacle)
        key, answer = self.look_up(question, key, find_error)
        if answer is not None:
            return answer
        self._unanswered[key] = question
        raise NeedInput(key)

    def look_up(
        self, question: t.InputRequest, key: str | None = None, find_error: ErrorFinder = find_error
    ) -> tuple[str, Any]:
        """Return the key of an input request, and its response; None before the response.

        The arguments are `ask`'s. It works for peers of all revisions.

        Raises:
            McpError: as for `ask`.
            LocalProtocolError: as for `ask`.
            UnencodableValue: JSON cannot hold a part of `question`.
        """
        request = self._request
        if not request.method.input_ok:
            raise LocalProtocolError(_cannot_ask(request.method))
        require_capabilities([question], request.peer)
        if key is None:
            key = self.new_key(question)
        else:
            encode_exactly(question)
        if self._asked.setdefault(key, question) != question:
            raise LocalProtocolError(f"two different input requests have the key {key!r}")
        answer = self._read(key, INPUT_REQUESTS[type(question)])
        return key, None if answer is None or find_error(question, answer) else answer

    def new_key(self, question: t.InputRequest) -> str:
        """Return the key of the next occurrence of an input request in this run.

        Raises:
            UnencodableValue: JSON cannot hold part of the request.
        """
        encode_exactly(question)
        digest = _digest(question)
        count = self._occurrences[digest] = self._occurrences.get(digest, 0) + 1
        return f"{digest}.{count}"

    def store_response(self, key: str, answer: t.Result) -> None:
        """Store a stateful client's response, so that another handler run finds it."""
        self.responses[key] = Raw(encode(answer))

    def computed(self, key: str) -> Raw | None:
        """Return what an earlier run stored under `key` by `store_computed`, None if none did."""
        return self._computed.get(key)

    def store_computed(self, key: str, value: bytes) -> Raw:
        """Store a value, as JSON, for further handler runs, and return it.

        The client can read the value, and cannot choose or change it.
        """
        stored = self._computed[key] = Raw(value)
        return stored

    def response(self, key: str, kind: type[R]) -> R | None:
        """Return the response under a key of `InputRequiredResult.input_requests`, or None.

        `kind` is the result's type, such as `ElicitResult`. Whether the content matches the form
        isn't checked.

        Raises:
            McpError: the client's response cannot be decoded.
        """
        return cast("R | None", self._read(key, _ANSWERS[kind]))

    def input_required_result(
        self, now: float, returned: t.InputRequiredResult | None = None
    ) -> t.InputRequiredResult:
        """Return the result to respond with.

        It has the input requests of this run, or else those that the handler `returned`. If there
        are neither, it asks the client to retry later.

        Args:
            now: seconds since 1970.
            returned: what the handler returned, if it was an `InputRequiredResult`.

        Raises:
            McpError: the client did not declare a capability, there were too many rounds, or the
                responses so far are too long.
            LocalProtocolError: this method cannot request input, or an input request is invalid.
        """
        error = self._find_obstacle()
        if error:
            raise LocalProtocolError(error)
        questions = self._unanswered
        handler_state = self.state
        if questions or returned is None:
            returned = t.InputRequiredResult()
        else:
            questions = self._check_returned(returned)
            handler_state = returned.request_state
        self._check_rounds()
        kept = {
            key: raw
            for key, raw in self.responses.items()
            if key in self._keys_to_keep and key not in questions
        }
        content = _SealedResponses(
            self.round + 1, kept, list(questions), handler_state, self._computed
        )
        peer = self._request.peer
        try:
            state = self._ring.seal(encode(content), self._binding(), now)
        except LocalProtocolError as exc:
            raise McpError(peer.dialect.codes[exc.fault], str(exc)) from None
        return replace(
            returned,
            input_requests={
                key: without_undeclared_context(question, peer)
                for key, question in questions.items()
            }
            or None,
            request_state=state,
            result_type="input_required",
        )

    def nested_requests(
        self, returned: t.InputRequiredResult, entropy: Callable[[int], bytes]
    ) -> dict[str, tuple[str, Struct]]:
        """Return method and params of the requests to send to a stateful peer, by key.

        They stand for the input requests that the handler returned. If there are none, wait
        `retry_delay(round)` seconds. Then call `resume` and run the handler again.

        Raises:
            McpError: the client did not declare a capability, or there were too many rounds.
            LocalProtocolError: an input request is invalid.
        """
        questions = self.check_returned(returned)
        return {
            key: to_request(question, self._request.peer, entropy)
            for key, question in questions.items()
        }

    def check_returned(self, returned: t.InputRequiredResult) -> dict[str, t.InputRequest]:
        """Return the input requests that a handler returned, by key.

        Raises:
            McpError: as for `nested_requests`.
            LocalProtocolError: as for `nested_requests`.
        """
        questions = self._check_returned(returned)
        self._check_rounds()
        return questions

    def resume(self, returned: t.InputRequiredResult, answers: Mapping[str, t.Result]) -> None:
        """Begin the next run, with the responses to the nested requests and the returned state."""
        self.round += 1
        self._occurrences.clear()
        self._asked.clear()
        self.state = returned.request_state
        self.responses.update({key: Raw(encode(answer)) for key, answer in answers.items()})

    def _find_obstacle(self) -> str | None:
        """Return why this request cannot be answered with `input_required`, or None."""
        request = self._request
        if not request.method.input_ok:
            return _cannot_ask(request.method)
        if request.peer.dialect.lacks(t.InputResponseParams, "request_state"):
            return (
                f"in revision {request.peer.dialect.version} an input request is a JSON-RPC request"
            )
        return None

    def _check_returned(self, returned: t.InputRequiredResult) -> dict[str, t.InputRequest]:
        """Return the input requests that the handler returned, after checking them."""
        if not self._request.method.input_ok:
            raise LocalProtocolError(_cannot_ask(self._request.method))
        questions = returned.input_requests or {}
        if not questions and returned.request_state is None:
            raise LocalProtocolError("input_required has inputRequests, requestState or both")
        require_capabilities(questions.values(), self._request.peer)
        return questions

    def _check_rounds(self) -> None:
        if self.round >= self._max_rounds:
            code = self._request.peer.dialect.codes[Fault.INTERNAL]
            raise McpError(
                code, f"{self._request.method.name} still needs input after {self.round} rounds"
            )

    def _read(self, key: str, row: Method) -> Any:
        raw = self.responses.get(key)
        if raw is None:
            return None
        self._keys_to_keep.add(key)
        try:
            return row.read_result(raw)
        except InvalidPayload as exc:
            code = self._request.peer.dialect.codes[Fault.INVALID_PARAMS]
            raise McpError(
                code, f"inputResponses.{key} is no answer to {row.name}: {exc}"
            ) from None

    def _restore(self, state: str, now: float) -> None:
        try:
            content = _read_state(self._ring.open(state, self._binding(), now))
        except InvalidPayload:
            raise InvalidRequestState("its content was not written by this server") from None
        self.round = content.round
        self.state = content.handler_state
        self._computed.update(content.computed)
        # New responses to input requests that we sent are kept, even if this run ends before it
        # asks for them again. Others aren't, or a peer could grow the state as it likes.
        self._keys_to_keep.update(key for key in content.requested_keys if key in self.responses)
        self._keys_to_keep.update(content.responses)
        self.responses.update(content.responses)  # the response given first wins over a later one

    def _binding(self) -> StateBinding:
        if self._bound is None:
            method = self._request.method
            params = self._request.params
            self._bound = StateBinding(
                self._principal, method.name, _request_digest(method, params)
            )
        return self._bound


def _cannot_ask(method: Method) -> str:
    return (
        f"{method.name} cannot ask for input: only tools/call, prompts/get and resources/read can"
    )


def _request_digest(method: Method, params: Any) -> str:
    """Return the digest of the params that identify a request: name or URI, and arguments.

    Arguments are compared as values: a client that keeps them in a hash table may write the members
    of an object in another order when it retries. But `1` and `1.0` are different values.
    """
    arguments = getattr(params, "arguments", None)  # a resource has none
    if isinstance(arguments, Raw):
        try:
            arguments = _read_any(arguments)
        except InvalidPayload:
            # They aren't JSON, but the retry can have the same bytes.
            arguments = sha256(bytes(arguments)).hexdigest()
    return _digest([getattr(params, method.name_field), arguments or None])


def _digest(value: Any) -> str:
    return urlsafe_b64encode(sha256(_canonical(value)).digest())[:-1].decode()


def without_undeclared_context(question: t.InputRequest, peer: Peer) -> t.InputRequest:
    """Drop `includeContext` if the client did not declare it (client/sampling, Capabilities)."""
    if not isinstance(question, t.CreateMessageRequest):
        return question
    context = question.params.include_context
    if context is None or context == "none" or peer.dialect.lacks(t.SamplingCapability, "context"):
        return question
    if is_declared(peer.capabilities, ("sampling", "context")):
        return question
    return replace(question, params=replace(question.params, include_context=None))


# -- The same input requests to a stateful peer --------------------------------------------------


def to_request(
    question: t.InputRequest, peer: Peer, entropy: Callable[[int], bytes]
) -> tuple[str, t.RequestParams]:
    """Return method and params of the JSON-RPC request for `question`, in the peer's revision.

    Raises:
        McpError: the client did not declare the capability.
        LocalProtocolError: the input request is invalid, or not possible in that revision.
    """
    require_capabilities([question], peer)
    dialect = peer.dialect
    params: t.RequestParams
    if isinstance(question, t.ElicitRequest):
        params = question.params
        if params.mode != "url":
            params = replace(params, requested_schema=_schema_in(dialect, question))
        elif params.elicitation_id is None:  # the encoder drops it where the revision has none
            params = replace(params, elicitation_id=entropy(16).hex())
    elif isinstance(question, t.CreateMessageRequest):
        params = cast("t.CreateMessageRequest", without_undeclared_context(question, peer)).params
        params = replace(
            params, messages=[_message_in(dialect, message) for message in params.messages]
        )
    else:
        params = question.params or t.ListRootsParams()
    return question.method, params


def _schema_in(dialect: Dialect, question: t.ElicitRequest) -> dict[str, Any] | None:
    """Return the schema of a form. Revisions without `oneOf` get titles as `enumNames`."""
    if not dialect.lacks(t.StringSchema, "one_of"):
        return question.params.requested_schema
    form = form_schema(question)
    for name, field in form.properties.items():
        if isinstance(field, t.StringSchema) and field.one_of is not None:
            values = [option.const for option in field.one_of]
            titles = [option.title for option in field.one_of]
            form.properties[name] = replace(field, enum=values, enum_names=titles)
    schema: dict[str, Any] = msgspec.to_builtins(dialect.fit(form))
    return schema


def _message_in(dialect: Dialect, message: t.SamplingMessage) -> t.SamplingMessage:
    """Return a message in the shape of `dialect`: before tool use, content is a single block."""
    if not isinstance(message.content, list) or not dialect.lacks(t.CreateMessageParams, "tools"):
        return message
    if len(message.content) != 1:
        raise LocalProtocolError(f"in revision {dialect.version} a message has exactly one block")
    return replace(message, content=message.content[0])


# -- The client side -----------------------------------------------------------------------------


def retry_delay(retry: int) -> float:
    """Return the seconds to wait before a retry; `retry` counts deferrals in a row, from 0."""
    return 0.1 * 2.0**retry if retry < 6 else 5.0


class ClientRoundTrips:
    """One request of a client, from the first try to its result, with a retry for each round.

    Send `params` with `method`. If the answer is `InputRequested`, pass its parts to `begin_round`,
    which returns the input requests. Collect all responses, concurrently if you like, or wait
    `pause` seconds if there are no input requests. Pass the responses to `set_responses`, and send
    the new `params` with a new id and the same `_meta`.

    Args:
        method: the request's method.
        params: the first try's params, as for `Connection.send_request`.
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
        rounds: int = MAX_ROUNDS,
    ) -> None:
        self.method = method
        self.params = params
        self.round = 0
        self.input_requests: dict[str, t.InputRequest] = {}  # of this round
        self._dialect = peer.dialect
        self._capabilities = capabilities
        self._rounds = rounds
        self._state: str | None = None
        self.pause = 0.0  # seconds to wait before the next try, if there are no input requests
        self._deferrals = 0  # rounds in a row without an input request

    def __repr__(self) -> str:
        count = len(self.input_requests)
        return f"<ClientRoundTrips of {self.method}, {self.round} so far, {count} questions>"

    def begin_round(
        self, requests: Mapping[str, t.InputRequest] | None, state: str | None
    ) -> dict[str, t.InputRequest]:
        """Begin a round: take the server's `requests` and its `state`, return the input requests.

        Raises:
            RemoteProtocolError: there were too many rounds, we did not declare a capability, or an
                input request is invalid.
        """
        if self.round >= self._rounds:
            raise RemoteProtocolError(
                f"{self.method}: the server still asks after {self.round} rounds"
            )
        self.input_requests = dict(requests or {})
        for question in self.input_requests.values():
            check_input_request(question, self._capabilities)
        self.round += 1
        self._state = state
        self.pause = 0.0 if self.input_requests else retry_delay(self._deferrals)
        self._deferrals = 0 if self.input_requests else self._deferrals + 1
        return self.input_requests

    def set_responses(self, answers: Mapping[str, t.Result]) -> None:
        """Set `params` for the next try: the original ones, the responses, the unchanged state.

        Raises:
            LocalProtocolError: a response is missing or invalid.
        """
        responses: dict[str, Raw] = {}
        for key, question in self.input_requests.items():
            if key not in answers:
                raise LocalProtocolError(
                    f"{question.method} has no answer, so the request cannot be retried"
                )
            responses[key] = Raw(self._dialect.encode(check_response(question, answers[key])))
        if isinstance(self.params, Struct):
            self.params = replace(
                self.params, input_responses=responses or None, request_state=self._state
            )
            return
        params = {**(self.params or {})}
        for name, value in (("inputResponses", responses or None), ("requestState", self._state)):
            params.pop(name, None)
            if value is not None:
                params[name] = value
        self.params = params
