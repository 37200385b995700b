"""Options of a client's connection, and the configuration that follows from them.

Invalid options are reported before a process is started or a connection opened for them.
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
# Headers that HTTP or MCP itself sets, or that would change the meaning of a message.
_RESERVED: Final = frozenset(
    """
    host connection content-encoding content-length content-type transfer-encoding te trailer upgrade keep-alive
    proxy-connection expect accept accept-encoding last-event-id mcp-protocol-version mcp-session-id mcp-method mcp-name
    """.split()
)
_RESERVED_PREFIX: Final = "mcp-param-"


class CallerOptions(AskedOptions, total=False):
    """Options of a client's connection: those of `CallbackOptions`, and these.

    Keys:
        versions: revisions of MCP to use; default all. The newest that both sides support is
            negotiated; with a single one there is no choice.
        verdict: the `peer` of an earlier client of the same server. Its revision is used at once,
            which saves a probe. Ignored if that revision is not among `versions`.
        info: name and version of the client; default this library's.
        extensions: capabilities beyond MCP, by identifier, each with its settings. Declared as the
            capability `extensions` in 2026-07-28, and as `experimental`, which every revision has.
        probe_timeout: seconds to wait for a response to the probe, before the handshake of earlier
            revisions is tried; default 5.
        initialize_timeout: seconds to wait for that handshake; default no limit, because a process
            may start slowly.
        keep_alive: seconds of silence after which a ping is sent; after as many more the connection
            is closed. Default never.
        on_log: called with each log message of the server. Its exceptions are reported and end
            nothing.
        on_elicitation_complete: called when the server says that the user has finished a URL
            elicitation, or a page that an error of code -32042 named (2025-11-25 only). Exceptions
            are handled as for `on_log`.
        log_level: the least severe log message to receive; `AbstractClient.set_log_level` changes
            it. Default "info" if there is an `on_log`, else no level is sent.
        cache: True (the default) to reuse results for as long as the server declares them fresh
            (2026-07-28).
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
    """Return the configuration of a client with these options.

    Raises:
        ValueError: an unknown version or log level, an invalid identifier of an extension, seconds
            out of range, a declared capability without a callback, or an invalid root.
        TypeError: the roots are a single string.
    """
    extensions = options.get("extensions")
    declared = {name: dict(settings) for name, settings in extensions.items()} if extensions else None
    level = options.get("log_level")
    if level is not None:
        check_level(level)
    return Config(
        options.get("info") or t.Implementation(name="mcp-trio", version=__version__),
        replace(Respondent(options).capabilities, extensions=declared, experimental=declared),
        versions=options.get("versions", ALL),
        probe_timeout=options.get("probe_timeout", 5.0),
        initialize_timeout=options.get("initialize_timeout"),
        keep_alive=options.get("keep_alive"),
    )


def check_level(level: str) -> None:
    """Check that a log level exists.

    Raises:
        ValueError: it does not.
    """
    if level not in t.LOGGING_LEVELS:
        raise ValueError(f"there is no log level {level!r}; there are {', '.join(t.LOGGING_LEVELS)}")


def check_headers(headers: Mapping[str, str]) -> None:
    """Check that these headers can be sent with requests.

    Raises:
        ValueError: a name or value has characters that are not allowed, a name is given twice, or
            the protocol sets that header.
    """
    seen: set[str] = set()
    for name, value in headers.items():
        lower_name = name.lower()
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid header name")
        if lower_name in _RESERVED or lower_name.startswith(_RESERVED_PREFIX):
            raise ValueError(f"the header {name} is set by the protocol")
        if lower_name in seen:
            raise ValueError(f"the header {name} is given twice")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the value of the header {name} has characters that no header may have")
        seen.add(lower_name)
