"""Read a configuration file in YAML, as goose has one, into the nodes that JSON has.

1. A value is what YAML 1.2 makes of it (YAML 1.2.2, 10.3 "Core Schema"). PyYAML's own loaders read
   YAML 1.1, where `no` is false, and the ports `22:80` are a number.
2. PyYAML gives events. What they make is bounded here: its depth, and its size with each alias
   written out.
3. Tags, merge keys (`<<`), several documents and keys that aren't texts are refused: programs read
   them differently, or not at all.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from mcp_core._nesting import MAX_NESTING
from mcp_core.host._errors import ConfigFileError
from mcp_core.host.edit._json_edit import JsonMember, JsonNode

__all__ = ["MAX_YAML_SIZE", "parse_yaml"]

# Bytes. goose's own files have some KiB. PyYAML reads 256 KiB in half a second with libyaml, and in
# ten without.
MAX_YAML_SIZE: Final = 256 * 1024
_MAX_WRITTEN_OUT: Final = 4 * 1024 * 1024  # characters, with a few for each value

_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+"
)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TEXT_TAGS: Final = (None, "!", "tag:yaml.org,2002:str")
_MERGE_KEY: Final = "<<"
_BYTE_ORDER_MARK: Final = "\ufeff"


class _Number(float):
    """A number whose text isn't what Python writes for it, such as `1.10` and `0755`."""

    text: str

    def __repr__(self) -> str:  # what stands for a number in arguments and variables
        return self.text


class _Open:
    """A mapping or sequence that has not ended."""

    __slots__ = ("anchor", "name", "node", "size")

    def __init__(self, node: JsonNode, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.name: tuple[str, int] | None = None  # of the member whose value comes next
        self.size = 1


def parse_yaml(text: str) -> JsonNode | None:
    """Return the value of a text with all positions, or None if it has none.

    Raises:
        ConfigFileError: the text isn't YAML, or has what isn't read here.
        ImportError: PyYAML isn't installed.
    """
    import yaml

    # libyaml doesn't count the mark.
    shift = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    reader = _YamlReader(text, shift)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text[shift:], Loader=loader):
            reader.take(type(event).__name__.removesuffix("Event"), event)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        position = getattr(exc, "position", 0) if mark is None else mark.index
        problem = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "unreadable"
        raise reader.error(int(position) + shift, f"not YAML: {problem}") from None
    except UnicodeEncodeError as exc:
        raise reader.error(exc.start + shift, "not YAML: half of a surrogate pair") from None
    return reader.root


class _YamlReader:
    def __init__(self, text: str, shift: int) -> None:
        self.root: JsonNode | None = None
        self._text = text
        self._shift = shift
        self._open: list[_Open] = []
        # By name: the node of each anchor, and how large it is. None while it has not ended.
        self._anchors: dict[str, tuple[JsonNode, int] | None] = {}
        self._documents = 0

    def take(self, kind: str, event: Any) -> None:
        """Take an event of this kind, such as "Scalar" and "MappingStart"."""
        start = event.start_mark.index + self._shift
        if kind == "DocumentStart":
            self._documents += 1
            if self._documents > 1:
                raise self.error(start, "a second document: one file has one")
        elif kind == "Scalar":
            self._take_scalar(event, start)
        elif kind == "Alias":
            self._take_alias(event.anchor, start)
        elif kind in ("MappingStart", "SequenceStart"):
            self._begin(event, start, {} if kind == "MappingStart" else [])
        elif kind in ("MappingEnd", "SequenceEnd"):
            ended = self._open.pop()
            self._end(ended.node, ended.size, ended.anchor)

    def error(self, position: int, problem: str) -> ConfigFileError:
        before = self._text[:position]
        column = position - before.rfind("\n") - (self._shift if "\n" not in before else 0)
        return ConfigFileError(before.count("\n") + 1, problem, column=column)

    def _take_scalar(self, event: Any, start: int) -> None:
        is_plain = event.implicit[0] and event.tag is None
        if event.tag not in _TEXT_TAGS:
            raise self.error(start, f"a tag, {event.tag[:60]}, which isn't read here: remove it")
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.node.value, dict) and parent.name is None:
            if event.value == _MERGE_KEY and is_plain:
                raise self.error(
                    start, "a merge key, <<, which isn't read here: write its members out"
                )
            if event.anchor:
                self._anchors[event.anchor] = JsonNode(start, event.value), len(event.value)
            self._name(parent, event.value, start)
            return
        value = _plain_value(event.value) if is_plain else event.value
        self._end(JsonNode(start, value), len(event.value), event.anchor)

    def _take_alias(self, anchor: str, start: int) -> None:
        if anchor not in self._anchors:
            raise self.error(start, f"an alias, *{anchor[:60]}, without an anchor before it")
        found = self._anchors[anchor]
        if found is None:
            raise self.error(start, f"an alias, *{anchor[:60]}, inside of what it stands for")
        node, size = found
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.node.value, dict) and parent.name is None:
            if not isinstance(node.value, str):
                raise self.error(start, "a name that isn't a text")
            self._name(parent, node.value, start)
            return
        self._end(node, size, None, start)

    def _begin(self, event: Any, start: int, value: Any) -> None:
        if event.tag not in (None, "!"):
            raise self.error(start, f"a tag, {event.tag[:60]}, which isn't read here: remove it")
        if len(self._open) == MAX_NESTING:
            raise self.error(start, "mappings or sequences are nested too deeply")
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.node.value, dict) and parent.name is None:
            raise self.error(start, "a name that isn't a text")
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(JsonNode(start, value), event.anchor))

    def _name(self, parent: _Open, name: str, start: int) -> None:
        parent.name = name, start
        parent.size += len(name)

    def _end(self, node: JsonNode, size: int, anchor: str | None, start: int | None = None) -> None:
        """Put a value where it belongs. `start` is the position of an alias."""
        size += 1
        if anchor:
            self._anchors[anchor] = node, size
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.size += size
        if parent.size > _MAX_WRITTEN_OUT:
            position = node.start if start is None else start
            raise self.error(position, "more than 4 Mi characters with all aliases written out")
        if isinstance(parent.node.value, list):
            parent.node.value.append(node.value)
            parent.node.items.append(node)
            return
        assert parent.name is not None
        name, position = parent.name
        parent.name = None
        members = parent.node.members
        if name in members:
            parent.node.repeated.setdefault(name, position)
            del members[name]  # the members stay in the order of the text
        members[name] = JsonMember(position, node)
        parent.node.value[name] = node.value


def _plain_value(text: str) -> Any:
    """Return what an unquoted text stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return _number(text)
    if _NOT_FINITE.fullmatch(text):
        return math.nan if "n" in text[-1].lower() else math.inf
    return text


def _number(text: str) -> float:
    if re.fullmatch(r"-?(?:0|[1-9][0-9]{0,17})", text):
        return int(text)
    if text.startswith(("0o", "0x")):
        digits = text[2:]
        base = 8 if text[1] == "o" else 16
        value = float(int(digits, base)) if len(digits) <= 16 else math.inf
    else:
        value = float(text)
    if repr(value) == text or not math.isfinite(value):
        return value
    number = _Number(value)
    number.text = text
    return number
