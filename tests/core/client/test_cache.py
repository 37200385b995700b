"""`ResultCache`: which results it stores, and for how long, with a clock that the test sets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import types as t
from mcp_core.client._cache import ResultCache
from tests.levels import fewer_examples

SECOND = 1000  # milliseconds


def tools(*names: str, ttl: int | None = SECOND, **more: Any) -> t.ListToolsResult:
    listed = [t.Tool(name=name, input_schema={"type": "object"}) for name in names]
    return t.ListToolsResult(tools=listed, ttl_ms=ttl, cache_scope="private", **more)


def contents(text: str, ttl: int | None = SECOND) -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[t.ResourceContents(uri="a:b", text=text)], ttl_ms=ttl)


def holding(*results: tuple[str, Any, t.CacheableResult], now: float = 0.0) -> ResultCache:
    cache = ResultCache()
    for method, params, result in results:
        cache.put(method, params, result, now, cache.generation)
    return cache


@pytest.mark.requirement("CACHE-5")
@pytest.mark.parametrize(
    ("ttl", "now", "fresh"),
    [
        (1000, 5.0, True),
        (1000, 5.999, True),
        (1000, 6.0, False),
        (1000, 4.0, True),
        (1, 5.0009, True),
        (1, 5.001, False),
        (0, 5.0, False),
        (-1000, 5.0, False),
        (None, 5.0, False),
        (10**400, 1e15, False),
        (10**400, 1e12, True),
        (10**400, 9e12, True),  # at most 2**53 milliseconds
        (10**400, 9.1e12, False),
    ],
)
def test_cache_entry_expires_after_ttl(ttl: int | None, now: float, fresh: bool) -> None:
    cache = holding(("tools/list", None, tools("a", ttl=ttl)), now=5.0)
    found = cache.get("tools/list", None, now)
    assert found == (tools("a", ttl=ttl) if fresh else None)
    assert repr(cache) == ("<ResultCache of 0 results, 0 bytes>" if not fresh else repr(cache))


@pytest.mark.requirement("CACHE-3")
def test_cache_hit_needs_identical_request() -> None:
    """An empty cursor is not a missing one, URIs are compared as text, and no param is ignored."""
    cache = holding(
        ("tools/list", None, tools("first")),
        ("tools/list", {"cursor": ""}, tools("second")),
        ("tools/list", {"cursor": "2"}, tools("third")),
        ("resources/read", {"uri": "a:b"}, contents("x")),
        ("resources/read", {"uri": "a:B"}, contents("y")),
    )
    assert cache.get("tools/list", None, 0.0) == tools("first")
    assert cache.get("tools/list", {"cursor": ""}, 0.0) == tools("second")
    assert cache.get("tools/list", {"cursor": "2"}, 0.0) == tools("third")
    assert cache.get("tools/list", {"cursor": "3"}, 0.0) is None
    assert cache.get("prompts/list", None, 0.0) is None
    assert cache.get("resources/read", {"uri": "a:b"}, 0.0) == contents("x")
    assert cache.get("resources/read", {"uri": "a:B"}, 0.0) == contents("y")
    assert cache.get("resources/read", {"uri": "a:b", "more": 1}, 0.0) is None


@pytest.mark.requirement("CACHE-4")
@pytest.mark.parametrize("member", ["inputResponses", "requestState"])
def test_cache_skips_requests_with_input_responses(member: str) -> None:
    params = {"uri": "a:b", member: {}}
    cache = holding(("resources/read", params, contents("x")))
    assert cache.get("resources/read", params, 0.0) is None
    assert cache.get("resources/read", {"uri": "a:b"}, 0.0) is None
    cache = holding(("resources/read", {"uri": "a:b"}, contents("x")))
    assert cache.get("resources/read", params, 0.0) is None


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/call", t.CallToolResult(content=[])),
        ("ping", t.EmptyResult()),
        ("acme/list", tools("a")),
        ("resources/read", t.InputRequiredResult(request_state="s")),
    ],
)
def test_cache_skips_results_without_ttl(method: str, result: Any) -> None:
    cache = holding((method, None, result))
    assert cache.get(method, None, 0.0) is None
    assert repr(cache) == "<ResultCache of 0 results, 0 bytes>"


RESULTS: list[tuple[str, t.CacheableResult]] = [
    (
        "tools/list",
        t.ListToolsResult(
            tools=[
                t.Tool(
                    name="a",
                    title="A",
                    icons=[t.Icon("https://x/y.png", sizes=["any"], theme="dark")],
                    input_schema={
                        "type": "object",
                        "properties": {"b": {"maximum": 2**70, "x": None, "y": 1.5}},
                    },
                    output_schema={"$ref": "#"},
                    annotations=t.ToolAnnotations(read_only_hint=False),
                    meta={"com.example/x": [1, None, "☃"]},
                )
            ],
            next_cursor="",
            ttl_ms=9,
            cache_scope="public",
            meta={"x": {}},
            result_type="complete",
        ),
    ),
    (
        "prompts/list",
        t.ListPromptsResult(
            prompts=[t.Prompt(name="p", arguments=[t.PromptArgument(name="a", required=True)])],
            ttl_ms=9,
        ),
    ),
    (
        "resources/list",
        t.ListResourcesResult(
            resources=[
                t.Resource(
                    uri="a:b", name="b", size=1, annotations=t.Annotations(audience=["user"])
                )
            ],
            ttl_ms=9,
        ),
    ),
    (
        "resources/templates/list",
        t.ListResourceTemplatesResult(
            resource_templates=[t.ResourceTemplate(uri_template="a:{b}", name="b")], ttl_ms=9
        ),
    ),
    (
        "resources/read",
        t.ReadResourceResult(
            contents=[
                t.ResourceContents(uri="a:b", text="line\n\u2028\x00"),
                t.ResourceContents(uri="a:c", blob="AAE=", mime_type="x/y"),
            ],
            ttl_ms=9,
        ),
    ),
    (
        "server/discover",
        t.DiscoverResult(supported_versions=["x"], capabilities=t.ServerCapabilities(), ttl_ms=9),
    ),
]


@pytest.mark.parametrize(("method", "result"), RESULTS)
def test_cache_hit_is_equal_but_new_object(method: str, result: t.CacheableResult) -> None:
    cache = holding((method, None, result))
    first, second = cache.get(method, None, 0.0), cache.get(method, None, 0.0)
    assert first == second == result
    assert type(first) is type(result)
    assert first is not second


def test_cache_hit_may_be_modified_by_caller() -> None:
    kept = tools("a")
    cache = holding(("tools/list", None, kept))
    kept.tools.clear()
    hit = cache.get("tools/list", None, 0.0)
    hit.tools[0].input_schema["type"] = "array"
    hit.tools.append(hit.tools[0])
    assert cache.get("tools/list", None, 0.0) == tools("a")


@pytest.mark.requirement("CACHE-10")
@pytest.mark.parametrize(
    ("notification", "stale"),
    [
        ("notifications/tools/list_changed", {"tools/list"}),
        ("notifications/prompts/list_changed", {"prompts/list"}),
        ("notifications/resources/list_changed", {"resources/list", "resources/templates/list"}),
        ("notifications/resources/updated", {"resources/read"}),
        ("notifications/message", set()),
    ],
)
def test_cache_notification_invalidates_its_methods(notification: str, stale: set[str]) -> None:
    cache = holding(
        *(
            (method, params, result)
            for method, result in RESULTS
            for params in (None, {"cursor": "1"})
        )
    )
    before = cache.generation
    cache.invalidate(notification)
    gone = {method for method, _ in RESULTS if cache.get(method, {"cursor": "1"}, 0.0) is None}
    assert (
        gone == stale == {method for method, _ in RESULTS if cache.get(method, None, 0.0) is None}
    )
    assert (cache.generation != before) is bool(stale)


@pytest.mark.requirement("CACHE-10")
def test_cache_resource_update_invalidates_that_uri() -> None:
    """Only that URI is dropped; without a URI all resources are. Lists stay."""
    cache = holding(
        ("tools/list", None, tools("a")),
        ("resources/read", {"uri": "a:b"}, contents("x")),
        ("resources/read", {"uri": "a:b/c"}, contents("y")),
    )
    before = cache.generation
    cache.invalidate("notifications/resources/updated", "a:b")
    assert cache.generation != before
    assert cache.get("resources/read", {"uri": "a:b"}, 0.0) is None
    assert cache.get("resources/read", {"uri": "a:b/c"}, 0.0) == contents("y")
    cache.invalidate("notifications/resources/updated", "a:d")
    cache.invalidate("notifications/resources/updated", "a:\ud800")
    assert cache.get("resources/read", {"uri": "a:b/c"}, 0.0) == contents("y")
    cache.invalidate("notifications/resources/updated")
    assert cache.get("resources/read", {"uri": "a:b/c"}, 0.0) is None
    assert cache.get("tools/list", None, 0.0) == tools("a")


def test_cache_skips_unencodable_request() -> None:
    params = {"uri": "a:\ud800"}
    cache = holding(("resources/read", params, contents("x")))
    assert cache.get("resources/read", params, 0.0) is None
    assert repr(cache) == "<ResultCache of 0 results, 0 bytes>"


@pytest.mark.requirement("CACHE-10")
def test_cache_skips_result_older_than_change() -> None:
    cache = ResultCache()
    before = cache.generation
    cache.invalidate("notifications/tools/list_changed")
    cache.put("tools/list", None, tools("old"), 0.0, before)
    assert cache.get("tools/list", None, 0.0) is None
    cache.put("tools/list", None, tools("new"), 0.0, cache.generation)
    assert cache.get("tools/list", None, 0.0) == tools("new")


def test_cache_later_result_replaces_earlier() -> None:
    cache = holding(("tools/list", None, tools("a", "b", "c")), ("tools/list", None, tools("d")))
    assert cache.get("tools/list", None, 0.0) == tools("d")
    assert repr(cache) == repr(holding(("tools/list", None, tools("d"))))
    cache.put("tools/list", None, tools("e", ttl=0), 0.0, cache.generation)
    assert cache.get("tools/list", None, 0.0) is None


def test_cache_over_entry_limit_drops_oldest() -> None:
    cache = holding(*(("resources/read", {"uri": f"a:{n}"}, contents(str(n))) for n in range(1003)))
    assert repr(cache).startswith("<ResultCache of 1000 results, ")
    found = [cache.get("resources/read", {"uri": f"a:{n}"}, 0.0) for n in range(1003)]
    assert [n for n in range(1003) if found[n] is None] == [0, 1, 2]


def test_cache_over_size_limit_drops_oldest() -> None:
    mebibytes = "x" * 3 * 1024 * 1024
    cache = holding(*(("resources/read", {"uri": f"a:{n}"}, contents(mebibytes)) for n in range(3)))
    assert [cache.get("resources/read", {"uri": f"a:{n}"}, 0.0) is None for n in range(3)] == [
        True,
        False,
        False,
    ]
    # A result over the limit by itself evicts nothing.
    cache.put("resources/read", {"uri": "a:9"}, contents(mebibytes * 3), 0.0, cache.generation)
    assert cache.get("resources/read", {"uri": "a:9"}, 0.0) is None
    assert cache.get("resources/read", {"uri": "a:2"}, 0.0) is not None
    assert repr(cache).startswith("<ResultCache of 2 results, 62")


def test_cache_holds_exactly_8_mebibytes() -> None:
    """One byte more is not stored, and neither is it if it belongs to a second result."""
    empty = holding(("resources/read", {"uri": "a:1"}, contents("")))
    size = int(repr(empty).split()[-2])
    room = 8 * 1024 * 1024 - size
    for length, entries in (room, 1), (room + 1, 0):
        cache = holding(("resources/read", {"uri": "a:1"}, contents("x" * length)))
        assert repr(cache).startswith(f"<ResultCache of {entries} results")
    for length, entries in (room - size, 2), (room - size + 1, 1):
        cache = holding(
            ("resources/read", {"uri": "a:1"}, contents("x" * length)),
            ("resources/read", {"uri": "a:2"}, contents("")),
        )
        assert repr(cache).startswith(f"<ResultCache of {entries} results")


def test_cache_hit_repeats_what_was_left_out() -> None:
    cache = ResultCache()
    cache.put("tools/list", None, tools("a"), 0.0, cache.generation, ["one", "two"])
    problems = ["zero"]
    assert cache.get("tools/list", None, 0.0, problems) == tools("a")
    assert problems == ["zero", "one", "two"]
    assert cache.get("tools/list", None, 0.0) == tools("a")
    assert cache.get("prompts/list", None, 0.0, problems) is None
    assert len(problems) == 3


@pytest.mark.parametrize(("ttl", "entries"), [(None, 0), (-1, 0), (0, 0), (1, 1)])
def test_cache_stores_what_has_time_to_live(ttl: int | None, entries: int) -> None:
    """A result that isn't stored still replaces an earlier one."""
    cache = holding(("tools/list", None, tools("a")), ("tools/list", None, tools("b", ttl=ttl)))
    assert repr(cache).startswith(f"<ResultCache of {entries} results")


