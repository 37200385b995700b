"""The scopes of resources by URI and by template, in any spelling that a server may accept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import Limits
from mcp_core import types as t
from mcp_core.auth.server import _scopes
from mcp_core.auth.server._scopes import RequiredScopes
from mcp_core.urls import UriMatcher, UriTemplate
from tests.levels import fewer_examples

RESOURCES = {
    "db://index": ["index"],
    "db://{table}": ["table"],
    "db://secret/{+path}": ["secret"],
    "db://%73tore/{key}": ["store"],
    "é://ü/{x}": ["umlaut"],
    "q://r{?user,from}": ["query"],
    "tree://r{/part*}": ["tree"],
}


def required(resources: Any, **options: Any) -> RequiredScopes:
    given = {"methods": None, "tools": None, "prompts": None} | options
    return RequiredScopes([], resources=resources, **given)


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("tool", "grete", "no such tool: did you mean 'greet'?"),
        ("tool", "letter", "no such tool."),  # a prompt
        ("prompt", "leter", "no such prompt: did you mean 'letter'?"),
        ("method", "tools/lst", "no such method: did you mean 'tools/list'?"),
        ("method", "acme/index", "no such method: did you mean 'acme/reindex'?"),
    ],
)
def test_scopes_of_an_unknown_name_raise_with_a_similar_one(
    kind: str, name: str, hint: str
) -> None:
    """A typo in a table would leave the tool open; a function isn't checked, and is the way out."""
    known = {"greet": ["a"]}, {"letter": ["a"]}, {"acme/reindex": ["a"]}
    of_server = [names.keys() for names in known]
    right = required(
        None,
        tools=known[0],
        prompts=known[1],
        methods={**known[2], "tools/list": ["a"], "notifications/cancelled": ["a"]},
    )
    right.check_names(*of_server)
    with pytest.raises(ValueError, match="function in place of the mapping") as caught:
        required(None, **{f"{kind}s": {name: ["a"]}}).check_names(*of_server)
    assert f"{kind}_scopes has an entry for {name!r}" in str(caught.value)
    assert hint in str(caught.value)
    required(None, **{f"{kind}s": lambda name: ["a"]}).check_names(*of_server)


def scopes_to_read(uri: str, resources: Any = RESOURCES) -> set[str]:
    return set(required(resources).of("resources/read", t.ReadResourceParams(uri=uri)))


@pytest.mark.requirement("AR-5")
@pytest.mark.parametrize(
    ("uri", "scopes"),
    [
        ("db://index", {"index", "table"}),
        ("db://ind%65x", {"index", "table"}),
        ("db://users", {"table"}),
        ("db://", set()),
        ("db://users/1", set()),
        ("db://secret/a", {"secret"}),
        ("db://secret/a/b?c#d", {"secret"}),
        # A handler of `db://{+rest}` gets `secret/a` in each of these.
        ("db://%73ecret/a", {"secret"}),
        ("db://secret%2Fa", {"secret", "table"}),
        ("db://%73ecret%2fa%2Fb", {"secret", "table"}),
        ("db:%2F%2Fsecret/a", {"secret"}),
        ("db://%73ecret/%25zz", {"secret"}),
        ("db://%73ecret/%2541", {"secret"}),
        ("db://%73ecret/%C3%A9", {"secret"}),
        # Values that are refused, in a template with `unchecked` perhaps not.
        ("db://secret/../C:/x", {"secret"}),
        ("db://..", {"table"}),
        ("db://a%2Fb", {"table"}),
        ("db://a%00", {"table"}),
        ("db://store/a", {"store"}),
        ("db://%73tore/a", {"store"}),
        ("é://ü/a", {"umlaut"}),
        ("%C3%A9://%C3%BC/a", {"umlaut"}),
        ("q://r", {"query"}),
        ("q://r?user=a%26b", {"query"}),
        ("q://r?from=1&user=2", {"query"}),
        ("tree://r/a/b", {"tree"}),
        ("tree://r", {"tree"}),
        ("other://x", set()),
        ("", set()),
        ("\ud800", set()),
        ("db://\ud800", {"table"}),
    ],
)
def test_resource_scopes_of_uri_and_templates(uri: str, scopes: set[str]) -> None:
    assert scopes_to_read(uri) == scopes
    found = required(RESOURCES).of("resources/subscribe", t.SubscribeParams(uri=uri))
    assert set(found) == scopes


