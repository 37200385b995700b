"""`Server`: its declarations and lists, and requests through a `Connection`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ALL, DIALECTS, Connection, Dialect, Limits, Peer, Rate, RequestReceived, Role
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.registry import Context, DeclarationError, Invocation, Server
from mcp_core.types import (
    ClientCapabilities,
    ElicitationCapability,
    Icon,
    Implementation,
    Result,
    RootsCapability,
    SamplingCapability,
)
from tests.core.registry.lookup_helpers import EVERY_DIALECT, E, answered, prepared, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def full() -> Server:
    server = Server("s", "1.2")

    @server.tool
    def zeta() -> str:
        """Last letter."""
        return "z"

    @server.tool(name="alpha")
    def other() -> str:
        """First letter."""
        return "a"

    server.add_prompt(lambda: "x", name="p")
    server.add_resource("x://y", lambda: "x", name="r")
    server.add_resource("x://{y}", lambda y: "x", name="t")
    return server


def test_server_config_has_the_declared_description() -> None:
    server = Server(
        "s", "1.2", title="S", description="d", instructions="i", website_url="https://example.com",
        icons=[Icon("data:,")], limits=Limits(in_flight=3), versions=["2025-06-18", "2026-07-28"],
    )  # fmt: skip
    config = server.config()
    assert (config.info.name, config.info.version, config.info.title) == ("s", "1.2", "S")
    assert (config.info.description, config.info.website_url) == ("d", "https://example.com")
    assert config.info.icons == [Icon("data:,")]
    assert config.instructions == "i"
    assert config.limits.in_flight == 3
    assert config.versions == ["2026-07-28", "2025-06-18"]
    assert Server("s").config().versions == list(ALL)
    assert Server("s").info.version == "0"


def test_server_invalid_version_or_icon_raises() -> None:
    with pytest.raises(ValueError, match="not a revision"):
        Server("s", versions=["2024-01-01"])
    with pytest.raises(DeclarationError, match="icon"):
        Server("s", icons=[Icon("i.png")])


@pytest.mark.requirement("TOOL-1", "RES-1", "PRM-1")
def test_server_capabilities_follow_the_declarations() -> None:
    """Removing a kind's last entry withdraws the capability; resources and templates share one."""

    def declared(server: Server) -> Any:
        return json.loads(E.encode(server.config().capabilities))

    server = Server("s")
    assert declared(server) == {"logging": {}}
    server = Server("s", logging=False)
    assert declared(server) == {}
    server.add_tool(lambda: None, name="t", description="d")
    assert declared(server) == {"tools": {"listChanged": True}}
    server.add_resource("x://{y}", lambda y: "", name="r")
    assert declared(server) == {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
    }
    server.add_prompt(lambda: "", name="p")
    assert declared(server) == {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
    }
    server.remove_resource("x://{y}")
    server.remove_tool("t")
    assert declared(server) == {"prompts": {"listChanged": True}}
    server.add_resource("x://y", lambda: "", name="r")
    assert declared(server) == {
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
    }
    server.add_prompt(lambda a: "", name="q")
    server.add_completion("q", "a", lambda typed: [])
    assert declared(server) == {
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "completions": {},
    }


LISTS = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]


@pytest.mark.requirement("TOOL-3")
@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_server_without_declarations_lists_nothing(method: str, dialect: Dialect) -> None:
    answer = answered(Server("s"), method, {}, dialect)
    assert [value for value in answer.values() if isinstance(value, list)] == [[]]
    assert ("ttlMs" in answer, "cacheScope" in answer) == (dialect is E, dialect is E)


@pytest.mark.requirement("TOOL-4", "TOOL-5")
@pytest.mark.parametrize("method", LISTS)
def test_server_list_is_the_same_each_time(method: str) -> None:
    server = full()
    assert answered(server, method) == answered(server, method) == answered(full(), method)


