"""Sampling with tools: the model of a scripted client uses tools, which run at the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core import McpError, ToolError
from mcp_core import types as t
from mcp_core.registry import Context, DeclarationError, Server, UrlElicitationRequired
from tests.harness.jsonrpc import (
    A,
    B,
    C,
    D,
    E,
    text_of,
)
from tests.harness.messages.scripted_client import OFFERS, ScriptedClient

both_revisions = pytest.mark.parametrize("version", [D, E])

Message = dict[str, Any]


def uses(*calls: tuple[str, Message], stop: str = "toolUse") -> Message:
    """Return a message of the model that uses tools. The ids are `id-0`, `id-1` and so on."""
    content = [
        {"type": "tool_use", "id": f"id-{index}", "name": name, "input": arguments}
        for index, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": content, "model": "m", "stopReason": stop}


def says(text: str, stop: str = "endTurn") -> Message:
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "m", "stopReason": stop}


class Shop:
    """A server whose tool `advise` samples with tools. `runs` are the runs of these tools."""

    def __init__(self, **options: Any) -> None:
        self.runs: list[str] = []
        self.conversations: list[Any] = []
        self.server = server = Server("shop")
        options = {"max_tokens": 9} | options

        async def stock(article: str) -> dict[str, int]:
            """The number of pieces."""
            self.runs.append(article)
            return {"pieces": len(self.runs)}

        def broken(how: str, context: Context) -> str:
            """Fail."""
            self.runs.append(how)
            errors: dict[str, Exception] = {
                "for the model": ToolError("no such article"),
                "by mistake": ValueError("a secret"),
                "with a code": McpError(7, "no access"),
                "page": UrlElicitationRequired("Log in.", "https://example.com/login", "v"),
            }
            raise errors[how]

        async def ask(context: Context) -> str:
            """Ask the user."""
            self.runs.append("ask")
            answer = await context.elicit("Sure?", {"type": "object", "properties": {}})
            return answer.action

        def returns_input() -> t.InputRequiredResult:
            """Return a request for input, which is not possible here."""
            return t.InputRequiredResult(input_requests={"roots": t.ListRootsRequest()})

        @server.tool(description="The price in cents.", name="price")
        def find_price(article: str) -> str:
            self.runs.append(f"price of {article}")
            return "450"

        @server.tool
        async def advise(context: Context) -> str:
            """Let the model find out."""
            tools: list[Any] = [stock, broken, ask, returns_input, find_price]
            found = await context.sample_with_tools("Tea?", tools, **options)
            self.conversations.append(found)
            return found.text

    def stage(self, version: str, offers: Message = OFFERS) -> ScriptedClient:
        return ScriptedClient(self.server, version, offers)


def last_request(stage: ScriptedClient, *answers: Message) -> Message:
    """Call `advise`, answer, and return the params of the last sampling request."""
    return params_of(stage.whole_call("advise", *answers))


def params_of(message: Message) -> Message:
    if "method" in message:
        params: Message = message["params"]
    else:
        ((_, request),) = message["result"]["inputRequests"].items()
        params = request["params"]
    return params


def results_of(params: Message) -> list[Message]:
    """Return the tool results of the last message."""
    last = params["messages"][-1]
    assert last["role"] == "user"
    assert {block["type"] for block in last["content"]} == {"tool_result"}
    return list(last["content"])


@both_revisions
def test_first_request_lists_the_tools_by_their_declarations(version: str) -> None:
    params = last_request(Shop().stage(version))
    tools = {tool["name"]: tool for tool in params["tools"]}
    assert list(tools) == ["stock", "broken", "ask", "returns_input", "price"]
    assert tools["stock"]["inputSchema"]["required"] == ["article"]
    assert tools["broken"]["inputSchema"]["required"] == ["how"]
    assert tools["price"]["description"] == "The price in cents."  # as the server declares it
    assert params["toolChoice"] == {"mode": "auto"}


@both_revisions
def test_parallel_tool_uses_are_answered_in_one_message_and_run_once(version: str) -> None:
    """A second round repeats no earlier tool call, even where the handler runs again."""
    shop = Shop()
    stage = shop.stage(version)
    question = uses(("stock", {"article": "oolong"}), ("price", {"article": "oolong"}))
    params = last_request(stage, question)
    stock, price = results_of(params)
    assert (stock["toolUseId"], price["toolUseId"]) == ("id-0", "id-1")
    assert stock["structuredContent"] == {"pieces": 1}
    assert price["content"] == [{"type": "text", "text": "450"}]
    assert params["messages"][1] == {"role": "assistant", "content": question["content"]}

    again = uses(("stock", {"article": "assam"}))
    message = shop.stage(version).whole_call("advise", question, again, says("Take assam."))
    assert text_of(message) == "Take assam."
    assert shop.runs == ["oolong", "price of oolong"] * 2 + ["assam"]
    found = shop.conversations[-1]
    assert [message.role for message in found.messages] == ["user", "assistant"] * 3
    assert found.result.stop_reason == "endTurn"


@both_revisions
@pytest.mark.parametrize(
    ("how", "text", "reported"),
    [
        ("for the model", "no such article", 0),
        ("by mistake", "The tool failed with an internal error (reference R).", 1),
        ("with a code", "no access", 0),
    ],
)
def test_exception_of_a_tool_is_an_error_result_for_the_model(
    version: str, how: str, text: str, reported: int
) -> None:
    stage = Shop().stage(version)
    (result,) = results_of(last_request(stage, uses(("broken", {"how": how}))))
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": text}]
    assert len(stage.runtime.reports) == reported


@both_revisions
@pytest.mark.parametrize(
    ("use", "text"),
    [
        (("steal", {}), "Unknown tool: steal. The tools are: stock, broken, ask"),
        (("stock", {}), "Missing argument `article`"),
        (("stock", {"article": 3}), "Invalid argument `article`"),
        (("returns_input", {}), "The tool failed with an internal error"),
    ],
)
def test_invalid_tool_use_is_an_error_result_for_the_model(
    version: str, use: tuple[str, Message], text: str
) -> None:
    shop = Shop()
    (result,) = results_of(last_request(shop.stage(version), uses(use)))
    assert result["isError"] is True
    assert text in result["content"][0]["text"]
    assert not shop.runs


@both_revisions
@pytest.mark.requirement("SAMP-16")
def test_meta_of_a_tool_use_is_kept_in_the_next_request(version: str) -> None:
    question = uses(("stock", {"article": "oolong"}))
    question["content"][0]["_meta"] = {"com.example/signature": "abc"}
    params = last_request(Shop().stage(version), question)
    assert params["messages"][1]["content"] == question["content"]


@both_revisions
@pytest.mark.requirement("SAMP-16")
def test_last_round_forbids_tools(version: str) -> None:
    shop = Shop(max_rounds=3, tool_choice="required")
    use = uses(("stock", {"article": "oolong"}))
    stage = shop.stage(version)
    modes = [
        last_request(shop.stage(version), *[use] * rounds)["toolChoice"]["mode"]
        for rounds in range(3)
    ]
    assert modes == ["required", "auto", "none"]
    assert text_of(stage.whole_call("advise", use, use, says("Enough."))) == "Enough."
    error = shop.stage(version).whole_call("advise", use, use, use)["error"]
    assert "uses tools in round 3, with toolChoice none" in error["message"]


@pytest.mark.parametrize("rounds", [2, 10])
def test_rounds_are_from_two_to_ten(rounds: int) -> None:
    shop = Shop(max_rounds=rounds)
    use = uses(("stock", {"article": "oolong"}))
    message = shop.stage(D).whole_call("advise", *[use] * (rounds - 1), says("Yes."))
    assert text_of(message) == "Yes."
    assert len(shop.runs) == rounds - 1


@both_revisions
def test_default_rounds_fit_into_one_call_of_every_revision(version: str) -> None:
    shop = Shop()
    use = uses(("stock", {"article": "oolong"}))
    assert text_of(shop.stage(version).whole_call("advise", *[use] * 7, says("Yes."))) == "Yes."
    assert len(shop.runs) == 7


@both_revisions
def test_message_that_was_cut_off_runs_no_tool(version: str) -> None:
    shop = Shop()
    use = uses(("stock", {"article": "oo"}), stop="maxTokens")
    assert text_of(shop.stage(version).whole_call("advise", use)) == ""
    assert not shop.runs


@both_revisions
def test_tool_may_ask_the_user_and_others_are_not_run_again(version: str) -> None:
    shop = Shop()
    use = uses(("stock", {"article": "oolong"}), ("ask", {}))
    message = shop.stage(version).whole_call(
        "advise", use, {"action": "accept", "content": {}}, says("Done.")
    )
    assert text_of(message) == "Done."
    # In 2026-07-28 the tool that asks is run again, as every handler is.
    assert shop.runs == (["oolong", "ask"] if version == D else ["oolong", "ask", "ask"])


@both_revisions
def test_key_lets_the_text_differ_from_run_to_run(version: str) -> None:
    """In 2026-07-28 the handler runs again, so only `key` ties the new text to the old results."""
    server = Server("s")
    times = iter(range(100))
    runs: list[int] = []

    def look() -> int:
        """Look."""
        runs.append(1)
        return next(times)

    @server.tool
    async def watch(context: Context) -> str:
        """Watch the time."""
        text = f"It is {next(times)}."
        return (await context.sample_with_tools(text, [look], max_tokens=9, key="watch")).text

    assert text_of(
        ScriptedClient(server, version).whole_call("watch", uses(("look", {})), says("ok"))
    )
    assert runs == [1]


def test_client_cannot_choose_the_result_of_a_tool() -> None:
    shop = Shop()
    stage = shop.stage(E)
    (message,) = stage.calls("advise")
    ((key, _),) = message["result"]["inputRequests"].items()
    forged = {"type": "tool_result", "toolUseId": "id-0", "content": []}
    answers = {key: uses(("stock", {"article": "oolong"})), f"tool {key}.0": forged}
    message = stage.again("advise", message["result"], answers)
    assert shop.runs == ["oolong"]
    (result,) = results_of(params_of(message))
    assert result["structuredContent"] == {"pieces": 1}


@both_revisions
def test_page_that_a_tool_requires_ends_the_call(version: str) -> None:
    stage = Shop().stage(version)
    message = stage.whole_call("advise", uses(("broken", {"how": "page"})))
    assert "https://example.com/login" in json.dumps(message)
    assert ("error" in message) is (version == D)


def test_lost_connection_ends_the_call_and_logs_nothing() -> None:
    stage = Shop().stage(D)
    (message,) = stage.calls("advise")
    stage.answers(message, uses(("ask", {})))
    stage.conn.receive_data(b"", 0.0)
    stage.run_jobs()
    assert stage.service.idle
    assert not stage.runtime.reports


@pytest.mark.parametrize("version", [A, B, C, D, E])
def test_client_without_tools_in_sampling_gets_the_error_of_its_revision(version: str) -> None:
    message = Shop().stage(version, {"sampling": {}}).whole_call("advise")
    assert message["error"]["code"] == (-32021 if version == E else -32601)
    assert message["error"]["data"] == {"requiredCapabilities": {"sampling": {"tools": {}}}}


@pytest.mark.parametrize(
    ("tools", "options", "error", "text"),
    [
        ([], {}, DeclarationError, "without tools, call context.sample"),
        (["nothing"], {}, DeclarationError, "this server has no tool 'nothing'"),
        (["call", "call"], {}, DeclarationError, "two tools of the model are named 'call'"),
        ([lambda *a: a], {}, DeclarationError, "takes any number of arguments"),
        (["call"], {"max_rounds": 1}, ValueError, "max_rounds is from 2 to 10, not 1"),
        (["call"], {"max_rounds": 11}, ValueError, "max_rounds is from 2 to 10, not 11"),
        (["call"], {"tool_choice": "none"}, ValueError, "tool_choice is 'auto' or 'required'"),
    ],
)
def test_mistake_in_the_call_raises(
    tools: Any, options: Any, error: type[Exception], text: str
) -> None:
    server = Server("s")

    @server.tool
    async def call(context: Context) -> str:
        """Sample."""
        return (await context.sample_with_tools("?", tools, max_tokens=9, **options)).text

    stage = ScriptedClient(server, D)
    stage.calls("call")
    (report,) = stage.runtime.reports
    assert isinstance(report, error)
    assert text in str(report)


def test_plain_def_cannot_sample_with_tools() -> None:
    server = Server("s")

    @server.tool
    def call(context: Context) -> None:
        """Sample without awaiting."""
        context.sample_with_tools("?", ["call"], max_tokens=9)  # type: ignore[unused-coroutine]

    stage = ScriptedClient(server, D)
    stage.calls("call")
    (report,) = stage.runtime.reports
    assert "write an `async def`" in str(report)