@pytest.mark.parametrize("template", [uri for uri in RESOURCES if "{" in uri])
def test_completion_needs_scopes_of_its_template(template: str) -> None:
    params = t.CompleteParams(
        ref=t.ResourceTemplateReference(template),
        argument=t.CompletionArgument(name="x", value=""),
    )
    found = required(RESOURCES).of("completion/complete", params)
    assert set(RESOURCES[template]) <= set(found)


TEMPLATES = [uri for uri in RESOURCES if "{" in uri]


@given(st.sampled_from(TEMPLATES), st.text("abé/%2Ff.:?&=#\\ \0", max_size=12))
def test_uri_that_a_template_serves_needs_its_scopes(template: str, rest: str) -> None:
    """The matcher is the registry's, with checked values and without."""
    uri = template.partition("{")[0] + rest
    parsed = UriTemplate(template)
    variables = parsed.variables
    if any(UriMatcher(parsed, left).match(uri) is not None for left in ((), variables)):
        assert set(RESOURCES[template]) <= scopes_to_read(uri)


@fewer_examples(2)
@given(st.text("ab/%2Ff.", min_size=1, max_size=12), st.data())
def test_uri_in_another_spelling_needs_the_same_scopes(path: str, data: st.DataObject) -> None:
    """Another template leads to the same path, as long as that decodes."""
    uri = f"db://secret/{path}"
    spelled = "".join(
        f"%{ord(each):02x}" if each != "%" and data.draw(st.booleans()) else each
        for each in uri.removeprefix("db://")
    )
    found = UriMatcher(UriTemplate("db://{+rest}")).match(f"db://{spelled}")
    if found is not None and str(found["rest"]).startswith("secret/"):
        assert "secret" in scopes_to_read(f"db://{spelled}")


def test_listen_to_very_many_resources_needs_scopes_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_scopes, "_MAX_COMPARED", 3)

    def scopes(count: int, resources: Any) -> tuple[str, ...]:
        uris = [f"other://{index}" for index in range(count)]
        wishes = t.SubscriptionFilter(resource_subscriptions=uris)
        return required(resources).of("subscriptions/listen", t.ListenParams(notifications=wishes))

    assert scopes(3, RESOURCES) == ()
    assert scopes(4, RESOURCES) == (
        "index", "table", "secret", "store", "umlaut", "query", "tree"
    )  # fmt: skip
    assert scopes(4, lambda uri: ["by-function"]) == ("by-function",)


def test_method_scopes_function_gets_every_method() -> None:
    asked: list[str] = []

    def methods(name: str) -> list[str]:
        asked.append(name)
        return ["list"] if name.endswith("/list") else []

    found = required(None, methods=methods)
    assert found.of("tools/list") == ("list",)
    assert found.of("notifications/initialized") == ()
    assert found.of(None) == ()
    assert asked == ["tools/list", "notifications/initialized"]


_OF_EACH_KIND: dict[str, Any] = {
    "methods": {"tools/call": ["m"], "ping": ["p"]},
    "tools": {"one": ["t", "always", "t2"]},
    "prompts": {"one": ["pr"]},
}


@pytest.mark.requirement("AR-5")
@pytest.mark.parametrize("by_function", [False, True])
@pytest.mark.parametrize(
    ("method", "params", "scopes"),
    [
        (None, None, ()),
        ("ping", None, ("p",)),
        ("tools/list", None, ()),
        ("tools/call", t.CallToolParams(name="one"), ("m", "t", "t2")),
        ("tools/call", t.CallToolParams(name="two"), ("m",)),
        ("prompts/get", t.GetPromptParams(name="one"), ("pr",)),
        ("prompts/get", t.GetPromptParams(name="two"), ()),
        ("completion/complete", t.PromptReference("one"), ("pr",)),
        ("completion/complete", t.PromptReference("two"), ()),
        ("completion/complete", t.ResourceTemplateReference("db://index"), ("index",)),
        ("resources/read", t.ReadResourceParams(uri="db://index"), ("index",)),
        ("resources/subscribe", t.SubscribeParams(uri="db://index"), ("index",)),
        # To stop needs no more than any request.
        ("resources/unsubscribe", t.UnsubscribeParams(uri="db://index"), ()),
    ],
)
def test_scopes_of_each_kind_of_request_are_added_to_those_of_all(
    method: str | None, params: Any, scopes: tuple[str, ...], by_function: bool
) -> None:
    """The scopes come from a mapping or a function, in order, and each only once."""
    if isinstance(params, t.PromptReference | t.ResourceTemplateReference):
        argument = t.CompletionArgument(name="x", value="")
        params = t.CompleteParams(ref=params, argument=argument)
    tables = _OF_EACH_KIND | {"resources": {"db://index": ["index"]}}
    if by_function:
        tables = {
            kind: lambda name, table=table: table.get(name, ()) for kind, table in tables.items()
        }
    assert RequiredScopes(["always", "always"], **tables).of(method, params) == ("always", *scopes)
    nothing = dict.fromkeys(tables)
    assert RequiredScopes([], **nothing).of(method, params) == ()


