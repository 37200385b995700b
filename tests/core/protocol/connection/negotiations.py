"""Every way in which a version negotiation can go, in `negotiations.txt`.

    python -m tests.core.protocol.connection.negotiations

writes the file again. Replies after which everything is the same are on one line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Raw

from mcp_core import DIALECTS, Config, ConnectFailed, McpTrioError, Peer, PeerError
from mcp_core import types as t
from mcp_core.protocol.connection._negotiation import (
    OpeningReply,
    VersionNegotiation,
    is_modern_error,
    opening_params,
)
from tests.harness.jsonrpc import A, B, C, D, E, client_config
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["kept_negotiations", "negotiations", "ways_of"]

_FILE: Final = Path(__file__).with_name("negotiations.txt")
# Texts of msgspec, which another release may change.
_WORDS: Final = re.compile(
    r"(?:Expected `[^`]*`, got `[^`]*`|Object missing required field `[^`]*`)(?: - at `[^`]*`)?"
)
_MOST: Final = 4  # replies, one after the other


def _result(**members: Any) -> OpeningReply:
    return OpeningReply(result=Raw(json.dumps(members).encode()))


def _discovered(*versions: Any, **members: Any) -> OpeningReply:
    return _result(
        **{"resultType": "complete", "supportedVersions": versions, "capabilities": {}, **members}
    )


def _initialized(version: Any, **members: Any) -> OpeningReply:
    info = {"name": "s", "version": "1"}
    return _result(
        **{"protocolVersion": version, "capabilities": {}, "serverInfo": info, **members}
    )


def _error(code: int, *, status: int | None = None, data: Any = UNSET) -> OpeningReply:
    return OpeningReply(error=PeerError(code, "no", data), status=status)


_DISCOVERED: Final = {
    "discovered this one": _discovered(E, "odd"),
    "discovered a handshake": _discovered(D, A),
    "discovered another": _discovered("2030-01-01"),
    "discovered with all": _discovered(
        E,
        instructions="be brief",
        _meta={"io.modelcontextprotocol/serverInfo": {"name": "s", "version": 2, "title": "S"}},
    ),
    "discovered with a broken name": _discovered(
        E, _meta={"io.modelcontextprotocol/serverInfo": {"name": 5}}, instructions=5
    ),
    "discovered of another kind": _discovered(E, resultType="input_required"),
}
_INITIALIZED: Final = {
    "initialized": _initialized(D, instructions="be brief"),
    "initialized in 2024-11-05": _initialized(A, serverInfo={"name": "", "version": ""}),
    "initialized in this one": _initialized(E),
    "initialized without a name": _result(protocolVersion=D, capabilities={"tools": 5}),
}
_REFUSED: Final = {
    "malformed": _result(),
    "no method": _error(-32601),
    "no method over HTTP": _error(-32601, status=404),
    "no method with 400": _error(-32601, status=400),
    "no params": _error(-32602),
    "internal": _error(-32603),
    "internal, not allowed": _error(-32603, status=401),
    "unsupported, this one": _error(-32022, data={"supported": [E, 5]}),
    "unsupported, a handshake": _error(-32022, data={"supported": [D]}),
    "unsupported, another": _error(-32022, data={"supported": ["2030-01-01"]}),
    "unsupported, none": _error(-32022, data={"supported": "x"}),
    "unsupported, too many requests": _error(-32022, status=429, data={"supported": []}),
    "params that list this one": _error(-32602, data={"supported": [E]}),
    "header mismatch": _error(-32020),
    "header mismatch over HTTP": _error(-32020, status=400),
    "missing capability": _error(-32021),
    "timeout": OpeningReply(),
    **{
        f"failure with {status}": OpeningReply(failure=McpTrioError("lost"), status=status)
        for status in (None, 0, 400, 403, 404, 499, 500)
    },
}
_REPLIES: Final = {**_DISCOVERED, **_INITIALIZED, **_REFUSED}
_LATE: Final = Raw(
    b'{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}'
)


class _Way:
    """One negotiation, played up to its end or up to the last reply that is given."""

    def __init__(self, config: Config, known: Peer | None, replies: list[str]) -> None:
        self.negotiation = VersionNegotiation(config, known)
        self.is_over = False
        self.lines = [self._advance(None, 0)]
        for number, name in enumerate(replies, 1):
            if name == "timeout, and a late result":
                id = self.negotiation.time_out()
                self.lines.append(self._advance(OpeningReply(), number))
                accepted = self.negotiation.accept_late_response(id, _LATE)
                self.lines[-1] += f", late {accepted}"
                continue
            if name == "timeout":
                self.negotiation.time_out()
            self.lines.append(self._advance(_REPLIES[name], number))

    def _advance(self, reply: OpeningReply | None, number: int) -> str:
        if reply is not None:
            reply = OpeningReply(
                result=reply.result,
                error=reply.error,
                status=reply.status,
                failure=reply.failure,
                problems={},
            )
        try:
            found = self.negotiation.advance(reply, number, 10.0 * number)
        except ConnectFailed as exc:
            self.is_over = True
            cause = type(exc.__cause__).__name__
            return f"{type(exc).__name__}: {exc} (from {cause}) {self._facts(reply)}"
        if isinstance(found, Peer):
            self.is_over = True
            return (
                f"{found.dialect.version} {found.info} {found.instructions!r} {found.capabilities}"
                f" {self._facts(reply)}"
            )
        return f"{found.method} in {found.dialect.version} {self._facts(reply)}"

    def _facts(self, reply: OpeningReply | None) -> str:
        negotiation = self.negotiation
        marks = [
            *(["probing"] * negotiation.probing),
            *(["needs a handshake"] * negotiation.needs_handshake),
            *(reply.problems if reply is not None else ()),
        ]
        return f"until {negotiation.deadline} {', '.join(marks)}".rstrip()


def _ways(config: Config, known: Peer | None, replies: list[str]) -> Iterator[str]:
    """Yield what follows each further reply."""
    names = [*_REPLIES, *(["timeout, and a late result"] * (not replies))]
    if len(replies) == 2:
        names = ["discovered this one", "initialized", "no method", "internal", "timeout"]
    if len(replies) > 2:
        names = ["discovered this one", "no params", "unsupported, this one"]
    same: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        way = _Way(config, known, [*replies, name])
        lines = [way.lines[-1]]
        if not way.is_over and len(replies) + 1 < _MOST:
            lines += _ways(config, known, [*replies, name])
        same.setdefault(tuple(lines), []).append(name)
    for lines_of, which in same.items():
        yield f"{', '.join(which)}: {lines_of[0]}"
        yield from (f"  {line}" for line in lines_of[1:])


_CAPABILITIES: Final = t.ServerCapabilities()
# The revisions that a client speaks, and the peer that it knows from an earlier connection.
_CONFIGS: Final[dict[str, tuple[list[str], str | None]]] = {
    "all": ([A, B, C, D, E], None),
    "only this one": ([E], None),
    "only handshakes": ([A, D], None),
    "known to need a handshake": ([D, E], D),
    "known to need none": ([D, E], E),
    "known in another": ([E], D),
}


def negotiations() -> list[str]:
    """Return the names of the clients, and of what else is kept."""
    return [*_CONFIGS, "errors", "params"]


def ways_of(name: str) -> str:
    """Return the ways in which a client's negotiation can go."""
    lines: Iterator[str] | list[str]
    if name == "errors":
        lines = [
            f"{code} {status}: {is_modern_error(PeerError(code, ''), status)}"
            for code in (-32601, -32602, -32020, -32021, -32022, -32603)
            for status in (None, 400, 404)
        ]
    elif name == "params":
        lines = []
        for version in (D, E):
            config = client_config(version)
            request = VersionNegotiation(config, None).advance(None, 1, 0.0)
            assert not isinstance(request, Peer)
            lines.append(str(opening_params(request, config)))
    else:
        versions, earlier = _CONFIGS[name]
        config = client_config(*versions, initialize_timeout=7.0)
        known = None if earlier is None else Peer(DIALECTS[earlier], _CAPABILITIES)
        way = _Way(config, known, [])
        lines = [way.lines[0], *([] if way.is_over else _ways(config, known, []))]
    text = "\n".join(f"  {line}" for line in lines)
    return _WORDS.sub("...", text)


def kept_negotiations() -> dict[str, str]:
    """Return the ways in the file, by the names of the clients."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: ways_of(name) for name in negotiations()})
