"""Input requests to a client: which are allowed, which capabilities they need, valid responses.

An input request is an object of `types.InputRequest`: a form or a page for the user, messages for
the model, or the list of roots (client/elicitation, client/sampling, client/roots). It is the same
in every revision, whether it travels as a JSON-RPC request or inside a result.

1. A client is asked only for what it declared: the server checks before it asks, and the client
   checks before it calls its callback.
2. An invalid input request of our own author is a `LocalProtocolError`. A missing capability is an
   `McpError`, which a handler may catch, and which is the error response otherwise.
3. A form is flat and its fields are simple, so that any client can display it. A client also takes
   fields that mean the same (`simple_form`). The content that comes back is checked against the
   schema.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError, McpError, RemoteProtocolError
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.protocol.revisions._capabilities import is_declared
from mcp_core.protocol.revisions._methods import INPUTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from msgspec import Struct

    from mcp_core.protocol.messages._events import Peer
    from mcp_core.protocol.revisions._methods import Method

__all__ = [
    "INPUT_REQUESTS",
    "FormSchema",
    "check_input_request",
    "check_response",
    "exact_form_schema",
    "find_elicitation_url_error",
    "find_error",
    "form_schema",
    "input_request_of",
    "missing_capabilities",
    "require_capabilities",
    "response_to_error",
]

_KINDS: Final[Mapping[str, type[t.InputRequest]]] = {
    kind.method: kind for kind in (t.ElicitRequest, t.CreateMessageRequest, t.ListRootsRequest)
}
# Each type of input request with its row: method, params, result, and the capability it needs.
INPUT_REQUESTS: Final[Mapping[type[t.InputRequest], Method]] = {
    _KINDS[row.name]: row for row in INPUTS
}


def input_request_of(method: str, params: Struct) -> t.InputRequest:
    """Return the input request that a stateful server sent as a JSON-RPC request."""
    return _KINDS[method](params)  # type: ignore[arg-type]


def missing_capabilities(
    questions: Iterable[t.InputRequest], capabilities: t.ClientCapabilities
) -> dict[str, Any]:
    """Return the smallest capabilities that `questions` need beyond `capabilities`, or `{}`."""
    found: dict[str, Any] = {}
    for question in questions:
        for path in _needs(question, capabilities):
            if not is_declared(capabilities, path):
                node = found
                for name in path:
                    node = node.setdefault(name, {})
    return found


def _needs(
    question: t.InputRequest, capabilities: t.ClientCapabilities
) -> Iterator[tuple[str, ...]]:
    needs = INPUT_REQUESTS[type(question)].needs
    yield needs
    if isinstance(question, t.ElicitRequest):
        if question.params.mode == "url":
            yield (*needs, "url")
        elif is_declared(capabilities, (*needs, "url")):
            yield (*needs, "form")  # if the client names no mode, it supports this one
    elif isinstance(question, t.CreateMessageRequest) and (
        question.params.tools is not None or question.params.tool_choice is not None
    ):
        yield (*needs, "tools")


def require_capabilities(questions: Iterable[t.InputRequest], peer: Peer) -> None:
    """Check that `questions` may be sent to the client `peer`.

    Raises:
        McpError: the client did not declare a capability; `data` names the missing ones.
        LocalProtocolError: one of them is invalid for any client.
    """
    questions = tuple(questions)
    for question in questions:
        error = _find_question_error(question, exact_form_schema) or _find_plaintext_error(question)
        if error:
            raise LocalProtocolError(f"{question.method}: {error}")
    # Capabilities that its revision doesn't have don't count, even if the client sent them.
    offered: t.ClientCapabilities = peer.dialect.fit(peer.capabilities)
    missing = missing_capabilities(questions, offered)
    if missing:
        raise McpError(
            peer.dialect.codes[Fault.MISSING_CAPABILITY],
            f"this needs a client that declares {encode(missing).decode()}",
            {"requiredCapabilities": missing},
        )


# -- Valid input requests and responses ----------------------------------------------------------


class FormSchema(t.Shape):
    """The schema of a form: a flat object (client/elicitation, Requested Schema).

    Attributes:
        type: the content's JSON type.
        properties: the fields by name, in the order in which to show them.
        required: the names of fields that must be filled in, None for none.
    """

    type: Literal["object"]
    properties: dict[str, t.PrimitiveSchema]
    required: list[str] | None = None

    def find_error(self, name: str, value: t.ElicitValue) -> str | None:
        """Return why `value` is invalid for the field `name` ("is less than 1"), or None."""
        return _find_value_error(self.properties[name], value)


_read_form = reader(FormSchema)


def _find_question_error(
    question: t.InputRequest, read_form: Callable[[t.ElicitRequest], FormSchema]
) -> str | None:
    """Return why this input request is invalid for any client, or None."""
    if isinstance(question, t.CreateMessageRequest):
        return _find_messages_error(question.params.messages)
    if isinstance(question, t.ElicitRequest):
        if question.params.mode == "url":
            return _find_url_error(question.params.url or "")
        try:
            read_form(question)
        except InvalidPayload as exc:
            return f"requestedSchema is no flat object of simple fields: {exc}"
    return None


def _find_url_error(url: str) -> str | None:
    # The client hands the URL to a browser, perhaps through a shell, and the user decides by its
    # host: only a URL that all readers understand alike is passed on.
    from mcp_core.urls._elicitation_url import ElicitationUrl  # on first use: it is rare

    try:
        ElicitationUrl.parse(url)
    except ValueError as exc:
        return f"url is no http or https URL: it {exc}"
    return None


def find_elicitation_url_error(url: str) -> str | None:
    """Return why a server must not send its user to the page `url`, or None.

    It must be encrypted, or on this machine (client/elicitation, Safe URL Handling). A client shows
    its user a warning for the same reason, and lets them decide.
    """
    error = _find_url_error(url)
    if error is not None:
        return error
    from mcp_core.urls._addresses import is_loopback_host
    from mcp_core.urls._elicitation_url import ElicitationUrl

    parsed = ElicitationUrl.parse(url)
    host = parsed.host.rstrip(".")
    if parsed.scheme == "https" or is_loopback_host(host) or host.endswith(".localhost"):
        return None
    return (
        f"http: is not encrypted, so the user's browser may not open a page of {parsed.host} with"
        " it: use https:, or for development a loopback address such as http://localhost:8000"
    )


def _find_plaintext_error(question: t.InputRequest) -> str | None:
    if isinstance(question, t.ElicitRequest) and question.params.mode == "url":
        return find_elicitation_url_error(question.params.url or "")
    return None


def exact_form_schema(question: t.ElicitRequest) -> FormSchema:
    """Return the schema of a form that is written as the specification has it.

    Raises:
        InvalidPayload: it isn't a flat object of simple fields.
    """
    return _read_form(encode(question.params.requested_schema))


def form_schema(question: t.ElicitRequest) -> FormSchema:
    """Return the schema of a form, in which each field is a simple one.

    Raises:
        InvalidPayload: it isn't a flat object, or a field means no simple one.
    """
    with suppress(InvalidPayload):
        return exact_form_schema(question)
    from ._lenient_form import simple_form  # on first use: most forms are exact

    return _read_form(encode(simple_form(question.params.requested_schema or {})))


def _find_messages_error(messages: Iterable[t.SamplingMessage]) -> str | None:
    """Check the rules of tool use (client/sampling, Message Content Constraints)."""
    pending: list[str] = []  # ids of the tool uses that the next message has to answer
    for index, message in enumerate(messages):
        blocks = message.content if isinstance(message.content, list) else [message.content]
        uses = [block.id for block in blocks if isinstance(block, t.ToolUseContent)]
        results = [block.tool_use_id for block in blocks if isinstance(block, t.ToolResultContent)]
        if results and len(results) != len(blocks):
            return f"messages[{index}] mixes tool results with other content"
        if sorted(results) != sorted(pending):
            return f"messages[{index}] does not answer each tool use before it"
        if (uses and message.role != "assistant") or (results and message.role != "user"):
            return f"messages[{index}]: assistants use tools and users give the results"
        pending = uses
    return "the last message uses tools, and no results follow" if pending else None


def find_error(question: t.InputRequest, answer: t.Result) -> str | None:
    """Return why the content of an accepted form doesn't match its schema, or None."""
    if not isinstance(question, t.ElicitRequest) or question.params.mode == "url":
        return None
    if not isinstance(answer, t.ElicitResult) or answer.action != "accept":
        return None
    return _find_content_error(form_schema(question), answer.content or {})


