"""Pagination, completion, caching hints and the logging capability, over a stream and in every
revision.

The client is a script or ours; the server is the real one.
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
from mcp_core.registry import CacheHint, Context, Server
from mcp_trio.testing import play_client
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
)
from tests.harness.wire.connection import opened

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


def build_server(count: int = 5, **options: Any) -> Server:
    """Build a server with `count` entries of each kind."""
    server = Server("utilities", **options)
    for n in range(count):
        server.add_tool(lambda: None, name=f"n{n}", description="A tool.")
        server.add_prompt(lambda: "", name=f"n{n}")
        server.add_resource(f"x://{n}", lambda: "text", name=f"n{n}")
        server.add_resource(f"x{n}://{{y}}", lambda y: "text", name=f"n{n}")
    return server


# --- Pagination -----------------------------------------------------------------------------------


async def walk_pages(peer: ScriptedPeer, method: str) -> list[list[str]]:
    """Return the names on every page."""
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
async def test_list_with_page_size_is_paginated(version: str, method: str) -> None:
    async with play_client(build_server(page_size=2), version) as peer:
        assert await walk_pages(peer, method) == [["n0", "n1"], ["n2", "n3"], ["n4"]]
    async with play_client(build_server(), version) as peer:
        assert await walk_pages(peer, method) == [["n0", "n1", "n2", "n3", "n4"]]


@pytest.mark.requirement("PAGE-1")
@every_revision
async def test_client_list_methods_return_all_pages(version: str) -> None:
    names = [f"n{n}" for n in range(5)]
    async with mcp_trio.connect(build_server(page_size=2), versions=[version]) as client:
        assert [tool.name for tool in await client.list_tools()] == names
        assert [prompt.name for prompt in await client.list_prompts()] == names
        assert [resource.name for resource in await client.list_resources()] == names
        assert [template.name for template in await client.list_resource_templates()] == names


@pytest.mark.requirement("PAGE-6")
@every_revision
@pytest.mark.parametrize("method", LISTS)
async def test_cursor_unknown_is_rejected(version: str, method: str) -> None:
    server = build_server(page_size=2)
    async with play_client(server, version) as peer:
        cursor = (await peer.result_of(method))["nextCursor"]
        for wrong in "", "made up", cursor + "=", cursor.swapcase():
            refused = await peer.request(method, {"cursor": wrong})
            assert (await peer.expect_error(refused, -32602))["message"] == "Unknown cursor"
        await peer.expect_error(await peer.request(method, {"cursor": 3}), -32602)


@pytest.mark.requirement("PAGE-6")
@every_revision
async def test_cursor_after_list_change_is_valid_while_its_entry_exists(version: str) -> None:
    """A cursor names the entry it follows, so it survives other changes and a restart."""
    server = build_server(page_size=2)
    async with play_client(server, version) as peer:
        cursor = {"cursor": (await peer.result_of("tools/list"))["nextCursor"]}
        server.remove_tool("n0")
        server.remove_tool("n3")
        server.add_tool(lambda: None, name="new", description="A tool.")
        await expect_list_changed(peer, version)
        first = await peer.result_of("tools/list", cursor)
        assert [tool["name"] for tool in first["tools"]] == ["n2"]
        assert await peer.result_of("tools/list", cursor) == first
        rest = await peer.result_of("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in rest["tools"]] == ["n4", "new"]
        server.remove_tool("n1")
        await expect_list_changed(peer, version)
        await peer.expect_error(await peer.request("tools/list", cursor), -32602)
    async with play_client(
        build_server(page_size=2), version
    ) as peer:  # the same server after a restart
        assert [tool["name"] for tool in (await peer.result_of("tools/list", cursor))["tools"]] == [
            "n2",
            "n3",
        ]


async def expect_list_changed(peer: ScriptedPeer, version: str) -> None:
    """Expect the notification that a stateful server sends after a change of its tools."""
    if version in STATEFUL:
        await peer.expect("notifications/tools/list_changed")


# --- Completion -----------------------------------------------------------------------------------


def build_with_completers(**options: Any) -> Server:
    server = build_server(1, **options)

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


def completion_params(
    ref: Mapping[str, str], argument: str, typed: Any = "", **more: Any
) -> dict[str, Any]:
    return {"ref": ref, "argument": {"name": argument, "value": typed}, **more}


@pytest.mark.requirement("COMP-1")
@every_revision
async def test_completions_capability_is_declared_with_completers_only(version: str) -> None:
    async with mcp_trio.connect(build_with_completers(), versions=[version]) as client:
        declared = client.peer.capabilities
        assert isinstance(declared, t.ServerCapabilities)
        assert declared.completions == (None if version == A else {})
        completed = await client.request(
            "completion/complete", completion_params(REVIEW, "language", "p")
        )
        assert completed.completion.values == ["python", "perl"]
    async with mcp_trio.connect(build_server(), versions=[version]) as client:
        declared = client.peer.capabilities
        assert isinstance(declared, t.ServerCapabilities)
        assert declared.completions is None


@pytest.mark.requirement("COMP-3")
@every_revision
async def test_completion_values_over_100_are_cut(version: str) -> None:
    async with play_client(build_with_completers(), version) as peer:
        completion = (
            await peer.result_of("completion/complete", completion_params(FILE, "name", "f"))
        )["completion"]
        assert completion == {
            "values": [f"f{n}" for n in range(100)],
            "total": 150,
            "hasMore": True,
        }
        completion = (
            await peer.result_of("completion/complete", completion_params(REVIEW, "language"))
        )["completion"]
        assert completion == {"values": ["rust", "python", "perl"], "total": 3, "hasMore": False}


@pytest.mark.requirement("COMP-2")
@every_revision
async def test_completion_context_reaches_the_completer(version: str) -> None:
    chosen = {"context": {"arguments": {"language": "python"}}}
    async with play_client(build_with_completers(), version) as peer:
        for more, expected_value in (chosen, "python"), ({"context": {}}, "no"), ({}, "no"):
            request = await peer.request(
                "completion/complete", completion_params(REVIEW, "framework", **more)
            )
            (value,) = (await peer.expect_result(request))["completion"]["values"]
            assert value == f"{expected_value} framework of request {request['id']}"


@pytest.mark.requirement("COMP-2")
@every_revision
def test_complete_params_match_the_revision(version: str) -> None:
    """`title` came with 2025-06-18, and so did `context`: earlier revisions have neither."""
    conn = opened(Role.CLIENT, version).conn
    send = functools.partial(sent_params, conn)
    for ref, expected_value in (
        (t.PromptReference("review"), REVIEW),
        (t.ResourceTemplateReference("files://{owner}/{name}"), FILE),
        (
            t.PromptReference("review", title="Review"),
            REVIEW | ({"title": "Review"} if version in (C, D, E) else {}),
        ),
    ):
        context = t.CompletionContext(arguments={"language": "python"})
        params = send(
            t.CompleteParams(
                ref=ref, argument=t.CompletionArgument("framework", "fl"), context=context
            )
        )
        expected: dict[str, Any] = {
            "ref": expected_value,
            "argument": {"name": "framework", "value": "fl"},
        }
        if version not in (A, B):
            expected["context"] = {"arguments": {"language": "python"}}
        assert params == expected


def sent_params(conn: Connection, params: t.CompleteParams) -> Any:
    """Send the request and return its params without `_meta`."""
    conn.send_request("completion/complete", params)
    (message,) = conn.messages_to_send()
    expected_value = json.loads(message.data)["params"]
    expected_value.pop("_meta", None)
    return expected_value


@pytest.mark.requirement("COMP-4")
@every_revision
@pytest.mark.parametrize(
    ("params", "code", "text"),
    [
        (
            completion_params({"type": "ref/prompt", "name": "none"}, "x"),
            -32602,
            "Unknown prompt: none",
        ),
        (
            completion_params({"type": "ref/resource", "uri": "x://0"}, "x"),
            -32602,
            "Unknown resource template: x://0",
        ),
        (
            completion_params(REVIEW, "none"),
            -32602,
            "Unknown argument `none`; the arguments are: language, framework, code",
        ),
        (completion_params({"type": "ref/other", "name": "x"}, "x"), -32602, "do not fit"),
        (completion_params({"type": "ref/prompt"}, "x"), -32602, "do not fit"),
        ({"ref": REVIEW}, -32602, "do not fit"),
        (completion_params(FILE, "owner"), -32603, "Internal error (reference "),
    ],
)
async def test_completion_errors_have_codes_and_texts(
    version: str, params: Any, code: int, text: str
) -> None:
    async with play_client(build_with_completers(), version) as peer:
        error = await peer.expect_error(await peer.request("completion/complete", params), code)
        assert text in error["message"]
        assert "fire" not in error["message"]


@pytest.mark.requirement("COMP-4")
@every_revision
async def test_completion_without_completers_is_method_not_found(version: str) -> None:
    async with play_client(build_server(), version) as peer:
        request = await peer.request(
            "completion/complete", completion_params({"type": "ref/prompt", "name": "n0"}, "x")
        )
        await peer.expect_error(request, -32601)


@pytest.mark.requirement("COMP-5")
@every_revision
async def test_completions_are_validated_rate_limited_and_kept_in_order(version: str) -> None:
    server = build_with_completers(limits=Limits(tool_calls=Rate(per_second=0.001, burst=2)))
    async with play_client(server, version) as peer:
        for no_text in 3, None, ["p"]:
            wrong = await peer.request(
                "completion/complete", completion_params(REVIEW, "language", no_text)
            )
            await peer.expect_error(wrong, -32602)
        for typed, values in ("", ["rust", "python", "perl"]), ("p", ["python", "perl"]):
            completed = await peer.result_of(
                "completion/complete", completion_params(REVIEW, "language", typed)
            )
            assert completed["completion"]["values"] == values
        once_more = await peer.request("completion/complete", completion_params(REVIEW, "language"))
        await peer.expect_error(once_more, 429 if version == E else -32000)


# --- Caching hints --------------------------------------------------------------------------------


def hints(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: result[name] for name in ("ttlMs", "cacheScope") if name in result}


async def request_hints(peer: ScriptedPeer, method: str, uri: str = "x://0") -> dict[str, Any]:
    return hints(await peer.result_of(method, {"uri": uri} if method == "resources/read" else {}))


@pytest.mark.requirement("CACHE-1")
@pytest.mark.parametrize("method", WITH_HINTS)
async def test_cacheable_results_carry_cache_hints(method: str) -> None:
    async with play_client(build_server(), E) as peer:
        assert await request_hints(peer, method) == {"ttlMs": 0, "cacheScope": "private"}
    server = build_server(0, cache=CacheHint(ttl=1.5, scope="public"))
    server.add_resource("x://0", lambda: "text", name="cached", cache=CacheHint(ttl=60))
    server.add_tool(lambda: None, name="t", description="A tool.")
    server.add_prompt(lambda: "", name="p")
    async with play_client(server, E) as peer:
        declared_hints = {"ttlMs": 1_500, "cacheScope": "public"}
        read = {"ttlMs": 60_000, "cacheScope": "private"}
        assert await request_hints(peer, method) == (
            read if method == "resources/read" else declared_hints
        )


def build_with_resources() -> Server:
    """Build a server with resources whose cache hints come from different places."""
    server = Server("s")
    declared_hints = CacheHint(60, "public")
    contents = [t.ResourceContents(uri="x://mine", text="t")]
    values = {
        "plain": "text",
        "mine": t.ReadResourceResult(contents=contents, ttl_ms=5, cache_scope="private"),
        "half": t.ReadResourceResult(contents=contents, ttl_ms=5),
        "without": t.ReadResourceResult(contents=contents),
    }
    for name, value in values.items():
        server.add_resource(
            f"x://{name}", functools.partial(_same, value), name=name, cache=declared_hints
        )
    server.add_resource("y://{name}", lambda name: name, name="y", cache=declared_hints)
    return server


def _same(value: Any) -> Any:
    return value


@pytest.mark.requirement("CACHE-1")
async def test_read_result_cache_hints_override_declared_ones() -> None:
    async with play_client(build_with_resources(), E) as peer:
        for uri, ttl, scope in (
            ("x://plain", 60_000, "public"),
            ("x://mine", 5, "private"),
            ("x://half", 5, "public"),
            ("x://without", 60_000, "public"),
            ("y://any", 60_000, "public"),
        ):
            assert await request_hints(peer, "resources/read", uri) == {
                "ttlMs": ttl,
                "cacheScope": scope,
            }, uri


@pytest.mark.requirement("CACHE-1")
@pytest.mark.parametrize("version", STATEFUL)
async def test_stateful_revisions_carry_no_cache_hints(version: str) -> None:
    async with play_client(build_server(cache=CacheHint(60, "public")), version) as peer:
        for method in LISTS:
            assert await request_hints(peer, method) == {}
    async with play_client(build_with_resources(), version) as peer:
        for uri in "x://plain", "x://mine", "y://any":
            assert await request_hints(peer, "resources/read", uri) == {}


@pytest.mark.requirement("CACHE-2")
async def test_input_required_result_carries_no_cache_hints() -> None:
    server = Server("s", cache=CacheHint(60))
    question = t.InputRequiredResult(result_type="input_required", request_state="state")
    server.add_resource("x://0", lambda: question, name="asks", cache=CacheHint(60))
    async with play_client(server, E) as peer:
        result = await peer.result_of("resources/read", {"uri": "x://0"})
        assert (result["resultType"], hints(result)) == ("input_required", {})


@pytest.mark.requirement("CACHE-8")
@pytest.mark.parametrize("method", LISTS)
async def test_list_pages_share_one_cache_scope(method: str) -> None:
    server = build_server(page_size=2, cache=CacheHint(60, "public"))
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


# --- Logging --------------------------------------------------------------------------------------


@pytest.mark.requirement("LOG-1")
@every_revision
@pytest.mark.parametrize(
    ("options", "declared"), [({}, {}), ({"logging": True}, {}), ({"logging": False}, None)]
)
async def test_logging_capability_is_declared_unless_disabled(
    version: str, options: Any, declared: Any
) -> None:
    async with mcp_trio.connect(Server("s", **options), versions=[version]) as client:
        capabilities = client.peer.capabilities
        assert isinstance(capabilities, t.ServerCapabilities)
        assert capabilities.logging == declared
    async with play_client(Server("s", **options), version) as peer:
        request = await peer.request("logging/setLevel", {"level": "info"})
        if version == E or declared is None:
            await peer.expect_error(request, -32601)
        else:
            assert await peer.expect_result(request) == {}
