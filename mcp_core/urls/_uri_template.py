"""URI templates of RFC 6570, level 4: parsing, and expansion with values.

The operators are rows of a table, as in the RFC's appendix A. The inverse of expansion, which the
RFC doesn't define, is `UriMatcher`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from mcp_core._errors import McpTrioError
from mcp_core._patterns import compile_on_first_use

__all__ = [
    "BROKEN_TRIPLET",
    "OPERATORS",
    "RESERVED",
    "Expression",
    "InvalidUriTemplate",
    "Operator",
    "UriTemplate",
    "Variable",
]

_UNRESERVED = "-._~"  # besides letters and digits, which `quote` never encodes
RESERVED = ":/?#[]@!$&'()*+,;="

# All patterns are constant and take linear time.
_VARSPEC = compile_on_first_use(
    r"((?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*)(\*|:[1-9][0-9]{0,3})?"
)
_TRIPLET = compile_on_first_use(r"(%[0-9A-Fa-f]{2})")
BROKEN_TRIPLET = compile_on_first_use(r"%(?![0-9A-Fa-f]{2})")
# `'` is allowed by erratum 6937.
_FORBIDDEN_LITERAL = compile_on_first_use(r"[\x00-\x20\x7f-\x9f\"<>\\^`|]")


class InvalidUriTemplate(McpTrioError, ValueError):
    """A text that isn't a URI template, or a template that cannot be matched."""


class Operator(Struct, frozen=True):
    """A row of the table in RFC 6570, appendix A."""

    first: str
    separator: str
    named: bool
    if_empty: str
    reserved: bool  # reserved characters and percent-encoded triplets pass unchanged


OPERATORS: Final[Mapping[str, Operator]] = {
    "": Operator("", ",", False, "", False),
    "+": Operator("", ",", False, "", True),
    "#": Operator("#", ",", False, "", True),
    ".": Operator(".", ".", False, "", False),
    "/": Operator("/", "/", False, "", False),
    ";": Operator(";", ";", True, "", False),
    "?": Operator("?", "&", True, "=", False),
    "&": Operator("&", "&", True, "=", False),
}


class Variable(Struct, frozen=True):
    """One variable of an expression; `prefix` is the n of `{x:n}`, 0 without."""

    name: str
    explode: bool = False
    prefix: int = 0


class Expression(Struct, frozen=True):
    """An expression: the part of a template between two braces. `text` includes the braces."""

    operator: str
    variables: tuple[Variable, ...]
    text: str


class UriTemplate:
    """A parsed template of RFC 6570, all four levels.

    `UriTemplate("weather://{city}{?days}").expand({"city": "Oslo"})` is `"weather://Oslo"`.

    Args:
        text: the template.

    Attributes:
        parts: literal texts and expressions, in order.
        variables: the variables' names, each once, in order.

    Raises:
        InvalidUriTemplate: RFC 6570 doesn't allow the text.
    """

    __slots__ = ("parts", "text", "variables")

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: tuple[str | Expression, ...] = tuple(_parse(text))
        self.variables: tuple[str, ...] = tuple(
            dict.fromkeys(
                v.name
                for part in self.parts
                if isinstance(part, Expression)
                for v in part.variables
            )
        )

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"

    def expand(self, values: Mapping[str, Any]) -> str:
        """Return the URI for `values`: strings, numbers, or sequences or mappings of these.

        None, a missing name, an empty sequence and an empty mapping are undefined (RFC 6570,
        section 2.3).

        Raises:
            ValueError: the value for `{x:3}` is a sequence or a mapping.
        """
        return "".join(
            part if isinstance(part, str) else _expand(part, values) for part in self.parts
        )


# --- Parsing --------------------------------------------------------------------------------------


def _parse(text: str) -> list[str | Expression]:
    parts: list[str | Expression] = []
    position = 0
    while position < len(text):
        start = text.find("{", position)
        literal = text[position:] if start < 0 else text[position:start]
        if literal:
            parts.append(_parse_literal(literal, text))
        if start < 0:
            break
        end = text.find("}", start)
        if end < 0:
            raise InvalidUriTemplate(f"URI template {text!r}: the '{{' at {start} is never closed")
        parts.append(_parse_expression(text[start + 1 : end], text))
        position = end + 1
    return parts


def _parse_literal(literal: str, text: str) -> str:
    if "}" in literal:
        raise InvalidUriTemplate(f"URI template {text!r}: a '}}' without its '{{'")
    if _FORBIDDEN_LITERAL.search(literal) or BROKEN_TRIPLET.search(literal):
        raise InvalidUriTemplate(
            f"URI template {text!r}: {literal!r} holds characters that no URI may hold: "
            "percent-encode or remove them"
        )
    return _encode(literal, reserved=True)


def _parse_expression(body: str, text: str) -> Expression:
    operator = body[:1] if body[:1] in OPERATORS else ""
    variables = []
    for spec in body[len(operator) :].split(","):
        found = _VARSPEC.fullmatch(spec)
        if found is None:
            raise InvalidUriTemplate(
                f"URI template {text!r}: {spec!r} in {{{body}}} is no variable"
            )
        name, modifier = found.groups()
        explode = modifier == "*"
        variables.append(
            Variable(name, explode, int(modifier[1:]) if modifier and not explode else 0)
        )
    return Expression(operator, tuple(variables), f"{{{body}}}")


# --- Expanding ------------------------------------------------------------------------------------


def _encode(text: str, *, reserved: bool) -> str:
    if not reserved:
        return quote(text, safe=_UNRESERVED)
    # Percent-encoded triplets stay. Any other `%` is encoded.
    pieces = _TRIPLET.split(text)
    return "".join(
        p if i % 2 else quote(p, safe=_UNRESERVED + RESERVED) for i, p in enumerate(pieces)
    )


def _text(value: object) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    return str(value)


def _expand(expression: Expression, values: Mapping[str, Any]) -> str:
    operator = OPERATORS[expression.operator]
    pieces = []
    for variable in expression.variables:
        value = values.get(variable.name)
        if value is None:
            continue
        if isinstance(value, str) or not isinstance(value, Mapping | Sequence):
            pieces.append(_expand_string(variable, _text(value), operator))
        elif variable.prefix:
            raise ValueError(
                f"{expression.text}: a prefix cannot be taken of a list or mapping, "
                f"as {variable.name!r} is"
            )
        elif value:
            pieces.append(_expand_composite(variable, value, operator))
    return operator.first + operator.separator.join(pieces) if pieces else ""


def _add_name(name: str, value: str, operator: Operator) -> str:
    if not operator.named:
        return value
    return f"{name}={value}" if value else name + operator.if_empty


def _expand_string(variable: Variable, value: str, operator: Operator) -> str:
    cut = value[: variable.prefix] if variable.prefix else value
    return _add_name(variable.name, _encode(cut, reserved=operator.reserved), operator)


def _expand_composite(
    variable: Variable, value: Mapping[str, Any] | Sequence[Any], operator: Operator
) -> str:
    def encode(item: object) -> str:
        return _encode(_text(item), reserved=operator.reserved)

    if isinstance(value, Mapping):
        pairs = [(encode(k), encode(v)) for k, v in value.items() if v is not None]
        if variable.explode:
            return operator.separator.join(
                f"{k}={v}" if v or not operator.named else k + operator.if_empty for k, v in pairs
            )
        return _add_name(variable.name, ",".join(f"{k},{v}" for k, v in pairs), operator)
    items = [encode(item) for item in value if item is not None]
    if variable.explode:
        return operator.separator.join(_add_name(variable.name, item, operator) for item in items)
    return _add_name(variable.name, ",".join(items), operator)
