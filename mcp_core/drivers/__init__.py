"""Parts of drivers that never wait: options, the state of calls, keywords, text for people.

What waits is in `mcp_core.runtime`, and what concerns child processes in `mcp_core.processes`. Each
name is imported on first use, so that a server loads nothing of a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_core._on_first_use import names_on_first_use as names_on_first_use
from mcp_core._on_first_use import type_on_first_use as type_on_first_use

if TYPE_CHECKING:
    from mcp_core._keywords import NoOptions as NoOptions
    from mcp_core._keywords import check_keywords as check_keywords
    from mcp_core._keywords import check_keywords_of as check_keywords_of
    from mcp_core._keywords import refuse_keywords as refuse_keywords
    from mcp_core._keywords import shows_keywords as shows_keywords
    from mcp_core._launch_secrets import launch_secrets as launch_secrets
    from mcp_core._secret_patterns import is_secret_field as is_secret_field
    from mcp_core._text import ByteEscaper as ByteEscaper
    from mcp_core._text import shorten_text as shorten_text
    from mcp_core.client._calls import CallOptions as CallOptions
    from mcp_core.client._calls import CallSteps as CallSteps
    from mcp_core.client._calls import CallWait as CallWait
    from mcp_core.client._calls import PendingCall as PendingCall
    from mcp_core.client._handshake_cache import HandshakeCache as HandshakeCache
    from mcp_core.client._handshake_cache import server_key as server_key
    from mcp_core.client._options import NETWORK_INITIALIZE_TIMEOUT as NETWORK_INITIALIZE_TIMEOUT
    from mcp_core.client._options import CallbackOptions as CallbackOptions
    from mcp_core.client._options import ClientConfigOptions as ClientConfigOptions
    from mcp_core.client._options import answer_form as answer_form
    from mcp_core.client._options import client_config as client_config
    from mcp_core.client._status import ConnectionStatus as ConnectionStatus
    from mcp_core.protocol.messages._pending import PendingRequest as PendingRequest
    from mcp_core.protocol.messages._pending import deliver as deliver
    from mcp_core.protocol.schema._json_schema import InvalidSchema as InvalidSchema
    from mcp_core.protocol.schema._json_schema import UntrustedSchema as UntrustedSchema

__all__ = [
    "NETWORK_INITIALIZE_TIMEOUT",
    "ByteEscaper",
    "CallOptions",
    "CallSteps",
    "CallWait",
    "CallbackOptions",
    "ClientConfigOptions",
    "ConnectionStatus",
    "HandshakeCache",
    "InvalidSchema",
    "NoOptions",
    "PendingCall",
    "PendingRequest",
    "UntrustedSchema",
    "answer_form",
    "check_keywords",
    "check_keywords_of",
    "client_config",
    "deliver",
    "is_secret_field",
    "launch_secrets",
    "names_on_first_use",
    "refuse_keywords",
    "server_key",
    "shorten_text",
    "shows_keywords",
    "type_on_first_use",
]

_MODULES = {
    "mcp_core._keywords": (
        "NoOptions",
        "check_keywords",
        "check_keywords_of",
        "refuse_keywords",
        "shows_keywords",
    ),
    "mcp_core._launch_secrets": ("launch_secrets",),
    "mcp_core._secret_patterns": ("is_secret_field",),
    "mcp_core._text": ("ByteEscaper", "shorten_text"),
    "mcp_core.client._calls": ("CallOptions", "CallSteps", "CallWait", "PendingCall"),
    "mcp_core.client._handshake_cache": ("HandshakeCache", "server_key"),
    "mcp_core.client._options": (
        "CallbackOptions",
        "ClientConfigOptions",
        "NETWORK_INITIALIZE_TIMEOUT",
        "answer_form",
        "client_config",
    ),
    "mcp_core.client._status": ("ConnectionStatus",),
    "mcp_core.protocol.messages._pending": ("PendingRequest", "deliver"),
    "mcp_core.protocol.schema._json_schema": ("InvalidSchema", "UntrustedSchema"),
}

__getattr__ = names_on_first_use(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
