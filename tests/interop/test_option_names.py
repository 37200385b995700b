"""Every option of the official SDK's server is one here, or the error says what to write."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.mcpserver import MCPServer

import mcp_trio
from mcp_core._other_names import other_option

pytestmark = pytest.mark.interop
# What programs rarely give: handlers of the low-level server for what is served here by itself.
SERVED = {
    "get_tool_input_schema",
    *(
        f"on_{name}"
        for name in """
            list_resource_templates subscribe_resource unsubscribe_resource subscriptions_listen
            set_logging_level ping progress
        """.split()
    ),
}


@pytest.mark.parametrize(
    ("theirs", "ours", "name"),
    [
        (MCPServer, mcp_trio.Server, "Server()"),
        (LowLevelServer, mcp_trio.Server, "Server()"),
        (MCPServer.run_streamable_http_async, mcp_trio.serve_http, "serve_http()"),
        (MCPServer.run_streamable_http_async, mcp_trio.run_http, "run_http()"),
        (MCPServer.streamable_http_app, mcp_trio.asgi, "the server"),
        (MCPServer.run, mcp_trio.run, "run()"),
        (MCPServer.tool, mcp_trio.Server.tool, "@server.tool"),
        (MCPServer.resource, mcp_trio.Server.resource, "@server.resource"),
    ],
)
def test_option_of_the_official_sdk_is_an_option_or_explained(
    theirs: Any, ours: Any, name: str
) -> None:
    known = inspect.signature(ours).parameters
    options = [
        each.name
        for each in inspect.signature(theirs).parameters.values()
        if each.kind is not each.VAR_KEYWORD and each.name not in {"self", *known, *SERVED}
    ]
    assert [each for each in options if not other_option(name, each)] == []
