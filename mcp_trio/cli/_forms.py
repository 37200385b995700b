"""Elicitation requests of a server as dialogues with the user.

1. A dialogue is a generator. It prints lines, yields a prompt, and is sent the line that was typed,
   or None for Ctrl+D. It knows no terminal, so its tests are lists of typed lines.
2. Input is checked at once. If it is invalid, the reason is printed and the prompt repeated. An
   empty line takes the default, or leaves out an optional field. It never gives consent.
3. A form of several fields is shown once more before it is sent, and each field can be changed
   (client/elicitation).
4. Texts of the server are lines of their own, quoted or as escapes, and shortened if they are very
   long, so that they cannot imitate a prompt or push it away. A value that will be sent is never
   shortened.

Other modules decide what to do with an answer. The core has checked that the request is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from mcp_core import types as t
from mcp_core.drivers import is_secret_field, shorten_text
from mcp_core.urls import ElicitationUrl

from ._arguments import NO_MATCH, parse_value
from ._screen import QUOTE, split_lines

if TYPE_CHECKING:
    from mcp_core import FormSchema

    from ._screen import LinePart

__all__ = [
    "Dialogue",
    "DialogueSteps",
    "InvalidInput",
    "PrintLine",
    "PromptParts",
    "ask_permission",
    "ask_to_open_url",
    "fill_in",
    "parse_field",
    "valid_default",
]

T = TypeVar("T")

PromptParts: TypeAlias = "Sequence[LinePart]"
PrintLine: TypeAlias = "Callable[..., object]"  # prints a line, given as its parts
DialogueSteps: TypeAlias = Generator[PromptParts, str | None, T]
Dialogue: TypeAlias = DialogueSteps[t.ElicitResult]

_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})
_DECLINE: Final = "!"
_EMPTY_SELECTION: Final = "-"
_HOW_TO_CANCEL: Final = "Ctrl+D cancels"
# Limits on a server's texts in a dialogue, so that the question stays on the screen.
_MAX_TEXT: Final = 4_000  # characters
_MAX_LINES: Final = 40
_MAX_TITLE: Final = 200  # characters
_MAX_CHOICES: Final = 100  # choices that are listed; others can be typed
_HELP: Final = (
    "An empty line takes the value in brackets, or leaves out an optional field;"
    f" {_DECLINE} declines, {_HOW_TO_CANCEL}."
)
_SENSITIVE_WARNING: Final = (
    "  A server must not ask for passwords, keys or tokens in a form: what you type is visible here"
    " and to the server."
)
_NAME_STYLE: Final = "bold"
_HINT_STYLE: Final = "dim"
_WARNING_STYLE: Final = "yellow"


class _FormDeclined(Exception):
    """The user declined or cancelled; `result` says which."""

    def __init__(self, result: t.ElicitResult) -> None:
        super().__init__(result.action)
        self.result = result


class InvalidInput(Exception):
    """Input that isn't a valid value; the text says why."""


def parse_field(form: FormSchema, name: str, text: str) -> t.ElicitValue:
    """Convert `text` to a value of the field `name`.

    Raises:
        InvalidInput: the text isn't a value of the field's type, or not an allowed one.
    """
    kind = _kind_of(form.properties[name])
    value = kind.read(text)
    problem = form.find_error(name, value)
    if problem:
        raise InvalidInput(f"{kind.show(value)} {problem}")
    return value


def valid_default(form: FormSchema, name: str) -> t.ElicitValue | None:
    """Return a field's default, or None if it has none or an invalid one."""
    default: t.ElicitValue | None = form.properties[name].default
    return None if default is None or form.find_error(name, default) else default


def fill_in(source: str, message: str, form: FormSchema, print_line: PrintLine) -> Dialogue:
    """Ask for the fields of a form, one by one.

    Args:
        source: the server, as it is named to the user.
        message: why the server asks.
        form: the requested fields.
        print_line: prints a line.
    """
    _print_request(source, message, print_line)
    form_input = _FormInput(form, print_line)
    try:
        if form.properties:
            yield from form_input.ask_all()
        else:
            yield from _ask_consent(("Do you agree?",), print_line)
    except _FormDeclined as refused:
        return refused.result
    return t.ElicitResult(action="accept", content=form_input.content)


