"""`visible=`, `Server.enable` and `Server.disable`: who is shown what, and what is refused."""

from __future__ import annotations

import json
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_core import Connection, Role
from mcp_core.protocol.revisions._config import CacheHint
from mcp_core.registry import Caller, DeclarationError, Invocation, Server
from mcp_core.registry._visibility import ADMITTED
from mcp_core.runtime import Service
from tests.core.registry.lookup_helpers import D, E, answered, called, request
from tests.core.registry.test_pages import page, walk
from tests.core.registry.test_server_changes import build, listening, notified
from tests.core.runtime.test_service import Quiet

if TYPE_CHECKING:
    from collections.abc import Sequence

LISTED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class Door:
    """A server with one hidden and one plain declaration of each kind. `is_open` shows all."""

    def __init__(self, **options: Any) -> None:
        self.is_open = False
        self.server = server = Server("door", **options)
        for name in ("plain", "hidden"):
            more: Any = {} if name == "plain" else {"visible": self.see}
            server.add_tool(lambda: "done", name=name, description="Do.", **more)
            server.add_prompt(lambda x: x, name=name, **more)
            server.add_completion(name, "x", lambda typed: [typed])
            server.add_resource(f"{name}://here", lambda: "text", name=name, **more)
            server.add_resource(f"{name}://{{a}}/there", lambda a: a, name=name, **more)
            server.add_completion(f"{name}://{{a}}/there", "a", lambda typed: [typed])

    def see(self, caller: Caller) -> bool:
        return self.is_open


def asking(name: str) -> list[tuple[str, Any]]:
    """Requests that name a declaration, with the name as the unknown one has it."""
    return [
        ("tools/call", {"name": name}),
        ("prompts/get", {"name": name, "arguments": {"x": "y"}}),
        ("resources/read", {"uri": f"{name}://here"}),
        ("resources/read", {"uri": f"{name.upper()}://here"}),
        ("resources/read", {"uri": f"{name}://b/there"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "x", "value": ""}},
        ),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": f"{name}://{{a}}/there"},
                "argument": {"name": "a", "value": ""},
            },
        ),
    ]


@pytest.mark.parametrize("dialect", [D, E], ids=lambda dialect: dialect.version)
def test_hidden_declaration_is_answered_like_an_unknown_one(dialect: Any) -> None:
    """To the letter, but for the name itself."""
    door = Door()
    for (method, params), (_, unknown) in zip(asking("hidden"), asking("absent"), strict=True):
        response = answered(door.server, method, params, dialect)
        expected = answered(door.server, method, unknown, dialect)
        text = str(expected).replace("absent", "hidden").replace("ABSENT", "HIDDEN")
        assert str(response) == text
        assert "code" in response
        door.is_open = True
        assert "code" not in answered(door.server, method, params, dialect)
        door.is_open = False


@pytest.mark.parametrize("method", LISTED)
def test_list_has_what_the_caller_sees(method: str) -> None:
    """Such a list isn't for shared caches, also if the server's hint says so."""
    door = Door(cache=CacheHint(60, "public"))
    hidden = answered(door.server, method)
    assert [entry["name"] for entry in hidden[LISTED[method]]] == ["plain"]
    assert (hidden["cacheScope"], hidden["ttlMs"]) == ("private", 60_000)
    door.is_open = True
    assert [e["name"] for e in answered(door.server, method)[LISTED[method]]] == ["plain", "hidden"]
    plain = Server("plain", cache=CacheHint(60, "public"))
    plain.add_tool(lambda: "done", name="t", description="Do.")
    assert answered(plain, "tools/list")["cacheScope"] == "public"


def paged(size: int = 2) -> tuple[Server, set[str]]:
    """A server with the tools a to h in pages of `size`, and the names of those that are seen."""
    server = Server("paged", page_size=size)
    seen = set("abdeh")

    def visible_if(name: str) -> Any:
        return lambda caller: name in seen

    for name in "abcdefgh":
        server.add_tool(lambda: "x", name=name, description="Do.", visible=visible_if(name))
    return server, seen


