"""A client's side of one conversation, without a runtime: what can be asked, and what becomes of the answer.

Rules of this file:

1. A runtime adds the waiting only: `Caller._call` and `Caller._list` are its own coroutines, and a `Waiter` wakes it. A typed
   call hands their coroutine on, so that nothing in here is asynchronous and a call is the same under every runtime.
2. What a call can be told beside its arguments is the same for all of them: `CallOptions`.
3. Whatever a callback of the caller's raises ends the caller's own call and nothing else.

It refuses to know what may be asked in which revision, which is the connection's, and how anyone waits.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack

from . import types as t
from ._calls import Listing, Pending
from ._config import Config
from ._connection import Connection
from ._dialects import ALL
from ._methods import Role
from ._standing import Standing
from ._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from msgspec import Struct

    from ._events import Peer, ProgressReceived
    from .types import RequestId

    Progress = Callable[[float, float | None, str | None], object]

__all__ = ["CallOptions", "Caller", "Waiter", "client_config"]

_TIMEOUT: Final = 60.0  # enough for most tools, and as long as a person believes that something still happens

T = TypeVar("T")


class CallOptions(TypedDict, total=False):
    """What any call can be told.

    Keys:
        timeout: seconds without an answer or a sign of progress before `CallTimeout`; 60 unless given, None for no limit.
        progress: called with progress, total and message for each progress message of this call.
        meta: further members of the request's `_meta`.
    """

    timeout: float | None
    progress: Progress | None
    meta: Mapping[str, Any] | None


class Waiter(Pending):
    """One call that somebody waits for, for `seconds` if it is not None.

    The runtime says in `wake` how to wake them, and in `prolong` how to give them the time once more.
    """

    def __init__(self, options: CallOptions) -> None:
        self.seconds = options.get("timeout", _TIMEOUT)
        self.done = False
        self._progress = options.get("progress")
        self._result: Any = None
        self._error: BaseException | None = None

    @abc.abstractmethod
    def wake(self) -> None:
        """The call is over. Told once."""

    @abc.abstractmethod
    def prolong(self) -> None:
        """There is progress: the time for the answer begins anew."""

    def end(self, result: Any, error: BaseException | None) -> None:
        if not self.done:
            self.done = True
            self._result = result
            self._error = error
            self.wake()

    def progressed(self, event: ProgressReceived) -> None:
        if self.done:
            return
        self.prolong()
        if self._progress is not None:
            try:
                self._progress(event.progress, event.total, event.message)
            except BaseException as exc:  # noqa: BLE001 - rule 3
                self.end(None, exc)

    def result(self) -> Any:
        """Once woken: the result, or the exception raised that the call ended with."""
        if self._error is not None:
            raise self._error
        return self._result


class Caller(abc.ABC):
    """One conversation with a server. Every call takes `CallOptions`, and raises beside what it names itself:

    - `PeerError`: the server answered with an error.
    - `CallTimeout`: no answer in time. The server is told that the call is cancelled, as it is when the caller is.
    - `ConnectionLost`: the conversation ended first.
    - `LocalProtocolError`: the server's revision or capabilities do not allow the call; nothing was sent.
    - `RemoteProtocolError`: the answer was no answer to this call.
    """

    def __init__(self, config: Config) -> None:
        self._conn = Connection(Role.CLIENT, config)
        self._standing = Standing(self._conn)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._conn!r}>"

    @property
    def peer(self) -> Peer:
        """Revision, capabilities, name and instructions of the server."""
        peer = self._conn.peer
        assert peer is not None
        return peer

    @property
    def versions_without_probe(self) -> list[str]:
        """After a failed opening: the revisions to speak with the same server, started once more; none if that is no use."""
        return self._standing.versions_without_probe

    # -- What the runtime adds, and what helps it ------------------------------------------------------------------------

    @abc.abstractmethod
    def _call(
        self, method: str, params: Struct | Mapping[str, Any] | None, options: CallOptions
    ) -> Coroutine[Any, Any, Any]:
        """Ask, and wait for the result."""

    @abc.abstractmethod
    def _list(self, listing: Listing[T], options: CallOptions) -> Coroutine[Any, Any, list[T]]:
        """Ask for page after page, and wait for each."""

    def _ask(
        self, method: str, params: Struct | Mapping[str, Any] | None, waiter: Waiter, options: CallOptions
    ) -> RequestId:
        """Send the request that `waiter` waits for. Raises before anything is sent, or not at all."""
        self._standing.require_alive()
        meta, progress = options.get("meta"), options.get("progress") is not None
        return self._conn.send_request(method, params, token=waiter, meta=meta, progress=progress)

    # -- Calls -----------------------------------------------------------------------------------------------------------

    def list_tools(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, list[t.Tool]]:
        """All tools, page after page (server/tools)."""
        return self._list(Listing[t.Tool]("tools/list", "tools"), options)

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, t.CallToolResult]:
        """Call a tool (server/tools). A tool that failed is a result with `is_error`; `raise_for_error()` raises it."""
        return self._call("tools/call", _named(name, arguments), options)

    def list_resources(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, list[t.Resource]]:
        """All resources, page after page (server/resources)."""
        return self._list(Listing[t.Resource]("resources/list", "resources"), options)

    def list_resource_templates(
        self, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, list[t.ResourceTemplate]]:
        """All resource templates, page after page (server/resources)."""
        listing = Listing[t.ResourceTemplate]("resources/templates/list", "resource_templates")
        return self._list(listing, options)

    def read_resource(
        self, uri: str, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, t.ReadResourceResult]:
        """Read a resource (server/resources)."""
        return self._call("resources/read", {"uri": uri}, options)

    def list_prompts(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, list[t.Prompt]]:
        """All prompts, page after page (server/prompts)."""
        return self._list(Listing[t.Prompt]("prompts/list", "prompts"), options)

    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, t.GetPromptResult]:
        """Get a prompt filled in (server/prompts). Argument values are strings."""
        return self._call("prompts/get", _named(name, arguments), options)

    def ping(self, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, object]:
        """Find out whether the server answers: `ping`, or in a revision without it `server/discover`."""
        return self._call(self.peer.dialect.ping, None, options)

    def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> Coroutine[Any, Any, Any]:
        """Send any request: a method of MCP gives its result type, another one a dict."""
        return self._call(method, params, options)


def client_config(
    versions: Iterable[str] = ALL,
    *,
    info: t.Implementation | None = None,
    extensions: Mapping[str, Mapping[str, Any]] | None = None,
    probe_timeout: float = 5.0,
    initialize_timeout: float | None = None,
) -> Config:
    """What a client says about itself.

    Args:
        versions: revisions of MCP to speak. With several the newest that both sides know is found out; one fixes it.
        info: what the client calls itself; this library by default.
        extensions: what the client can do beyond MCP, by identifier, each with its settings. Told as the capability
            `extensions` in 2026-07-28, and as `experimental`, which every revision has.
        probe_timeout: seconds of silence after which a server is taken for one that begins with a handshake.
        initialize_timeout: seconds for that handshake; None waits, as a process may start slowly.

    Raises:
        ValueError: a version is no revision of MCP.
    """
    told = {name: dict(settings) for name, settings in extensions.items()} if extensions else None
    return Config(
        info or t.Implementation(name="mcp-trio", version=__version__),
        t.ClientCapabilities(extensions=told, experimental=told),
        versions=versions,
        probe_timeout=probe_timeout,
        initialize_timeout=initialize_timeout,
    )


def _named(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"name": name} if arguments is None else {"name": name, "arguments": arguments}
