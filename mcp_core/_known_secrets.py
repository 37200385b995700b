"""The search for known secrets in texts, however these spell them.

1. A secret is found as it is; with percent or JSON escapes, also nested ones; and in base64, also
   as a part of a longer text, such as `user:secret`.
2. A beginning or an end of a secret is found, too, from 8 characters on: peers cut what they show,
   and long lines are cut. If it has no digit and one case only, as `postgres` of a URL, it may be a
   word: then it takes 16.
3. Nearly every text has no secret, which a few searches for fixed texts find out.

A secret that is encrypted, compressed, hashed or spelled in another way isn't found.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from ._secret_patterns import MIN_SECRET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["KnownSecrets"]

_MIN_PART: Final = 8  # characters of a beginning or an end
_MIN_WORDS: Final = 16  # the same if it may be words
_MIN_BASE64: Final = 12  # characters, which have 9 bytes
_MAX_LAYERS: Final = 4  # of escapes in escapes
# Runs of escapes, because a character may need several.
_ESCAPES: Final = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)|(?P<unicode>(?:\\+u[0-9A-Fa-f]{4})+)"
    r"|\\+(?:(?:x(?P<byte>[0-9A-Fa-f]{2})|U00(?P<wide>(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4}))"
    r"|(?P<short>[bfnrt])|(?P<mark>[\"'/])?)"
)
_CODE: Final = re.compile(r"\\+u([0-9A-Fa-f]{4})")
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# Escapes of printable ASCII.
_PERCENT: Final = re.compile("%[2-7][0-9A-Fa-f]")
_UNICODE: Final = re.compile(r"\\u00[2-7]")
# What else is escaped: line feeds, quotation marks and the like, and what isn't ASCII.
_ODD: Final = re.compile(r"[^\x20-\x7e]|[\\\"'%]")
# The most frequent first, in JSON with English texts and ids.
_FREQUENT: Final = ' etaoinsrhldcumpfgy"wb:,vk._-/{}0125346789[]xjTSACIPqzMDREOLNBFHGWUV'
_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")


class _Spelling(NamedTuple):
    """A spelling of a secret. Its beginning or its end is enough to be found.

    Attributes:
        text: the spelling.
        head: characters of a beginning that counts.
        tail: characters of an end that counts; 0 if none does.
        is_base64: whether what surrounds it belongs to it.
    """

    text: str
    head: int
    tail: int
    is_base64: bool


class KnownSecrets:
    """Secrets that are searched for in many texts.

    Args:
        secrets: the secrets. Those below 6 characters don't count.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {each for each in secrets if len(each) >= MIN_SECRET}
        # Who knows `abc` finds it in `Bearer abc`.
        known -= {each for each in known if each.partition(" ")[2] in known}
        spellings = dict.fromkeys(each for secret in sorted(known) for each in _spell(secret))
        self._spellings = tuple(spellings)
        # A text with a part that counts has one of these.
        marks = [text[:head] for text, head, _, _ in self._spellings]
        marks += [text[-tail:] for text, _, tail, _ in self._spellings if tail]
        self._marks = tuple((max(mark, key=_rarity), mark) for mark in dict.fromkeys(marks))
        self._has_odd = any(_ODD.search(secret) for secret in known)

    def __bool__(self) -> bool:
        return bool(self._marks)

    def __repr__(self) -> str:
        return f"<KnownSecrets, {len(self._spellings)} spellings>"

    def found_in(self, text: str) -> bool:
        """True if `text` has a known secret, or a part of one that counts."""
        marks = self._marks
        # One character is found many times faster. A generator takes longer than the searches.
        for rare, mark in marks:
            if rare in text and mark in text:
                return True
        if not (("%" in text or "\\" in text) and self._may_be_escaped(text)):
            return False
        for _ in range(_MAX_LAYERS):
            before, text = text, _ESCAPES.sub(_unescaped, text)
            if text == before:
                break
            if any(mark in text for _, mark in marks):
                return True
        return False

    def _may_be_escaped(self, text: str) -> bool:
        # The usual escapes, as in JSON that JSON quotes, spell no character of most secrets.
        return (
            self._has_odd
            or "\\/" in text
            or "\\x" in text
            or _PERCENT.search(text) is not None
            or _UNICODE.search(text) is not None
        )

    def hide(self, text: str, replace: Callable[[str], str]) -> str:
        """Return `text` with something else in place of each known secret.

        Args:
            text: any text.
            replace: called with what stands there, in its spelling.
        """
        if not self.found_in(text):
            return text
        spans: list[tuple[int, int]] = []
        for layer, starts, ends in _layers(text):
            spans += [(starts[start], ends[end - 1]) for start, end in self._find(layer)]
        pieces: list[str] = []
        done = 0
        for start, end in _merged(spans):
            pieces += (text[done:start], replace(text[start:end]))
            done = end
        pieces.append(text[done:])
        return "".join(pieces)

    def _find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where `text` has a secret or a part that counts. Spans may overlap."""
        for spelling, head, tail, is_base64 in self._spellings:
            spans = [
                (place, place + _common(spelling, text[place : place + len(spelling)]))
                for place in _places(text, spelling[:head])
            ]
            backwards = spelling[::-1]
            for place in _places(text, spelling[-tail:]) if tail else ():
                end = place + tail
                before = text[max(end - len(spelling), 0) : end]
                spans.append((end - _common(backwards, before[::-1]), end))
            yield from (_widened(text, *span) if is_base64 else span for span in spans)


def _rarity(character: str) -> int:
    """Return how rare a character is in messages, compared with others."""
    place = _FREQUENT.find(character)
    return place if place >= 0 else len(_FREQUENT)


def _spell(secret: str) -> Iterator[_Spelling]:
    """Yield the spellings of a secret, without escapes."""
    texts = [secret]
    if " " in secret:
        texts.append(secret.replace(" ", "+"))  # in a form
    data = secret.encode("utf-8", "surrogatepass")
    if len(data) > len(secret):
        texts.append(data.decode("latin-1"))  # as bytes of a header are read
    if "\\" in secret:
        texts.append(json.dumps(secret)[1:-1])  # backslashes before an escape
    # A secret that has escapes itself is read like a text.
    texts += [layer for text in tuple(texts) for layer, _, _ in _layers(text)]
    for text in dict.fromkeys(texts):
        if len(text) >= MIN_SECRET:
            head = _minimum_part(text)
            tail = _minimum_part(text[::-1])
            yield _Spelling(text, max(head, _end_of_host(text)), tail, is_base64=False)
    for offset in range(3):
        for text in dict.fromkeys(_base64(data, offset)):
            yield _Spelling(text, min(_MIN_BASE64, len(text)), 0, is_base64=True)


def _minimum_part(text: str) -> int:
    """Return how many characters of a beginning of `text` count. For an end it is reversed."""
    for minimum in range(_MIN_PART, min(len(text), _MIN_WORDS)):
        found = text[:minimum]
        if any(map(str.isdigit, found)) or not (
            found.islower() or found.isupper() or found.istitle()
        ):
            return minimum
    return min(len(text), _MIN_WORDS)


def _end_of_host(text: str) -> int:
    """Return the length of a beginning that has more than the scheme and host of a URL, or 0."""
    before, mark, rest = text.partition("://")
    if not mark:
        return 0
    authority = rest.partition("/")[0]
    public = len(before) + len(mark) + (0 if "@" in authority else len(authority))
    return min(public + _MIN_PART, len(text))


def _base64(data: bytes, offset: int) -> Iterator[str]:
    """Yield what base64 has of `data` behind `offset` bytes, for any neighbours.

    There are two alphabets.
    """
    encoded = b64encode(bytes(offset) + data).decode()
    known = encoded[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6]
    yield known
    yield known.replace("+", "-").replace("/", "_")


def _layers(text: str) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yield `text`, then without its escapes, then without theirs.

    Beside each are the places of its characters in `text`: where each begins, and where it ends.
    """
    starts = list(range(len(text)))
    ends = list(range(1, len(text) + 1))
    yield text, starts, ends
    for _ in range(_MAX_LAYERS):
        pieces: list[str] = []
        new_starts: list[int] = []
        new_ends: list[int] = []
        done = 0
        for match in _ESCAPES.finditer(text):
            begin, end = match.span()
            plain = _unescaped(match)
            pieces += (text[done:begin], plain)
            new_starts += starts[done:begin] + [starts[begin]] * len(plain)
            new_ends += ends[done:begin] + [ends[end - 1]] * len(plain)
            done = end
        if not done:
            return
        pieces.append(text[done:])
        new_starts += starts[done:]
        new_ends += ends[done:]
        plain = "".join(pieces)
        if plain == text:
            return
        text, starts, ends = plain, new_starts, new_ends
        yield text, starts, ends


def _unescaped(match: re.Match[str]) -> str:
    kind = match.lastgroup
    escapes = match[0]
    if kind == "percent":
        return bytes.fromhex(escapes.replace("%", "")).decode("utf-8", "surrogateescape")
    if kind == "unicode":
        codes = "".join(chr(int(code, 16)) for code in _CODE.findall(escapes))
        return codes.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if kind in ("byte", "wide"):
        return chr(int(match[kind], 16))
    return _SHORT.get(match["short"] or "") or match["mark"] or "\\"


def _places(text: str, part: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _common(first: str, second: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    for count, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return count
    return min(len(first), len(second))


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span with the rest of the base64 around it, which has some bits of the secret."""
    while start and text[start - 1] in _BASE64:
        start -= 1
    while end < len(text) and text[end] in _BASE64:
        end += 1
    return start, end


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans in their order, overlapping ones as one."""
    current: tuple[int, int] | None = None
    for start, end in sorted(spans):
        if current is None or start > current[1]:
            if current is not None:
                yield current
            current = (start, end)
        else:
            current = (current[0], max(current[1], end))
    if current is not None:
        yield current
