"""Change one member of a JSON text, and leave all other bytes of it as they are.

1. The text is read once, with the position of each member. A change is a list of replaced spans:
   everything outside of them, order, comments and white space included, stays.
2. What is inserted looks like its surroundings: their indentation and line ends, or a single line.
3. Files of editors are JSON with comments, with or without trailing commas. A text that its program
   could not read is refused, with the line: a new member in it would have no effect.

RFC 8259 is JSON. JSON with comments is what VS Code reads; it has no standard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from mcp_core._nesting import MAX_NESTING
from mcp_core.host._errors import ConfigFileError

__all__ = [
    "JsonMember",
    "JsonNode",
    "JsonSyntax",
    "TextEdit",
    "apply_edits",
    "find_commas",
    "find_edits",
    "find_member",
    "parse_json",
    "read_json",
    "set_member",
]

_DEFAULT_INDENT: Final = "  "
_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
    | (?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*)*")
    | (?P<mark>[][{}:,])
    | (?P<scalar>(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)(?![\w.]))
    | (?P<comment>//[^\r\n]*|/\*(?s:.*?)\*/)
    """,
    re.VERBOSE | re.ASCII,
)
_BYTE_ORDER_MARK: Final = "\ufeff"

# What may come next in the text.
_VALUE, _ITEM_OR_END, _NAME, _NAME_OR_END, _COLON, _COMMA_OR_END, _NOTHING = (
    "a value",
    "a value or ]",
    "the name of a member in double quotes",
    "the name of a member in double quotes, or }",
    "a colon",
    "a comma or the end of the object or array",
    "the end of the file",
)


class JsonSyntax(NamedTuple):
    """The extensions of JSON that the program which owns a file can read.

    Args:
        comments: `//` and `/* */`, as VS Code reads them.
        trailing_commas: a comma after the last member or item.
        byte_order_mark: U+FEFF at the start of the file.
    """

    comments: bool = False
    trailing_commas: bool = False
    byte_order_mark: bool = False


class TextEdit(NamedTuple):
    """The replacement of `text[start:end]`. An insertion has an empty span."""

    start: int
    end: int
    replacement: str


class JsonNode:
    """A value with its span, for an object its members, and for an array its items.

    `repeated` has the second position of each name that occurs twice. `trailing_comma` is the
    position of the comma after the last member, if there is one.
    """

    __slots__ = ("end", "items", "members", "repeated", "start", "trailing_comma", "value")

    def __init__(self, start: int, value: Any) -> None:
        self.start = start
        self.end = start
        self.value = value
        self.members: dict[str, JsonMember] = {}
        self.items: list[JsonNode] = []
        self.repeated: dict[str, int] = {}
        self.trailing_comma: int | None = None


class JsonMember(NamedTuple):
    """A member of an object: the position of its name, and its value."""

    start: int
    node: JsonNode


def read_json(text: str, syntax: JsonSyntax) -> Any:
    """Return the value of a text, or None if there is nothing in it but white space and comments.

    Raises:
        ConfigFileError: the text isn't JSON of that syntax, or is nested more than 200 deep.
    """
    root = parse_json(text, syntax)
    return None if root is None else root.value


def parse_json(text: str, syntax: JsonSyntax) -> JsonNode | None:
    """Return the value of a text with all positions, or None if it has none; see `read_json`."""
    return _Reader(text, syntax).read()


def set_member(text: str, path: Sequence[str], value: Any, syntax: JsonSyntax) -> str:
    """Return `text` with one member set; see `find_edits`."""
    return apply_edits(text, find_edits(text, path, value, syntax))


def apply_edits(text: str, edits: Sequence[TextEdit]) -> str:
    """Return `text` with the edits made. They are in order and don't overlap."""
    parts = []
    position = 0
    for edit in edits:
        parts += [text[position : edit.start], edit.replacement]
        position = edit.end
    return "".join(parts) + text[position:]


