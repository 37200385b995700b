"""What is found wrong with a request by its head alone, in which order, and what is answered.

Rules of this file:

1. The order is a tuple for each verb: who may ask at all, then what is asked, then in which shape and revision. The first that
   fails is the answer, and the body is not read.
2. A header that may stand once and stands twice is refused, whatever it says: one reader takes the first and another the last.
   Those that repeat what the body says are judged with the body (`_mirror.py`).

It does not know sessions, nor what is in a body. Source: 2026-07-28, basic/transports/streamable-http; RFC 9110.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ._headers import LAST_EVENT_ID, METHOD, PROTOCOL_VERSION, SESSION_ID
from ._media import accepts, is_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core._config import Config

    from ._messages import Headers
    from ._options import HttpOptions

__all__ = ["ALLOWED", "LADDERS", "UPGRADE", "Asked", "Refused", "first_fault", "scan", "who_fault"]

ALLOWED: Final = b"GET, POST, DELETE, OPTIONS"
# Stands for the verb of a request that is to become a WebSocket; no verb has a space in it.
UPGRADE: Final = b"GET a WebSocket"
_SINGLE: Final = frozenset(
    (b"host", b"origin", b"content-type", b"content-length", LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID)
)
_READ: Final = _SINGLE | {
    METHOD,
    b"accept",
    b"content-encoding",
    b"access-control-request-method",
    b"access-control-request-headers",
}


class Refused(Struct, frozen=True):
    """How a request is turned down. `message` names the cause and the cure. `hang_up`: what may come behind it is not read."""

    status: int
    message: str
    headers: Headers = []
    hang_up: bool = False


class Asked(Struct, gc=False):
    """A request as far as its head tells: the headers that are read here, each once; one that stands twice; and those that may repeat
    what the body says, as they came."""

    headers: dict[bytes, bytes]
    doubled: bytes | None
    mirrored: Headers


def scan(headers: Headers) -> Asked:
    """Find the headers that are read, in one pass."""
    found: dict[bytes, bytes] = {}
    mirrored: Headers = []
    doubled = None
    for header in headers:
        name, value = header
        if name in _READ:
            if name not in found:
                found[name] = value
            elif name in _SINGLE:
                doubled = name
            else:
                found[name] += b", " + value
        if name.startswith(b"mcp-"):
            mirrored.append(header)
    return Asked(found, doubled, mirrored)


def first_fault(verb: bytes, asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    """The first thing that is wrong, None if there is nothing."""
    for check in LADDERS.get(verb, _UNKNOWN_VERB):
        refused = check(asked, options, config)
        if refused is not None:
            return refused
    return None


def who_fault(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    """Of that, what tells of who asks, as far as the head of a request does."""
    return _host(asked, options, config) or _origin(asked, options, config)


def _host(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    if options.gate.allows_host(asked.headers.get(b"host")):
        return None
    return Refused(421, "this server does not go by that name: its Host has to be allowed (hosts=)")


def _origin(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    origin = asked.headers.get(b"origin")
    if origin is None or options.gate.allows_origin(origin, asked.headers[b"host"]):
        return None
    return Refused(403, "pages of that origin may not ask here: it has to be allowed (origins=)")


def _doubled(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    if asked.doubled is None:
        return None
    return Refused(400, f"the header {asked.doubled.decode('ascii')} stands twice")


def _verb(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    return Refused(405, "only GET, POST, DELETE and OPTIONS mean something here", [(b"allow", ALLOWED)])


def _length(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    length = asked.headers.get(b"content-length")
    if length is None:
        return None
    if not length.isdigit():
        return Refused(400, "content-length is no number", hang_up=True)
    if len(length) > 18 or int(length) > config.limits.message:
        return too_long(config)
    return None


def too_long(config: Config) -> Refused:
    """What is answered to a body that is too long, as soon as that is seen."""
    return Refused(413, f"the body is longer than {config.limits.message} bytes", hang_up=True)


def _json(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    if asked.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        return Refused(415, "encoded bodies are not read here", [(b"accept-encoding", b"identity")])
    if is_json(asked.headers.get(b"content-type")):
        return None
    return Refused(415, "the body has to be application/json, in UTF-8")


def _accepts_answers(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    accept = asked.headers.get(b"accept")
    if options.reply == "json":
        if accepts(accept, b"application/json"):
            return None
        return Refused(406, "the client has to accept application/json")
    if accepts(accept, b"application/json", b"text/event-stream"):
        return None
    return Refused(406, "the client has to accept both application/json and text/event-stream")


def _accepts_events(asked: Asked, options: HttpOptions, config: Config) -> Refused | None:
    if accepts(asked.headers.get(b"accept"), b"text/event-stream"):
        return None
    return Refused(406, "the client has to accept text/event-stream")


_WHO: Final = (_host, _origin)
LADDERS: Final[Mapping[bytes, tuple[Callable[[Asked, HttpOptions, Config], Refused | None], ...]]] = {
    b"POST": (*_WHO, _doubled, _length, _json, _accepts_answers),
    b"GET": (*_WHO, _doubled, _accepts_events),
    b"DELETE": (*_WHO, _doubled),
    b"OPTIONS": _WHO,
    UPGRADE: (*_WHO, _doubled),
}
_UNKNOWN_VERB: Final = (*_WHO, _verb)