def _find_content_error(form: FormSchema, content: Mapping[str, t.ElicitValue]) -> str | None:
    """Return the first member of `content` that is missing or invalid, and why, or None."""
    for name in form.required or ():
        if name not in content:
            return f"content.{name} is missing"
    for name in form.properties:
        if name in content:
            error = form.find_error(name, content[name])
            if error:
                return f"content.{name} {error}"
    return None  # the schema doesn't forbid additional members


def _find_value_error(field: t.PrimitiveSchema, value: t.ElicitValue) -> str | None:
    if isinstance(field, t.BooleanSchema):
        return None if isinstance(value, bool) else "is not true or false"
    if isinstance(field, t.StringSchema):
        if not isinstance(value, str):
            return "is no text"
        choices = _choices(field.enum, field.one_of)
        if choices is not None and value not in choices:
            return "is none of the choices"
        return _find_range_error(len(value), field.min_length, field.max_length, "characters")
    if isinstance(field, t.MultiSelectSchema):
        if not isinstance(value, list):
            return "is no list"
        if not set(value).issubset(_choices(field.items.enum, field.items.any_of) or ()):
            return "has something that is none of the choices"
        return _find_range_error(len(value), field.min_items, field.max_items, "items")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "is no number"
    if isinstance(field, t.IntegerSchema) and isinstance(value, float) and not value.is_integer():
        return "is no integer"
    return _find_range_error(value, field.minimum, field.maximum, "")


