"""Names from other MCP libraries, with mcp-trio's names in their place, for error texts."""

from __future__ import annotations

from typing import Final

__all__ = [
    "CLIENT",
    "CONTEXT",
    "SERVER",
    "missing_attribute",
]

_ASGI: Final = "`mcp_trio.asgi(server)` is the ASGI application, on asyncio `mcp_asyncio_shim.asgi`"
_HTTP: Final = "`await mcp_trio.serve_http(server)` serves it over HTTP"
_IN_MEMORY: Final = "`async with connect(server) as client` gives a client that has this method"
_SESSION: Final = "its methods are those of the context: `context.elicit`, `context.sample`, ..."
_STATE: Final = (
    "`context.state` is a dict of the request, and `context.session_state` one of the session"
)
_WHOLE: Final = "`client.call_tool`, `client.list_tools` and the others give the result of MCP"

# By attribute of `Server`.
SERVER: Final[dict[str, str]] = {
    "run": "`mcp_trio.run(server)` serves it over stdio, `mcp_trio.run_http(server)` over HTTP; "
    "on asyncio it is `mcp_asyncio_shim.run(server)`",
    "run_async": "`await mcp_trio.serve_stdio(server)` serves it over stdio",
    "run_stdio_async": "`await mcp_trio.serve_stdio(server)` serves it over stdio",
    "run_http_async": _HTTP,
    "run_streamable_http_async": _HTTP,
    "run_sse_async": "`await mcp_trio.serve_http(server, sse_path=...)` also serves HTTP+SSE",
    "http_app": _ASGI,
    "streamable_http_app": _ASGI,
    "sse_app": f"{_ASGI}; `sse_path=` adds HTTP+SSE",
    "session_manager": f"{_ASGI}, and its lifespan runs the sessions",
    "custom_route": "declare the route in an application of Starlette or FastAPI, and mount "
    "`mcp_trio.asgi(server)` in it",
    "add_middleware": "`server.middleware` is the decorator of a middleware",
    "resource_template": "`server.resource` with a variable in the URI declares a template",
    "add_template": "`server.add_resource` with a variable in the URI declares a template",
    "get_tools": _IN_MEMORY,
    "list_tools": f"`server.tool` declares a tool; {_IN_MEMORY}",
    "call_tool": f"`server.tool` declares a tool; {_IN_MEMORY}",
    "list_resources": f"`server.resource` declares a resource; {_IN_MEMORY}",
    "read_resource": f"`server.resource` declares a resource; {_IN_MEMORY}",
    "list_prompts": f"`server.prompt` declares a prompt; {_IN_MEMORY}",
    "get_prompt": f"`server.prompt` declares a prompt; {_IN_MEMORY}",
    "get_context": "give the function a parameter that is annotated with `mcp_trio.Context`",
    "request_context": "give the function a parameter that is annotated with `mcp_trio.Context`",
    "settings": "what is served where is said by arguments, such as those of `mcp_trio.run_http`",
}
# By attribute of `Context`.
CONTEXT: Final[dict[str, str]] = {
    **{
        level: f'write `await context.log("{level}", ...)`, in a plain `def` `context.log_nowait`'
        for level in ("debug", "info", "notice", "warning", "error", "critical")
    },
    "warn": 'write `await context.log("warning", ...)`',
    "report_progress": "write `await context.progress(done, total)`",
    "send_log_message": "write `await context.log(level, ...)`",
    "lifespan_context": "it is `context.lifespan`",
    "request_context": "its members are here: `context.lifespan`, `context.meta`, `context.peer`",
    "session": _SESSION,
    "fastmcp": "it is `context.server`",
    "mcp_server": "it is `context.server`",
    "list_roots": "write `await context.roots()`",
    "create_message": "write `await context.sample(...)`",
    "get_state": _STATE,
    "set_state": _STATE,
    "session_id": "`context.session_state` is a dict that belongs to the session",
    "client_id": "`context.principal` is the authorized user, `context.peer` what the client says "
    "of itself",
    "client_info": "it is `context.peer.info`",
    "access_token": "what the token allows is `context.grant`",
}
# By attribute of a client.
CLIENT: Final[dict[str, str]] = {
    "initialize": "the block of `connect` begins with it; the server is `client.peer`",
    "initialize_result": "what the server declared is `client.peer`",
    "get_server_capabilities": "what the server declared is `client.peer.capabilities`",
    "server_capabilities": "what the server declared is `client.peer.capabilities`",
    "server_info": "what the server says of itself is `client.peer.info`",
    "protocol_version": "it is `client.peer.dialect.version`",
    "send_ping": "write `await client.ping()`",
    "set_logging_level": "write `await client.set_log_level(level)`",
    "send_roots_list_changed": "write `client.roots_changed()`",
    "subscribe_resource": "write `async with client.listen(uris=[...]) as changes`",
    "unsubscribe_resource": "the end of the block of `client.listen(uris=[...])` does it",
    "send_request": "write `await client.request(method, params, ...)`",
    "is_connected": "`client.is_closed` is the opposite",
    "session": "its methods are those of the client",
    "close": "leave the block `async with connect(...)`",
    **dict.fromkeys(
        ("call_tool_mcp", "list_tools_mcp", "read_resource_mcp", "get_prompt_mcp"), _WHOLE
    ),
}


def missing_attribute(owner: object, name: str, names: dict[str, str]) -> AttributeError:
    """Return the error for an attribute that `owner` lacks, with what `names` knows of it."""
    cure = names.get(name)
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return AttributeError(f"{text}: {cure}" if cure else text, name=name, obj=owner)
