"""Pagination, completion, caching hints and the declaration of logging, over a wire and in every revision.

The other end is a script or our client; the server is the one that programs run.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

import mcp_trio
from mcp_core import Connection, Limits, Rate, Role
from mcp_core import types as t
from mcp_core.registry import Cache, Context, Server
from mcp_trio.testing import play_client
from tests.core.helpers import STATEFUL, VERSIONS, A, B, C, D, E, opened

if TYPE_CHECKING:
    from mcp_trio.testing import ScriptedPeer

LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
WITH_HINTS: Final = (*LISTS, "server/discover", "resources/read")
every_revision = pytest.mark.parametrize("version", VERSIONS)


def make(count: int = 5, **options: Any) -> Server:
    """A server with `count` of everything."""
    server = Server("utilities", **options)
    for n in range(count):
        server.add_tool(lambda: None, name=f"n{n}", description="A tool.")
        server.add_prompt(lambda: "", name=f"n{n}")
        server.add_resource(f"x://{n}", lambda: "text", name=f"n{n}")
        server.add_resource(f"x{n}://{{y}}", lambda y: "text", name=f"n{n}")
    return server


# --- Pagination -------------------------------------------------------------------------------------


async def walk(peer: ScriptedPeer, method: str) -> list[list[str]]:
    """The names on every page."""
    pages = []
    params: dict[str, str] = {}
    while True:
        result = await peer.result_of(method, params)
        pages.append([entry["name"] for entry in result[LISTS[method]]])
        if "nextCursor" not in result:
            return pages
        params = {"cursor": result["nextCursor"]}


@pytest.mark.requirement("PAGE-1")
@every_revision
@pytest.mark.parametrize("method", LISTS)
async def test_lists_come_in_pages(version: str, method: str) -> None:
    async with play_client(make(page_size=2), version) as peer:
        assert await walk(peer, method) == [["n0", "n1"], ["n2", "n3"], ["n4"]]
    async with play_client(make(), version) as peer:
        assert await walk(peer, method) == [["n0", "n1", "n2", "n3", "n4"]]


@pytest.mark.requirement("PAGE-1")
@every_revision
async def test_our_client_sees_whole_lists(version: str) -> None:
    names = [f"n{n}" for n in range(5)]
    async with mcp_trio.connect(make(page_size=2), versions=[version]) as client:
        assert [tool.name for tool in await client.list_tools()] == names
        assert [prompt.name for prompt in await client.list_prompts()] == names
        assert [resource.name for resource in await client.list_resources()] == names
        assert [template.name for template in await client.list_resource_templates()] == names


@pytest.mark.requirement("PAGE-6")
@every_revision
@pytest.mark.parametrize("method", LISTS)
async def test_a_cursor_that_was_not_given_out_is_refused(version: str, method: str) -> None:
    server = make(page_size=2)
    async with play_client(server, version) as peer:
        cursor = (await peer.result_of(method))["nextCursor"]
        for wrong in "", "made up", cursor + "=", cursor.swapcase():
            refused = await peer.request(method, {"cursor": wrong})
            assert (await peer.expect_error(refused, -32602))["message"] == "Unknown cursor"
        await peer.expect_error(await peer.request(method, {"cursor": 3}), -32602)


@pytest.mark.requirement("PAGE-6")
@every_revision
async def test_a_cursor_is_stable_while_its_entry_is_there(version: str) -> None:
    server = make(page_size=2)
    async with play_client(server, version) as peer:
        cursor = {"cursor": (await peer.result_of("tools/list"))["nextCursor"]}
        server.remove_tool("n0")
        server.remove_tool("n3")
        server.add_tool(lambda: None, name="new", description="A tool.")
        await hear_of_it(peer, version)
        first = await peer.result_of("tools/list", cursor)
        assert [tool["name"] for tool in first["tools"]] == ["n2"]
        assert await peer.result_of("tools/list", cursor) == first
        rest = await peer.result_of("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in rest["tools"]] == ["n4", "new"]
        server.remove_tool("n1")
        await hear_of_it(peer, version)
        await peer.expect_error(await peer.request("tools/list", cursor), -32602)
    async with play_client(make(page_size=2), version) as peer:  # the same server, started again
        assert [tool["name"] for tool in (await peer.result_of("tools/list", cursor))["tools"]] == [
            "n2",
            "n3",
        ]


async def hear_of_it(peer: ScriptedPeer, version: str) -> None:
    """A session is told of a changed list by itself."""
    if version in STATEFUL:
        await peer.expect("notifications/tools/list_changed")


# --- Completion -------------------------------------------------------------------------------------


def completing(**options: Any) -> Server:
    server = make(1, **options)

    @server.prompt
    def review(language: str, framework: str, code: str) -> str:
        return f"{language}, {framework}: {code}"

    @server.resource("files://{owner}/{name}")
    def file(owner: str, name: str) -> str:
        return name

    @server.completion("review", "language")
    def languages(typed: str) -> list[str]:
        return [name for name in ("rust", "python", "perl") if name.startswith(typed)]

    @server.completion("review", "framework")
    async def frameworks(typed: str, chosen: Mapping[str, str], context: Context) -> list[str]:
        return [f"{chosen.get('language', 'no')} framework of request {context.request_id}"]

    @server.completion("files://{owner}/{name}", "name", thread=True)
    def names(typed: str) -> list[str]:
        return [f"{typed}{n}" for n in range(150)]

    @server.completion("files://{owner}/{name}", "owner")
    def owners(typed: str) -> list[str]:
        raise RuntimeError("the disk is on fire")

    return server


REVIEW: Final = {"type": "ref/prompt", "name": "review"}
FILE: Final = {"type": "ref/resource", "uri": "files://{owner}/{name}"}


def asking(ref: Mapping[str, str], argument: str, typed: Any = "", **more: Any) -> dict[str, Any]:
    return {"ref": ref, "argument": {"name": argument, "value": typed}, **more}


@pytest.mark.requirement("COMP-1")
@every_revision
async def test_completion_is_declared_by_who_has_it(version: str) -> None:
    async with mcp_trio.connect(completing(), versions=[version]) as client:
        declared = client.peer.capabilities
        assert isinstance(declared, t.ServerCapabilities)
        assert declared.completions == (None if version == A else {})
        completed = await client.request("completion/complete", asking(REVIEW, "language", "p"))
        assert completed.completion.values == ["python", "perl"]
    async with mcp_trio.connect(make(), versions=[version]) as client:
        declared = client.peer.capabilities
        assert isinstance(declared, t.ServerCapabilities)
        assert declared.completions is None


@pytest.mark.requirement("COMP-3")
@every_revision
async def test_at_most_a_hundred_values_are_sent(version: str) -> None:
    async with play_client(completing(), version) as peer:
        completion = (await peer.result_of("completion/complete", asking(FILE, "name", "f")))["completion"]
        assert completion == {"values": [f"f{n}" for n in range(100)], "total": 150, "hasMore": True}
        completion = (await peer.result_of("completion/complete", asking(REVIEW, "language")))["completion"]
        assert completion == {"values": ["rust", "python", "perl"], "total": 3, "hasMore": False}


@pytest.mark.requirement("COMP-2")
@every_revision
async def test_what_is_chosen_already_helps_to_complete(version: str) -> None:
    chosen = {"context": {"arguments": {"language": "python"}}}
    async with play_client(completing(), version) as peer:
        for more, said in (chosen, "python"), ({"context": {}}, "no"), ({}, "no"):
            request = await peer.request("completion/complete", asking(REVIEW, "framework", **more))
            (value,) = (await peer.expect_result(request))["completion"]["values"]
            assert value == f"{said} framework of request {request['id']}"


@pytest.mark.requirement("COMP-2")
@every_revision
def test_what_a_client_asks(version: str) -> None:
    conn = opened(Role.CLIENT, version).conn
    ask = functools.partial(asked, conn)
    for ref, said in (
        (t.PromptReference("review"), REVIEW),
        (t.ResourceTemplateReference("files://{owner}/{name}"), FILE),
        (
            t.PromptReference("review", title="Review"),
            REVIEW | ({"title": "Review"} if version in (C, D, E) else {}),
        ),
    ):
        context = t.CompletionContext(arguments={"language": "python"})
        params = ask(
            t.CompleteParams(ref=ref, argument=t.CompletionArgument("framework", "fl"), context=context)
        )
        expected: dict[str, Any] = {"ref": said, "argument": {"name": "framework", "value": "fl"}}
        if version not in (A, B):
            expected["context"] = {"arguments": {"language": "python"}}
        assert params == expected


def asked(conn: Connection, params: t.CompleteParams) -> Any:
    """The params of the request as they leave, without `_meta`."""
    conn.send_request("completion/complete", params)
    (message,) = conn.messages_to_send()
    said = json.loads(message.data)["params"]
    said.pop("_meta", None)
    return said


@pytest.mark.requirement("COMP-4")
@every_revision
@pytest.mark.parametrize(
    ("params", "code", "text"),
    [
        (asking({"type": "ref/prompt", "name": "none"}, "x"), -32602, "Unknown prompt: none"),
        (asking({"type": "ref/resource", "uri": "x://0"}, "x"), -32602, "Unknown resource template: x://0"),
        (asking(REVIEW, "none"), -32602, "Unknown argument `none`; the arguments are: language, framework, code"),
        (asking({"type": "ref/other", "name": "x"}, "x"), -32602, "do not fit"),
        (asking({"type": "ref/prompt"}, "x"), -32602, "do not fit"),
        ({"ref": REVIEW}, -32602, "do not fit"),
        (asking(FILE, "owner"), -32603, "Internal error (reference "),
    ],
)  # fmt: skip
async def test_faults_of_a_completion(version: str, params: Any, code: int, text: str) -> None:
    async with play_client(completing(), version) as peer:
        error = await peer.expect_error(await peer.request("completion/complete", params), code)
        assert text in error["message"]
        assert "fire" not in error["message"]


@pytest.mark.requirement("COMP-4")
@every_revision
async def test_a_server_without_completion_has_no_such_method(version: str) -> None:
    async with play_client(make(), version) as peer:
        asked = await peer.request("completion/complete", asking({"type": "ref/prompt", "name": "n0"}, "x"))
        await peer.expect_error(asked, -32601)


@pytest.mark.requirement("COMP-5")
@every_revision
async def test_completions_are_checked_counted_and_left_in_their_order(version: str) -> None:
    server = completing(limits=Limits(tool_calls=Rate(per_second=0.001, burst=2)))
    async with play_client(server, version) as peer:
        for no_text in 3, None, ["p"]:
            wrong = await peer.request("completion/complete", asking(REVIEW, "language", no_text))
            await peer.expect_error(wrong, -32602)
        for typed, values in ("", ["rust", "python", "perl"]), ("p", ["python", "perl"]):
            completed = await peer.result_of("completion/complete", asking(REVIEW, "language", typed))
            assert completed["completion"]["values"] == values
        once_more = await peer.request("completion/complete", asking(REVIEW, "language"))
        await peer.expect_error(once_more, 429 if version == E else -32000)


# --- Caching hints ----------------------------------------------------------------------------------


def hints(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("ttlMs", "cacheScope") if name in result}


async def hinted(peer: ScriptedPeer, method: str, uri: str = "x://0") -> dict[str, Any]:
    return hints(await peer.result_of(method, {"uri": uri} if method == "resources/read" else {}))


@pytest.mark.requirement("CACHE-1")
@pytest.mark.parametrize("method", WITH_HINTS)
async def test_every_cacheable_result_says_how_long_it_is_good(method: str) -> None:
    async with play_client(make(), E) as peer:
        assert await hinted(peer, method) == {"ttlMs": 0, "cacheScope": "private"}
    server = make(0, cache=Cache(ttl=1.5, scope="public"))
    server.add_resource("x://0", lambda: "text", name="cached", cache=Cache(ttl=60))
    server.add_tool(lambda: None, name="t", description="A tool.")
    server.add_prompt(lambda: "", name="p")
    async with play_client(server, E) as peer:
        told = {"ttlMs": 1_500, "cacheScope": "public"}
        read = {"ttlMs": 60_000, "cacheScope": "private"}
        assert await hinted(peer, method) == (read if method == "resources/read" else told)


def reading() -> Server:
    """A server with hints of every origin on what can be read."""
    server = Server("s")
    told = Cache(60, "public")
    contents = [t.ResourceContents(uri="x://mine", text="t")]
    mine = {
        "plain": "text",
        "mine": t.ReadResourceResult(contents=contents, ttl_ms=5, cache_scope="private"),
        "half": t.ReadResourceResult(contents=contents, ttl_ms=5),
        "without": t.ReadResourceResult(contents=contents),
    }
    for name, value in mine.items():
        server.add_resource(f"x://{name}", functools.partial(_same, value), name=name, cache=told)
    server.add_resource("y://{name}", lambda name: name, name="y", cache=told)
    return server


def _same(value: Any) -> Any:
    return value


@pytest.mark.requirement("CACHE-1")
async def test_hints_of_what_is_read() -> None:
    async with play_client(reading(), E) as peer:
        for uri, ttl, scope in (
            ("x://plain", 60_000, "public"),
            ("x://mine", 5, "private"),
            ("x://half", 5, "public"),
            ("x://without", 60_000, "public"),
            ("y://any", 60_000, "public"),
        ):
            assert await hinted(peer, "resources/read", uri) == {"ttlMs": ttl, "cacheScope": scope}, uri


@pytest.mark.requirement("CACHE-1")
@pytest.mark.parametrize("version", STATEFUL)
async def test_revisions_without_hints_carry_none(version: str) -> None:
    async with play_client(make(cache=Cache(60, "public")), version) as peer:
        for method in LISTS:
            assert await hinted(peer, method) == {}
    async with play_client(reading(), version) as peer:
        for uri in "x://plain", "x://mine", "y://any":
            assert await hinted(peer, "resources/read", uri) == {}


@pytest.mark.requirement("CACHE-2")
async def test_a_question_carries_no_hints() -> None:
    server = Server("s", cache=Cache(60))
    question = t.InputRequiredResult(result_type="input_required", request_state="state")
    server.add_resource("x://0", lambda: question, name="asks", cache=Cache(60))
    async with play_client(server, E) as peer:
        result = await peer.result_of("resources/read", {"uri": "x://0"})
        assert (result["resultType"], hints(result)) == ("input_required", {})


@pytest.mark.requirement("CACHE-8")
@pytest.mark.parametrize("method", LISTS)
async def test_all_pages_of_a_list_have_one_scope(method: str) -> None:
    server = make(page_size=2, cache=Cache(60, "public"))
    async with play_client(server, E) as peer:
        scopes = []
        params: dict[str, str] | None = {}
        while params is not None:
            result = await peer.result_of(method, params)
            scopes.append(result["cacheScope"])
            params = {"cursor": result["nextCursor"]} if "nextCursor" in result else None
            server.add_tool(lambda: None, name=f"new{len(scopes)}", description="A tool.")
        assert set(scopes) == {"public"}
        assert len(scopes) > 2


# --- Logging ----------------------------------------------------------------------------------------


@pytest.mark.requirement("LOG-1")
@every_revision
@pytest.mark.parametrize(
    ("options", "declared"), [({}, {}), ({"logging": True}, {}), ({"logging": False}, None)]
)
async def test_who_may_send_log_messages_declares_it(version: str, options: Any, declared: Any) -> None:
    async with mcp_trio.connect(Server("s", **options), versions=[version]) as client:
        capabilities = client.peer.capabilities
        assert isinstance(capabilities, t.ServerCapabilities)
        assert capabilities.logging == declared
    async with play_client(Server("s", **options), version) as peer:
        asked = await peer.request("logging/setLevel", {"level": "info"})
        if version == E or declared is None:
            await peer.expect_error(asked, -32601)
        else:
            assert await peer.expect_result(asked) == {}