@pytest.mark.requirement("AR-5")
@pytest.mark.parametrize("kind", ["scopes", "methods", "tools", "prompts", "resources", "template"])
@pytest.mark.parametrize(
    "scope", ["", "a b", 'a"b', "a\\b", "a\n", "é", "\x7f", "\x20", "offline_access"]
)
def test_scope_that_a_token_cannot_have_raises_value_error(kind: str, scope: str) -> None:
    """An entry that no token satisfies would refuse its tool to all clients."""
    options: dict[str, Any] = dict.fromkeys(("methods", "tools", "prompts", "resources"))
    if kind == "scopes":
        options["scopes"] = ["good", scope]
    elif kind == "template":
        options["resources"] = {"db://{x}": ["good", scope]}
    else:
        options[kind] = {"ping": ["good", scope]}
    with pytest.raises(ValueError, match="is not a valid scope: printable ASCII without") as caught:
        RequiredScopes(**{"scopes": []} | options)
    assert str(caught.value).startswith(repr(scope))


@pytest.mark.parametrize("scope", ["!", "#", "[", "]", "~", "a", "files:read", "offline_access_"])
def test_scope_of_any_token_characters_is_valid(scope: str) -> None:
    assert _scopes.is_resource_scope(scope)
    assert _scopes.checked_scopes([scope, "b", scope]) == (scope, "b")


@pytest.mark.parametrize("kind", ["methods", "tools", "prompts", "resources"])
def test_scopes_given_as_one_text_raise_value_error(kind: str) -> None:
    """A text is iterable: each of its letters would be a scope, which no token has."""
    words = r"expected a list of texts, not a single text: write \['read'\]"
    with pytest.raises(ValueError, match=words):
        RequiredScopes("read", methods=None, tools=None, prompts=None, resources=None)
    with pytest.raises(ValueError, match=words):
        required(**{"resources": None} | {kind: {"ping": "read"}})
    by_function = required(**{"resources": None} | {kind: lambda name: "read"})
    params = t.ReadResourceParams(uri="x") if kind == "resources" else t.CallToolParams(name="x")
    method = {"prompts": "prompts/get", "resources": "resources/read"}.get(kind, "tools/call")
    with pytest.raises(ValueError, match=words):
        by_function.of(method, params)


def test_scopes_repr_names_those_of_every_request() -> None:
    nothing: dict[str, Any] = dict.fromkeys(("methods", "tools", "prompts", "resources"))
    assert repr(RequiredScopes(["b", "a"], **nothing)) == "<RequiredScopes, always b a>"
    assert repr(RequiredScopes([], **nothing)) == "<RequiredScopes, always none>"


def test_resource_scopes_of_an_address_named_twice_are_those_of_both() -> None:
    """Two spellings lead to one resource, which needs what either entry says."""
    found = required({"db://a": ["one"], "db://%61": ["two"]})
    params = t.ReadResourceParams(uri="db://a")
    assert found.of("resources/read", params) == ("one", "two")
    assert found.of("resources/read", t.ReadResourceParams(uri="db://b")) == ()


def test_resource_scopes_of_a_template_with_an_encoded_slash_protect_both_spellings() -> None:
    resources = {"db://a%2Fb/{x}": ["slash"], "db://{x}/c": ["other"]}
    for uri in ("db://a%2Fb/1", "db://a/b/1", "db://%61%2fb/1"):
        assert scopes_to_read(uri, resources) == {"slash"}
    assert scopes_to_read("db://a/1", resources) == set()


def test_listen_to_the_uris_of_the_default_limit_needs_scopes_of_those_alone() -> None:
    def scopes(count: int) -> tuple[str, ...]:
        uris = [f"db://{index}" for index in range(count)]
        wishes = t.SubscriptionFilter(resource_subscriptions=uris)
        params = t.ListenParams(notifications=wishes)
        return required({"db://1": ["one"], "x://": ["x"]}).of("subscriptions/listen", params)

    assert scopes(Limits().uris) == ("one",)
    assert scopes(Limits().uris + 1) == ("one", "x")