def test_pages_are_made_of_what_the_caller_sees() -> None:
    server, seen = paged()
    assert walk(server, "tools/list") == [["a", "b"], ["d", "e"], ["h"]]
    seen.clear()
    assert walk(server, "tools/list") == [[]]
    assert walk(server, "tools/list", D) == [[]]


@settings(max_examples=15)
@given(st.sets(st.sampled_from("abcdefgh")), st.integers(1, 9))
def test_pages_have_what_is_seen_in_order(seen: set[str], size: int) -> None:
    """With pages of any size. Each but the last one is full."""
    server, shown = paged(size)
    shown.clear()
    shown.update(seen)
    pages = walk(server, "tools/list")
    assert [name for names in pages for name in names] == sorted(seen)
    assert all(len(names) == size for names in pages[:-1])


def test_list_that_changes_while_it_is_paged_has_each_entry_once() -> None:
    """A cursor after an entry that is hidden meanwhile is unknown: the client begins again."""
    server, seen = paged()
    _, cursor = page(server, "tools/list", None)
    seen.add("c")
    server.add_tool(lambda: "x", name="i", description="Do.")
    server.remove_tool("e")
    assert page(server, "tools/list", cursor)[0] == ["c", "d"]
    _, later = page(server, "tools/list", cursor)
    seen.remove("b")
    error = answered(server, "tools/list", {"cursor": cursor})
    assert (error["code"], error["message"]) == (-32602, "Unknown cursor")
    names, cursor = page(server, "tools/list", later)
    assert (names, page(server, "tools/list", cursor)) == (["h"], (["i"], None))


def test_lists_with_computed_times_have_them_for_what_is_seen() -> None:
    """The functions of hidden resources aren't called."""
    door = Door()
    times: list[str] = []

    def time_of(name: str) -> Any:
        def now() -> str:
            times.append(name)
            return "2026-01-01T00:00:00Z"

        return now

    for name in ("plain", "hidden"):
        more: Any = {"name": f"{name} now", "last_modified": time_of(name)}
        if name == "hidden":
            more["visible"] = door.see
        door.server.add_resource(f"{name}://now", lambda: "x", **more)
    listed = answered(door.server, "resources/list")["resources"]
    assert [entry["name"] for entry in listed] == ["plain", "plain now"]
    assert listed[1]["annotations"] == {"lastModified": "2026-01-01T00:00:00Z"}
    assert times == ["plain"]


def test_hidden_resource_isnt_read_through_another_template() -> None:
    """Whose function may know nothing of who may see what."""
    door = Door()
    door.server.add_resource("hidden://{+path}", lambda path: path, name="any")
    for uri in ("hidden://here", "hidden://b/there"):
        assert answered(door.server, "resources/read", {"uri": uri})["code"] == -32602
    assert "contents" in answered(door.server, "resources/read", {"uri": "hidden://other"})


@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("first_is_hidden", [False, True])
def test_one_declaration_decides_of_reads_changes_and_spellings(
    mounted: bool, first_is_hidden: bool
) -> None:
    """The first of two templates whose types fit, not the first of that form."""
    server = Server("s")
    hidden: Any = {"visible": lambda caller: False}

    def numbered(n: int) -> str:
        return "a number"

    first, second = (hidden, {}) if first_is_hidden else ({}, hidden)
    server.add_resource("d://x/{n}", numbered, name="a", **first)
    server.add_resource("d://x/{name}", lambda name: name, name="b", **second)
    if mounted:
        inner, server = server, Server("outer")
        server.mount(inner)
    for uri, is_hidden in (
        ("d://x/7", first_is_hidden),
        ("d://x/abc", not first_is_hidden),
        ("D://x/abc", not first_is_hidden),
    ):
        ask = request("resources/read", {"uri": uri})
        assert ("contents" in answered(server, "resources/read", {"uri": uri})) is not is_hidden
        assert server.hides_uri(uri, ask, None) is is_hidden
        declared = uri if is_hidden else uri.replace("D:", "d:")
        assert server.as_declared(ask).params.uri == declared


async def waits(caller: Caller) -> bool:
    return True


def call(function: Any, caller: Caller) -> Any:
    return function(caller)


