"""What a client can be told about its conversation, and what it says about itself because of that.

Rule of this file: what is wrong with the options is found before anything is started for them.

It refuses to know what becomes of them: `_caller.py` and `_answering.py` do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from . import types as t
from ._answering import AskedOptions, Respondent
from ._config import Config
from ._dialects import ALL
from ._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ._events import Peer

__all__ = ["CallerOptions", "check_headers", "check_level", "client_config"]

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"(?:[!-~\xa0-\xff](?:[\t -~\xa0-\xff]*[!-~\xa0-\xff])?)?")
# Headers that HTTP or MCP itself sets, or that would change what a message is.
_TAKEN: Final = frozenset(
    """
    host connection content-encoding content-length content-type transfer-encoding te trailer upgrade keep-alive
    proxy-connection expect accept accept-encoding last-event-id mcp-protocol-version mcp-session-id mcp-method mcp-name
    """.split()
)
_TAKEN_PREFIX: Final = "mcp-param-"


class CallerOptions(AskedOptions, total=False):
    """What a client can be told about its conversation: the keys of `AskedOptions`, for what it answers when it is asked, and
    these.

    Keys:
        versions: revisions of MCP to speak; all by default. With several the newest that both sides know is found out; one
            fixes it.
        verdict: the `peer` of an earlier client of the same server: its revision is taken up at once, which saves a probe. It counts
            only if that revision is among `versions`.
        info: what the client calls itself; this library by default.
        extensions: what the client can do beyond MCP, by identifier, each with its settings. Told as the capability
            `extensions` in 2026-07-28, and as `experimental`, which every revision has.
        probe_timeout: seconds of silence after which a server is taken for one that begins with a handshake; 5 by default.
        initialize_timeout: seconds for that handshake; by default it waits, as a process may start slowly.
        keep_alive: seconds of silence after which the server is asked whether it lives; after as many more it is given up. By
            default it never is.
        on_log: called with each log message of the server. What it raises is reported, and ends nothing.
        on_elicitation_complete: called when the server says that the user is done with a page that he was asked to visit, or that
            an error of code -32042 named (2025-11-25 only); like `on_log`.
        log_level: the least severe log message wanted; `Caller.set_log_level` changes it. Unless given, "info" if there is an
            `on_log`, else the server is not told.
        cache: whether to use answers again for as long as the server says that they stay fresh (2026-07-28); True by default.
    """

    versions: Iterable[str]
    verdict: Peer | None
    info: t.Implementation | None
    extensions: Mapping[str, Mapping[str, Any]] | None
    probe_timeout: float
    initialize_timeout: float | None
    keep_alive: float | None
    on_log: Callable[[t.LoggingMessageParams], object] | None
    on_elicitation_complete: Callable[[t.ElicitationCompleteParams], object] | None
    log_level: t.LoggingLevel | None
    cache: bool


def client_config(options: CallerOptions) -> Config:
    """What a client with these options says about itself. Made before anything is started, it tells what is wrong with them.

    Raises:
        ValueError: a version is no revision of MCP, there is no such log level, an identifier of an extension is none, a
            number of seconds is out of its range, something is declared that no callback answers, or a root is no place.
        TypeError: a single string is given for the roots.
    """
    extensions = options.get("extensions")
    told = {name: dict(settings) for name, settings in extensions.items()} if extensions else None
    level = options.get("log_level")
    if level is not None:
        check_level(level)
    return Config(
        options.get("info") or t.Implementation(name="mcp-trio", version=__version__),
        replace(Respondent(options).capabilities, extensions=told, experimental=told),
        versions=options.get("versions", ALL),
        probe_timeout=options.get("probe_timeout", 5.0),
        initialize_timeout=options.get("initialize_timeout"),
        keep_alive=options.get("keep_alive"),
    )


def check_level(level: str) -> None:
    """Make sure that there is such a log level.

    Raises:
        ValueError: there is not.
    """
    if level not in t.LOGGING_LEVELS:
        raise ValueError(f"there is no log level {level!r}; there are {', '.join(t.LOGGING_LEVELS)}")


def check_headers(headers: Mapping[str, str]) -> None:
    """Make sure that these headers can be sent with requests.

    Raises:
        ValueError: a name or a value has characters that no header may have, stands twice, or is one that the protocol sets.
    """
    seen: set[str] = set()
    for name, value in headers.items():
        small = name.lower()
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header")
        if small in _TAKEN or small.startswith(_TAKEN_PREFIX):
            raise ValueError(f"the header {name} is set by the protocol")
        if small in seen:
            raise ValueError(f"the header {name} is given twice")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the value of the header {name} has characters that no header may have")
        seen.add(small)
