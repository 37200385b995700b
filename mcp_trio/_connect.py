"""The ways to a `Client`: a server in this process, in a child process, or at the other end of a stream.

Rules of this file:

1. Each is a context manager, so that nothing it starts outlives it, and what its block raises comes out as it is.
2. What can be said about a conversation is said once, in `ClientOptions`, whatever carries it.

How a revision is found is the core's; here only is decided to start a server once more that died of the question.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from mcp_core import ALL, ConnectFailed, client_config
from mcp_core.registry import Server

from ._child import Grace, spawn
from ._client import Client
from ._memory import memory_pair
from ._nursery import open_quiet_nursery
from ._server import serve_stream

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    import trio

    from mcp_core import Config, Peer
    from mcp_core.types import Implementation

    from ._child import Child, Stderr
    from ._trace import Trace

__all__ = ["ClientOptions", "connect", "connect_stdio", "connect_stream"]


class ClientOptions(TypedDict, total=False):
    """What a client can be told about its conversation.

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
        trace: called for each message as it crosses, with `"sent"` or `"received"` and its bytes. One that raises is logged
            and called no more.
    """

    versions: Iterable[str]
    verdict: Peer | None
    info: Implementation | None
    extensions: Mapping[str, Mapping[str, Any]] | None
    probe_timeout: float
    initialize_timeout: float | None
    trace: Trace | None


def connect(
    target: Server | Sequence[str | os.PathLike[str]], **options: Unpack[ClientOptions]
) -> AbstractAsyncContextManager[Client]:
    """Connect to a server and, at the end of the block, close it: `async with connect(target) as client: ...`.

    Args:
        target: words of a command, which is started as a child process (`connect_stdio` has more to say about it), or
            a `Server`, which is run in this process.
        options: see `ClientOptions`.

    *Resource handling* and *Error handling*: as `connect_stdio`.

    Raises:
        ConnectFailed: the server could not be started, or no conversation came about.
        TypeError: the target is neither.
    """
    if isinstance(target, Server):
        return _connect_memory(target, options)
    if isinstance(target, str) or not hasattr(target, "__iter__"):
        raise TypeError(f"connect to a Server or to a command as a list of words, not to {target!r}")
    return connect_stdio(target, **options)


@asynccontextmanager
async def connect_stream(stream: trio.abc.Stream, **options: Unpack[ClientOptions]) -> AsyncIterator[Client]:
    """Connect to a server at the other end of a byte stream that carries one message a line.

    *Resource handling*: the stream is closed at the end of the block, or when no conversation comes about.
    *Error handling*: what the block raises passes through as it is, in no group.

    Raises:
        ConnectFailed: no conversation came about.
    """
    async with open_quiet_nursery() as nursery:
        client = Client(_config(options), stream, options.get("trace"))
        try:
            await client.open(nursery, options.get("verdict"))
            yield client
        finally:
            await client.aclose()


@asynccontextmanager
async def connect_stdio(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stderr: Stderr = "forward",
    grace: Grace | None = None,
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Start a server as a child process and connect to it over its stdin and stdout.

    A server that dies of the question which revisions it knows, as some old ones do, is started once more without it.

    Args:
        argv: program and arguments; no shell is involved.
        env: variables added to the inherited environment.
        cwd: its working directory.
        stderr: `"forward"` to ours, `"discard"`, or a callable that gets each line.
        grace: seconds that the child gets to end.
        options: see `ClientOptions`.

    *Resource handling*: at the end of the block the child's stdin is closed; if it does not exit, its process group gets
    SIGTERM and then SIGKILL.
    *Error handling*: what the block raises passes through as it is, in no group. A child that dies ends every pending call
    with `ConnectionLost`.

    Raises:
        ConnectFailed: the program could not be started, or no conversation came about; with its last words on stderr.
    """
    while True:
        async with (
            spawn(argv, env=env, cwd=cwd, stderr=stderr, grace=grace) as child,
            open_quiet_nursery() as nursery,
        ):
            client = Client(_config(options), child.stream, options.get("trace"))
            try:
                try:
                    await client.open(nursery, options.get("verdict"))
                except ConnectFailed as exc:
                    versions = client.versions_without_probe
                    if not versions:
                        await client.aclose()
                        await child.aclose()
                        raise ConnectFailed(f"{exc}{_last_words(child)}") from exc
                    options["versions"] = versions
                    continue
                yield client
                return
            finally:
                await client.aclose()


@asynccontextmanager
async def _connect_memory(server: Server, options: ClientOptions) -> AsyncIterator[Client]:
    ours, theirs = memory_pair()
    async with open_quiet_nursery() as nursery:
        nursery.start_soon(serve_stream, server, theirs)
        async with connect_stream(ours, **options) as client:
            yield client


def _config(options: ClientOptions) -> Config:
    return client_config(
        options.get("versions", ALL),
        info=options.get("info"),
        extensions=options.get("extensions"),
        probe_timeout=options.get("probe_timeout", 5.0),
        initialize_timeout=options.get("initialize_timeout"),
    )


def _last_words(child: Child) -> str:
    words = child.stderr_tail.decode(errors="replace").strip().splitlines()[-5:]
    ended = f" (exit status {child.returncode})" if child.returncode is not None else ""
    return ended + "".join(f"\n  its stderr: {line}" for line in words)