METHODS = ["tools/list", "prompts/list", "resources/list"]
Step = tuple[str, str, int, int]  # operation, method, cursor, time to live


@fewer_examples(2)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ask", "ask", "change", "forget", "wait"]),
            st.sampled_from(METHODS),
            st.integers(0, 3),
            st.integers(-1, 4),
        ),
        max_size=40,
    )
)
def test_cache_any_operations_match_model(steps: list[Step]) -> None:
    """After any operations a result is found exactly while it is fresh and was not dropped."""
    cache, now = ResultCache(), 0.0
    model: dict[tuple[str, int], tuple[int, float]] = {}
    for number, (act, method, cursor, ttl) in enumerate(steps):
        if act == "ask":
            value = t.ListToolsResult(tools=[], next_cursor=str(number), ttl_ms=ttl * SECOND)
            result: Any = {
                "tools/list": value,
                "prompts/list": t.ListPromptsResult(
                    prompts=[], next_cursor=str(number), ttl_ms=value.ttl_ms
                ),
                "resources/list": t.ListResourcesResult(
                    resources=[], next_cursor=str(number), ttl_ms=value.ttl_ms
                ),
            }[method]
            cache.put(method, {"cursor": str(cursor)}, result, now, cache.generation)
            model.pop((method, cursor), None)
            if ttl > 0:
                model[method, cursor] = (number, now + ttl)
        elif act == "wait":
            now += abs(ttl)
        else:
            cache.discard(method) if act == "forget" else cache.invalidate(
                f"notifications/{method}_changed"
            )
            model = {key: value for key, value in model.items() if key[0] != method}
        for (known, at), (said_at, stale_at) in model.items():
            found = cache.get(known, {"cursor": str(at)}, now)
            assert (found.next_cursor if found else None) == (
                str(said_at) if now < stale_at else None
            )
    for known in METHODS:
        cache.discard(known)
    assert repr(cache) == "<ResultCache of 0 results, 0 bytes>"
