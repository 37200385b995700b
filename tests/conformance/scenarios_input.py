"""The scenarios of tools and prompts that request input: by requests in 2025-11-25, by results in
2026-07-28.

The rules are the same as in `scenarios.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.conformance.scenarios import META, D, E, calling, scenario, text_of

if TYPE_CHECKING:
    from mcp_trio.testing import ScriptedPeer


# -- Input by requests -----------------------------------------------------------------------------


SAMPLED: Final = {
    "role": "assistant",
    "content": {"type": "text", "text": "Paris"},
    "model": "test-model",
}


@scenario("tools-call-sampling", D)
async def sampling(peer: ScriptedPeer) -> None:
    request = await peer.request(
        "tools/call", calling("test_sampling", prompt="Capital of France?")
    )
    input_request = await peer.expect("sampling/createMessage", {"maxTokens": 100})
    (message,) = input_request["params"]["messages"]
    assert message == {"role": "user", "content": {"type": "text", "text": "Capital of France?"}}
    await peer.answer(input_request, SAMPLED | {"stopReason": "endTurn"})
    assert text_of(await peer.expect_result(request)) == "LLM response: Paris (test-model, endTurn)"


async def fill_in(
    peer: ScriptedPeer, params: dict[str, Any], content: dict[str, Any]
) -> dict[str, Any]:
    """Call a tool, accept its form with `content`, and return the schema of the form."""
    request = await peer.request("tools/call", params)
    input_request = await peer.expect("elicitation/create")
    assert input_request["params"]["message"]
    assert input_request["params"]["requestedSchema"]["type"] == "object"
    await peer.answer(input_request, {"action": "accept", "content": content})
    assert text_of(await peer.expect_result(request))
    schema: dict[str, Any] = input_request["params"]["requestedSchema"]
    return schema


@scenario("tools-call-elicitation", D)
async def elicitation(peer: ScriptedPeer) -> None:
    content = {"username": "testuser", "email": "test@example.com"}
    schema = await fill_in(peer, calling("test_elicitation", message="Who are you?"), content)
    assert {name: field["type"] for name, field in schema["properties"].items()} == {
        "username": "string",
        "email": "string",
    }
    assert schema["required"] == ["username", "email"]


@scenario("elicitation-sep1034-defaults", D)
async def defaults(peer: ScriptedPeer) -> None:
    schema = await fill_in(peer, calling("test_elicitation_sep1034_defaults"), {})
    assert {
        name: (field["type"], field["default"]) for name, field in schema["properties"].items()
    } == {
        "name": ("string", "John Doe"),
        "age": ("integer", 30),
        "score": ("number", 95.5),
        "status": ("string", "active"),
        "verified": ("boolean", True),
    }
    assert schema["properties"]["status"]["enum"] == ["active", "inactive", "pending"]
    assert schema["properties"]["verified"]["default"] is True


@scenario("elicitation-sep1330-enums", D)
async def enums(peer: ScriptedPeer) -> None:
    content = {
        "untitledSingle": "option1",
        "titledSingle": "value1",
        "legacyEnum": "opt1",
        "untitledMulti": ["option1", "option2"],
        "titledMulti": ["value1", "value2"],
    }
    fields = (await fill_in(peer, calling("test_elicitation_sep1330_enums"), content))["properties"]
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]
    assert fields == {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }


# -- Input by results ------------------------------------------------------------------------------


PREFIX: Final = "input-required-result-"


def input_responses(**responses: Any) -> dict[str, Any]:
    return {"inputResponses": responses}


def accepted(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


async def input_requests_of(
    peer: ScriptedPeer, params: dict[str, Any], method: str = "tools/call"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the input requests of a result, and the request state to repeat."""
    result = await peer.result_of(method, params)
    assert result["resultType"] == "input_required"
    questions = result["inputRequests"]
    assert questions
    assert all(question.keys() == {"method", "params"} for question in questions.values())
    assert isinstance(result.get("requestState", ""), str)
    return questions, {"requestState": result["requestState"]} if "requestState" in result else {}


async def complete(peer: ScriptedPeer, params: dict[str, Any]) -> str:
    result = await peer.result_of("tools/call", params)
    assert result["resultType"] == "complete"
    return text_of(result)


@scenario("server-stateless: capabilities", E)
async def missing_capability(peer: ScriptedPeer) -> None:
    lacking: list[dict[str, Any]] = [{}, {"elicitation": {}, "roots": {}}]
    for capabilities in lacking:
        params = calling("test_missing_capability") | {
            "_meta": {META + "clientCapabilities": capabilities}
        }
        refused = await peer.expect_error(await peer.request("tools/call", params), -32021)
        assert refused["data"] == {"requiredCapabilities": {"sampling": {}}}


@scenario("server-stateless: streams", E)
async def no_requests_in_streams(peer: ScriptedPeer) -> None:
    params = calling("test_streaming_elicitation") | {
        "_meta": {META + "clientCapabilities": {"elicitation": {}}}
    }
    await input_requests_of(peer, params)