def ask_to_open_url(source: str, message: str, url: str, print_line: PrintLine) -> Dialogue:
    """Ask the user to open a page.

    The command doesn't open it: it cannot know which browser would start, perhaps in this very
    terminal. The user sees the whole address and opens it in a browser that they trust.

    Args:
        source: the server, as it is named to the user.
        message: why the server asks.
        url: the page's address.
        print_line: prints a line.
    """
    _print_request(source, message, print_line)
    parsed = ElicitationUrl.parse(url)  # the core has refused what cannot be read
    scheme, _, rest = url.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    print_line("  ", f"{scheme}://", (host, _NAME_STYLE), rest[len(host) :])
    for warning in parsed.warnings:
        print_line((f"  {warning}", _WARNING_STYLE))
    print_line(
        (
            f"This command does not open the page. If you trust {parsed.host}, open it yourself.",
            _HINT_STYLE,
        )
    )
    try:
        # Names the host: log messages of the server may have moved the address off the screen.
        yield from _ask_consent((f"Will you open the page at {parsed.host}?",), print_line)
    except _FormDeclined as refused:
        return refused.result
    return t.ElicitResult(action="accept")


def _print_request(source: str, message: str, print_line: PrintLine) -> None:
    print_line()
    print_line((f"{source} asks:", _NAME_STYLE))
    _print_quoted(message, "  ", print_line)


def _print_quoted(text: str, indent: str, print_line: PrintLine) -> None:
    """Print a server's text, each line marked as its own, and at most `_MAX_LINES`."""
    lines = split_lines(shorten_text(text, _MAX_TEXT))
    for line in lines[:_MAX_LINES]:
        print_line(indent + QUOTE, line)
    if len(lines) > _MAX_LINES:
        print_line(f"{indent}({len(lines) - _MAX_LINES} more lines)")


def _title(form: FormSchema, name: str) -> str:
    return shorten_text(form.properties[name].title or name, _MAX_TITLE)


def ask_permission(question: PromptParts, print_line: PrintLine) -> Dialogue:
    """Ask the user to permit what this command is about to do."""
    try:
        yield from _ask_consent(question, print_line)
    except _FormDeclined as refused:
        return refused.result
    return t.ElicitResult(action="accept")


def _ask_consent(question: PromptParts, print_line: PrintLine) -> DialogueSteps[None]:
    """Ask until the user types yes.

    Raises:
        _FormDeclined: the user declines or cancels.
    """
    while True:
        word = (
            (yield from _read_line((*question, f" yes, or no to decline ({_HOW_TO_CANCEL}): ")))
            .strip()
            .lower()
        )
        if word in _NO:
            raise _FormDeclined(t.ElicitResult(action="decline"))
        if word in _YES:
            return
        print_line(("  Write yes or no", _WARNING_STYLE))


def _read_line(prompt: PromptParts) -> DialogueSteps[str]:
    """Return the typed line.

    Raises:
        _FormDeclined: the user declines or cancels.
    """
    text = yield prompt
    if text is None:
        raise _FormDeclined(t.ElicitResult(action="cancel"))
    if text.strip() == _DECLINE:
        raise _FormDeclined(t.ElicitResult(action="decline"))
    return text


