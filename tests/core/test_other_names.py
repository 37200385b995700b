"""A name of another library for MCP gives an error with the name here, and that exists."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

import mcp_asyncio_shim
import mcp_trio
from mcp_core._keywords import OTHER_NAMES
from mcp_core._other_names import CLIENT, CONTEXT, SERVER
from mcp_core.drivers import CallOptions
from mcp_core.registry import Context, Server

if TYPE_CHECKING:
    from collections.abc import Callable

# Type checkers report these mistakes themselves.
untyped_trio: Any = mcp_trio
untyped_shim: Any = mcp_asyncio_shim
OBJECTS: dict[str, Any] = {
    "server": Server("s"),
    "context": Context,
    "client": mcp_trio.Client,
    "mcp_trio": mcp_trio,
    "mcp_asyncio_shim": mcp_asyncio_shim,
}


@pytest.mark.parametrize("driver", [untyped_trio, untyped_shim])
@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda _, s: s.run(), AttributeError, "no attribute 'run': `mcp_trio.run"),
        (lambda _, s: s.run("stdio"), AttributeError, "`mcp_asyncio_shim.run"),
        (lambda _, s: s.http_app, AttributeError, "`mcp_trio.asgi"),
        (lambda _, s: s.custom_route("/x"), AttributeError, "mount `mcp_trio.asgi"),
        (lambda _, s: s.tool(tags={"a"})(print), TypeError, "option 'tags'; there are no tags"),
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
    texts = [*SERVER.values(), *CONTEXT.values(), *CLIENT.values()]
    proposed = {m for text in texts for m in re.findall(r"(?<![.\w])([a-z_]+)\.([a-z_]+)", text)}
    assert len(proposed) > 30
    wrong = {
        f"{name}.{attribute}"
        for name, attribute in proposed
        if not hasattr(OBJECTS[name], attribute)
    }
    assert wrong == set()
    options = {name for name in OTHER_NAMES.values() if " " not in name}
    known = mcp_trio.ClientOptions.__annotations__.keys() | CallOptions.__annotations__.keys()
    assert options <= known