CALLERS = (
    Peer(E, ClientCapabilities()),
    Peer(E, ClientCapabilities(sampling=SamplingCapability(), roots=RootsCapability())),
    Peer(E, ClientCapabilities(elicitation=ElicitationCapability())),
    Peer(E, ClientCapabilities(), Implementation("inspector", "2")),
    Peer(E, ClientCapabilities(), log_level="debug"),
)


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize("method", LISTS)
def test_server_list_is_the_same_for_each_caller(method: str) -> None:
    server = full()
    ask = request(method)
    lists = []
    for number, peer in enumerate(CALLERS):
        ask.id, ask.peer = f"id-{number}", peer
        lists.append(json.loads(encode(server.answer(ask))))
        if method != "tools/list":  # a list does not depend on what was requested before either
            server.answer(request("tools/list"))
    assert lists == [answered(full(), method)] * len(CALLERS)


@pytest.mark.requirement("TOOL-5")
def test_server_list_has_the_order_of_declaration() -> None:
    assert [tool["name"] for tool in answered(full(), "tools/list")["tools"]] == ["zeta", "alpha"]


def test_server_list_follows_declarations_and_removals() -> None:
    """An emptied list is an empty result, not an error; removing what isn't there raises."""
    server = full()
    for method, key in zip(
        LISTS, ("tools", "resources", "resourceTemplates", "prompts"), strict=True
    ):
        assert answered(server, method)[key]
    server.add_tool(lambda: None, name="t", description="d")
    server.remove_tool("zeta")
    assert [tool["name"] for tool in answered(server, "tools/list")["tools"]] == ["alpha", "t"]
    server.remove_prompt("p")
    server.remove_resource("x://y")
    server.remove_resource("x://{y}")
    for method, key in zip(LISTS[1:], ("resources", "resourceTemplates", "prompts"), strict=True):
        assert answered(server, method)[key] == []
    for remove in (
        server.remove_tool,
        server.remove_prompt,
        server.remove_resource,
        server.remove_method,
    ):
        with pytest.raises(KeyError):
            remove("nothing")


def test_server_decorators_return_the_function() -> None:
    """Declared functions stay ordinary functions that tests and other code can call."""
    server = Server("s")

    def function() -> str:
        """Do."""
        return ""

    assert server.tool(function) is function
    assert server.tool(name="b")(function) is function
    assert server.prompt(function) is function
    assert server.prompt(name="b")(function) is function
    assert server.resource("x://y")(function) is function
    assert server.method("acme/x")(function) is function
    server.add_prompt(lambda a: "", name="c")
    assert server.completion("c", "a")(lambda typed: []) is not None
    with pytest.raises(DeclarationError, match="no prompt or resource template 'd' yet"):
        server.completion("d", "a")(lambda typed: [])


def test_server_repr_counts_the_declarations() -> None:
    assert repr(Server("s")) == "<Server 's' with nothing>"
    server = full()
    server.method("acme/x")(lambda: None)
    assert repr(server) == "<Server 's' with 2 tools, 2 resources, 1 prompts, 1 methods>"


def test_server_without_completions_rejects_completion_complete() -> None:
    answer = answered(full(), "completion/complete", {
        "ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""},
    })  # fmt: skip
    assert answer["code"] == -32601


@pytest.mark.parametrize("version", [v for v in DIALECTS if DIALECTS[v].stateful])
def test_server_with_a_connection_from_bytes_to_bytes(version: str) -> None:
    """A `Connection` sends only messages that are valid in the revision."""
    server = full()
    connection = Connection(Role.SERVER, server.config())

    def exchange(message: dict[str, Any]) -> list[Any]:
        connection.receive_data(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n", 0.0)
        while isinstance(event := connection.next_event(), RequestReceived) or hasattr(
            event, "peer"
        ):
            if isinstance(event, RequestReceived):
                plan = server.answer(event)
                result: Any = plan.result(plan.call()) if isinstance(plan, Invocation) else plan
                assert connection.send_result(event.id, result)
        return [json.loads(line) for line in connection.data_to_send().splitlines()]

    hello = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "0"},
    }
    (welcome,) = exchange({"id": 1, "method": "initialize", "params": hello})
    assert welcome["result"]["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
    }
    assert exchange({"method": "notifications/initialized"}) == []
    (listed,) = exchange({"id": 2, "method": "tools/list"})
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["zeta", "alpha"]
    (called,) = exchange({"id": 3, "method": "tools/call", "params": {"name": "alpha"}})
    assert called["result"] == {"content": [{"type": "text", "text": "a"}]}