@scenario(PREFIX + "basic-elicitation", E)
async def input_elicitation(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_elicitation")
    questions, state = await input_requests_of(peer, params)
    (question,) = questions.values()
    assert questions.keys() == {"user_name"}
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "What is your name?"
    schema = question["params"]["requestedSchema"]
    assert (schema["type"], schema["properties"], schema["required"]) == (
        "object",
        {"name": {"type": "string"}},
        ["name"],
    )
    retry = params | state | input_responses(user_name=accepted(name="Alice"))
    assert await complete(peer, retry) == "Hello, Alice!"


@scenario(PREFIX + "missing-input-response", E)
async def input_missing(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_elicitation")
    _, state = await input_requests_of(peer, params)
    for known in (state, {}):  # the suite sends the retry without a first request
        questions, _ = await input_requests_of(
            peer, params | known | input_responses(wrong_key=accepted(data="wrong"))
        )
        assert questions.keys() == {"user_name"}


@scenario(PREFIX + "ignore-extra-params", E)
async def input_extra(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_elicitation")
    _, state = await input_requests_of(peer, params)
    extra = input_responses(
        user_name=accepted(name="Alice"), one=accepted(name="Bob"), two={"anything": True}
    )
    for known in (state, {}):
        assert await complete(peer, params | known | extra) == "Hello, Alice!"


@scenario(PREFIX + "validate-input", E)
async def input_invalid(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_elicitation")
    _, state = await input_requests_of(peer, params)
    for wrong in (12345, {"action": "shrug"}, {"content": {"name": "Alice"}}):
        for known in (state, {}):
            refused = await peer.request(
                "tools/call", params | known | input_responses(user_name=wrong)
            )
            await peer.expect_error(refused, -32602)
    for invalid in (accepted(), accepted(name=5)):
        await input_requests_of(peer, params | state | input_responses(user_name=invalid))
    await input_requests_of(peer, params | state | {"inputResponses": None})


@scenario(PREFIX + "basic-sampling", E)
async def input_sampling(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_sampling")
    questions, state = await input_requests_of(peer, params)
    assert questions.keys() == {"capital_question"}
    assert questions["capital_question"]["method"] == "sampling/createMessage"
    assert questions["capital_question"]["params"]["maxTokens"] == 100
    assert (
        await complete(peer, params | state | input_responses(capital_question=SAMPLED)) == "Paris"
    )


ROOTS: Final = {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}


@scenario(PREFIX + "basic-list-roots", E)
async def input_roots(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_list_roots")
    result = await peer.result_of("tools/call", params)
    assert result["inputRequests"]["client_roots"]["method"] == "roots/list"
    retry = params | {"requestState": result["requestState"]} | input_responses(client_roots=ROOTS)
    assert await complete(peer, retry) == "Roots: Test Root=file:///test/root"


@scenario(PREFIX + "request-state", E)
async def input_state(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_request_state")
    questions, state = await input_requests_of(peer, params)
    assert questions["confirm"]["params"]["requestedSchema"]["properties"] == {
        "ok": {"type": "boolean"}
    }
    assert state
    assert (
        await complete(peer, params | state | input_responses(confirm=accepted(ok=True)))
        == "state-ok"
    )


@scenario(PREFIX + "multiple-input-requests", E)
async def input_three(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_multiple_inputs")
    result = await peer.result_of("tools/call", params)
    assert {key: question["method"] for key, question in result["inputRequests"].items()} == {
        "user_name": "elicitation/create",
        "greeting": "sampling/createMessage",
        "client_roots": "roots/list",
    }
    state = {"requestState": result["requestState"]}
    three = {"user_name": accepted(name="Alice"), "greeting": SAMPLED, "client_roots": ROOTS}
    assert (
        await complete(peer, params | state | {"inputResponses": three})
        == "three: Paris (test-model), Alice, file:///test/root"
    )


@scenario(PREFIX + "multi-round", E)
async def input_rounds(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_multi_round")
    first, one = await input_requests_of(peer, params)
    second, two = await input_requests_of(
        peer, params | one | input_responses(step1=accepted(name="Alice"))
    )
    assert (list(first), list(second)) == (["step1"], ["step2"])
    assert one
    assert two
    assert one != two
    retry = params | two | input_responses(step2=accepted(color="blue"))
    assert await complete(peer, retry) == "Done: accept, accept."


@scenario(PREFIX + "tampered-state", E)
async def input_tampered(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_tampered_state")
    questions, state = await input_requests_of(peer, params)
    (key,) = questions
    answers = input_responses(**{key: accepted(ok=True)})
    tampered = {"requestState": state["requestState"] + "-TAMPERED"}
    await peer.expect_error(await peer.request("tools/call", params | tampered | answers), -32602)
    assert await complete(peer, params | state | answers)


@scenario(PREFIX + "capability-check", E)
async def input_capabilities(peer: ScriptedPeer) -> None:
    params = calling("test_input_required_result_capabilities")
    questions, _ = await input_requests_of(
        peer, params | {"_meta": {META + "clientCapabilities": {"sampling": {}}}}
    )
    assert [question["method"] for question in questions.values()] == ["sampling/createMessage"]


@scenario(PREFIX + "non-tool-request", E)
async def input_prompt(peer: ScriptedPeer) -> None:
    params = {"name": "test_input_required_result_prompt"}
    questions, state = await input_requests_of(peer, params, "prompts/get")
    assert questions.keys() == {"user_context"}
    retry = params | state | input_responses(user_context=accepted(context="testing"))
    result = await peer.result_of("prompts/get", retry)
    assert result["resultType"] == "complete"
    assert result["messages"][0]["content"]["text"] == "Use this: testing"
