"""Unknown keyword options raise, and `help()` shows the known ones."""

from __future__ import annotations

import inspect
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

import mcp_asyncio_shim
import mcp_trio
from mcp_core._keywords import check_keywords
from mcp_core.drivers import CallOptions
from mcp_core.http import HttpOptions

if TYPE_CHECKING:
    from collections.abc import Callable


def function() -> str:
    """Do nothing."""
    return ""


# Type checkers know the options too.
untyped_trio: Any = mcp_trio
untyped_shim: Any = mcp_asyncio_shim
untyped_options: Any = HttpOptions


def server() -> Any:
    return mcp_trio.Server("s")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: server().tool(nmae="x")(function),
            "@server.tool has no option 'nmae'; did you mean 'name'",
        ),
        (lambda: server().add_tool(function, titel="x"), "no option 'titel'; did you mean 'title'"),
        (
            lambda: server().resource("a://b", mimetype="text/plain")(function),
            "@server.resource has no option 'mimetype'; did you mean 'mime_type'",
        ),
        (
            lambda: server().resource("a://{b}", mimetype="text/plain")(lambda b: b),
            "did you mean 'mime_type'",
        ),
        (
            lambda: server().add_directory(".", "a://b", titel="x"),
            "Server.add_directory has no option 'titel'; did you mean 'title'",
        ),
        (lambda: server().prompt(zzz=1)(function), "no option 'zzz'; there are name, title, "),
        (
            lambda: untyped_trio.connect(server(), versoins=["2025-11-25"]),
            "did you mean 'versions'",
        ),
        (lambda: untyped_trio.asgi(server(), session=False), "did you mean 'sessions'"),
        (lambda: untyped_shim.asgi(server(), session=False), "did you mean 'sessions'"),
        (lambda: untyped_options.of(hsts=["a"]), "did you mean 'hosts'"),
    ],
)
def test_unknown_option_raises_and_names_a_similar_one(
    call: Callable[[], object], text: str
) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: server().resource(function), r"write @server\.resource\('notes://today'\)"),
        (lambda: server().tool("adder"), r"write @server\.tool\(name='adder'\)"),
        (lambda: server().prompt("review"), r"write @server\.prompt\(name='review'\)"),
    ],
)
def test_decorator_misused_says_what_to_write(call: Callable[[], object], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize("name", ["timout", "on_progress"])
async def test_call_with_unknown_option_raises_and_sends_nothing(name: str) -> None:
    called = []
    mine = server()
    mine.add_tool(lambda: called.append(1), name="tool", description="Count.")
    async with mcp_trio.connect(mine) as client:
        options: Any = {name: 1}
        with pytest.raises(TypeError, match=f"the call has no option '{name}'; did you mean "):
            await client.call_tool("tool", **options)
        assert called == []
        await client.call_tool("tool", timeout=20)
    assert called == [1]


@pytest.mark.parametrize("connect", [mcp_trio.connect_stdio, mcp_trio.connect_http])
async def test_connect_with_unknown_option_raises_before_anything_is_started(connect: Any) -> None:
    with pytest.raises(TypeError, match="did you mean 'versions'"):
        async with connect("http://127.0.0.1:1/", version=[]):
            pass


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (mcp_trio.Server.tool, ["name", "title", "output_schema", "thread"]),
        (mcp_trio.Server.resource, ["mime_type", "size"]),
        (mcp_trio.Server.prompt, ["icons"]),
        (mcp_trio.connect, ["auth", "versions", "on_elicit", "trace"]),
        (mcp_trio.connect_stdio, ["versions"]),
        (mcp_asyncio_shim.connect, ["versions", "headers"]),
        (mcp_trio.asgi, ["hosts", "sessions"]),
        (mcp_trio.Client.call_tool, ["timeout", "progress"]),
        (mcp_trio.Host.__init__, ["limits", "approve"]),
        (mcp_trio.Host.call, ["timeout", "progress"]),
        (mcp_asyncio_shim.Host.__init__, ["limits", "approve"]),
        (mcp_asyncio_shim.asgi, ["hosts", "sessions"]),
    ],
)
def test_signature_lists_the_options(function: Any, names: list[str]) -> None:
    parameters = inspect.signature(function).parameters
    assert set(names) <= parameters.keys()
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
    assert all(isinstance(parameters[name].annotation, str) for name in names)  # as it is written


def functions_with_options() -> dict[str, Any]:
    """Return the public functions and methods that are declared with `**options: Unpack[...]`."""
    found: dict[str, Any] = {}
    for package in (mcp_trio, mcp_asyncio_shim):
        for name in package.__all__:
            item = getattr(package, name)
            members = inspect.getmembers(item, inspect.isfunction) if isinstance(item, type) else []
            for part, function in [("", item), *members]:
                annotations = getattr(inspect.unwrap(function), "__annotations__", {})
                if any("Unpack[" in str(each) for each in annotations.values()):
                    found[f"{package.__name__}.{name}.{part}".strip(".")] = function
    return found


@pytest.mark.parametrize("name", functions_with_options())
def test_signature_of_each_public_function_lists_its_options(name: str) -> None:
    parameters = inspect.signature(functions_with_options()[name]).parameters.values()
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters)


@pytest.mark.parametrize("name", functions_with_options())
def test_each_option_may_be_left_out(name: str) -> None:
    """A type checker refuses a call without a required key, though the function needs none."""
    function = inspect.unwrap(functions_with_options()[name])
    [options] = [
        kind
        for each in function.__annotations__.values()
        for kind in re.findall(r"Unpack\[(?:\w+\.)*(\w+)\]", str(each))
    ]
    assert not options_called(options).__required_keys__


def options_called(name: str) -> Any:
    """Return the `TypedDict` of a name, which some function's module imports for type checkers."""
    return next(
        found
        for module in list(sys.modules.values())
        if module.__name__.startswith("mcp_") and (found := vars(module).get(name)) is not None
    )


def test_check_keywords_known_options_pass() -> None:
    check_keywords({"timeout": 1, "meta": None}, CallOptions, "f()")