def find_edits(text: str, path: Sequence[str], value: Any, syntax: JsonSyntax) -> list[TextEdit]:
    """Return the edits that set the member at `path` to `value`.

    The span of an edit is the old value, or white space between braces, or empty. Missing objects
    on the path are inserted. An equal value needs no edit.

    Args:
        text: the file. It may be empty.
        path: the names from the outermost object to the member; at least one.
        value: anything that `json.dumps` encodes.
        syntax: what the program that owns the file can read.

    Raises:
        ConfigFileError: the text isn't JSON of that syntax, a name on the path occurs twice, or a
            value on the path isn't an object.
    """
    root = parse_json(text, syntax)
    if root is None:
        return [_new_document(text, _nest(path, value))]
    node, style = root, _Style(text, root)
    for depth, name in enumerate(path):
        member = _find_in(text, node, path, depth)
        if member is None:
            return style.insert(node, name, _nest(path[depth + 1 :], value))
        node = style.enter(node, member)
    # In Python True equals 1, in JSON it doesn't.
    if json.dumps(node.value, sort_keys=True) == json.dumps(value, sort_keys=True):
        return []
    return [TextEdit(node.start, node.end, style.encode_in_place(node, value))]


def find_member(
    text: str, path: Sequence[str], syntax: JsonSyntax
) -> tuple[JsonNode, JsonMember] | None:
    """Return the member at `path` and the object that has it; None if there is no such member.

    Args:
        text: the file. It may be empty.
        path: the names from the outermost object to the member; at least one.
        syntax: what the program that owns the file can read.

    Raises:
        ConfigFileError: as `find_edits`.
    """
    parent = node = parse_json(text, syntax)
    member = None
    for depth in range(len(path)):
        if node is None:
            return None
        parent, member = node, _find_in(text, node, path, depth)
        node = None if member is None else member.node
    return None if parent is None or member is None else (parent, member)


def _find_in(text: str, node: JsonNode, path: Sequence[str], depth: int) -> JsonMember | None:
    """Return the member of `node` with the name `path[depth]`, if there is one.

    Raises:
        ConfigFileError: `node` isn't an object, or has the name twice.
    """
    name = path[depth]
    if not isinstance(node.value, dict):
        where = json.dumps(path[depth - 1]) if depth else "the file"
        raise ConfigFileError(_line_of(text, node.start), f"{where} is not an object")
    if name in node.repeated:
        raise ConfigFileError(
            _line_of(text, node.repeated[name]), f"{json.dumps(name)} is there a second time"
        )
    return node.members.get(name)


def find_commas(text: str, start: int, end: int) -> list[int]:
    """Return the positions of commas in a span that has no values, but may have comments."""
    return [match.start() for match in _TOKEN.finditer(text, start, end) if match[0] == ","]