def test_server_answer_invalid_arguments_is_a_result() -> None:
    plan = full().answer(request("tools/call", {"name": "alpha", "arguments": {"x": 1}}))
    assert isinstance(plan, Result)


@pytest.mark.process
def test_registry_import_loads_no_runtime() -> None:
    program = (
        "import sys, mcp_core.registry\n"
        "print(sorted({'asyncio', 'trio', 'threading', 'logging', 'socket', 'ssl', 'random'} &"
        " sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_server_extension_without_a_valid_identifier_raises() -> None:
    with pytest.raises(ValueError, match="not an extension identifier"):
        Server("s", extensions={"bad": {}})
    declared = Server("s", extensions={"com.example/thing": {"a": 1}}).config().capabilities
    assert declared.extensions == declared.experimental == {"com.example/thing": {"a": 1}}


def test_server_key_ring_is_declared_or_drawn_once() -> None:
    """Without declared keys, the first use draws one that lasts as long as the server."""
    server = Server("s")
    had = server.has_keys
    ring = server.key_ring(lambda size: b"k" * size)
    assert (had, server.has_keys) == (False, True)
    assert server.key_ring(lambda size: b"") is ring
    declared = Server("s", state_keys={"a": b"a" * 32, "b": b"b" * 32})
    assert declared.has_keys
    assert repr(declared.key_ring(bytes)) == "<KeyRing of a, b>"
    for keys, words in (
        ({}, "at least one key"),
        ({"a": b"short"}, "has 5 bytes"),
        ({"": b"k" * 32}, "a key's name"),
    ):
        with pytest.raises(ValueError, match=words):
            Server("s", state_keys=keys)


def test_server_lifespan_gets_the_server() -> None:
    @asynccontextmanager
    async def lifespan(served: Server) -> AsyncIterator[str]:
        yield f"of {served.info.name}"

    async def value_of(server: Server) -> Any:
        async with server.lifespan() as value:
            return value

    assert asyncio.run(value_of(Server("s", lifespan=lifespan))) == "of s"
    assert asyncio.run(value_of(Server("s"))) is None


def test_tool_without_limits_of_its_calls_has_none() -> None:
    server = Server("s")
    server.add_tool(lambda: 1, name="free", description="d")
    server.add_tool(lambda: 1, name="slow", description="d", rate=Rate(1, 1))
    assert server._tools["free"].limits is None
    limits = server._tools["slow"].limits
    assert limits is not None
    assert limits.timeout is None
    assert repr(limits.buckets) == "<Buckets of 0 keys>"


def test_declaration_in_use_names_the_server_only_if_it_is_an_outer_one() -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.add_tool(lambda: 1, name="t", description="d")
    outer.add_tool(lambda: 1, name="m_u", description="d")
    outer.mount(inner, "m")
    for name, text in (("t", "tool 't' already"), ("u", "tool 'm_u' already on server 'outer'")):
        with pytest.raises(DeclarationError) as caught:
            inner.add_tool(lambda: 1, name=name, description="d")
        assert str(caught.value) == f"there is a {text}: function '<lambda>'"


def test_server_without_options_has_their_defaults() -> None:
    server = Server("s")
    assert (server.info.version, server.info.title, server.info.website_url) == ("0", None, None)
    assert not server.has_tasks
    assert not server.has_keys


@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_tool_may_be_a_task_where_the_revision_has_tasks(dialect: Dialect) -> None:
    server = Server("s")

    @server.tool(task="optional")
    async def slow() -> str:
        """Take its time."""
        return "x"

    server.add_tool(lambda: "x", name="quick", description="Answer.")
    assert server.has_tasks
    for name, is_task in ("slow", dialect.tasks != "none"), ("quick", False), ("missing", False):
        asked = request("tools/call", {"name": name}, dialect)
        assert server.may_be_task(asked) is is_task


def test_tool_is_found_by_its_name_and_its_function() -> None:
    server = full()
    alpha = server.find_tool("alpha")
    assert alpha is not None
    assert server.find_tool(alpha.function.call) is alpha
    assert server.find_tool("other") is server.find_tool(len) is None
    assert server.param_headers("missing") is None
    assert server.param_headers("alpha") == {}
    server.disable("alpha", "tool")
    assert server.param_headers("alpha") is None


def test_reports_of_a_server_are_first_once_and_due_after_an_interval() -> None:
    server = Server("s")
    assert [server.is_first_report(label) for label in ("a", "a", "b", "b")] == [
        *(True, False),
        *(True, False),
    ]
    fault = object()
    times = [(0.0, True), (9.9, False), (10.0, True), (19.0, False), (20.0, True)]
    assert [server.is_due_report(fault, now, 10.0) for now, _ in times] == [due for _, due in times]
    assert server.is_due_report(object(), 20.0, 10.0)


def test_key_of_a_server_is_drawn_once() -> None:
    drawn = []

    def entropy(size: int) -> bytes:
        drawn.append(size)
        return bytes(size)

    server = Server("s")
    ring = server.key_ring(entropy)
    assert server.has_keys
    assert server.key_ring(entropy) is ring
    assert drawn == [32]


def test_lifespans_are_entered_until_the_block_ends() -> None:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield

    server = Server("s")
    with server.lifespans_entered():
        with server.lifespans_entered():
            pass
        with pytest.raises(DeclarationError, match="lifespan"):
            server.mount(Server("inner", lifespan=lifespan), "a")
    server.mount(Server("inner", lifespan=lifespan), "a")


KEYS = {"a": b"a" * 32}


def test_state_keys_of_a_server_are_given_once_before_it_is_served() -> None:
    """Keys that were declared or given, or may have signed already, aren't replaced."""
    assert Server("s").shared_keys is None
    server = Server("s")
    with pytest.raises(ValueError, match="has 5 bytes"):
        server.use_state_keys({"a": b"short"})
    server.use_state_keys(KEYS)
    ring = server.shared_keys
    assert repr(ring) == "<KeyRing of a>"
    assert server.key_ring(bytes) is ring
    for declared in server, Server("s", state_keys=KEYS):
        with pytest.raises(ValueError, match="'s' is declared with state_keys= already"):
            declared.use_state_keys(KEYS)
    served = Server("s")
    served.lifespan()
    with pytest.raises(ValueError, match="'s' is served already"):
        served.use_state_keys(KEYS)
    assert served.shared_keys is None


def test_state_keys_replace_a_key_that_was_drawn() -> None:
    """A drawn key is not shared with other processes."""
    server = Server("s")
    drawn = server.key_ring(bytes)
    server.use_state_keys(KEYS)
    assert server.key_ring(bytes) is not drawn


@pytest.mark.parametrize("subscriptions", [{}, None, 1])
def test_subscriptions_of_a_server_are_true_or_false(subscriptions: Any) -> None:
    with pytest.raises(TypeError, match="subscriptions is True or False"):
        Server("s", subscriptions=subscriptions)


def test_middlewares_and_hooks_are_kept_in_order_and_returned() -> None:
    """A middleware may be an object; hooks of mounted servers come after the outer one's."""
    server, inner = Server("s"), Server("inner")

    async def around(context: Context, proceed: Any) -> Any:
        return await proceed()

    class Around:
        async def __call__(self, context: Context, proceed: Any) -> Any:
            return await proceed()

    other = Around()
    assert [server.middleware(each) for each in (around, other)] == [around, other]
    assert server.middlewares == [around, other]
    with pytest.raises(DeclarationError, match="a middleware is an `async def` of a context"):
        server.middleware(lambda context, proceed: None)  # type: ignore[type-var]

    def hook(context: Any) -> None: ...

    assert server.on_roots_changed(hook) is hook
    assert server.on_remote_change(hook) is hook
    assert inner.on_roots_changed(other_hook := lambda context: None) is other_hook
    assert server.remote_change_hooks == [hook]
    server.mount(inner, "m")
    assert server.all_roots_hooks() == [(server, hook), (inner, other_hook)]
    for declare in server.on_roots_changed, server.on_remote_change:
        with pytest.raises(DeclarationError):
            declare(lambda: None)  # type: ignore[type-var]


def test_mounted_servers_are_found_once_and_outer_ones_first() -> None:
    outer, middle, inner = Server("outer"), Server("middle"), Server("inner")
    middle.mount(inner, "i")
    outer.mount(middle, "m")
    outer.mount(inner, "n")
    assert outer.mounted_servers() == [middle, inner]
    assert [(mount.server, mount.prefix) for mount in outer.mounts] == [(middle, "m"), (inner, "n")]
    outer.mount(middle, "m")  # again, which does nothing
    assert len(outer.mounts) == 2
    with pytest.raises(TypeError, match="mount takes a Server and a prefix"):
        outer.mount("inner")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["tool", "prompt"])
