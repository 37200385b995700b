"""Questions to a client: what may be asked, of whom, and what is an answer.

A question is an object of `types.InputRequest`: a form or a page for the user, messages for the model, or the roots
(client/elicitation, client/sampling, client/roots). How it travels, as a request or inside an answer, is another matter: it is the
same in every revision that has it.

Rules of this file:

1. Nobody is asked what he did not offer to answer: the server checks before it asks, the client before it bothers its user.
2. What our own author asks wrongly is a `LocalProtocolError`; a client that lacks something is an `McpError`, which an author
   may catch to do without, and which otherwise is the answer.
3. A form is flat and its fields are simple, so that any client can show it. What is filled in is checked against it.

It refuses to know rounds, connections and how a question is shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec.structs import replace

from . import types as t
from ._capabilities import has
from ._errors import Fault, LocalProtocolError, McpError, RemoteProtocolError
from ._jsonrpc import Unreadable, encode, reader
from ._methods import INPUTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from msgspec import Struct

    from ._events import Peer
    from ._methods import Method

__all__ = [
    "QUESTIONS",
    "FormSchema",
    "as_answer",
    "check_question",
    "form_of",
    "lacking",
    "misfit",
    "question_of",
    "refusal_of",
    "require",
]

_KINDS: Final[Mapping[str, type[t.InputRequest]]] = {
    kind.method: kind for kind in (t.ElicitRequest, t.CreateMessageRequest, t.ListRootsRequest)
}
# Every kind of question with its row: method, params, answer, the capability it needs.
QUESTIONS: Final[Mapping[type[t.InputRequest], Method]] = {_KINDS[row.name]: row for row in INPUTS}


def question_of(method: str, params: Struct) -> t.InputRequest:
    """A request of a stateful server as the question that it is, so that clients answer both alike."""
    return _KINDS[method](params)  # type: ignore[arg-type]


def lacking(questions: Iterable[t.InputRequest], capabilities: t.ClientCapabilities) -> dict[str, Any]:
    """The smallest capabilities object that declares what `questions` need beyond `capabilities`; empty for nothing."""
    found: dict[str, Any] = {}
    for question in questions:
        for path in _needs(question, capabilities):
            if not has(capabilities, path):
                node = found
                for name in path:
                    node = node.setdefault(name, {})
    return found


def _needs(question: t.InputRequest, capabilities: t.ClientCapabilities) -> Iterator[tuple[str, ...]]:
    needs = QUESTIONS[type(question)].needs
    yield needs
    if isinstance(question, t.ElicitRequest):
        if question.params.mode == "url":
            yield (*needs, "url")
        elif has(capabilities, (*needs, "url")):
            yield (*needs, "form")  # where no mode is named, it is this one
    elif isinstance(question, t.CreateMessageRequest) and (
        question.params.tools is not None or question.params.tool_choice is not None
    ):
        yield (*needs, "tools")


def require(questions: Iterable[t.InputRequest], peer: Peer) -> None:
    """Make sure that `questions` may be put to the client `peer`.

    Raises:
        McpError: it did not offer to answer them all; `data` names what it lacks.
        LocalProtocolError: there is one that nobody can be asked.
    """
    questions = tuple(questions)
    for question in questions:
        problem = _wrong(question)
        if problem:
            raise LocalProtocolError(f"{question.method}: {problem}")
    # What its revision does not have it cannot have offered, whatever it says.
    offered: t.ClientCapabilities = peer.dialect.fit(peer.capabilities)
    missing = lacking(questions, offered)
    if missing:
        raise McpError(
            peer.dialect.codes[Fault.MISSING_CAPABILITY],
            f"this needs a client that declares {encode(missing).decode()}",
            {"requiredCapabilities": missing},
        )


# -- What questions and answers must be ----------------------------------------------------------------------------------


class FormSchema(t.Shape):
    """What a form may ask for: a flat object (client/elicitation, Requested Schema)."""

    type: Literal["object"]
    properties: dict[str, t.PrimitiveSchema]
    required: list[str] | None = None

    def misfit(self, name: str, value: t.ElicitValue) -> str | None:
        """Why `value` cannot stand in the field `name`, in words to follow it ("is less than 1"); None if it can."""
        return _wrong_value(self.properties[name], value)


_read_form = reader(FormSchema)
# Whoever opens a page hands this to a browser, or worse, to a shell: no other schemes, no credentials, visible ASCII only.
_URL: Final = re.compile(
    r"(?i:https?)://(?:[A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?(?:[/?#][!-~]*)?"
)


def _wrong(question: t.InputRequest) -> str | None:
    """Why nobody can be asked this, None if one can."""
    if isinstance(question, t.CreateMessageRequest):
        return _wrong_messages(question.params.messages)
    if isinstance(question, t.ElicitRequest):
        if question.params.mode == "url":
            return None if _URL.fullmatch(question.params.url or "") else "url is no http or https URL"
        try:
            form_of(question)
        except Unreadable as exc:
            return f"requestedSchema is no flat object of simple fields: {exc}"
    return None


def form_of(question: t.ElicitRequest) -> FormSchema:
    """The schema of a form, which may be asked.

    Raises:
        Unreadable: it is none.
    """
    return _read_form(encode(question.params.requested_schema))


def _wrong_messages(messages: Iterable[t.SamplingMessage]) -> str | None:
    """The rules of tool use (client/sampling, Message Content Constraints)."""
    wanted: list[str] = []  # the uses of tools that the next message has to answer
    for place, message in enumerate(messages):
        blocks = message.content if isinstance(message.content, list) else [message.content]
        uses = [block.id for block in blocks if isinstance(block, t.ToolUseContent)]
        results = [block.tool_use_id for block in blocks if isinstance(block, t.ToolResultContent)]
        if results and len(results) != len(blocks):
            return f"messages[{place}] mixes tool results with other content"
        if sorted(results) != sorted(wanted):
            return f"messages[{place}] does not answer the uses of tools before it, one by one"
        if (uses and message.role != "assistant") or (results and message.role != "user"):
            return f"messages[{place}]: assistants use tools and users give the results"
        wanted = uses
    return "the last message uses tools, and no results follow" if wanted else None


def misfit(question: t.InputRequest, answer: t.Result) -> str | None:
    """Why a form is not filled in as its schema says; None if it is, or if there is no filled-in form."""
    if not isinstance(question, t.ElicitRequest) or question.params.mode == "url":
        return None
    if not isinstance(answer, t.ElicitResult) or answer.action != "accept":
        return None
    return _wrong_content(form_of(question), answer.content or {})


def _wrong_content(form: FormSchema, content: Mapping[str, t.ElicitValue]) -> str | None:
    for name in form.required or ():
        if name not in content:
            return f"content.{name} is missing"
    for name in form.properties:
        if name in content:
            problem = form.misfit(name, content[name])
            if problem:
                return f"content.{name} {problem}"
    return None  # what is not in the schema is not forbidden by it


def _wrong_value(field: t.PrimitiveSchema, value: t.ElicitValue) -> str | None:
    if isinstance(field, t.BooleanSchema):
        return None if isinstance(value, bool) else "is not true or false"
    if isinstance(field, t.StringSchema):
        if not isinstance(value, str):
            return "is no text"
        choices = _choices(field.enum, field.one_of)
        if choices is not None and value not in choices:
            return "is none of the choices"
        return _outside(len(value), field.min_length, field.max_length, "characters")
    if isinstance(field, t.MultiSelectSchema):
        if not isinstance(value, list):
            return "is no list"
        if not set(value).issubset(_choices(field.items.enum, field.items.any_of) or ()):
            return "has something that is none of the choices"
        return _outside(len(value), field.min_items, field.max_items, "items")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "is no number"
    if isinstance(field, t.IntegerSchema) and isinstance(value, float) and not value.is_integer():
        return "is no integer"
    return _outside(value, field.minimum, field.maximum, "")


def _choices(values: list[str] | None, options: list[t.EnumOption] | None) -> list[str] | None:
    return [option.const for option in options] if options is not None else values


def _outside(number: float, least: float | None, most: float | None, of: str) -> str | None:
    if least is not None and number < least:
        return f"is less than {least} {of}".rstrip()
    if most is not None and number > most:
        return f"is more than {most} {of}".rstrip()
    return None


# -- The client's side --------------------------------------------------------------------------------------------------------


def check_question(question: t.InputRequest, capabilities: t.ClientCapabilities) -> None:
    """Make sure that a question of the server's may be put to anyone. `capabilities` are our own.

    Raises:
        RemoteProtocolError: we did not offer to answer it, or nobody can be asked this. A request with it is answered with
            the fault's code; inside an answer, it ends the call.
    """
    missing = lacking([question], capabilities)
    problem = f"this client did not declare {encode(missing).decode()}" if missing else _wrong(question)
    if problem:
        raise RemoteProtocolError(f"{question.method}: {problem}", Fault.INVALID_PARAMS)


def as_answer(question: t.InputRequest, answer: t.Result) -> t.Result:
    """`answer`, of our own side, as an answer to `question`: without the content that only an accepted form has.

    Raises:
        LocalProtocolError: it is none. Nothing was sent.
    """
    row = QUESTIONS[type(question)]
    if type(answer) is not row.result:
        raise LocalProtocolError(f"{row.name} is not answered with {type(answer).__name__}")
    if isinstance(answer, t.ElicitResult) and isinstance(question, t.ElicitRequest):
        if answer.content is not None and (answer.action != "accept" or question.params.mode == "url"):
            answer = replace(answer, content=None)
        problem = misfit(question, answer)
        if problem:
            raise LocalProtocolError(f"{row.name}: {problem}")
    elif isinstance(answer, t.ListRootsResult):
        for root in answer.roots:
            if not root.uri.startswith("file://"):
                raise LocalProtocolError(f"{row.name}: {root.uri!r} is no file:// URI")
    return answer


def refusal_of(question: t.InputRequest, error: McpError) -> t.ElicitResult:
    """What to answer inside a retry when our own side raised `error` instead of an answer. A user may turn away; for a model
    or roots there is no such answer, and the request is not made again (a reading: the page says nothing of it).

    Raises:
        McpError: `error` itself, which ends the call.
    """
    if isinstance(question, t.ElicitRequest):
        return t.ElicitResult(action="cancel")
    raise error