BAD: list[tuple[Any, str]] = [
    (True, "visible is a plain function of a Caller that returns True or False, not True"),
    (lambda: True, "visible is a plain function of a Caller"),
    (lambda a, b: True, "visible is a plain function of a Caller"),
    (waits, "it cannot await"),
]


@pytest.mark.parametrize(("visible", "text"), BAD)
def test_visible_that_is_no_plain_function_is_refused(visible: Any, text: str) -> None:
    declarations: list[Any] = [
        lambda s: s.add_tool(lambda: "x", name="t", description="Do.", visible=visible),
        lambda s: s.add_prompt(lambda: "x", name="p", visible=visible),
        lambda s: s.add_resource("x:1", lambda: "x", name="r", visible=visible),
        lambda s: s.add_resource("x:{a}", lambda a: a, name="r", visible=visible),
    ]
    for declare in declarations:
        with pytest.raises(DeclarationError) as caught:
            declare(Server("s"))
        assert text in str(caught.value)


def test_visible_where_it_cannot_hold_is_refused() -> None:
    """A public cache serves everybody, and errors about mirrored headers name the tool."""
    door = Door()
    public = CacheHint(60, "public")
    with pytest.raises(DeclarationError, match="a cache with scope 'public' would serve 'x:1'"):
        Server("s").add_resource("x:1", lambda: "x", name="r", cache=public, visible=door.see)
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    with pytest.raises(DeclarationError, match="has no x-mcp-header"):
        Server("s").add_tool(
            lambda a: "x", name="t", description="Do.", input_schema=schema, visible=door.see
        )


class Faulty:
    """A server whose tool has `visible=` and a service with a clock, and what the log got."""

    def __init__(self, visible: Any) -> None:
        self.now = 100.0
        self.server = Server("s")
        self.runtime = Quiet()
        self.runtime.monotonic = lambda: self.now  # type: ignore[method-assign]
        self.log: list[str] = []
        self.runtime.report_hook = lambda name, exc: self.log.append(f"{name}: {exc!r}")  # type: ignore[method-assign]
        self.runtime.warn = self.log.append  # type: ignore[method-assign, assignment]
        conn = Connection(Role.SERVER, self.server.config())
        self.service = Service(self.server, conn, self.runtime, principal="ann")
        self.declare("t", visible)

    def declare(self, name: str, visible: Any) -> None:
        self.server.add_tool(lambda: "x", name=name, description="Do.", visible=visible)

    def names(self) -> list[str]:
        raw: Any = self.server.answer(request("tools/list"), self.service)
        return [tool["name"] for tool in json.loads(bytes(raw))["tools"]]


@pytest.mark.parametrize("error", [ZeroDivisionError(), SystemExit(3)], ids=repr)
def test_visible_that_raises_hides_and_is_logged_once_a_minute(error: BaseException) -> None:
    """Once for all declarations that share the function. The server goes on."""

    def fail(caller: Caller) -> bool:
        raise error

    faulty = Faulty(fail)
    for name in ("u", "v"):
        faulty.declare(name, fail)
    faulty.declare("w", lambda caller: {}[caller.principal])
    assert faulty.names() == []
    assert faulty.log == [
        f"visible= of tool 't', which is hidden now,: {error!r}",
        "visible= of tool 'w', which is hidden now,: KeyError('ann')",
    ]
    faulty.now += 59
    assert faulty.names() == []
    assert len(faulty.log) == 2
    faulty.now += 1
    assert faulty.names() == []
    assert len(faulty.log) == 4
    assert called(faulty.server, "t")["code"] == -32602  # also where nothing can be logged


def test_visible_that_returns_an_awaitable_hides() -> None:
    """It would be true. A coroutine is closed, or Python would warn that it is never awaited."""
    faulty = Faulty(partial(call, waits))
    assert faulty.names() == []
    (line,) = faulty.log
    assert line.endswith("TypeError('visible= returns True or False, and cannot be awaited')")


