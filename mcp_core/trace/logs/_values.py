"""The objects of a JSON document that arrives in chunks, each as its own text.

An array's elements come one by one, so a document of any size takes constant memory. Text outside
of objects is skipped. A line break within a string, which JSON doesn't allow, ends a value that was
cut: the next one begins after it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["JsonValue", "ValueSplitter"]

_OUTSIDE: Final = re.compile(rb'[{}\[\]"\n]')
_INSIDE: Final = re.compile(rb'["\\\n]')


class JsonValue(NamedTuple):
    """An object.

    Attributes:
        text: its bytes; only the beginning if it is cut or too long.
        line: the number of the line on which it begins, from 1.
        problem: why it cannot be read; empty if it can.
    """

    text: bytes
    line: int
    problem: str = ""


class ValueSplitter:
    """The objects of a document, at its top and in the arrays around them.

    Args:
        limit: bytes of an object. A longer one is reported, and skipped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._text = bytearray()  # of the object that has begun
        self._line = 1
        self._begins_at = 1  # the line of the object
        self._depth = 0  # of braces and brackets in it
        self._in_string = False
        self._is_escaped = False  # a chunk has ended after a backslash

    def feed(self, data: bytes) -> Iterator[JsonValue]:
        """Yield the objects that end in `data`."""
        place = begin = 0  # `begin` is where the object's part of this chunk begins
        if self._is_escaped and data:
            place, self._is_escaped = 1, False
        while True:
            found = (_INSIDE if self._in_string else _OUTSIDE).search(data, place)
            if found is None:
                break
            place, sign = found.end(), found[0]
            if sign == b"\n":
                self._line += 1
                if self._in_string:
                    self._text += data[begin : place - 1]
                    yield self._finish("it is cut off")
            elif self._in_string:
                if sign == b'"':
                    self._in_string = False
                elif place == len(data):
                    self._is_escaped = True
                else:
                    place += 1
            elif not self._depth:
                if sign == b"{":
                    self._depth, begin, self._begins_at = 1, place - 1, self._line
            elif sign == b'"':
                self._in_string = True
            elif sign in b"{[":
                self._depth += 1
            else:
                self._depth -= 1
                if not self._depth:
                    self._text += data[begin:place]
                    yield self._finish()
        if self._depth:
            self._text += data[begin : begin + self._limit + 1 - len(self._text)]

    def end(self) -> Iterator[JsonValue]:
        """Yield the object that the end of the document has cut off."""
        if self._depth:
            yield self._finish("it is cut off")

    def _finish(self, problem: str = "") -> JsonValue:
        text = bytes(self._text)
        self._text.clear()
        self._depth, self._in_string = 0, False
        if len(text) > self._limit:
            text, problem = text[: self._limit], "it is too long"
        return JsonValue(text, self._begins_at, problem)