def _nest(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _new_document(text: str, value: Any) -> TextEdit:
    """Return the insertion of a whole document at the end of an empty file, or after comments."""
    newline = _newline_of(text)
    document = json.dumps(value, ensure_ascii=False, indent=_DEFAULT_INDENT) + "\n"
    gap = "" if text in ("", _BYTE_ORDER_MARK) or text.endswith("\n") else newline
    return TextEdit(len(text), len(text), gap + document.replace("\n", newline))


class _Style:
    """How the text is laid out, at the object that `enter` has reached."""

    def __init__(self, text: str, root: JsonNode) -> None:
        self._text = text
        self._newline = _newline_of(text)
        self._indent = self._indent_at(root.start)  # of the line on which the object begins
        self._multiline = True  # each member of the object has its own line
        self._unit = _DEFAULT_INDENT
        first = next(iter(root.members.values()), None)
        if first is not None:
            self._multiline = self._starts_line(first.start)
            deeper = self._indent_at(first.start).removeprefix(self._indent)
            if self._multiline and deeper:
                self._unit = deeper

    def enter(self, parent: JsonNode, member: JsonMember) -> JsonNode:
        """Go from `parent` to the value of one of its members."""
        self._indent = self._indent_at(member.start)
        node = member.node
        first = next(iter(node.members.values()), member)
        self._multiline = self._starts_line(first.start)
        return node

    def insert(self, node: JsonNode, name: str, value: Any) -> list[TextEdit]:
        """Return the edits that append a member to an object."""
        closing = node.end - 1
        if not node.members:
            return [self._fill(node, name, value, closing)]
        last = list(node.members.values())[-1]
        comma = node.trailing_comma
        if not self._multiline:
            colon, separator = self._separators(node)
            member = json.dumps(name, ensure_ascii=False) + colon
            member += json.dumps(value, ensure_ascii=False, separators=(separator, colon))
            if comma is None:
                return [TextEdit(last.node.end, last.node.end, separator + member)]
            return [TextEdit(comma + 1, comma + 1, separator[1:] + member + ",")]
        indent = self._indent_at(last.start)
        if not self._starts_line(last.start):
            indent = self._indent + self._unit
        # After the comments behind the last member, which belong to it.
        end = len(self._text[:closing].rstrip(" \t\r\n"))
        member = self._newline + indent + self._encode_member(name, value, indent)
        if comma is not None:
            return [TextEdit(end, end, member + ",")]
        if end == last.node.end:
            return [TextEdit(end, end, "," + member)]
        return [TextEdit(last.node.end, last.node.end, ","), TextEdit(end, end, member)]

    def encode_in_place(self, node: JsonNode, value: Any) -> str:
        """Return the text of a value that replaces `node`, in the same style."""
        old = self._text[node.start : node.end]
        short = isinstance(node.value, dict | list) and bool(node.value) and "\n" not in old
        if short or not self._multiline:
            return json.dumps(value, ensure_ascii=False)
        return self._encode(value, self._indent)

    def _fill(self, node: JsonNode, name: str, value: Any, closing: int) -> TextEdit:
        """Return the edit that puts the first member into an object."""
        start = len(self._text[:closing].rstrip(" \t\r\n"))
        is_blank = start == node.start + 1  # no comment between the braces
        if not self._multiline and is_blank:
            member = json.dumps({name: value}, ensure_ascii=False)[1:-1]
            return TextEdit(start, closing, member)
        indent = self._indent + self._unit
        member = self._newline + indent + self._encode_member(name, value, indent)
        return TextEdit(start, closing, member + self._newline + self._indent)

    def _separators(self, node: JsonNode) -> tuple[str, str]:
        """Return the text after names and between members, as the object has it."""
        first = next(iter(node.members.values()))
        between = self._text[first.start : first.node.start]
        return (": ", ", ") if between[-1:].isspace() else (":", ",")

    def _encode_member(self, name: str, value: Any, indent: str) -> str:
        return f"{json.dumps(name, ensure_ascii=False)}: {self._encode(value, indent)}"

    def _encode(self, value: Any, indent: str) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=self._unit)
        return text.replace("\n", self._newline + indent)

    def _starts_line(self, position: int) -> bool:
        return not self._text[self._line_start(position) : position].strip(" \t")

    def _indent_at(self, position: int) -> str:
        """Return the indentation of a position's line."""
        line = self._text[self._line_start(position) : position].lstrip(_BYTE_ORDER_MARK)
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _line_start(self, position: int) -> int:
        return self._text.rfind("\n", 0, position) + 1