def test_visible_that_blocks_is_named() -> None:
    faulty = Faulty(None)

    def block(caller: Caller) -> bool:
        faulty.now += 0.2
        return True

    faulty.declare("u", block)
    assert faulty.names() == ["t", "u"] == faulty.names()
    assert faulty.log == [
        "visible= of tool 'u' blocked all clients for 0.20 s: let it decide by what is in memory"
    ]


def test_caller_is_the_requests_sender() -> None:
    callers: list[Caller] = []

    def note(caller: Caller) -> bool:
        callers.append(caller)
        return True

    faulty = Faulty(note)
    faulty.names()
    (caller,) = callers
    assert (caller.principal, caller.grant, dict(caller.headers)) == ("ann", None, {})
    assert caller.peer.dialect is E
    assert repr(caller) == "<Caller 'ann'>"
    faulty.server.answer(request("tools/list"))
    assert callers[1].principal == ""


def test_call_that_was_admitted_runs_again_though_it_is_hidden_now() -> None:
    """The call of a task whose worker was lost, for example."""
    door = Door()
    ask = request("tools/call", {"name": "hidden"})
    assert isinstance(door.server.answer(ask, ADMITTED), Invocation)


# -- enable and disable ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", LISTED)
def test_disabled_declaration_is_unknown_until_it_is_enabled(method: str) -> None:
    """It keeps its place, and the capability stays declared."""
    kind = {"tools": "tool", "prompts": "prompt"}.get(LISTED[method], "resource")
    names = {"resources/list": "plain://here", "resources/templates/list": "plain://{a}/there"}
    name = names.get(method, "plain")
    door = Door()
    door.is_open = True
    before = door.server.config().capabilities
    door.server.disable(name, kind)  # type: ignore[arg-type]
    assert [e["name"] for e in answered(door.server, method)[LISTED[method]]] == ["hidden"]
    assert door.server.config().capabilities == before
    door.server.enable(name, kind)  # type: ignore[arg-type]
    assert [e["name"] for e in answered(door.server, method)[LISTED[method]]] == ["plain", "hidden"]


def test_disabled_requests_are_answered_like_unknown_ones() -> None:
    door = Door()
    for name, kind in (("plain", "tool"), ("plain", "prompt"), ("plain://here", None)):
        door.server.disable(name, kind)  # type: ignore[arg-type]
    door.server.disable("plain://{a}/there")
    for (method, params), (_, unknown) in zip(asking("plain"), asking("absent"), strict=True):
        expected = str(answered(door.server, method, unknown))
        text = expected.replace("absent", "plain").replace("ABSENT", "PLAIN")
        assert str(answered(door.server, method, params)) == text


def test_enabled_declaration_is_still_hidden_by_its_function() -> None:
    door = Door()
    door.server.disable("hidden", "tool")
    door.is_open = True
    assert called(door.server, "hidden")["code"] == -32602
    door.server.enable("hidden", "tool")
    assert "content" in called(door.server, "hidden")
    door.is_open = False
    assert called(door.server, "hidden")["code"] == -32602


def test_enable_and_disable_notify_of_a_change_only() -> None:
    server = build()
    client = listening(server)
    for change, heard in (
        (server.enable, []),
        (server.disable, ["notifications/tools/list_changed"]),
        (server.disable, []),
        (server.enable, ["notifications/tools/list_changed"]),
    ):
        change("t")
        assert notified(client) == heard


@pytest.mark.parametrize("change", ["enable", "disable"])
def test_enable_of_ambiguous_or_unknown_name_is_an_error(change: str) -> None:
    """A disabled name stays in use, too."""
    door = Door()
    method = getattr(door.server, change)
    with pytest.raises(ValueError, match="'plain' is a tool and a prompt: say which, by kind="):
        method("plain")
    with pytest.raises(KeyError, match="absent"):
        method("absent")
    with pytest.raises(KeyError, match="plain"):
        method("plain", "resource")
    with pytest.raises(ValueError, match="kind is 'tool', 'prompt' or 'resource', not 'tools'"):
        method("plain", "tools")
    door.server.disable("plain", "tool")
    with pytest.raises(DeclarationError, match="there is a tool 'plain' already"):
        door.server.add_tool(lambda: "x", name="plain", description="Do.")


