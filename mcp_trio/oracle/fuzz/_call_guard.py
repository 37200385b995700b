"""The guard that lets no message through which calls a tool that may not be called.

1. Others may have written a stored case. So a message is sent only if no server, however lenient,
   can read a call of a denied tool in it.
2. A text that doesn't spell `tools/call` in any way calls nothing. Before the search, the guard
   undoes escapes and other encodings, and removes bytes that a reader may skip, case and spaces.
3. A text that does spell it must be JSON that all readers read alike, and name an allowed tool.
4. In the same way a stored case reads no resource that the server doesn't list.
"""

from __future__ import annotations

import functools
import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from ._case import own_step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from ._case import Step

__all__ = [
    "INVENTED_METHODS",
    "PROTOTYPE_NAMES",
    "UNKNOWN_PROMPT",
    "UNKNOWN_TOOLS",
    "UNKNOWN_URI",
    "CallGuard",
    "calls_in",
    "completes_call",
    "folded_tail",
]

# Tool names in drawn cases that no server has.
UNKNOWN_TOOLS: Final = ("mcp-trio-fuzz-none", "", "a" * 300)
# Names that objects of JavaScript have anyway.
PROTOTYPE_NAMES: Final = ("__proto__", "constructor", "toString", "hasOwnProperty")
# Methods in drawn cases that no extension defines either.
INVENTED_METHODS: Final = ("acme/none", "a" * 200)
UNKNOWN_PROMPT: Final = UNKNOWN_TOOLS[0]
UNKNOWN_URI: Final = "mcp-trio-fuzz://none"
# Shorter forms of them, and a text that is drawn in place of params.
_INVENTED: Final = re.compile("|".join(("mcp-trio-fuzz-none|a*|x", *PROTOTYPE_NAMES)))
_CALL: Final = "toolscall"
_READS: Final = ("resourcesread", "resourcessubscribe")
# JSON's `\u0074`, and what other languages write: `\x74`, `\u{74}`.
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|u\{0*([0-9a-fA-F]{1,5})\})")
# ASCII letters in two or three bytes: UTF-8 forbids them, and old readers accept them.
_OVERLONG: Final = re.compile(rb"(?:[\xc0\xc1]|\xe0[\x80\x81])[\x80-\xbf]")
_ENCODED_LETTER: Final = re.compile("%([46][1-9A-F]|[57][0-9A]|3[0-9])")  # ASCII, and digits
_ENCODINGS: Final = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


class _Ambiguous(ValueError):
    """JSON that readers understand differently."""


class CallGuard:
    """The judgement of which messages may be sent.

    Args:
        allowed: the names of the tools that may be called; the caller may change it.
        known: returns the names of all the server's tools.
        listed: the URIs of the server's resources.
    """

    def __init__(
        self,
        allowed: Collection[str],
        known: Callable[[], Collection[str]],
        listed: Collection[str] = (),
    ) -> None:
        self._allowed = allowed
        self._known = known
        self._listed = listed

    def allows_message(self, message: Mapping[str, Any]) -> bool:
        """Return True if a message may be sent that was encoded here."""
        return not _is_call(message) or self._may_call(message)

    def names_allowed_tool(self, request: Mapping[str, Any]) -> bool:
        """Return True if a call is of a tool that may be called, and not of an invented one."""
        params = request.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        return isinstance(name, str) and name in self._allowed

    def allows_data(self, data: bytes) -> bool:
        """Return True if bytes may be sent, however lenient the server is."""
        if not calls_in(data):
            return True
        try:
            return all(self._allows_value(_parse(line)) for line in data.split(b"\n") if line)
        except (ValueError, RecursionError):
            return False

    def allows_step(self, step: Step) -> bool:
        """Return True if a step of a stored case may be played."""
        kind, *parts = own_step(step)
        if kind == "call" and parts:
            return self.allows_message({"method": "tools/call", "params": {"name": parts[0]}})
        if kind in ("burst", "head"):
            parts = parts[1:]
        if kind in ("request", "notify", "burst", "head") and parts:
            message = dict(zip(("method", "params"), parts, strict=False))
            return self.allows_message(message) and self._reads_what_is_listed(message)
        if kind == "batch" and parts and isinstance(parts[0], list):
            members = [dict(zip(("method", "params"), each, strict=False)) for each in parts[0]]
            return all(self.allows_message(each) for each in members) and all(
                self._reads_what_is_listed(each) for each in members
            )
        if kind == "listen" and parts:
            uris = parts[0].get("resourceSubscriptions") if isinstance(parts[0], dict) else None
            return uris is None or (isinstance(uris, list) and all(map(self._is_listed, uris)))
        if kind == "mutate" and parts and isinstance(parts[0], str):
            return self._allows_stored(parts[0].encode("utf-8", "surrogatepass"))
        if kind == "damage" and parts and isinstance(parts[0], bytes):
            return self._allows_stored(parts[0])
        return True

    def _allows_stored(self, data: bytes) -> bool:
        # A case is never drawn with bytes that read a resource.
        return self.allows_data(data) and not any(
            "uri" in text and any(each in text for each in _READS) for text in _readings(data)
        )

    def _reads_what_is_listed(self, message: Mapping[str, Any]) -> bool:
        method, params = _folded(str(message.get("method"))), message.get("params")
        if not any(each in method for each in _READS) or not isinstance(params, dict):
            return True
        return all(self._is_listed(uri) for key, uri in params.items() if "uri" in _folded(key))

    def _is_listed(self, uri: Any) -> bool:
        if not isinstance(uri, str):
            return False
        is_invented = uri in UNKNOWN_URI or uri.startswith(UNKNOWN_URI)
        return is_invented or uri in self._listed or _plain_uri(uri) in self._listed

    def _allows_value(self, value: Any) -> bool:
        if isinstance(value, list):
            return all(map(self._allows_value, value))
        if not isinstance(value, dict):
            return True
        return self.allows_message(value) and all(map(self._allows_value, value.values()))

    def _may_call(self, message: Mapping[str, Any]) -> bool:
        """Return True if a message that calls a tool may be sent."""
        params = [value for key, value in message.items() if _folded(key) == "params"]
        names = [name for each in params for name in _names_in(each)]
        is_plain = len(params) == 1 and isinstance(params[0], dict) and len(names) == 1
        if is_plain and isinstance(name := params[0].get("name"), str) and name in self._allowed:
            return True
        denied = [name for name in self._known() if name not in self._allowed]
        return all(
            # A server can have tools that it doesn't list.
            (not isinstance(each, str) or _INVENTED.fullmatch(each) is not None)
            and not any(_spells(str(each), name) for name in denied)
            for name in names
            for each in _scalars(name)
        )


