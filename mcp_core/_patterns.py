"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["LatePattern", "compile_on_first_use"]


class LatePattern:
    """A stand-in for the `re.Pattern` that it compiles at the first use.

    Compiling took a tenth of a server's start-up, and most patterns are for rare input.
    """

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.source: tuple[Any, int] = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(*self.source), name)  # `re` caches it
        setattr(self, name, value)  # the next use doesn't come here
        return value


def compile_on_first_use(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern with the attributes of `re.compile(pattern, flags)`.

    Functions of `re` don't take it. The first use raises an error in the pattern.
    """
    return cast("re.Pattern[AnyStr]", LatePattern(pattern, flags))