class _Reader:
    """The reader of one text. It has its own stack, so that no depth of nesting exhausts ours."""

    def __init__(self, text: str, syntax: JsonSyntax) -> None:
        self._text = text
        self._syntax = syntax
        self._open: list[JsonNode] = []
        self._names: list[tuple[str, int]] = []  # of the members whose values are being read
        self._comma: int | None = None  # the comma that was the last token
        self._root: JsonNode | None = None
        self._expected = _VALUE

    def read(self) -> JsonNode | None:
        """Return the text's value, or None if it has none.

        Raises:
            ConfigFileError: the text isn't JSON of this syntax.
        """
        for kind, start, end in self._tokens():
            self._take(kind, start, end)
            self._comma = start if self._text[start] == "," else None
        if self._open:
            raise self._error(self._open[-1].start, "this object or array has no end")
        return self._root

    def _tokens(self) -> Iterator[tuple[str, int, int]]:
        position = 0
        if self._text.startswith(_BYTE_ORDER_MARK):
            if not self._syntax.byte_order_mark:
                raise self._error(0, "a byte order mark, with which its program cannot read it")
            position = 1
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                raise self._unexpected(position)
            kind = match.lastgroup
            assert kind is not None
            if kind == "comment" and not self._syntax.comments:
                raise self._error(position, "a comment, with which its program cannot read it")
            if kind not in ("space", "comment"):
                yield kind, position, match.end()
            position = match.end()

    def _take(self, kind: str, start: int, end: int) -> None:
        word = self._text[start:end]
        if kind == "string" and self._expected in (_NAME, _NAME_OR_END):
            self._names.append((json.loads(word), start))
            self._expected = _COLON
        elif word in ("}", "]"):
            self._close(word, start, end)
        elif word == ":" and self._expected == _COLON:
            self._expected = _VALUE
        elif word == "," and self._expected == _COMMA_OR_END:
            self._expected = _NAME if isinstance(self._open[-1].value, dict) else _ITEM_OR_END
        elif kind == "mark" and word not in ("{", "["):
            raise self._unexpected(start)
        elif self._expected in (_VALUE, _ITEM_OR_END):
            self._begin_value(word, start, end)
        else:
            raise self._unexpected(start)

    def _begin_value(self, word: str, start: int, end: int) -> None:
        if word in ("{", "["):
            if len(self._open) == MAX_NESTING:
                raise self._error(start, "objects or arrays are nested too deeply")
            self._open.append(JsonNode(start, {} if word == "{" else []))
            self._expected = _NAME_OR_END if word == "{" else _ITEM_OR_END
            return
        try:
            node = JsonNode(start, json.loads(word))
        except ValueError:  # Python limits the digits of a number
            raise self._error(start, "a number of too many digits") from None
        self._end_value(node, end)

    def _close(self, word: str, start: int, end: int) -> None:
        node = self._open[-1] if self._open else None
        if node is None or (word == "}") != isinstance(node.value, dict):
            raise self._unexpected(start)
        if self._comma is not None:
            if not self._syntax.trailing_commas:
                problem = f"a comma before {word}, with which its program cannot read it"
                raise self._error(self._comma, problem)
            node.trailing_comma = self._comma
        elif self._expected not in (_NAME_OR_END, _ITEM_OR_END, _COMMA_OR_END):
            raise self._unexpected(start)
        self._open.pop()
        self._end_value(node, end)

    def _end_value(self, node: JsonNode, end: int) -> None:
        node.end = end
        if not self._open:
            self._root = node
            self._expected = _NOTHING
            return
        parent = self._open[-1]
        self._expected = _COMMA_OR_END
        if isinstance(parent.value, list):
            parent.value.append(node.value)
            parent.items.append(node)
            return
        name, start = self._names.pop()
        if name in parent.members:
            parent.repeated.setdefault(name, start)
            del parent.members[name]  # the members stay in the order of the text
        parent.members[name] = JsonMember(start, node)
        parent.value[name] = node.value

    def _unexpected(self, position: int) -> ConfigFileError:
        return self._error(position, f"expected {self._expected}")

    def _error(self, position: int, problem: str) -> ConfigFileError:
        column = position - self._text.rfind("\n", 0, position)
        return ConfigFileError(_line_of(self._text, position), problem, column=column)
