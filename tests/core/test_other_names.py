"""A name of another library for MCP gives an error with the name here, and that exists."""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core._other_names import CLIENT, CONTEXT, OPTIONS, SERVER, note_field_name
from mcp_core.drivers import CallOptions
from mcp_core.registry import Context, Server, ToolOptions

if TYPE_CHECKING:
    from collections.abc import Callable

# Type checkers report these mistakes themselves.
untyped_trio: Any = mcp_trio
untyped_shim: Any = mcp_asyncio_shim
OBJECTS: dict[str, Any] = {
    "server": Server("s"),
    "context": Context,
    "client": mcp_trio.Client,
    "result": mcp_trio.types.CallToolResult,
    "trio": trio,
    "mcp_trio": mcp_trio,
    "mcp_asyncio_shim": mcp_asyncio_shim,
}


@pytest.mark.parametrize("driver", [untyped_trio, untyped_shim])
@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda _, s: s.run(), AttributeError, "no attribute 'run': `mcp_trio.run"),
        (lambda _, s: s.run("stdio"), AttributeError, "`mcp_asyncio_shim.run"),
        (lambda _, s: s.create_initialization_options(), AttributeError, "`Server(name, version="),
        (lambda _, s: s.http_app, AttributeError, "`mcp_trio.asgi"),
        (lambda _, s: s.custom_route("/x"), AttributeError, "mount `mcp_trio.asgi"),
        (lambda _, s: s.tool(tags={"a"})(print), TypeError, "option 'tags'; there are no tags"),
        (lambda _, s: s.tool(exclude_args=["a"])(print), TypeError, "is one of type `Context`"),
        (lambda _, s: s.tool(run_in_thread=True)(print), TypeError, "here it is 'thread'"),
        (lambda _, s: type(s)("s", subscriptions=[]), TypeError, "`server.changed` says"),
        (lambda d, s: d.Client(s), TypeError, "Client is made by `connect`: `async with"),
        (lambda d, _: d.Client("https://example.com"), TypeError, "made by `connect`"),
        (lambda d, _: d.Client(), TypeError, "made by `connect`"),
    ],
)
def test_name_of_another_library_says_the_name_here(
    driver: Any, use: Callable[[Any, Any], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        use(driver, Server("s"))


def _awaited(driver: Any, call: Callable[[], Any]) -> None:
    """Call a function, and await its result if it is to be awaited."""

    async def main() -> None:
        result = call()
        if result is not None:
            await result

    asyncio.run(main()) if driver is mcp_asyncio_shim else trio.run(main)


# The constructor of FastMCP 4.1 and what it had before, of the official SDK's 2.3 and 1.20; and
# what they serve with. Each option, and a part of the error.
OF_THE_CONSTRUCTOR = {
    **dict.fromkeys(("host", "port"), "`mcp_trio.run_http(server, "),
    **dict.fromkeys(
        ("streamable_http_path", "mount_path"), "`mcp_trio.run_http(server, path=...)`"
    ),
    **dict.fromkeys(("sse_path", "message_path"), "`mcp_trio.run_http(server, sse_path=...)`"),
    **dict.fromkeys(("debug", "log_level"), "level of the logger `mcp_trio`"),
    "stateless_http": "write `mcp_trio.serve_http(server, sessions=False)`",
    "json_response": 'write `mcp_trio.run_http(server, reply="json")`',
    "transport_security": "`mcp_trio.serve_http(server, hosts=...)`",
    "event_store": "events are kept in memory",
    **dict.fromkeys(("auth", "token_verifier"), "`mcp_trio.run_http(server, auth=...)`"),
    "auth_server_provider": "servers check tokens, and issue none",
    "middleware": "declare each with the decorator `server.middleware`",
    "dependencies": "install them where the server runs",
    **dict.fromkeys(("on_duplicate", "on_duplicate_tools"), "raises `DeclarationError`"),
    **dict.fromkeys(("on_duplicate_prompts", "on_duplicate_resources"), "`DeclarationError`"),
    **dict.fromkeys(("warn_on_duplicate_tools", "warn_on_duplicate_prompts"), "`DeclarationError`"),
    "warn_on_duplicate_resources": "`DeclarationError`",
    "mask_error_details": "never see the text of an exception, only of a `ToolError`",
    "strict_input_validation": "always checked strictly",
    **dict.fromkeys(("tags", "include_tags", "exclude_tags"), "there are no tags"),
    "tools": "`server.add_tool(function)`",
    "resources": "`server.add_resource(uri, function)`",
    "on_call_tool": "declare each with `server.tool`",
    "on_completion": "declare each with `server.completion`",
    "list_page_size": "here it is 'page_size'",
    **dict.fromkeys(("cache_ttl", "cache_scope", "cache_hints"), "here it is 'cache'"),
    "experimental_capabilities": "here it is 'extensions'",
    "request_state_security": "here it is 'state_keys'",
    "sampling_handler": "there is no other model",
    "session_state_store": "`context.session_state`",
    "client_log_level": "the client sets it",
    "titel": "did you mean 'title'?",
    "zzz": "there are name, version, title, description, ",
}
SERVED = [
    ("run", {"transport": "http"}, "`mcp_trio.run_http(server)` serves over HTTP"),
    ("run", {"transport": "sse", "mount_path": "/x"}, "`mcp_asyncio_shim.asgi(server)` in an ASGI"),
    ("run", {"host": "0.0.0.0"}, "`mcp_trio.run_http(server)` serves over HTTP"),
    ("run", {"show_banner": False}, "nothing is printed"),
    ("run", {"recrod": "x"}, "run() has no option 'recrod'; did you mean 'record'?"),
    ("serve_stdio", {"log_level": "DEBUG"}, "level of the logger `mcp_trio` or `mcp_asyncio_shim`"),
    ("serve_stdio", {"port": 80}, "serve_stdio() has no option 'port'; this serves over stdio"),
    ("asgi", {"stateless_http": True}, "write `sessions=False`"),
    ("asgi", {"json_response": True}, 'write `reply="json"`'),
    ("asgi", {"allowed_hosts": ["a"]}, "here it is 'hosts'"),
    ("asgi", {"host": ["a"]}, "the server's names are `hosts`"),
    ("asgi", {"port": 80}, "the program that serves the application"),
    ("asgi", {"middleware": []}, "wrap `mcp_trio.asgi(server)`"),
    ("serve_http", {"stateless_http": True}, "write `sessions=False`"),
    ("serve_http", {"allowed_origins": ["a"]}, "here it is 'origins'"),
    ("serve_http", {"streamable_http_path": "/"}, "here it is 'path'"),
    ("serve_http", {"transport": "http"}, "HTTP+SSE at `sse_path`"),
    ("serve_http", {"uvicorn_config": {}}, "options of its own"),
    ("serve_http", {"session_idle_timeout": 1}, "it is one of `HttpLimits`"),
    ("serve_http", {"max_request_body_size": 1}, "it is `Limits.message`"),
    ("run_http", {"transport_security": None}, "name them in `hosts` and `origins`"),
    ("run_http", {"sessions": False}, "`mcp_trio.serve_http` has it"),
    ("run_http", {"prot": 1}, "run_http() has no option 'prot'; did you mean 'port'?"),
]


@pytest.mark.parametrize("name", OF_THE_CONSTRUCTOR)
def test_option_of_another_constructor_says_what_to_write(name: str) -> None:
    kind: Any = Server
    options = {"version": "1", name: ["a"]}
    text = rf"^Server\(\) has no option '{name}'; .*{re.escape(OF_THE_CONSTRUCTOR[name])}"
    with pytest.raises(TypeError, match=text):
        kind("s", **options)


@pytest.mark.parametrize("driver", [untyped_trio, untyped_shim])
@pytest.mark.parametrize(("function", "options", "text"), SERVED)
def test_option_of_another_way_to_serve_says_what_to_write(
    driver: Any, function: str, options: dict[str, Any], text: str
) -> None:
    if function not in driver.__all__:
        assert function in {"serve_http", "run_http"}
        return
    with pytest.raises(TypeError, match=re.escape(text)):
        _awaited(driver, lambda: getattr(driver, function)(Server("s"), **options))


WRONG_TARGET = "connect to one server: .*; several, .*, are a Host"


@pytest.mark.parametrize(
    ("target", "options", "text"),
    [
        ({"mcpServers": {}}, {}, WRONG_TARGET),
        ({"a": ["python"]}, {}, WRONG_TARGET),
        (3, {}, "to a command as a list of words, not to a value of type int"),
        ("server.py", {}, 'not to "server.py"'),
        (
            Server("s"),
            {"elicitation_handler": print},
            "no option 'elicitation_handler'; here it is 'on_elicit'",
        ),
        (Server("s"), {"timeout": 5}, r"each call has it: `client.call_tool\(name, arguments, tim"),
        (Server("s"), {"progress_handler": print}, "each call has it: .*progress="),
        (Server("s"), {"mode": "legacy"}, "`versions` has the revisions"),
    ],
)
def test_connect_to_what_another_library_takes_says_what_to_write(
    target: Any, options: dict[str, Any], text: str
) -> None:
    async def connect() -> None:
        async with untyped_shim.connect(target, **options):
            pass

    with pytest.raises(TypeError, match=text):
        untyped_trio.connect(target, **options)
    with pytest.raises(TypeError, match=text):
        asyncio.run(connect())


@pytest.mark.parametrize(
    ("kind", "names"), [(Context, CONTEXT), (mcp_trio.Client, CLIENT), (Server, SERVER)]
)
def test_attribute_of_another_library_does_not_exist_here(
    kind: type, names: dict[str, str]
) -> None:
    assert names
    assert [name for name in names if hasattr(kind, name)] == []


def test_context_and_client_say_the_name_here() -> None:
    context: Any = object.__new__(Context)
    client: Any = object.__new__(mcp_trio.Client)
    with pytest.raises(AttributeError, match=r'`await context.log\("info", ...\)`') as error:
        context.info("text")
    assert (error.value.name, error.value.obj) == ("info", context)
    with pytest.raises(AttributeError, match=r"write `await client.ping\(\)`"):
        client.send_ping()
    with pytest.raises(AttributeError, match=r"no attribute 'pong'$"):
        client.pong()


def test_names_that_errors_propose_exist() -> None:
    """Each `object.name` in a text is an attribute, and each option exists."""
    options = [each for names in OPTIONS.values() for each in names.values()]
    texts = [*SERVER.values(), *CONTEXT.values(), *CLIENT.values(), *options]
    proposed = {m for text in texts for m in re.findall(r"(?<![.\w])([a-z_]+)\.([a-z_]+)", text)}
    assert len(proposed) > 30
    wrong = {
        f"{name}.{attribute}"
        for name, attribute in proposed
        if not hasattr(OBJECTS[name], attribute)
    }
    assert wrong == set()
    known = {
        *mcp_trio.ClientOptions.__annotations__,
        *CallOptions.__annotations__,
        *ToolOptions.__annotations__,
        *(
            name
            for each in (Server, Server.mount, mcp_trio.serve_http)
            for name in inspect.signature(each).parameters
        ),
        *inspect.signature(mcp_trio.connect_http).parameters,
    }
    assert {name for name in options if " " not in name} <= known


def test_option_of_another_library_is_not_an_option_here() -> None:
    """A text in place of a working option would never be seen."""
    ours: dict[str, Any] = {
        "Server()": Server,
        "run()": mcp_trio.run,
        "run_http()": mcp_trio.run_http,
    }
    for name, called in ours.items():
        assert OPTIONS[name].keys().isdisjoint(inspect.signature(called).parameters)


def unexpected(name: str) -> TypeError:
    return TypeError(f"Unexpected keyword argument '{name}'")


@pytest.mark.parametrize(
    ("exc", "note"),
    [
        (unexpected("mimeType"), "In mcp_core.types fields have names of Python: `mime_type=`."),
        (unexpected("URI"), "In mcp_core.types fields have names of Python: `u_r_i=`."),
        (unexpected("_meta"), "In mcp_core.types fields have names of Python: `meta=`."),
        (unexpected("type"), "In mcp_core.types the class is the type: leave `type=` out."),
        (unexpected("mime_type"), None),
        (TypeError("missing argument 'mimeType'"), None),
        (ValueError("Unexpected keyword argument 'mimeType'"), None),
    ],
)
def test_field_of_another_library_is_explained_by_a_note(exc: Exception, note: str | None) -> None:
    note_field_name(exc)
    assert getattr(exc, "__notes__", []) == ([] if note is None else [note])
