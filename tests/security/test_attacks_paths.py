"""Attacks with the URIs of a resource template, over a socket: no value leaves its directory."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import trio

from mcp_core.registry import Server
from mcp_trio import serve_http
from tests.harness.wire.http1_client import HttpWire
from tests.security.test_attacks_server import call

PATHS = {
    "../etc/passwd": "holds a `..`",
    "a/../../etc/passwd": "holds a `..`",
    "%2e%2e/etc/passwd": "holds a `..`",
    "a/%2e%2e%2f%2e%2e/b": "holds a `..`",
    "..%5cetc": "holds a `..`",
    "a\\..\\b": "holds a `..`",
    "a/..%20/b": "holds a `..`",
    "/etc/passwd": "is an absolute path",
    "%2fetc/passwd": "is an absolute path",
    "//server/share": "is an absolute path",
    "%5c%5cserver%5cshare": "is an absolute path",
    "\\\\?\\C:\\x": "is an absolute path",
    "C:/Windows": "holds a drive letter",
    "C:\\Windows": "holds a drive letter",
    "c%3a%5cWindows": "holds a drive letter",
    "C:secret.txt": "holds a drive letter",
    "a/C:/Windows": "holds a drive letter",
    "a%00.txt": "holds a control character",
    "a%0d%0aset-cookie:%20x": "holds a control character",
    "a%0a2026-01-01%20INFO%20login": "holds a control character",
    "%1b%5b2J": "holds a control character",
    "a%7f": "holds a control character",
    "a%c2%9b2J": "holds a control character",
}


@pytest.mark.requirement("RES-12")
async def test_template_values_that_leave_a_directory_are_refused() -> None:
    """The handler never sees such a value, so an author who only joins paths is safe."""
    read: list[str] = []
    server = Server("s")

    @server.resource("docs:///{+path}")
    def document(path: str) -> str:
        read.append(path)
        return "text"

    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, server))
        wire = HttpWire(await trio.open_tcp_stream("127.0.0.1", address.port))

        async def ask(path: str) -> Any:
            uri = f"docs:///{path}"
            return json.loads((await wire.ask(call(method="resources/read", uri=uri))).body)

        async with wire.stream:
            for path, reason in PATHS.items():
                error = (await ask(path))["error"]
                assert error["message"] == f"Resource not found: the value of `path` {reason}"
            assert read == []
            # Encoded twice is a name with percent signs.
            for path in ("a/b.txt", "..a/b..", "%252e%252e/a"):
                assert "result" in await ask(path)
            assert read == ["a/b.txt", "..a/b..", "%2e%2e/a"]
        nursery.cancel_scope.cancel()
