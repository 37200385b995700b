"""Text that must not be shown: tokens, passwords, codes and private keys.

1. The text is available through `reveal()` only, so every use of it can be found by searching.
2. A struct with a secret among its fields is a `RedactedStruct`.
"""

from __future__ import annotations

import hmac
from typing import Final, NoReturn

from msgspec import Struct

__all__ = ["MIN_SECRET_LENGTH", "RedactedStruct", "Secret"]

# Characters. A shorter secret isn't redacted in texts: it would match inside ordinary words.
MIN_SECRET_LENGTH: Final = 6


class Secret:
    """A string that doesn't show `text`: `repr`, `str`, f-strings and rich print `<secret>`.

    Secrets compare in constant time, and cannot be pickled.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str | Secret) -> None:
        self._text: str = text.reveal() if isinstance(text, Secret) else text

    def reveal(self) -> str:
        """Return the text."""
        return self._text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        text = self._text.encode("utf-8", "surrogatepass")
        other_text = other._text.encode("utf-8", "surrogatepass")
        # Constant time: the duration must not reveal how many leading characters are equal.
        return hmac.compare_digest(text, other_text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "<secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled: its text would be readable where it is stored")


class RedactedStruct(Struct, frozen=True):
    """A struct that prints its name instead of its fields, unless a subclass defines `__repr__`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    # msgspec's own `__rich_repr__` shows every field. Without one, rich uses the repr.
    __rich_repr__ = None  # type: ignore[assignment]
