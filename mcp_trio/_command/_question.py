"""A question of the server's as a dialogue: what is shown, what is typed, and the answer that it comes to.

Rules of this file:

1. A dialogue is a generator. It says lines, yields a prompt, and is sent what was typed behind it, or None for Ctrl+D. So it
   knows no terminal, and a test of it is a list of what is typed.
2. What is typed is checked at once and asked for again, with the reason. An empty line takes what is in brackets, or leaves
   out what need not be there. Where there is no field it agrees to nothing.
3. A form of several fields is shown once more, and any of them can be changed, before it goes out (client/elicitation).
4. No page is opened from here. Its user sees the address, all of it, and opens it where he trusts to; what a browser found by
   itself would do, on this machine or in this very terminal, nobody could say beforehand.

It refuses to know what the answer is good for, and trusts that the question may be asked: the core has looked at that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from mcp_core import types as t

from ._arguments import MISFIT, value_of

if TYPE_CHECKING:
    from mcp_core import FormSchema

    from ._screen import Part

__all__ = ["Dialogue", "Misfit", "Prompt", "Say", "default_in", "fill_in", "value_in", "visit"]

T = TypeVar("T")

Prompt: TypeAlias = "Sequence[Part]"
Say: TypeAlias = "Callable[..., object]"  # of the parts of a line
Steps: TypeAlias = Generator[Prompt, str | None, T]
Dialogue: TypeAlias = Steps[t.ElicitResult]

_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})
_DECLINE: Final = "!"
_NONE: Final = "-"
_HOW_TO_CANCEL: Final = "Ctrl+D cancels"
_HELP: Final = (
    "An empty line takes what is in brackets, or leaves out what is optional;"
    f" {_DECLINE} declines, {_HOW_TO_CANCEL}."
)
_NAME: Final = "bold"
_ASIDE: Final = "dim"
_WARNING: Final = "yellow"


class _Refused(Exception):
    """The user does not agree, or turns away."""

    def __init__(self, result: t.ElicitResult) -> None:
        super().__init__(result.action)
        self.result = result


class Misfit(Exception):
    """What was typed cannot stand there; the text says why."""


def value_in(form: FormSchema, name: str, text: str) -> t.ElicitValue:
    """The value that `text` stands for in the field `name`.

    Raises:
        Misfit: it stands for none, or for one that cannot stand there.
    """
    kind = _kind_of(form.properties[name])
    value = kind.read(text)
    problem = form.misfit(name, value)
    if problem:
        raise Misfit(f"{kind.show(value)} {problem}")
    return value


def default_in(form: FormSchema, name: str) -> t.ElicitValue | None:
    """The default of a field, if there is one that can stand there."""
    default: t.ElicitValue | None = form.properties[name].default
    return None if default is None or form.misfit(name, default) else default


def fill_in(who: str, message: str, form: FormSchema, say: Say) -> Dialogue:
    """Ask for a form, field by field. `who` asks, and `message` is what for."""
    _head(who, message, say)
    filled = _Filled(form, say)
    try:
        if form.properties:
            yield from filled.ask_all()
        else:
            yield from _consent(("Do you agree?",), say)
    except _Refused as refused:
        return refused.result
    return t.ElicitResult(action="accept", content=filled.content)


def visit(who: str, message: str, url: str, say: Say) -> Dialogue:
    """Ask whether the user goes to a page."""
    _head(who, message, say)
    scheme, _, rest = url.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    say("  ", f"{scheme}://", (host, _NAME), rest[len(host) :])
    if "xn--" in host.lower():
        say(("  The name of this host is in Punycode: it may be made to look like another one.", _WARNING))
    if scheme.lower() != "https":
        say(("  What you enter there is not encrypted on its way.", _WARNING))
    say((f"It is not opened from here. If you trust {host}, open it yourself.", _ASIDE))
    try:
        yield from _consent(("Do you go there?",), say)
    except _Refused as refused:
        return refused.result
    return t.ElicitResult(action="accept")


def _head(who: str, message: str, say: Say) -> None:
    say()
    say((f"{who} asks:", _NAME))
    say("  ", message)


def _consent(question: Prompt, say: Say) -> Steps[None]:
    while True:
        word = (
            (yield from _typed((*question, f" yes, or no to decline ({_HOW_TO_CANCEL}): "))).strip().lower()
        )
        if word in _NO:
            raise _Refused(t.ElicitResult(action="decline"))
        if word in _YES:
            return
        say(("  Write yes or no", _WARNING))


def _typed(prompt: Prompt) -> Steps[str]:
    text = yield prompt
    if text is None:
        raise _Refused(t.ElicitResult(action="cancel"))
    if text.strip() == _DECLINE:
        raise _Refused(t.ElicitResult(action="decline"))
    return text


class _Filled:
    """A form being filled in; `content` is what there is so far."""

    def __init__(self, form: FormSchema, say: Say) -> None:
        self._form = form
        self._say = say
        self._required = frozenset(form.required or ())
        self.content: dict[str, t.ElicitValue] = {}

    def ask_all(self) -> Steps[None]:
        """Ask for each field, then show it all and let the user change it.

        Raises:
            _Refused: the user does not fill it in.
        """
        self._say((_HELP, _ASIDE))
        fields = list(self._form.properties)
        for name in fields:
            yield from self._ask(name)
        while len(fields) > 1:  # a single one was to be seen in its line
            place = yield from self._review(fields)
            if place is None:
                return
            yield from self._ask(fields[place])

    def _ask(self, name: str) -> Steps[None]:
        """Ask for one field until it is right."""
        field, say = self._form.properties[name], self._say
        kind = _kind_of(field)
        default = default_in(self._form, name)
        say((field.title or name, _NAME), f": {field.description}" if field.description else "")
        for line in kind.lines:
            say("    ", line)
        bracket = f" [{kind.show(default)}]" if default is not None else ""
        optional = name not in self._required
        prompt = f"  {kind.what}{', optional' if optional and not bracket else ''}{bracket}: "
        while True:
            text = yield from _typed((prompt,))
            try:
                if text.strip():
                    self.content[name] = value_in(self._form, name, text)
                elif default is not None:
                    self.content[name] = default
                elif optional:
                    self.content.pop(name, None)
                else:
                    raise Misfit("This cannot be left out")
            except Misfit as misfit:
                say((f"  {misfit}", _WARNING))
            else:
                return

    def _review(self, fields: list[str]) -> Steps[int | None]:
        """The field to change, None if it is good as it is."""
        say = self._say
        say("This is what goes out:")
        for number, name in enumerate(fields, 1):
            field, value = self._form.properties[name], self.content.get(name)
            shown = ("left out", _ASIDE) if value is None else _kind_of(field).show(value)
            say(f"  {number:>{len(str(len(fields)))}}  ", (field.title or name, _NAME), ": ", shown)
        while True:
            text = yield from _typed(("Send it? yes, or the number of a line to change it: ",))
            if text.strip().lower() in _YES:
                return None
            place = _place(text.strip(), len(fields))
            if place is not None:
                return place
            say((f"  Write yes, {_DECLINE} to decline, or a number from 1 to {len(fields)}", _WARNING))


# -- Kinds of fields ---------------------------------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """A kind of field, for people.

    `what` is to be typed, `lines` explain it. `read` makes a value of what was typed, or raises `Misfit`; `show` is the way back.
    """

    what: str
    read: Callable[[str], t.ElicitValue]
    show: Callable[[Any], str]
    lines: Sequence[str] = ()


def _kind_of(field: t.PrimitiveSchema) -> _Kind:
    if isinstance(field, t.BooleanSchema):
        return _Kind("yes or no", _truth, lambda value: "yes" if value else "no")
    if isinstance(field, t.MultiSelectSchema):
        return _several(field)
    if isinstance(field, t.StringSchema):
        if field.one_of is not None or field.enum is not None:
            return _one(_Choices(field.enum, field.enum_names, field.one_of))
        return _text(field)
    return _number(field)


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in _YES | _NO:
        raise Misfit(f"{text.strip()} is neither yes nor no")
    return word in _YES


def _number(field: t.NumberSchema | t.IntegerSchema) -> _Kind:
    whole = isinstance(field, t.IntegerSchema)
    allowed = frozenset({"integer"} if whole else {"integer", "number"})

    def read(text: str) -> t.ElicitValue:
        value = value_of(text, allowed)
        if value is MISFIT:
            raise Misfit(f"{text.strip()} is no {field.type}; one is {'3' if whole else '1.5'}")
        found: int | float = value
        return found

    return _Kind(field.type + _within(field.minimum, field.maximum), read, json.dumps)


def _text(field: t.StringSchema) -> _Kind:
    room = _within(field.min_length, field.max_length, " characters")
    if field.format is None:
        return _Kind(f"text{room}", _itself, _itself)
    what, fits = _FORMATS[field.format]

    def read(text: str) -> str:
        if not fits(text.strip()):
            raise Misfit(f"{text.strip()} is not {what}")
        return text.strip()

    return _Kind(f"{what}{room}", read, _itself)


def _itself(text: str) -> str:
    return text


def _within(least: float | None, most: float | None, of: str = "") -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f", {least} or more{of}"
    return f", {most} or less{of}" if least is None else f", {least} to {most}{of}"


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
        # A choice that is a number itself must not be taken for another one's place.
        self.numbered = not any(value.strip().isdecimal() for value in self._titles)
        self.way = ("number or name", "numbers or names") if self.numbered else ("name", "names")

    def lines(self) -> list[str]:
        width = len(str(len(self._titles)))
        return [
            (f"{place:>{width}}  " if self.numbered else "")
            + value
            + (f": {title}" if title != value else "")
            for place, (value, title) in enumerate(self._titles.items(), 1)
        ]

    def read(self, text: str) -> str:
        word = text.strip()
        values = list(self._titles)
        if word in self._titles:
            return word
        place = _place(word, len(values)) if self.numbered else None
        if place is not None:
            return values[place]
        meant = [
            value
            for value, title in self._titles.items()
            if word.casefold() in {value.casefold().strip(), title.casefold().strip()}
        ]
        if len(meant) != 1:
            raise Misfit(f"{word} is none of the choices")
        return meant[0]


def _place(word: str, count: int) -> int | None:
    """The index of the line whose number, from 1 to `count`, was typed; None if it was none of these."""
    number = int(word) if word.isdecimal() and len(word) < 10 else 0
    return number - 1 if 1 <= number <= count else None


def _one(choices: _Choices) -> _Kind:
    return _Kind(choices.way[0], choices.read, _itself, choices.lines())


def _several(field: t.MultiSelectSchema) -> _Kind:
    choices = _Choices(field.items.enum, None, field.items.any_of)
    room = _within(field.min_items, field.max_items, " of them")

    def read(text: str) -> list[str]:
        if text.strip() == _NONE:
            return []
        return list(dict.fromkeys(choices.read(part) for part in text.split(",") if part.strip()))

    return _Kind(
        f"{choices.way[1]}, with commas between them{room}{'' if field.min_items else f'; {_NONE} for none'}",
        read,
        lambda value: ", ".join(value) or "none",
        choices.lines(),
    )


# -- Formats -------------------------------------------------------------------------------------------------------------------


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _read_by(date.fromisoformat, text)


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and _read_by(datetime.fromisoformat, text.upper())


def _read_by(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_MAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")

# What JSON Schema calls them: how to ask for one, and whether a text is one.
_FORMATS: Final[Mapping[str, tuple[str, Callable[[str], bool]]]] = {
    "email": ("an e-mail address", lambda text: _MAIL.fullmatch(text) is not None),
    "uri": ("a URI with its scheme", lambda text: _URI.fullmatch(text) is not None),
    "date": ("a date like 2026-07-28", _is_date),
    "date-time": ("a time with its zone, like 2026-07-28T09:30:00Z", _is_time),
}
