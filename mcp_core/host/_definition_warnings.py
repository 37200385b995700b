"""Warnings about definitions that may deceive a user or a model. They are hints, not verdicts.

1. Hidden text: characters that a model reads and a user doesn't see, or that change what a
   terminal shows.
2. Imitation: a name that looks like another server's tool, or a text that mentions such a tool and
   may change how a model uses it.

Every search takes linear time: names and texts are a server's choice.

Sources: Unicode UTS #39, section 4 (confusables) for the idea of a skeleton; ECMA-48 for ANSI
sequences.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from mcp_core._text import escape_text, hidden_characters

from ._names import QualifiedName, merged_name
from ._pins import Definition

__all__ = ["DefinitionWarning", "ToolNames", "WarningKind", "find_warnings"]

# The first four are characters, the others imitations of another server's tool.
WarningKind: TypeAlias = Literal[
    "ansi", "control", "bidirectional", "hidden", "same name", "similar name", "mention"
]

_MAX_WARNINGS: Final = 20  # of one definition
_MAX_PATH: Final = 120  # characters
_ANSI: Final = "\x1b\x9b"  # ESC, and CSI in one character
_BIDIRECTIONAL: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


# Letters that look like one of ASCII: Cyrillic, Greek, Armenian and others. Full width letters and
# accents need no entry: they are decomposed first. i, l, 1 and | are alike, and 0 is like o.
_ALIKE: Final = {
    "a": "аαɑ",
    "b": "вβ",
    "c": "сϲ",
    "d": "ԁδ",
    "e": "еεє",
    "g": "ɡց",
    "h": "һհ",
    "j": "јϳ",
    "k": "кκ",
    "l": "іӏιıɩʟi1|",
    "m": "м",
    "n": "ηոп",
    "o": "оοօσ0",
    "p": "рρ",
    "q": "ԛգզ",
    "r": "г",
    "s": "ѕ",
    "t": "тτ",
    "u": "υսц",
    "v": "ѵν",
    "w": "ԝω",
    "x": "хχ",
    "y": "уүγ",
}
_SKELETON: Final = str.maketrans(
    {look_alike: letter for letter, alike in _ALIKE.items() for look_alike in alike}
    | dict.fromkeys(" \t._-/:")
)
_MAX_NAME: Final = 200  # characters of a name that are compared
# Skeletons of these lengths are also alike if they differ in one letter. Shorter ones would match
# by chance, longer ones would take too much memory: there is an entry for each letter left out.
_MIN_EDITED: Final = 6
_MAX_EDITED: Final = 40
_MAX_SHARING: Final = 4  # names of one server that are kept for one entry

_WORD: Final = re.compile(r"[\w-]+(?:[./][\w-]+)*")
_PART: Final = re.compile(r"[\w-]+")  # of a word
# A name such as `search` is an ordinary word. It counts as a mention only in quotes.
_DISTINCT: Final = re.compile(r"[\w./-]*(?:[_./\d-]|[a-z][A-Z])[\w./-]*")
_QUOTES: Final = "`'\"“”‘’«»"


class DefinitionWarning(Struct, frozen=True):
    """A part of a definition that may deceive.

    Attributes:
        kind: "ansi", "control", "bidirectional" and "hidden" are characters; "same name" and
            "similar name" concern the name; "mention" is the name of another server's tool in a
            text.
        path: the member, such as `inputSchema.properties.path.description`.
        text: the explanation, for people; safe for a terminal, as is `path`.
    """

    kind: WarningKind
    path: str
    text: str


class ToolNames:
    """The `names` of all servers' tools, to find imitations and mentions of them.

    Iteration yields the names, sorted and each once.
    """

    def __init__(self, names: Iterable[QualifiedName]) -> None:
        self._same: dict[str, list[QualifiedName]] = {}
        self._alike: dict[str, list[QualifiedName]] = {}
        self._edited: dict[str, list[QualifiedName]] = {}
        # Sorted, so that warnings don't depend on the order in which servers connect.
        self._names = sorted(set(names))
        for name in self._names:
            _add(self._same, name.name, name)
            _add(self._same, merged_name(*name), name)
            skeleton = _skeleton(name.name)
            _add(self._alike, skeleton, name)
            for entry in _entries(skeleton):
                _add(self._edited, entry, name)

    def __iter__(self) -> Iterator[QualifiedName]:
        return iter(self._names)

    def find_similar(self, server: str, name: str) -> tuple[WarningKind, QualifiedName] | None:
        """Return a tool of another server that looks like `name`, a tool of `server`.

        Names look alike if they differ only in case, separators, similar letters, or one letter.
        """
        other = _of_another(self._same.get(name, ()), server)
        if other is not None:
            return "same name", other
        skeleton = _skeleton(name)
        other = _of_another(self._alike.get(skeleton, ()), server)
        if other is not None:
            return "similar name", other
        for entry in _entries(skeleton):
            for other in self._edited.get(entry, ()):
                if other.server != server and _is_one_edit(skeleton, _skeleton(other.name)):
                    return "similar name", other
        return None

    def find_mentions(self, server: str, text: str) -> Iterator[QualifiedName]:
        """Yield the tools of servers other than `server` that `text` names, each once."""
        known = self._same.keys()
        if known.isdisjoint(_WORD.findall(text)) and known.isdisjoint(_PART.findall(text)):
            return  # nearly all texts name no tool, and this is ten times faster
        found = set()
        for match in _WORD.finditer(text):
            # A path such as server/tool counts by its parts too.
            for word in {match[0], *_PART.findall(match[0])}:
                names = self._same.get(word, ())
                other = _of_another(names, server)
                if other is None or other in found or any(each.server == server for each in names):
                    continue
                quoted = (
                    text[match.start() - 1 : match.start()] in _QUOTES
                    and text[match.end() : match.end() + 1] in _QUOTES
                    and match.start() > 0
                    and match.end() < len(text)
                )
                if quoted or _DISTINCT.fullmatch(word):
                    found.add(other)
                    yield other


def _add(index: dict[str, list[QualifiedName]], entry: str, name: QualifiedName) -> None:
    names = index.setdefault(entry, [])
    # The names come sorted, so the same server's names are the last ones.
    if len(names) < _MAX_SHARING or names[-_MAX_SHARING].server != name.server:
        names.append(name)


def _of_another(names: Iterable[QualifiedName], server: str) -> QualifiedName | None:
    return next((name for name in names if name.server != server), None)


def _skeleton(name: str) -> str:
    """Return what a reader sees of a name: equal for names that look alike."""
    decomposed = unicodedata.normalize("NFKD", name[:_MAX_NAME])
    hidden = frozenset(hidden_characters(decomposed))
    visible = "".join(
        each for each in decomposed if not unicodedata.combining(each) and each not in hidden
    )
    return visible.casefold().translate(_SKELETON).replace("rn", "m").replace("vv", "w")


def _entries(skeleton: str) -> list[str]:
    """Return `skeleton` and all texts with one letter of it left out.

    Two skeletons that differ in one letter share one of them.
    """
    if not _MIN_EDITED <= len(skeleton) <= _MAX_EDITED:
        return []
    return [skeleton, *(skeleton[:at] + skeleton[at + 1 :] for at in range(len(skeleton)))]


def _is_one_edit(first: str, second: str) -> bool:
    """Return True if `second` is `first` with one letter added, left out, replaced or swapped."""
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    one, other = first[start:], second[start:]
    return (
        one[1:] == other[1:]
        or one[1:] == other
        or one == other[1:]
        or (one[:2] == other[1::-1] and one[2:] == other[2:])
    )


def find_warnings(
    definition: Definition, server: str, tools: ToolNames | None = None
) -> list[DefinitionWarning]:
    """Return the warnings about a definition, at most 20.

    Args:
        definition: a tool's definition, prompt or template, or the instructions.
        server: its server's name.
        tools: the tools of all servers, without which imitations aren't looked for.
    """
    found: list[DefinitionWarning] = []
    if tools is not None and definition.kind in ("tool", "prompt"):
        similar = tools.find_similar(server, definition.name)
        if similar is not None:
            kind, other = similar
            how = "has the same name as" if kind == "same name" else "has a name like that of"
            found.append(DefinitionWarning(kind, "name", f"{how} {other}"))
    for path, text in _texts(definition.members):
        found += _hidden_warnings(path, text)
        if tools is not None and path != "name":
            found += (
                DefinitionWarning("mention", path, f"names {other}")
                for other in tools.find_mentions(server, text)
            )
        if len(found) >= _MAX_WARNINGS:
            break
    return found[:_MAX_WARNINGS]


def _texts(members: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield all texts of a definition, and the names of members, with their paths as shown."""
    pending: list[tuple[str, Any]] = [("", members)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            inner = [(_shown(f"{path}.{name}" if path else name), name) for name in value]
            yield from ((where, name) for where, name in inner if path)
            pending += ((where, value[name]) for where, name in reversed(inner))
        elif isinstance(value, list):
            pending += ((path, item) for item in reversed(value))


def _hidden_warnings(path: str, text: str) -> Iterator[DefinitionWarning]:
    """Yield one warning for each kind of hidden characters in a text.

    Line ends and tabs are common in descriptions. Joiners and the choice of an emoji are part of
    what is visible, except in a name.
    """
    plain = text.replace("\r\n", "\n")
    keep = "" if path == "name" else "\n\t"
    by_kind: dict[WarningKind, list[str]] = {}
    for character in hidden_characters(plain, keep, joiners=path != "name"):
        by_kind.setdefault(_kind_of(character), []).append(character)
    for kind, characters in by_kind.items():
        first = escape_text(characters[0])
        name = unicodedata.name(characters[0], "")
        count = "a character" if len(characters) == 1 else f"{len(characters)} characters, such as"
        what = _EXPLANATIONS[kind]
        yield DefinitionWarning(
            kind, path, f"has {count} {first}{f' ({name})' if name else ''} {what}"
        )


_EXPLANATIONS: Final[dict[WarningKind, str]] = {
    "ansi": "that begins a command to the terminal",
    "control": "that controls a terminal",
    "bidirectional": "that changes the direction of text",
    "hidden": "that cannot be seen",
}


def _kind_of(character: str) -> WarningKind:
    if character in _ANSI:
        return "ansi"
    if character in _BIDIRECTIONAL:
        return "bidirectional"
    return "control" if unicodedata.category(character) == "Cc" else "hidden"


def _shown(path: str) -> str:
    """Return a path for a terminal, cut at its end: deep nesting makes long paths."""
    shown = escape_text(path)
    return shown if len(shown) <= _MAX_PATH else f"{shown[:_MAX_PATH]}…"