class _FormInput:
    """The input of a form; `content` has the values so far."""

    def __init__(self, form: FormSchema, print_line: PrintLine) -> None:
        self._form = form
        self._print_line = print_line
        self._required = frozenset(form.required or ())
        self.content: dict[str, t.ElicitValue] = {}

    def ask_all(self) -> DialogueSteps[None]:
        """Ask for each field, then show all values and let the user change them.

        Raises:
            _FormDeclined: the user declines or cancels.
        """
        self._print_line((_HELP, _HINT_STYLE))
        fields = list(self._form.properties)
        for name in fields:
            yield from self._ask_field(name)
        while len(fields) > 1:  # a single value is still on the screen
            index = yield from self._review(fields)
            if index is None:
                return
            yield from self._ask_field(fields[index])

    def _ask_field(self, name: str) -> DialogueSteps[None]:
        """Ask for one field until its value is valid."""
        field = self._form.properties[name]
        print_line = self._print_line
        kind = _kind_of(field)
        default = valid_default(self._form, name)
        description = (field.description or "").strip()
        short = len(description) <= _MAX_TITLE and "\n" not in description
        print_line(
            (_title(self._form, name), _NAME_STYLE),
            f": {description}" if description and short else "",
        )
        if not short:
            _print_quoted(description, "    ", print_line)
        if any(is_secret_field(text or "") for text in (name, field.title, field.description)):
            print_line((_SENSITIVE_WARNING, _WARNING_STYLE))
        for line in kind.help_lines[:_MAX_CHOICES]:
            print_line("    ", line)
        if len(kind.help_lines) > _MAX_CHOICES:
            print_line(f"    ({len(kind.help_lines) - _MAX_CHOICES} more)")
        bracket = f" [{kind.show(default)}]" if default is not None else ""
        optional = name not in self._required
        prompt = f"  {kind.prompt}{', optional' if optional and not bracket else ''}{bracket}: "
        while True:
            text = yield from _read_line((prompt,))
            try:
                if text.strip():
                    self.content[name] = parse_field(self._form, name, text)
                elif default is not None:
                    self.content[name] = default
                elif optional:
                    self.content.pop(name, None)
                else:
                    raise InvalidInput("This field is required")
            except InvalidInput as misfit:
                print_line((f"  {misfit}", _WARNING_STYLE))
            else:
                return

    def _review(self, fields: list[str]) -> DialogueSteps[int | None]:
        """Show all values. Return the index of the field to change, None to send the form."""
        print_line = self._print_line
        print_line("This will be sent:")
        for number, name in enumerate(fields, 1):
            field, value = self._form.properties[name], self.content.get(name)
            shown = ("left out", _HINT_STYLE) if value is None else _kind_of(field).show(value)
            print_line(
                f"  {number:>{len(str(len(fields)))}}  ",
                (_title(self._form, name), _NAME_STYLE),
                ": ",
                shown,
            )
        while True:
            text = yield from _read_line(("Send it? yes, or the number of a line to change it: ",))
            if text.strip().lower() in _YES:
                return None
            index = _parse_line_number(text.strip(), len(fields))
            if index is not None:
                return index
            print_line(
                (
                    f"  Write yes, {_DECLINE} to decline, or a number from 1 to {len(fields)}",
                    _WARNING_STYLE,
                )
            )


# -- Kinds of fields ---------------------------------------------------------------------------


class _FieldKind(NamedTuple):
    """How a field of one type is read and shown.

    `prompt` says what to type, and `help_lines` explain it. `read` converts typed text to a value,
    or raises `InvalidInput`; `show` converts a value to text.
    """

    prompt: str
    read: Callable[[str], t.ElicitValue]
    show: Callable[[Any], str]
    help_lines: Sequence[str] = ()


def _kind_of(field: t.PrimitiveSchema) -> _FieldKind:
    if isinstance(field, t.BooleanSchema):
        return _FieldKind("yes or no", _parse_bool, lambda value: "yes" if value else "no")
    if isinstance(field, t.MultiSelectSchema):
        return _multi_select_kind(field)
    if isinstance(field, t.StringSchema):
        if field.one_of is not None or field.enum is not None:
            return _select_kind(_Choices(field.enum, field.enum_names, field.one_of))
        return _text_kind(field)
    return _number_kind(field)


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _YES | _NO:
        raise InvalidInput(f"{text.strip()} is neither yes nor no")
    return word in _YES


def _number_kind(field: t.NumberSchema | t.IntegerSchema) -> _FieldKind:
    whole = isinstance(field, t.IntegerSchema)
    allowed = frozenset({"integer"} if whole else {"integer", "number"})

    def read(text: str) -> t.ElicitValue:
        value = parse_value(text, allowed)
        if value is NO_MATCH:
            raise InvalidInput(
                f"{text.strip()} is not"
                f" {'an integer, such as 3' if whole else 'a number, such as 1.5'}"
            )
        found: int | float = value
        return found

    return _FieldKind(field.type + _format_range(field.minimum, field.maximum), read, json.dumps)


