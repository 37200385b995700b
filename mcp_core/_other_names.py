"""Names from other MCP libraries, with mcp-trio's names in their place, for error texts."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "CLIENT",
    "CONTEXT",
    "OPTIONS",
    "SERVER",
    "missing_attribute",
    "note_field_name",
    "other_option",
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
    "custom_route": "`mcp_trio.serve_http(server, routes=...)` has plain responses; declare others "
    "in an application of Starlette or FastAPI, and mount `mcp_trio.asgi(server)` in it",
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
    "create_initialization_options": "`Server(name, version=..., instructions=...)` has them",
    "get_capabilities": "they follow from what is declared",
    "list_resource_templates": "`server.resource` with a variable in the URI declares a template",
    "import_server": "`server.mount(other, prefix)` offers what another server declares",
    "add_provider": "`server.mount(other, prefix)` offers what another server declares",
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
    "request_headers": "they are `context.headers`",
    "send_notification": "write `await context.notify(method, params)`",
    "send_request": "write `await context.request(method, params)`",
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
    "send_notification": "write `await client.notify(method, params)`",
    "is_connected": "`client.is_closed` is the opposite",
    "session": "its methods are those of the client",
    "close": "leave the block `async with connect(...)`",
    **dict.fromkeys(
        ("call_tool_mcp", "list_tools_mcp", "read_resource_mcp", "get_prompt_mcp"), _WHOLE
    ),
}


_BY_SERVER: Final = "`mcp_trio.run_http(server, {}=...)` has it"
_BY_HTTP: Final = "`mcp_trio.serve_http(server, {}=...)` has it"
_AUTH: Final = (
    "give an `OAuthResourceServer` or `ApiKeys` to what serves: "
    "`mcp_trio.run_http(server, auth=...)`"
)
_SESSIONS: Final = "write `sessions=False`, which `mcp_trio.serve_http` and `mcp_trio.asgi` have"
_HOSTS: Final = (
    "name them in `hosts` and `origins`, which `mcp_trio.serve_http` and `mcp_trio.asgi` have"
)
_LIMITS: Final = "it is one of `HttpLimits`, for `mcp_trio.serve_http(server, limits=...)`"
_LEVEL: Final = (
    "set the level of the logger `mcp_trio` or `mcp_asyncio_shim`, by Python's `logging`"
)
_TWICE: Final = "a name that is declared twice always raises `DeclarationError`"
_NO_TAGS: Final = (
    "there are no tags: put what a client may know into `meta`, and keep the rest yourself"
)
_OVER_HTTP: Final = (
    "this serves over stdio: `mcp_trio.run_http(server)` serves over HTTP, "
    "on asyncio `mcp_asyncio_shim.asgi(server)` in an ASGI server"
)
_STDIO: Final[dict[str, str]] = dict.fromkeys(
    """
    transport host port path mount_path sse_path streamable_http_path auth stateless stateless_http
    json_response reply hosts origins middleware uvicorn_config transport_security
    """.split(),
    _OVER_HTTP,
)
_BY_CALL: Final = "each call has it: `client.call_tool(name, arguments, {}=...)`"
# By function, and by an option that others have: the option here or, as a text with spaces, what to
# write. A function's own texts come before those under "".
OPTIONS: Final[dict[str, dict[str, str]]] = {
    "": {
        "tags": _NO_TAGS,
        # of clients and their calls
        "elicitation_handler": "on_elicit",
        "elicitation_callback": "on_elicit",
        "sampling_handler": "on_sample",
        "sampling_callback": "on_sample",
        "sampling_capabilities": "sampling",
        "roots": "on_roots",
        "list_roots_callback": "on_roots",
        "log_handler": "on_log",
        "logging_callback": "on_log",
        "client_info": "info",
        "init_timeout": "initialize_timeout",
        "progress_handler": "progress",
        "progress_callback": "progress",
        "read_timeout_seconds": "timeout",
        "request_timeout": "timeout",
        "prior_discover": "known_peer",
        "verify": "tls",
        "args": "write the command and its arguments as one list of words",
        "message_handler": "each notification has an option, such as `on_log`; changes of lists "
        "come from `client.listen`, and `on_notification` has those of extensions",
        "raise_on_error": "write `result.raise_for_error()`",
        # of what serves over HTTP
        "streamable_http_path": "path",
        "allowed_hosts": "hosts",
        "allowed_origins": "origins",
        "transport_security": _HOSTS,
        "host_origin_protection": _HOSTS,
        "stateless": _SESSIONS,
        "stateless_http": _SESSIONS,
        "json_response": 'write `reply="json"`',
        "transport": "Streamable HTTP and WebSockets are served always, and HTTP+SSE at `sse_path`",
        "host": "the program that serves the application has it; the server's names are `hosts`",
        "port": "the program that serves the application has it",
        "retry_interval": "each stream asks clients to reconnect after a second",
        "event_store": "events are kept in memory, within the `HttpLimits` of "
        "`mcp_trio.serve_http(server, limits=...)`",
        "max_request_body_size": "it is `Limits.message`, for `Server(limits=...)`",
        "max_sessions": _LIMITS,
        "session_idle_timeout": _LIMITS,
        "uvicorn_config": "`mcp_trio.serve_http` has options of its own, and uvicorn can serve "
        "`mcp_trio.asgi`",
        "middleware": "wrap `mcp_trio.asgi(server)`, and serve that with an ASGI server",
        "show_banner": "nothing is printed",
        "log_level": _LEVEL,
        "debug": _LEVEL,
        # of declarations
        "structured_output": "the return annotation decides, or `output_schema`",
        "run_in_thread": "thread",
        "security": "each variable is checked; `unchecked=` leaves some out",
        "enabled": "`server.disable(name)` hides it from all clients, `visible=` from some",
    },
    "connect()": {
        **dict.fromkeys(
            ("timeout", "read_timeout_seconds", "request_timeout"), _BY_CALL.format("timeout")
        ),
        **dict.fromkeys(("progress_handler", "progress_callback"), _BY_CALL.format("progress")),
        "auto_initialize": "the block of `connect` begins with it",
        "mode": "`versions` has the revisions that may be spoken",
    },
    "@server.tool": {
        "auth": "scopes are given by name: `OAuthResourceServer(..., tool_scopes={...})`, and "
        "`visible=` hides it from callers without them",
        "exclude_args": "a parameter that the model must not see is one of type `Context`",
    },
    "mount()": {
        "namespace": "prefix",
        "as_proxy": "a mounted server always has its own lifespan and middleware",
        "tool_names": "the prefix is before each name; give single tools other names by `name=`",
        "path": "`mcp_trio.serve_http` takes several servers by path",
    },
    "Server()": {
        "host": _BY_SERVER.format("host"),
        "port": _BY_SERVER.format("port"),
        "path": _BY_SERVER.format("path"),
        "mount_path": _BY_SERVER.format("path"),
        "streamable_http_path": _BY_SERVER.format("path"),
        "sse_path": _BY_SERVER.format("sse_path"),
        "message_path": "HTTP+SSE has one path: " + _BY_SERVER.format("sse_path"),
        "json_response": 'write `mcp_trio.run_http(server, reply="json")`',
        "stateless_http": "write `mcp_trio.serve_http(server, sessions=False)`",
        "transport_security": _BY_HTTP.format("hosts"),
        "auth": _AUTH,
        "token_verifier": _AUTH,
        "auth_server_provider": "servers check tokens, and issue none: " + _AUTH,
        "middleware": "declare each with the decorator `server.middleware`",
        "tools": "declare each with `server.add_tool(function)`",
        "resources": "declare each with `server.add_resource(uri, function)`",
        "on_list_tools": "declare each with `server.tool`",
        "on_call_tool": "declare each with `server.tool`",
        "on_list_resources": "declare each with `server.resource`",
        "on_read_resource": "declare each with `server.resource`",
        "on_list_prompts": "declare each with `server.prompt`",
        "on_get_prompt": "declare each with `server.prompt`",
        "on_completion": "declare each with `server.completion`",
        "on_roots_list_changed": "declare it with `server.on_roots_changed`",
        "dependencies": "install them where the server runs, which starts no environment",
        "include_tags": _NO_TAGS,
        "exclude_tags": _NO_TAGS,
        "on_duplicate": _TWICE,
        **{
            f"{prefix}_duplicate_{kind}": _TWICE
            for prefix in ("on", "warn_on")
            for kind in ("tools", "resources", "prompts")
        },
        "mask_error_details": "clients never see the text of an exception, only of a `ToolError`",
        "strict_input_validation": 'arguments are always checked strictly: "3" is no integer',
        "list_page_size": "page_size",
        "experimental_capabilities": "extensions",
        "request_state_security": "state_keys",
        **dict.fromkeys(("cache_hints", "cache_ttl", "cache_scope"), "cache"),
        "sampling_handler": "there is no other model: `context.sample` asks the client's",
        "session_state_store": "`context.session_state` is a dict in memory",
        "client_log_level": "the client sets it",
        "resource_security": "`server.resource` checks each variable; `unchecked=` leaves some out",
        "dereference_schemas": "schemas are sent as they are declared",
        "providers": "what a server has is declared, by `server.add_tool` and the like",
        "transforms": "what a server has is declared, by `server.add_tool` and the like",
    },
    "run_http()": dict.fromkeys(
        """
        tls origins routes sessions limits trusted_proxies subprotocols max_connections on_exchange
        stop
        """.split(),
        "`mcp_trio.serve_http` has it",
    ),
    "run()": _STDIO,
    "serve_stdio()": _STDIO,
}


def other_option(function: str, name: str) -> str:
    """Return what `OPTIONS` has for an option of `function`, "" if nothing."""
    return OPTIONS.get(function, {}).get(name) or OPTIONS[""].get(name, "")


def missing_attribute(owner: object, name: str, names: dict[str, str]) -> AttributeError:
    """Return the error for an attribute that `owner` lacks, with what `names` knows of it."""
    cure = names.get(name)
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return AttributeError(f"{text}: {cure}" if cure else text, name=name, obj=owner)


def note_field_name(exc: BaseException) -> None:
    """Add a note to the error for an argument such as `type="text"` or `mimeType=...` of a type.

    The types of other libraries take these.
    """
    if type(exc) is not TypeError:
        return
    found = re.fullmatch(r"Unexpected keyword argument '(\w+)'", str(exc))
    if found is None:
        return
    name = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", found[1]).lstrip("_")
    if name == "type":
        exc.add_note("In mcp_core.types the class is the type: leave `type=` out.")
    elif name != found[1]:
        exc.add_note(f"In mcp_core.types fields have names of Python: `{name}=`.")
