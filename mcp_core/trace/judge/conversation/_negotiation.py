"""Both sides' revisions and capabilities, as a conversation shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._message import MODERN_ERRORS, holds_until
from mcp_core.trace.judge._methods import needs_modern
from mcp_core.trace.judge._revisions import (
    FACTS,
    MODERN,
    STATEFUL,
    Revisions,
    is_known,
    is_stateful,
)
from mcp_core.trace.judge._sides import CLIENT, SERVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_core.trace.judge._message import SeenMessage, SeenRequest
    from mcp_core.trace.judge._sides import Side

__all__ = ["Negotiation", "revisions_of_initialize"]

_UNSUPPORTED_VERSION: Final = -32022
_MAX_REJECTED: Final = 100  # versions


class Negotiation:
    """The revisions and capabilities of a conversation.

    Attributes:
        selected: the revision that a handshake selected, empty before.
        modern: the revisions without a handshake in which the client has sent requests.
        has_served_modern: the server has sent a result in one of them.
        has_client_message: a client message was seen.
        opened_otherwise: the client's first message wasn't a request of a revision without a
            handshake. A server of both eras can choose an era by the first message.
        initialize: the request that began the handshake, or None.
        handshake_answered, initialized: the lines of its response and of `initialized`, 0 before.
        answered_version: the version that the server has selected in the handshake.
        client_capabilities, server_capabilities: as declared in the handshake, None if unknown.
        discovered: the last result of `server/discover`, or None.
        probe_error: the error of the last `server/discover`, or None.
        rejected: by version that the server rejected and hasn't served since: the line and the
            time of the first error, and `data.supported` of the last one.
        server_versions: the versions that this server is known to support, in all conversations.
    """

    def __init__(self, server_versions: set[str]) -> None:
        self.server_versions = server_versions
        self.selected = ""
        self.modern: Revisions = ()
        self.has_served_modern = False
        self.has_client_message = False
        self.opened_otherwise = False
        self.initialize: SeenRequest | None = None
        self.handshake_answered = 0
        self.initialized = 0
        self.answered_version: Any = None
        self.client_capabilities: Mapping[str, Any] | None = None
        self.server_capabilities: Mapping[str, Any] | None = None
        self.discovered: Mapping[str, Any] | None = None
        self.probe_error: SeenMessage | None = None
        self.rejected: dict[str, tuple[int, float, list[Any]]] = {}
        self._discovered_until = 0.0  # seconds

    @property
    def is_modern(self) -> bool:
        """True if the client has sent a request of a revision without a handshake."""
        return bool(self.modern)

    def candidates(self, sender: Side) -> Revisions:
        """Return the revisions that a message can be of if it doesn't show its own.

        A client's request without a handshake may only be a test whether the server speaks that
        revision. Once the client has begun a handshake, its messages belong to that: its other
        requests name their revision.
        """
        if sender == CLIENT and self.initialize is not None:
            return (self.selected,) if self.selected else STATEFUL
        is_modern = sender == CLIENT or self.has_served_modern
        if self.modern and not is_modern and self.initialize is None:
            return STATEFUL + self.modern
        modern = self.modern if is_modern else ()
        if self.selected:
            return (self.selected, *modern)
        if self.initialize is not None:
            return STATEFUL + modern
        return modern or STATEFUL + MODERN

    def answers_modern(self, response: SeenMessage | None) -> bool:
        """Return True if the server certainly speaks a revision without a handshake.

        A server of an earlier revision can serve its requests, too, by ignoring unknown members. A
        server of both eras can choose by the client's first message. Some responses are proof by
        themselves, so the caller passes `response`.
        """
        if self.has_served_modern:
            return True
        if not self.opened_otherwise and not self.server_versions.isdisjoint(MODERN):
            return True
        if response is None:
            return False
        if response.error is not None:
            return response.code in MODERN_ERRORS
        asked = response.request.method if response.request is not None else ""
        return needs_modern(asked) or isinstance(lookup(response.result, "resultType"), str)

    def capabilities(self, side: Side, message: SeenMessage) -> Mapping[str, Any] | None:
        """Return the capabilities of `side` at the time of `message`, or None if unknown."""
        if message.is_modern:
            if side == SERVER:
                found = lookup(self.discovered, "capabilities")
            else:
                request = message.request
                meta = message.meta if request is None else request.meta
                found = meta.get(META + "clientCapabilities")
            return found if isinstance(found, dict) else None
        if not all(FACTS[each].handshake for each in message.revisions):
            return None
        return self.server_capabilities if side == SERVER else self.client_capabilities

    def open(self, *, is_modern: bool) -> None:
        """Record how the client's first text opens the conversation."""
        self.has_client_message, self.opened_otherwise = True, not is_modern

    def receive_modern_request(self, message: SeenMessage, *, is_untimed: bool) -> None:
        """Record a request of a revision without a handshake."""
        self.modern = tuple(each for each in MODERN if each in self.modern + message.revisions)
        if is_untimed or message.time > self._discovered_until:
            self.discovered = None

    def receive_initialize(self, request: SeenRequest) -> None:
        """Record a client's request for a handshake."""
        if self.initialize is None or not self.handshake_answered:
            self.initialize = request

    def receive_result(
        self, message: SeenMessage, request: SeenRequest, result: Mapping[str, Any]
    ) -> None:
        """Record the result of `initialize` or `server/discover`."""
        if request.method == "server/discover":
            self.discovered, self._discovered_until = result, holds_until(message)
            self.probe_error = None
            versions = result.get("supportedVersions")
            for version in versions if isinstance(versions, list) else ():
                self._add_version(version)
        elif not self.handshake_answered:
            self.handshake_answered = message.line
            self.selected = message.revision
            self.answered_version = result.get("protocolVersion")
            self._add_version(self.answered_version)
            found = result.get("capabilities")
            self.server_capabilities = found if isinstance(found, dict) else None
            found = request.params.get("capabilities")
            self.client_capabilities = found if isinstance(found, dict) else None

    def receive_error(self, message: SeenMessage, request: SeenRequest) -> None:
        """Record an error, which can be about a version."""
        if request.method == "server/discover":
            self.probe_error = message
        version = request.meta.get(META + "protocolVersion")
        if message.code == _UNSUPPORTED_VERSION and isinstance(version, str):
            supported = lookup(message.error, "data", "supported")
            if isinstance(supported, list) and len(self.rejected) < _MAX_REJECTED:
                line, time, _ = self.rejected.get(version, (message.line, message.time, ()))
                self.rejected[version] = line, time, supported

    def receive_served_version(self, request: SeenRequest) -> None:
        """Record that a request has a result: its version isn't rejected any more."""
        version = request.meta.get(META + "protocolVersion") if self.rejected else None
        if isinstance(version, str):
            self.rejected.pop(version, None)

    def _add_version(self, version: Any) -> None:
        if is_known(version):
            self.server_versions.add(version)


def revisions_of_initialize(members: Mapping[str, Any] | None) -> Revisions:
    """Return the revisions that the params or the result of `initialize` can be of."""
    version = lookup(members, "protocolVersion")
    return (version,) if is_stateful(version) else STATEFUL
