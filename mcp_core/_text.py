"""Untrusted text made visible: for terminals, logs and JSON that a person reads.

1. A control character or invisible character of a peer becomes its JSON escape, such as `\\n`,
   `\\u001b` or `\\u202e` (RFC 8259 section 7). Text that cannot be seen, or that moves other text,
   could imitate a line of a log, a prompt or another name.
2. Nothing is lost, and a JSON document keeps its value. A backslash isn't escaped itself: a peer
   may have written an escape as text, which deceives no reader.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from mcp_core._patterns import compile_on_first_use

__all__ = ["ByteEscaper", "escape_text", "hidden_characters", "shorten_text"]

# Controls (C0, DEL, C1), line and paragraph separators, halves of surrogate pairs, and the
# characters that Unicode renders as nothing (Default_Ignorable_Code_Point): bidirectional controls,
# zero-width characters, tags, variation selectors. U+FFF9 to U+FFFB annotate other text.
_HIDDEN: Final = compile_on_first_use(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_JOINERS: Final = "\u200c\u200d"
_EMOJI_SELECTORS: Final = "\ufe0e\ufe0f"
_KEYCAPS: Final = frozenset("#*0123456789")  # with a selector they are emoji


def escape_text(text: str, keep: str = "", *, joiners: bool = False) -> str:
    """Return `text` with hidden characters replaced by their JSON escapes (RFC 8259, section 7).

    Args:
        text: any text; halves of surrogate pairs are allowed.
        keep: hidden characters to leave as they are, such as line feeds.
        joiners: leave the zero-width characters that belong to what is visible: joiners inside
            words that aren't ASCII (Persian, emoji of several people), and the choice between the
            emoji and the text form of a character.
    """
    if text.isascii() and text.isprintable():
        return text

    def escape(match: re.Match[str]) -> str:
        character = match[0]
        if character in keep or (joiners and _is_part_of_word(match)):
            return character
        return _SHORT.get(character) or _json_escape(ord(character))

    return _HIDDEN.sub(escape, text)


def hidden_characters(text: str, keep: str = "", *, joiners: bool = False) -> list[str]:
    """Return the characters of `text` that `escape_text` replaces, with the same arguments."""
    if text.isascii() and text.isprintable():
        return []
    return [
        match[0]
        for match in _HIDDEN.finditer(text)
        if match[0] not in keep and not (joiners and _is_part_of_word(match))
    ]


def _json_escape(code: int) -> str:
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _is_part_of_word(match: re.Match[str]) -> bool:
    before = match.string[match.start() - 1] if match.start() else ""
    if match[0] in _EMOJI_SELECTORS:
        return before in _KEYCAPS or _is_visible_beyond_ascii(before)
    return (
        match[0] in _JOINERS
        and (_is_visible_beyond_ascii(before) or before == "\ufe0f")
        and _is_visible_beyond_ascii(match.string[match.end() : match.end() + 1])
    )


def _is_visible_beyond_ascii(character: str) -> bool:
    return character > "\x7f" and _HIDDEN.match(character) is None


def shorten_text(text: str, limit: int) -> str:
    """Return `text`, cut to `limit` characters, with its full length if it was longer."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


class ByteEscaper:
    """A filter for the output of another program on its way to a terminal.

    Line feeds and tabs pass. Other controls and hidden characters become escapes; bytes that are
    not UTF-8 become U+FFFD. A character that is cut between two chunks is put together again.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._carriage_return = False  # held back: with a line feed after it, it ends a line

    def feed(self, data: bytes, *, final: bool = False) -> bytes:
        """Return the escaped form of `data`, the next bytes. `final` is True for the last ones."""
        text = "\r" * self._carriage_return + self._decoder.decode(data, final)
        self._carriage_return = text.endswith("\r") and not final
        if self._carriage_return:
            text = text[:-1]
        return escape_text(text.replace("\r\n", "\n"), "\n\t", joiners=True).encode()
