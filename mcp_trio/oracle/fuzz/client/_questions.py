"""The questions of a server to its client, as data: sampling, elicitation and roots.

The first questions of a method are right: a client that has declared what they need has no reason
to complain. A client that hasn't declared it must refuse them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_core import types as t
from mcp_trio.oracle.fuzz._revisions import dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["QUESTIONS", "RIGHT_QUESTIONS", "Question", "find_question", "is_declared"]


class Question(Struct, frozen=True, kw_only=True):
    """A question to a client.

    Attributes:
        params: the request's params; None for none.
        is_right: False if they break the specification.
        needs: a member of the capability that it needs beside the capability itself.
        of: a type of `mcp_core.types`, and its field without which a revision lacks this question.
    """

    params: Any
    is_right: bool = True
    needs: str = ""
    of: tuple[type[Struct], str] = (t.ClientCapabilities, "roots")

    def fits(self, revision: str) -> bool:
        """Return True if it is right in a revision."""
        return self.is_right and not dialect_of(revision).lacks(*self.of)


# Fields by which revisions differ.
_FORMS: Final = (t.ClientCapabilities, "elicitation")
_NEW_FORMS: Final = (t.ElicitParams, "mode")
_TOOLS: Final = (t.CreateMessageParams, "tools")


def _form(
    fields: Mapping[str, Any], *required: str, message: str = "How many?", **more: Any
) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(fields)}
    if required:
        schema["required"] = list(required)
    return {"message": message, "requestedSchema": schema, **more}


_NAMES: Final = ("red", "green", "blue")
_TITLED: Final = [{"const": each, "title": each.title()} for each in _NAMES]
_OLD_FIELDS: Final = {
    "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 20},
    "mail": {"type": "string", "format": "email"},
    "day": {"type": "string", "format": "date"},
    "share": {"type": "number", "minimum": 0, "maximum": 1},
    "sure": {"type": "boolean", "default": True},
    "color": {"type": "string", "enum": list(_NAMES), "enumNames": ["Red", "Green", "Blue"]},
}
_NEW_FIELDS: Final = {
    "name": {"type": "string", "default": "nobody", "minLength": 2},
    "count": {"type": "integer", "default": 2, "minimum": 1, "maximum": 3},
    "share": {"type": "number", "default": 0.5},
    "plain": {"type": "string", "enum": list(_NAMES), "default": "green"},
    "titled": {"type": "string", "oneOf": _TITLED, "default": "blue"},
    "several": {
        "type": "array",
        "items": {"type": "string", "enum": list(_NAMES)},
        "minItems": 1,
        "maxItems": 2,
        "default": ["red"],
    },
    "titles": {"type": "array", "items": {"anyOf": _TITLED}, "minItems": 1, "default": ["red"]},
}
_URL: Final = {"mode": "url", "message": "?", "url": "https://example.com/a?b=c"}
_FORM_QUESTIONS: Final = (
    Question(
        params=_form({"count": {"type": "integer", "minimum": 2, "maximum": 3}}, "count"),
        of=_FORMS,
    ),
    Question(params=_form(_OLD_FIELDS, *_OLD_FIELDS), of=_FORMS),
    Question(params=_form(_OLD_FIELDS), of=_FORMS),
    Question(params=_form({}), of=_FORMS),
    Question(params=_form(_NEW_FIELDS, *_NEW_FIELDS), of=_NEW_FORMS),
    Question(params=_form(_NEW_FIELDS, mode="form"), of=_NEW_FORMS),
    Question(params=_URL, needs="url", of=_NEW_FORMS),
)
# Fields that no form may have, and forms that no user can fill in.
_WRONG_FIELDS: Final[tuple[Any, ...]] = (
    {"type": "object", "properties": {"b": {"type": "string"}}},
    {"type": "array", "items": {"type": "object", "properties": {}}},
    {"type": 5},
    {"type": "string", "enum": ["x"], "default": "y"},
    {"type": "integer", "default": "many"},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"type": "string", "pattern": "("},
    {"type": "string", "pattern": "^(a+)+$", "default": "a" * 64 + "b"},
    {"type": "array", "items": {"enum": []}, "minItems": 2},
    {"$ref": "#/properties/a"},
    {"type": "string", "enum": [["x"], {"a": 1}, None]},
    {"type": "string", "oneOf": [{"title": "no const"}, 5]},
    {},
    None,
)
_WRONG_FORMS: Final[tuple[Any, ...]] = (
    {**_URL, "url": "javascript:alert(1)", "elicitationId": "a"},
    {**_URL, "url": 5},
    {"mode": "url", "message": "?"},
    {"mode": "telepathy", "message": "?"},
    {"mode": None, "message": "?"},
    None,
    *(_form({"a": each}, "a") for each in _WRONG_FIELDS),
    _form({"a": {"type": "string"}}, "b"),
    _form({f"field {each}": {"type": "string"} for each in range(1_000)}),
    _form({"": {"type": "string"}, "__proto__": {"type": "boolean"}}, "__proto__"),
    {"message": "?", "requestedSchema": {"type": "array"}},
    {"message": "?", "requestedSchema": "a form"},
    {"message": ["?"], "requestedSchema": {"type": "object", "properties": {}}},
    _form({}, message="\x1b]0;title\x07\u202e" + "x" * 100_000),
)


def _text(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


_HELLO: Final = {"messages": [_text("user", "hello")], "maxTokens": 10}
_TOOL: Final = {"name": "a", "inputSchema": {"type": "object"}}
_USE: Final = {"type": "tool_use", "id": "u", "name": "a", "input": {}}
_RESULT: Final = {
    "type": "tool_result",
    "toolUseId": "u",
    "content": [{"type": "text", "text": "one"}],
}
_SAMPLING_QUESTIONS: Final = (
    Question(params=_HELLO),
    Question(
        params={
            **_HELLO,
            "messages": [_text("user", "hello"), _text("assistant", "yes"), _text("user", "why")],
            "systemPrompt": "Be short.",
            "modelPreferences": {"hints": [{"name": "small"}, {}], "speedPriority": 1},
            "includeContext": "none",
            "temperature": 0.5,
            "stopSequences": ["."],
            "metadata": {"a": {"b": 1}},
        }
    ),
    Question(
        params={
            **_HELLO,
            "messages": [
                {
                    "role": "user",
                    "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                }
            ],
        }
    ),
    Question(
        params={
            **_HELLO,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}] * 2}],
        },
        of=_TOOLS,
    ),
    Question(params={**_HELLO, "tools": [_TOOL]}, needs="tools", of=_TOOLS),
    Question(
        params={**_HELLO, "tools": [_TOOL], "toolChoice": {"mode": "none"}},
        needs="tools",
        of=_TOOLS,
    ),
    Question(
        params={
            **_HELLO,
            "messages": [
                _text("user", "hello"),
                {"role": "assistant", "content": [_USE]},
                {"role": "user", "content": [_RESULT]},
            ],
            "tools": [_TOOL],
        },
        needs="tools",
        of=_TOOLS,
    ),
)
_WRONG_SAMPLING: Final[tuple[Any, ...]] = (
    {"messages": []},
    {"messages": "hello", "maxTokens": "many"},
    {**_HELLO, "messages": [{"role": "assistant", "content": [_USE]}]},
    {**_HELLO, "messages": [{"role": "user", "content": [_RESULT, {"type": "text", "text": ""}]}]},
    {**_HELLO, "maxTokens": -1},
    {**_HELLO, "maxTokens": 2**70},
    {**_HELLO, "maxTokens": 0.5},
    {**_HELLO, "modelPreferences": {"hints": [5], "costPriority": 7}},
    {**_HELLO, "includeContext": "everything"},
    {**_HELLO, "messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]},
    {**_HELLO, "messages": [{"role": "user", "content": {"type": "smell"}}]},
    {**_HELLO, "messages": [{"role": "user", "content": {"type": "image", "data": "%"}}]},
    {**_HELLO, "messages": [None, 5, []]},
    {**_HELLO, "tools": [{"name": 5}], "toolChoice": {"mode": "perhaps"}},
    {**_HELLO, "messages": [_text("user", "x" * 1_100_000)]},
    {**_HELLO, "messages": [_text("user", "x")] * 5_000},
    None,
)


def _wrong(params: tuple[Any, ...]) -> tuple[Question, ...]:
    return tuple(Question(params=each, is_right=False) for each in params)


QUESTIONS: Final[dict[str, tuple[Question, ...]]] = {
    "sampling/createMessage": (*_SAMPLING_QUESTIONS, *_wrong(_WRONG_SAMPLING)),
    "elicitation/create": (*_FORM_QUESTIONS, *_wrong(_WRONG_FORMS)),
    "roots/list": (
        Question(params=None),
        Question(params={"_meta": {"progressToken": 1}}),
        *_wrong(({"cursor": 5}, {"_meta": 5})),
    ),
}
"""The questions by method, first the right ones."""
RIGHT_QUESTIONS: Final = {
    method: sum(each.is_right for each in questions) for method, questions in QUESTIONS.items()
}
_CAPABILITIES: Final = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}


def find_question(method: str, number: int, revision: str) -> tuple[Any, Question]:
    """Return a question's params in a revision, and the question."""
    questions = QUESTIONS[method]
    found = questions[number % len(questions)]
    params = found.params
    if found.needs == "url" and dialect_of(revision).stateful:
        params = {**params, "elicitationId": f"elicitation-{number}"}
    return params, found


def is_declared(method: str, declared: Mapping[str, Any]) -> bool:
    """Return True if a client has declared the capability that a method needs."""
    return declared.get(_CAPABILITIES.get(method, "")) is not None