def test_decorator_with_a_name_alone_says_how_to_write_it(kind: str) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(Server("s"), kind)("x")
    assert str(caught.value) == (
        f"@server.{kind}('x'): write @server.{kind}(name='x'),"
        f" or @server.{kind} alone for the function's own name"
    )


def test_resource_decorator_without_uri_says_how_to_write_it() -> None:
    with pytest.raises(TypeError, match=r"write @server.resource\('notes://today'\)"):
        Server("s").resource(print)  # type: ignore[arg-type]


def test_declared_names_of_a_server_are_by_kind() -> None:
    server = full()
    server.method("acme/x")(lambda: None)
    assert [sorted(names) for names in server.declared_names()] == [
        *(["alpha", "zeta"], ["p"], ["acme/x"]),
    ]


@pytest.mark.parametrize(
    ("threads", "thread", "blocks"),
    [
        *((False, None, False), (False, False, False), (False, True, True)),
        *((True, None, True), (True, False, False), (True, True, True)),
    ],
)
def test_plain_def_runs_in_a_thread_as_it_or_its_server_says(
    threads: bool, thread: bool | None, blocks: bool
) -> None:
    """The option of a declaration of each kind comes before the server's."""
    server = Server("s", threads=threads)
    own: Any = {} if thread is None else {"thread": thread}
    server.add_tool(lambda: "", name="t", description="d", **own)
    server.add_prompt(lambda a: "", name="p", **own)
    server.add_resource("x://a", lambda: "", name="r", **own)
    server.add_resource("x://b/{c}", lambda c: "", name="r", **own)
    server.add_completion("p", "a", lambda typed: [], **own)
    server.completion("x://b/{c}", "c", **own)(lambda typed: [])
    server.method("acme/x", **own)(lambda: None)
    requests: list[tuple[Any, Any]] = [
        ("tools/call", {"name": "t"}),
        ("prompts/get", {"name": "p", "arguments": {"a": ""}}),
        *(("resources/read", {"uri": uri}) for uri in ("x://a", "x://b/c")),
        *(
            ("completion/complete", {"ref": ref, "argument": {"name": name, "value": ""}})
            for ref, name in (
                ({"type": "ref/prompt", "name": "p"}, "a"),
                ({"type": "ref/resource", "uri": "x://b/{c}"}, "c"),
            )
        ),
        (server.config().methods["acme/x"], {}),
    ]
    assert [prepared(server, *each).thread for each in requests] == [blocks] * 7
