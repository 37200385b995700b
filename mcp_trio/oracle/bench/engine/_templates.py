"""Requests as prepared bytes with a place for the id.

Ids have ten digits, so all requests of one template are equally long, and an id is found in a
response by its digits.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from mcp_core import __version__
from mcp_core.http import message_headers, param_headers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mcp_core import Dialect
    from mcp_core.http import ParamHeaders
    from mcp_trio.oracle.bench._requests import PreparedCall

__all__ = [
    "INFO",
    "HttpTemplates",
    "Template",
    "Templates",
    "new_ids",
    "read_mirrored",
    "response_to",
]

_FIRST_IDS: Final = 1_000_001  # the first seven digits
DIGITS: Final = 10
INFO: Final = {"name": "mcp-trio bench", "version": __version__}
_META: Final = "io.modelcontextprotocol/"
_BEGIN: Final = b'{"jsonrpc":"2.0","id":'
# Templates that are kept. A conversation makes a new call each time, because its ids change.
_MAX_TEMPLATES: Final = 4096


def new_ids() -> Iterator[bytes]:
    """Return the ids of a load, as digits."""
    ends = [b"%03d" % number for number in range(1000)]  # put together they cost least
    begins = map(b"%d".__mod__, itertools.count(_FIRST_IDS))
    return itertools.chain.from_iterable(map(begin.__add__, ends) for begin in begins)


class Template(NamedTuple):
    """A request is `head`, the id's digits, and `tail`."""

    head: bytes
    tail: bytes


class Templates:
    """The templates of a load over stdio: lines. Each call is encoded once.

    Args:
        dialect: the revision that is spoken.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        # By the identity of the call, which is kept beside it so that it stays alive.
        self._made: dict[int, tuple[PreparedCall, Template]] = {}

    def of(self, call: PreparedCall) -> Template:
        """Return the template of a call."""
        found = self._made.get(id(call))
        if found is not None:
            return found[1]
        if len(self._made) >= _MAX_TEMPLATES:
            self._made.clear()
        template = self.encode(call.method, call.params)
        self._made[id(call)] = call, template
        return template

    def encode(self, method: str, params: Mapping[str, Any] | None) -> Template:
        """Return the template of a request.

        Raises:
            TypeError: the params aren't JSON values.
        """
        return Template(_BEGIN, self._tail(method, self.complete(params)) + b"\n")

    def complete(self, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return params with the `_meta` that the revision requires in each request."""
        if self._dialect.stateful:
            return params
        required = {
            f"{_META}protocolVersion": self._dialect.version,
            f"{_META}clientInfo": INFO,
            f"{_META}clientCapabilities": {},
        }
        params = params or {}
        return {**params, "_meta": {**required, **(params.get("_meta") or {})}}

    def _tail(self, method: str, params: Mapping[str, Any] | None) -> bytes:
        message: dict[str, Any] = {"method": method}
        if params is not None:
            message["params"] = params
        return b"," + msgspec.json.encode(message)[1:]


class HttpTemplates(Templates):
    """The templates of one HTTP connection: a head with the session's headers, and a body.

    Args:
        dialect: the revision that is spoken.
        first_lines: the request line and the headers of every request.
        mirrored: for each tool, which of its arguments headers repeat.
    """

    def __init__(
        self, dialect: Dialect, first_lines: bytes, mirrored: Mapping[str, ParamHeaders]
    ) -> None:
        super().__init__(dialect)
        self._first_lines = first_lines
        self._mirrored = mirrored

    def encode(self, method: str, params: Mapping[str, Any] | None) -> Template:
        """Return the template of a POST with one request."""
        params = self.complete(params)
        tail = self._tail(method, params)
        lines = [self._first_lines]
        if self._dialect.http.mirrored_headers:
            name = params.get("name") if params and method == "tools/call" else None
            message = {"method": method, "params": params}
            mirrored = self._mirrored.get(str(name))
            lines += [b"%b: %b\r\n" % header for header in message_headers(message, mirrored)]
        lines.append(b"Content-Length: %d\r\n\r\n" % (len(_BEGIN) + DIGITS + len(tail)))
        return Template(b"".join(lines) + _BEGIN, tail)


def read_mirrored(tools: Iterable[Any]) -> dict[str, ParamHeaders]:
    """Return for each listed tool which of its arguments headers repeat.

    Tools that a client would leave out, because their annotations are invalid, repeat none.
    """
    found: dict[str, ParamHeaders] = {}
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        schema = tool.get("inputSchema") if isinstance(tool, dict) else None
        if isinstance(name, str) and isinstance(schema, dict):
            try:
                found[name] = param_headers(schema)
            except ValueError:
                continue
    return found


def response_to(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response to a server's request: empty for a ping, else an error."""
    if message.get("method") == "ping":
        return {"id": message.get("id"), "result": {}}
    error = {"code": -32601, "message": "a load answers no requests; use --through client"}
    return {"id": message.get("id"), "error": error}