def _choices(values: list[str] | None, options: list[t.EnumOption] | None) -> list[str] | None:
    return [option.const for option in options] if options is not None else values


def _find_range_error(
    number: float, minimum: float | None, maximum: float | None, unit: str
) -> str | None:
    if minimum is not None and number < minimum:
        return f"is less than {minimum} {unit}".rstrip()
    if maximum is not None and number > maximum:
        return f"is more than {maximum} {unit}".rstrip()
    return None


# -- The client side -----------------------------------------------------------------------------


def check_input_request(question: t.InputRequest, capabilities: t.ClientCapabilities) -> None:
    """Check that a server's input request may be passed on. `capabilities` are our own.

    Raises:
        RemoteProtocolError: we did not declare the capability, or the input request is invalid.
            If it came as a JSON-RPC request, respond with the fault's code. If it came inside a
            result, the call ends.
    """
    missing = missing_capabilities([question], capabilities)
    error = (
        f"this client did not declare {encode(missing).decode()}"
        if missing
        else _find_question_error(question, form_schema)
    )
    if error:
        raise RemoteProtocolError(f"{question.method}: {error}", Fault.INVALID_PARAMS)


def check_response(question: t.InputRequest, answer: t.Result) -> t.Result:
    """Return `answer` as a response to `question`. Only an accepted form keeps its content.

    Raises:
        LocalProtocolError: it isn't a valid response. Nothing was sent.
    """
    row = INPUT_REQUESTS[type(question)]
    if type(answer) is not row.result:
        raise LocalProtocolError(f"{row.name} is not answered with {type(answer).__name__}")
    if isinstance(answer, t.ElicitResult) and isinstance(question, t.ElicitRequest):
        if answer.content is not None and (
            answer.action != "accept" or question.params.mode == "url"
        ):
            answer = replace(answer, content=None)
        error = find_error(question, answer)
        if error:
            raise LocalProtocolError(f"{row.name}: {error}")
    elif isinstance(answer, t.ListRootsResult):
        for root in answer.roots:
            if not root.uri.startswith("file://"):
                raise LocalProtocolError(f"{row.name}: {root.uri!r} is no file:// URI")
    return answer


def response_to_error(question: t.InputRequest, error: McpError) -> t.ElicitResult:
    """Return the response for a retry in which our own callback raised `error`.

    An elicitation can be cancelled. Sampling and roots have no such result, so the request isn't
    retried (our reading: the specification doesn't say).

    Raises:
        McpError: `error` itself, which ends the call.
    """
    if isinstance(question, t.ElicitRequest):
        return t.ElicitResult(action="cancel")
    raise error