def _plain_uri(uri: str) -> str:
    """Return a classic URI without its fragment, empty segments and encoded letters."""
    uri = uri.partition("#")[0].replace("/./", "/").replace("/a/../", "/")
    return _ENCODED_LETTER.sub(lambda found: chr(int(found[1], 16)), uri)


def calls_in(data: bytes) -> bool:
    """Return True if any reader could find the method `tools/call` in bytes."""
    return any(_CALL in text for text in _readings(data))


def folded_tail(tail: str, data: bytes) -> str:
    """Return the last letters that were sent: the beginning of a `tools/call` that is split."""
    return (tail + next(_readings(data)))[1 - len(_CALL) :]


def completes_call(tail: str, data: bytes) -> bool:
    """Return True if bytes after the letters `tail` complete the word `tools/call`."""
    return _CALL in tail + next(_readings(data))[: len(_CALL)]


def _readings(data: bytes) -> Iterator[str]:
    """Yield each text that a reader could decode bytes to, folded."""
    data = _OVERLONG.sub(lambda found: _shortest(found[0]), data)
    # Without zero bytes, ASCII letters are the same in each encoding of Unicode.
    yield _fold(data.replace(b"\0", b"").decode("utf-8", "ignore"))
    for encoding in _ENCODINGS:
        yield _fold(data.decode(encoding, "ignore"))


def _shortest(overlong: bytes) -> bytes:
    return bytes([(overlong[-2] & 1) << 6 | overlong[-1] & 0x3F])


def _fold(text: str) -> str:
    """Return a text's letters and digits in lower case, with escapes undone."""
    text = _ESCAPE.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), text)
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


_folded = functools.lru_cache(1024)(_fold)


def _is_call(message: Mapping[str, Any]) -> bool:
    return any(
        _folded(key) == "method" and _CALL in _folded(str(value)) for key, value in message.items()
    )


def _names_in(params: Any) -> list[Any]:
    """Return all that a server could take for a tool's name. Params that aren't an object count."""
    if not isinstance(params, dict):
        return [params]
    return [value for key, value in params.items() if "name" in _folded(key)]


def _spells(text: str, name: str) -> bool:
    """Return True if a server could find a tool's name in a text."""
    return (_folded(name) or name) in (_fold(text) if _folded(name) else text)


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _scalars(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _scalars(each)
    else:
        yield value


def _parse(line: bytes) -> Any:
    """Return a line's value.

    Raises:
        ValueError: it isn't JSON, or readers understand it differently.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({_folded(name) for name, _ in pairs}) < len(pairs):
            raise _Ambiguous
        return dict(pairs)

    def refuse(constant: str) -> Any:
        raise _Ambiguous  # NaN and Infinity

    return json.loads(line.decode(), object_pairs_hook=unique, parse_constant=refuse)