def _text_kind(field: t.StringSchema) -> _FieldKind:
    range_text = _format_range(field.min_length, field.max_length, " characters")
    if field.format is None:
        return _FieldKind(f"text{range_text}", _identity, _identity)
    description, fits = _FORMATS[field.format]

    def read(text: str) -> str:
        if not fits(text.strip()):
            raise InvalidInput(f"{text.strip()} is not {description}")
        return text.strip()

    return _FieldKind(f"{description}{range_text}", read, _identity)


def _identity(text: str) -> str:
    return text


def _format_range(minimum: float | None, maximum: float | None, unit: str = "") -> str:
    if minimum is None and maximum is None:
        return ""
    if maximum is None:
        return f", {minimum} or more{unit}"
    return f", {maximum} or less{unit}" if minimum is None else f", {minimum} to {maximum}{unit}"


class _Choices:
    """Values to choose from, with their titles."""

    def __init__(
        self, values: list[str] | None, titles: list[str] | None, options: list[t.EnumOption] | None
    ) -> None:
        if options is not None:
            self._titles = {option.const: option.title for option in options}
        else:
            named = titles if titles is not None and len(titles) == len(values or ()) else values
            self._titles = dict(zip(values or (), named or (), strict=True))
        # If a choice is a number, the choices get no line numbers: typed digits would be ambiguous.
        self.numbered = not any(value.strip().isdecimal() for value in self._titles)
        self.input_names = (
            ("number or name", "numbers or names") if self.numbered else ("name", "names")
        )

    def lines(self) -> list[str]:
        width = len(str(len(self._titles)))
        return [
            (f"{number:>{width}}  " if self.numbered else "")
            + value
            + (f": {shorten_text(title, _MAX_TITLE)}" if title != value else "")
            for number, (value, title) in enumerate(self._titles.items(), 1)
        ]

    def read(self, text: str) -> str:
        word = text.strip()
        values = list(self._titles)
        if word in self._titles:
            return word
        index = _parse_line_number(word, len(values)) if self.numbered else None
        if index is not None:
            return values[index]
        matches = [
            value
            for value, title in self._titles.items()
            if word.casefold() in {value.casefold().strip(), title.casefold().strip()}
        ]
        if len(matches) != 1:
            raise InvalidInput(f"{word} is not one of the choices")
        return matches[0]


def _parse_line_number(word: str, count: int) -> int | None:
    """Return the index of the line whose number, from 1 to `count`, was typed; otherwise None."""
    number = int(word) if word.isdecimal() and len(word) < 10 else 0
    return number - 1 if 1 <= number <= count else None


def _select_kind(choices: _Choices) -> _FieldKind:
    return _FieldKind(choices.input_names[0], choices.read, _identity, choices.lines())


def _multi_select_kind(field: t.MultiSelectSchema) -> _FieldKind:
    choices = _Choices(field.items.enum, None, field.items.any_of)
    range_text = _format_range(field.min_items, field.max_items, " of them")

    def read(text: str) -> list[str]:
        if text.strip() == _EMPTY_SELECTION:
            return []
        return list(dict.fromkeys(choices.read(part) for part in text.split(",") if part.strip()))

    return _FieldKind(
        f"{choices.input_names[1]}, with commas between"
        f" them{range_text}{'' if field.min_items else f'; {_EMPTY_SELECTION} for none'}",
        read,
        lambda value: ", ".join(value) or "none",
        choices.lines(),
    )


# -- Formats -----------------------------------------------------------------------------------


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _parses(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and _parses(datetime.fromisoformat, text.upper())


def _parses(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_MAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

# For each `format` of JSON Schema: the prompt, and a check of a text.
_FORMATS: Final[Mapping[str, tuple[str, Callable[[str], bool]]]] = {
    "email": ("an e-mail address", lambda text: _MAIL.fullmatch(text) is not None),
    "uri": ("a URI with its scheme", lambda text: _URI.fullmatch(text) is not None),
    "date": ("a date like 2026-07-28", _is_date),
    "date-time": ("a time with its zone, like 2026-07-28T09:30:00Z", _is_time),
}