def test_disabled_tool_has_no_mirrored_headers() -> None:
    """The error about a missing header would show that it exists."""
    server = Server("s")
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    server.add_tool(lambda a: "x", name="t", description="Do.", input_schema=schema)
    assert server.param_headers("t")
    server.disable("t")
    assert server.param_headers("t") is None


def test_mounted_declaration_is_hidden_by_either_server() -> None:
    """By `visible=`, and by `disable` on its own server and on the outer one."""
    outer, door = Server("outer"), Door()
    outer.mount(door.server, "in")
    assert called(outer, "in_hidden")["code"] == -32602
    door.is_open = True
    assert "content" in called(outer, "in_hidden")
    outer.disable("in_hidden", "tool")
    assert called(outer, "in_hidden")["code"] == -32602
    assert "content" in called(door.server, "hidden")
    door.server.disable("hidden", "tool")
    with pytest.raises(DeclarationError, match="disabled on its mounted server: enable it there"):
        outer.enable("in_hidden", "tool")
    door.server.enable("hidden", "tool")
    assert called(outer, "in_hidden")["code"] == -32602  # the refusal has changed nothing
    outer.enable("in_hidden", "tool")
    assert "content" in called(outer, "in_hidden")


def test_mounted_declaration_is_shown_when_no_server_has_it_disabled() -> None:
    """In any order in which three servers, mounted in one another, disable and enable it."""
    names = ("t", "m_t", "o_m_t")
    for disabled in permutations(range(3)):
        for enabled in permutations(range(3)):
            servers = [Server(name) for name in names]
            servers[0].add_tool(lambda: "done", name="t", description="Do.")
            servers[1].mount(servers[0], "m")
            servers[2].mount(servers[1], "o")
            hiding: set[int] = set()
            for number in disabled:
                servers[number].disable(names[number])
                hiding.add(number)
                assert_shown_by_level(servers, names, hiding)
            for number in enabled:
                if any(inner in hiding for inner in range(number)):
                    with pytest.raises(DeclarationError, match="enable it there"):
                        servers[number].enable(names[number])
                else:
                    servers[number].enable(names[number])
                    hiding.discard(number)
                assert_shown_by_level(servers, names, hiding)


def assert_shown_by_level(servers: list[Server], names: Sequence[str], hiding: set[int]) -> None:
    for number, server in enumerate(servers):
        shown = not any(inner in hiding for inner in range(number + 1))
        assert ("content" in called(server, names[number])) is shown
        assert bool(answered(server, "tools/list")["tools"]) is shown


def test_disabling_what_its_own_server_hides_notifies_of_no_change() -> None:
    outer, inner = Server("outer"), Server("inner")
    inner.add_tool(lambda: "done", name="t", description="Do.")
    outer.mount(inner, "in")
    inner.disable("t")
    client = listening(outer, toolsListChanged=True)
    outer.disable("in_t")
    inner.enable("t")
    assert notified(client) == ["notifications/tools/list_changed"]
    assert called(outer, "in_t")["code"] == -32602
    outer.enable("in_t")
    assert notified(client) == ["notifications/tools/list_changed"]


def test_hiding_costs_servers_without_it_nothing() -> None:
    """Their pages are cached as they were, and entries have no visibility."""
    server = Server("s")
    server.add_tool(lambda: "x", name="t", description="Do.")
    ask = request("tools/list")
    assert server.answer(ask) is server.answer(ask)
    server.disable("t")
    server.enable("t")
    assert server._tools["t"].visibility is None


def test_entries_that_depend_on_the_caller_are_encoded_once() -> None:
    """Only the choice is made for each request."""
    server = Server("s")

    def even(number: int) -> Any:
        return lambda caller: number % 2 == 0

    for number in range(40):
        server.add_tool(lambda: "x", name=f"t{number}", description="Do.", visible=even(number))
    assert len(answered(server, "tools/list")["tools"]) == 20
    encoded = server._lists._pages_of("tools/list", E).encoded
    answered(server, "tools/list")
    assert server._lists._pages_of("tools/list", E).encoded is encoded
