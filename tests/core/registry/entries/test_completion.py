"""Completion of prompt arguments and template variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from typing import Annotated, Any

import pytest

from mcp_core import Dialect, McpError, ToolError
from mcp_core.registry import Context, DeclarationError, Server
from mcp_core.types import Completion
from tests.core.registry.lookup_helpers import EVERY_DIALECT, E, answered, prepared, request

LANGUAGES = ["python", "perl", "rust"]


def make() -> Server:
    server = Server("s")

    @server.prompt
    def review(code: str, language: str, lines: int = 10) -> str:
        return f"{code}{language}{lines}"

    @server.resource("files://{owner}/{+path}")
    def files(owner: str, path: str) -> str:
        return owner + path

    server.add_resource("notes://today", lambda: "", name="today")

    @server.completion("review", "language")
    def languages(typed: str) -> list[str]:
        return [name for name in LANGUAGES if name.startswith(typed)]

    @server.completion("files://{owner}/{+path}", "path")
    async def paths(context: Context, typed: str, chosen: Mapping[str, str]) -> list[str]:
        return [f"{context.request_id}: {typed} of {dict(chosen)}"]

    return server


def params(
    ref: str, argument: str, typed: str = "", chosen: dict[str, str] | None = None
) -> dict[str, Any]:
    kind = (
        {"type": "ref/resource", "uri": ref}
        if "://" in ref
        else {"type": "ref/prompt", "name": ref}
    )
    requests = {"ref": kind, "argument": {"name": argument, "value": typed}}
    return requests if chosen is None else {**requests, "context": {"arguments": chosen}}


def complete(server: Server, *args: Any, dialect: Dialect = E) -> Any:
    answer = answered(server, "completion/complete", params(*args), dialect)
    return answer.get("completion", answer)


@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_completion_calls_the_declared_function(dialect: Dialect) -> None:
    server = make()
    assert complete(server, "review", "language", "p", dialect=dialect) == {
        "values": ["python", "perl"], "total": 2, "hasMore": False,
    }  # fmt: skip
    paths = complete(
        server, "files://{owner}/{+path}", "path", "a/", {"owner": "me"}, dialect=dialect
    )
    assert paths["values"] == ["id-1: a/ of {'owner': 'me'}"]
    paths = complete(server, "files://{owner}/{+path}", "path", dialect=dialect)
    assert paths["values"] == ["id-1:  of {}"]


def test_completion_argument_without_completer_has_no_values() -> None:
    none = {"values": [], "total": 0, "hasMore": False}
    assert complete(make(), "review", "code", "x") == none
    assert complete(make(), "review", "lines", "1") == none
    assert complete(make(), "files://{owner}/{+path}", "owner") == none


@pytest.mark.parametrize("dialect", EVERY_DIALECT)
@pytest.mark.parametrize(
    ("ref", "argument", "message"),
    [
        ("none", "code", "Unknown prompt: none"),
        ("n" * 999, "code", f"Unknown prompt: {'n' * 128}"),
        ("x://{y}", "y", "Unknown resource template: x://{y}"),
        ("notes://today", "y", "Unknown resource template: notes://today"),
        ("files://me/path", "path", "Unknown resource template: files://me/path"),
        ("review", "", "Unknown argument ``; the arguments are: code, language, lines"),
        (
            "review",
            "x" * 999,
            f"Unknown argument `{'x' * 128}`; the arguments are: code, language, lines",
        ),
        (
            "files://{owner}/{+path}",
            "+path",
            "Unknown argument `+path`; the arguments are: owner, path",
        ),
    ],
)
def test_completion_unknown_ref_or_argument_is_invalid_params(
    ref: str, argument: str, message: str, dialect: Dialect
) -> None:
    assert complete(make(), ref, argument, dialect=dialect) == {"code": -32602, "message": message}


def test_completion_prompt_without_arguments_names_none() -> None:
    server = make()
    server.add_prompt(lambda: "", name="bare")
    assert (
        complete(server, "bare", "x")["message"] == "Unknown argument `x`; the arguments are: none"
    )


# --- Values ---------------------------------------------------------------------------------------


def numbers(n: int) -> list[str]:
    return [str(k) for k in range(n)]


def endless() -> Iterator[str]:
    return map(str, count())


@pytest.mark.parametrize(
    ("give", "sent", "total", "more"),
    [
        (lambda: numbers(0), 0, 0, False),
        (lambda: None, 0, 0, False),
        (lambda: numbers(100), 100, 100, False),
        (lambda: numbers(101), 100, 101, True),
        (lambda: tuple(numbers(5)), 5, 5, False),
        (lambda: dict.fromkeys(numbers(150)), 100, 150, True),
        (lambda: dict.fromkeys(numbers(5)).keys(), 5, 5, False),
        (lambda: islice(endless(), 7), 7, 7, False),
        (lambda: islice(endless(), 100), 100, 100, False),
        (lambda: islice(endless(), 101), 100, None, True),
        (endless, 100, None, True),
        (lambda: Completion(numbers(3)), 3, None, None),
        (lambda: Completion(numbers(3), has_more=True), 3, None, True),
        (lambda: Completion(numbers(3), has_more=False), 3, None, False),
        (lambda: Completion(numbers(3), total=3), 3, 3, False),
        (lambda: Completion(numbers(3), total=9), 3, 9, True),
        (lambda: Completion(numbers(3), total=9, has_more=False), 3, 9, True),
        (lambda: Completion(numbers(3), total=1), 3, 3, False),
        (lambda: Completion(numbers(150)), 100, None, True),
        (lambda: Completion(numbers(150), has_more=False), 100, None, True),
        (lambda: Completion(numbers(150), total=400), 100, 400, True),
        (lambda: Completion(numbers(150), total=100), 100, 150, True),
    ],
)
def test_completion_values_are_limited_and_counted(
    give: Callable[[], Any], sent: int, total: int | None, more: bool | None
) -> None:
    expected: dict[str, Any] = {"values": numbers(sent)}
    expected |= {} if total is None else {"total": total}
    expected |= {} if more is None else {"hasMore": more}
    server = make()
    server.add_completion("review", "code", lambda typed: give())
    assert complete(server, "review", "code") == expected


@pytest.mark.parametrize(
    "value", ["python", 3, [3], ["a", None], b"ab", Completion(["a", 3])], ids=repr  # type: ignore[list-item]
)  # fmt: skip
def test_completion_values_other_than_strings_are_an_internal_error(value: Any) -> None:
    server = make()
    server.add_completion("review", "code", lambda typed: value)
    assert complete(server, "review", "code") == {
        "code": -32603,
        "message": "Internal error (reference ref)",
    }


def test_completion_object_of_the_function_is_not_modified() -> None:
    mine = Completion(numbers(150))
    server = make()
    server.add_completion("review", "code", lambda typed: mine)
    complete(server, "review", "code")
    assert mine == Completion(numbers(150))


def test_completion_function_exception_is_the_error_response() -> None:
    server = make()

    def fail(typed: str) -> list[str]:
        raise {"tool": ToolError("too short"), "mcp": McpError(-32000, "not for you")}[typed]

    server.add_completion("review", "code", fail)
    assert complete(server, "review", "code", "tool") == {"code": -32603, "message": "too short"}
    assert complete(server, "review", "code", "mcp") == {"code": -32000, "message": "not for you"}
    assert (
        complete(server, "review", "code", "other")["message"] == "Internal error (reference ref)"
    )


# --- Declarations ---------------------------------------------------------------------------------


def test_completion_function_may_have_one_or_two_parameters() -> None:
    """The second parameter receives the arguments that the user has already chosen."""
    server = Server("s")
    server.add_prompt(lambda a, b, c, d, e, f, from_: "", name="p")

    def described(
        typed: Annotated[str, "what was typed"], chosen: dict[str, str] | None = None
    ) -> list[str]:
        return [f"{typed} {chosen}"]

    server.add_completion("p", "a", described)
    server.add_completion("p", "b", lambda typed, chosen: [f"{typed} {chosen}"])
    server.add_completion("p", "from", lambda typed: [typed])
    given = {"from": "x"}
    assert complete(server, "p", "a", "x", given)["values"] == ["x {'from': 'x'}"]
    assert complete(server, "p", "b", "x", given)["values"] == ["x {'from': 'x'}"]
    assert complete(server, "p", "from", "x", given)["values"] == ["x"]

    @server.completion("p", "c")
    @server.completion("p", "d")
    def both(typed: str) -> list[str]:
        return ["both"]

    assert complete(server, "p", "c")["values"] == complete(server, "p", "d")["values"] == ["both"]
    assert both("") == ["both"]


def test_completion_invocation_attributes_and_repr() -> None:
    server = make()
    server.add_completion("review", "code", lambda typed: [], thread=True)
    plan = prepared(server, "completion/complete", params("review", "code"))
    assert (plan.is_async, plan.thread, plan.wants_context) == (False, True, False)
    assert repr(plan) == "<CompletionInvocation of function '<lambda>'>"
    plan = prepared(server, "completion/complete", params("files://{owner}/{+path}", "path"))
    assert (plan.is_async, plan.thread, plan.wants_context) == (True, False, True)
    completers = server._prompts["review"].completers
    assert repr(completers) == "<Completers of language, code>"
    assert repr(completers._by_argument["language"]) == "<completer: function 'languages'>"
    assert repr(server._prompts["review"]).startswith("<prompt ")


async def _slow(typed: str) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("ref", "argument", "function", "message"),
    [
        ("none", "code", lambda typed: [], "there is no prompt or resource template 'none' yet"),
        (
            "notes://today",
            "x",
            lambda typed: [],
            "there is no prompt or resource template 'notes://today' yet",
        ),
        (
            "review",
            "text",
            lambda typed: [],
            "'review' has no 'text'; it has code, language, lines",
        ),
        (
            "review",
            "language",
            lambda typed: [],
            "'language' of 'review' is completed by function 'languages'",
        ),
        ("review", "code", lambda: LANGUAGES, "takes the typed text"),
        ("review", "code", lambda a, b, c: [], "takes the typed text"),
        ("review", "code", lambda *a: [], "any number of arguments"),
        ("review", "code", 3, "is not callable"),
    ],
)
def test_completion_invalid_declaration_raises(
    ref: str, argument: str, function: Any, message: str
) -> None:
    server = make()
    with pytest.raises(DeclarationError, match=message):
        server.add_completion(ref, argument, function)
    assert repr(server._prompts["review"].completers) == "<Completers of language>"


def test_completion_function_of_wrong_kind_raises() -> None:
    """The author sees the error at the declaration, not when a user first types."""
    server = make()

    def number(typed: int) -> list[str]:
        return []

    def listed(typed: str, chosen: list[str]) -> list[str]:
        return []

    def generator(typed: str) -> Iterator[str]:
        yield typed

    with pytest.raises(DeclarationError, match="'typed' is passed text"):
        server.add_completion("review", "code", number)
    with pytest.raises(DeclarationError, match="'chosen' is passed a dict of text"):
        server.add_completion("review", "code", listed)
    with pytest.raises(DeclarationError, match="is a generator; return a list instead"):
        server.add_completion("review", "code", generator)
    with pytest.raises(DeclarationError, match="thread=True is for a plain def"):
        server.add_completion("review", "code", _slow, thread=True)


def test_completion_is_removed_with_its_prompt_or_template() -> None:
    """A prompt declared again has no completions; the last one takes the capability along."""
    server = make()
    capable = server.config().capabilities
    assert capable.completions == {}
    server.remove_prompt("review")
    assert complete(server, "review", "language") == {
        "code": -32602,
        "message": "Unknown prompt: review",
    }
    server.add_prompt(lambda language: "", name="review")
    assert complete(server, "review", "language")["values"] == []
    server.remove_resource("files://{owner}/{+path}")
    assert server.config().capabilities.completions is None
    for ref in "review", "none", "x://{y}":
        with pytest.raises(
            McpError, match="this server does not offer completion/complete"
        ) as caught:
            server.answer(request("completion/complete", params(ref, "language")))
        assert caught.value.code == -32601
    server.add_completion("review", "language", lambda typed: [])
    assert server.config().capabilities.completions == {}
