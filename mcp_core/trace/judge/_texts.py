"""A trace's texts, decoded as JSON with the standard library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_core._nesting import depth_exceeds

if TYPE_CHECKING:
    from typing import NoReturn

    from mcp_core.trace._format import TraceLine

__all__ = ["NotJson", "add_piece", "decode", "has_http_message", "is_cut"]

_MAX_PIECES: Final = 200  # lines of one message
_MAX_PIECES_SIZE: Final = 20_000  # characters


class _InvalidConstant(ValueError):
    """A constant of JavaScript that JSON doesn't have."""


# Other errors come from the parser's limits: nesting, and a number's digits.
NotJson: Final = (json.JSONDecodeError, _InvalidConstant)


def _reject_constant(text: str) -> NoReturn:
    raise _InvalidConstant(f"{text} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_reject_constant)


def decode(text: str) -> Any:
    """Return the value of a message's text.

    Raises:
        ValueError: it isn't JSON, or nested too deeply for rules that encode or compare it.
        RecursionError: it is nested too deeply for Python's decoder.
    """
    decoded = _DECODER.decode(text)
    if depth_exceeds(decoded):
        raise ValueError("nested too deeply")
    return decoded


def is_cut(line: TraceLine) -> bool:
    """Return True if a line's text is only the beginning of a message."""
    if line.raw is None:
        return True  # not UTF-8: the end can be within a character
    if line.raw.lstrip()[:1] not in ("{", "["):
        return False
    try:
        _DECODER.decode(line.raw)
    except NotJson:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def has_http_message(line: TraceLine) -> bool:
    """Return True if a line of an HTTP exchange should have a JSON-RPC message.

    An intermediary can send an error's body, and other resources have other bodies.
    """
    if line.raw is None and line.data is None:
        return False
    if line.sse is not None:
        return line.sse.event in ("", "message")
    if line.http is None:
        return True
    kind = next((value for name, value in line.http.headers if name == "content-type"), "")
    if line.http.status and "json" not in kind.lower():
        return False
    return line.raw is not None and '"jsonrpc"' in line.raw


def add_piece(text: str, pieces: list[str]) -> bool:
    """Add a line that isn't JSON to the lines before it.

    Return True if they are one message, spread over several lines.
    """
    if text.lstrip()[:1] in ("{", "["):
        pieces.clear()  # the beginning of a message
    elif not pieces or len(pieces) >= _MAX_PIECES:
        return False
    pieces.append(text)
    if sum(map(len, pieces)) > _MAX_PIECES_SIZE:
        pieces.clear()
    elif len(pieces) > 1 and _is_message("\n".join(pieces)):
        pieces.clear()
        return True
    return False


def _is_message(text: str) -> bool:
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False
