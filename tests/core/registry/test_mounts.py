"""Servers mounted in others: what is declared where, and what is refused."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import pytest

from mcp_core import DIALECTS, Limits
from mcp_core.registry import DeclarationError, Server
from mcp_core.registry._mounts import joined_instructions
from mcp_core.types import RequestParams
from tests.core.registry.test_server_changes import listening, notified

E = "2026-07-28"


def declare(server: Server, *names: str) -> Server:
    for name in names:
        server.add_tool(lambda: "done", name=name, description="Do.")
    return server


def full(name: str = "inner") -> Server:
    """A server with one declaration of each kind."""
    server = declare(Server(name), "t")
    server.add_prompt(lambda x: x, name="p")
    server.add_completion("p", "x", lambda typed: [typed])
    server.add_resource("x:1", lambda: "x", name="r")
    server.add_resource("x:{a}", lambda a: a, name="rt")
    server.method("acme/do")(lambda: None)
    return server


def keys(server: Server) -> dict[str, list[str]]:
    return {kind: list(entries) for kind, entries in server._declared.by_kind.items()}


def listed(server: Server, kind: str = "tool") -> list[str]:
    dialect = DIALECTS[E]
    return [entry.list_entry(dialect).name for entry in server._declared.by_kind[kind].values()]


def test_mount_prefixes_names_and_leaves_uris_and_methods() -> None:
    """Lists and capabilities are as if all of it were declared here."""
    outer = declare(Server("outer"), "own")
    outer.mount(full(), "in")
    assert keys(outer) == {
        "tool": ["own", "in_t"],
        "prompt": ["in_p"],
        "resource": ["x:1"],
        "resource template": ["x:{a}"],
        "method": ["acme/do"],
    }
    assert listed(outer) == ["own", "in_t"]
    assert listed(outer, "prompt") == ["in_p"]
    assert listed(outer, "resource") == ["r"]
    config = outer.config()
    assert list(config.methods) == ["acme/do"]
    assert config.capabilities.completions == {}
    assert "of 'inner'" in repr(outer._tools["in_t"])
    assert "as 'in'" in repr(outer.mounts[0])


def test_mount_without_prefix_changes_no_name() -> None:
    outer = Server("outer")
    outer.mount(full())
    assert keys(outer) == keys(full())


def test_declarations_of_mounted_server_are_followed_live() -> None:
    """Also through two levels, and in each of several outer servers."""
    top, middle, other, inner = (Server(name) for name in ("top", "middle", "other", "inner"))
    top.mount(middle, "m")
    middle.mount(inner, "i")
    other.mount(inner)
    declare(inner, "late")
    inner.add_resource("x:1", lambda: "x", name="r")
    assert (listed(top), listed(middle), listed(other)) == (
        ["m_i_late"],
        ["i_late"],
        ["late"],
    )
    assert list(top._resources) == ["x:1"]
    assert top._lookup.declared_uri("X:1") == "x:1"
    inner.remove_tool("late")
    inner.remove_resource("x:1")
    assert [listed(each) for each in (top, middle, other)] == [[], [], []]
    assert top._lookup.declared_uri("X:1") == "X:1"
    assert top.config().capabilities.tools is None


def test_mounted_server_keeps_no_outer_server_alive() -> None:
    inner = Server("inner")
    gc.freeze()  # all that is there already: to look through it takes a tenth of a second
    declare(Server("gone"), "t").mount(inner)
    gc.collect()
    outer = Server("outer")
    outer.mount(inner)
    declare(inner, "t")
    assert len(inner._declared.outer_mounts) == 1
    assert listed(outer) == ["t"]


def test_dropped_outer_server_forbids_no_name_before_the_next_collection() -> None:
    inner = Server("inner")
    gc.disable()
    try:
        declare(Server("gone"), "t").mount(inner)
        declare(inner, "t")
    finally:
        gc.enable()
    assert listed(inner) == ["t"]


def test_same_mount_again_changes_nothing() -> None:
    outer, inner = mounted("t")
    client = listening(outer, toolsListChanged=True)
    outer.mount(inner, "in")
    assert (listed(outer), len(outer.mounts), len(inner._declared.outer_mounts)) == (["in_t"], 1, 1)
    assert notified(client) == []
    with outer.lifespans_entered():
        late = Server("late", lifespan=lambda server: nullcontext())
        with pytest.raises(DeclarationError, match="is being served"):
            outer.mount(late, "late")


def mounted(*names: str, prefix: str = "in") -> tuple[Server, Server]:
    outer, inner = Server("outer"), declare(Server("inner"), *names)
    outer.mount(inner, prefix)
    return outer, inner


def in_circle() -> None:
    outer, inner = mounted()
    innermost = Server("innermost")
    inner.mount(innermost)
    innermost.mount(outer)


def itself() -> None:
    server = Server("s")
    server.mount(server, "again")


def second_mount_has_the_name() -> None:
    outer = Server("outer")
    outer.mount(declare(Server("a"), "b_c"), "x")
    outer.mount(declare(Server("b"), "c"), "x_b")


def outer_declares_second() -> None:
    declare(mounted("t")[0], "in_t")


def inner_declares_second() -> None:
    outer, inner = mounted()
    declare(outer, "in_t")
    declare(inner, "t")


def equal_uris() -> None:
    outer = full("outer")
    outer.mount(full(), "in")


def equal_methods() -> None:
    outer = Server("outer")
    outer.method("acme/do")(lambda: None)
    outer.mount(full(), "in")


def two_ways_to_one_name() -> None:
    top, left, right, inner = (Server(name) for name in ("top", "left", "right", "inner"))
    for middle in (left, right):
        middle.mount(inner)
        top.mount(middle)
    declare(inner, "t")


def bad_prefix(prefix: Any) -> Any:
    return lambda: Server("s").mount(Server("other"), prefix)


def extensions_differ() -> None:
    outer = Server("outer", extensions={"com.example/a": {"on": True}})
    outer.mount(Server("inner", extensions={"com.example/a": {}}))


def extensions_differ_through_a_middle_server() -> None:
    top = Server("top", extensions={"com.example/a": {"on": True}})
    middle = Server("middle")
    top.mount(middle)
    middle.mount(Server("inner", extensions={"com.example/a": {}}))


def completion_from_outside() -> None:
    outer = Server("outer")
    outer.mount(full(), "in")
    outer.add_completion("in_p", "x", lambda typed: [typed])


def lifespan_too_late() -> None:
    outer = Server("outer")
    middle = Server("middle")
    outer.mount(middle)
    with outer.lifespans_entered():
        middle.mount(Server("inner", lifespan=lambda server: nullcontext()))


@pytest.mark.parametrize(
    ("declare_badly", "text"),
    [
        (itself, "server 's' cannot be mounted in itself"),
        (in_circle, "server 'outer' cannot be mounted in 'innermost', which is mounted in it"),
        (second_mount_has_the_name, "there is a tool 'x_b_c' already"),
        (outer_declares_second, "there is a tool 'in_t' already"),
        (inner_declares_second, "there is a tool 'in_t' already on server 'outer'"),
        (equal_uris, "there is a resource 'x:1' already"),
        (equal_methods, "there is a method 'acme/do' already"),
        (two_ways_to_one_name, "there is a tool 't' already on server 'top'"),
        (bad_prefix("with space"), "'with space' cannot be a prefix"),
        (bad_prefix("weather_"), "the underscore after it is added"),
        (bad_prefix("/weather"), "cannot be a prefix"),
        (extensions_differ, "declare the extension 'com.example/a' with different settings"),
        (
            extensions_differ_through_a_middle_server,
            "servers 'top' and 'inner' declare the extension 'com.example/a' with different",
        ),
        (completion_from_outside, "'in_p' belongs to the mounted server 'inner': declare"),
        (lifespan_too_late, "server 'inner' has a lifespan, and 'middle' is being served"),
        (
            lambda: mounted("t")[0].remove_tool("in_t"),
            "the tool 'in_t' belongs to the mounted server 'inner': remove it there",
        ),
    ],
)
def test_mount_that_cannot_be_served_is_refused(declare_badly: Any, text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare_badly()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: s.mount("/mcp", Server("x")), "give serve_http a mapping of paths"),
        (lambda s: s.mount(Server("x"), namespace="x"), "here it is 'prefix'"),
        (lambda s: s.mount(Server("x"), prefx="x"), "did you mean 'prefix'?"),
        (lambda s: s.mount(Server("x"), as_proxy=True), "always has its own lifespan"),
    ],
)
def test_call_as_in_another_library_names_the_cure(call: Any, text: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(Server("s"))
    assert text in str(caught.value)


def test_refused_declarations_change_nothing() -> None:
    """Neither on the server itself nor on any in which it is mounted."""
    outer, inner = mounted()
    declare(outer, "in_t")
    for attempt in (
        lambda: declare(inner, "t"),
        lambda: outer.mount(declare(Server("i"), "t"), "in"),
    ):
        with pytest.raises(DeclarationError):
            attempt()
    assert (listed(outer), listed(inner), len(outer.mounts)) == (["in_t"], [], 1)


def test_one_server_mounted_with_two_prefixes_is_there_twice() -> None:
    outer, inner = mounted("t")
    outer.mount(inner, "again")
    assert listed(outer) == ["in_t", "again_t"]
    assert outer.mounted_servers() == [inner]


def test_prefix_that_makes_a_tool_name_too_long_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="is not 1 to 128 characters"):
        Server("outer").mount(declare(Server("inner"), "t" * 100), "p" * 30)


def test_mount_takes_options_of_the_outer_server() -> None:
    outer = Server("outer", limits=Limits(in_flight=3), extensions={"com.example/a": {"x": 1}})
    outer.mount(Server("inner", limits=Limits(in_flight=9), extensions={"com.example/b": {}}))
    config = outer.config()
    assert config.limits.in_flight == 3
    assert config.capabilities.experimental == {"com.example/a": {"x": 1}, "com.example/b": {}}


def test_instructions_are_joined_under_the_names_of_servers() -> None:
    top = Server("top", instructions="Begin with help.")
    middle, inner, silent = Server("middle"), Server("inner", instructions="Be brief."), Server("x")
    plain = Server("plain", instructions="No prefix.")
    middle.mount(inner, "i")
    for server, prefix in ((middle, "m"), (silent, "s"), (plain, "")):
        top.mount(server, prefix)
    assert top.config().instructions == (
        "Begin with help.\n\n# inner (its names begin with m_i_)\n\nBe brief.\n\n"
        "# plain\n\nNo prefix."
    )
    assert joined_instructions(silent) is None


def test_changes_of_mounted_server_are_changes_of_the_outer_one() -> None:
    """Changes of lists, of contents, and of what another worker has reported."""
    inner = full()
    outer = Server("outer")
    outer.mount(inner, "in")
    client, own = listening(outer), listening(inner)
    declare(inner, "late")
    assert notified(client) == ["notifications/tools/list_changed"] == notified(own)
    inner.changed(resource="x:1")
    assert notified(client) == ["x:1"] == notified(own)
    inner.deliver_changes((), all_resources=True)
    assert sorted(notified(client)) == ["x:1", "x:2"] == sorted(notified(own))
    outer.changed(prompts=True)
    assert (notified(client), notified(own)) == (["notifications/prompts/list_changed"], [])
    outer.mount(declare(Server("more"), "t"))
    assert notified(client) == ["notifications/tools/list_changed"]


def test_params_of_mounted_methods_are_decoded() -> None:
    class Params(RequestParams):
        n: int

    outer, inner = mounted()
    inner.method("acme/n", params=Params)(lambda params: {"n": params.n})
    assert outer.config().methods["acme/n"].params is Params
    inner.remove_method("acme/n")
    assert not outer.config().methods
