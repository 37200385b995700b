"""The limits of rules on errors, features, headers, eras and ids: codes, sizes, times, values."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import pytest

from mcp_core.trace.judge.rules._eras import is_revision
from mcp_core.trace.judge.rules._headers import _read
from mcp_core.trace.judge.rules._http import decode_header
from tests.core.trace.judge.conversations import (
    META,
    C,
    S,
    Sent,
    Start,
    ask,
    at,
    error,
    judge,
    notify,
    raw_client,
    result,
)
from tests.core.trace.judge.rules import eras, errors, features, headers, rounds
from tests.core.trace.judge.rules.errors import code
from tests.core.trace.judge.rules.http import (
    CALL,
    CALL_E,
    CALLED,
    IN,
    MIRRORED,
    START,
    got,
    sent,
)
from tests.core.trace.judge.rules.messages import META_E, NOTHING, SAMPLE, SAMPLED, SERVED, TEXT
from tests.core.trace.judge.rules.utilities import TASK_D, TOOL, call

Judged = Literal["fails", "perhaps", "passes", "not judged"]
Row = tuple[str, str, list[Sent], Judged]

B, C_, D, E = "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
BEGIN: Final = Start(D).messages()
EMPTY: Final = Start(D, *NOTHING).messages()
OTHER_VERSION: Final = {META + "protocolVersion": "1999-01-01"}
TASKS: Final = META + "tasks"


def judged_row(row: str, revision: str, said: list[Sent]) -> Judged:
    """Return how one row is judged in a conversation."""
    found, judged = judge(None, said, revision)
    mine = [each for each in found if each.row == row]
    if any(each.is_certain for each in mine):
        return "fails"
    if mine:
        return "perhaps"
    return "passes" if judged.opportunities[row] else "not judged"


# -- Errors ----------------------------------------------------------------------------------------


def of_size(characters: int) -> Sent:
    """Return a request of that size."""
    empty = len(json.dumps(ask(1, "x", a="")))
    return C(ask(1, "x", a="a" * (characters - empty)))


def refused(number: int) -> list[Sent]:
    return [*SERVED, errors.X, code(number)]


def level(number: int) -> list[Sent]:
    return [*BEGIN, C(ask(1, "logging/setLevel", level="loud")), code(number)]


def no_roots(number: int) -> list[Sent]:
    return [*EMPTY, errors.ROOTS, C(error(1, number))]


def unlisted(number: int, **params: Any) -> list[Sent]:
    """Return the error for a tool that isn't in the list."""
    asked = C(ask(1, "tools/call", name="other", **params))
    return [*BEGIN, *errors.TOOLS, asked, code(number)]


def tool_failed(number: int) -> list[Sent]:
    return [*BEGIN, *errors.TOOLS, errors.CALL, code(number)]


def prompt_without_argument(**changes: Any) -> list[Sent]:
    """Return the result for a prompt whose argument is missing."""
    between = [S(notify("notifications/prompts/list_changed"))] if changes else []
    asked = C(ask(1, "prompts/get", name="p"))
    return [*BEGIN, *errors.PROMPTS, *between, asked, S(result(1, messages=[]))]


def with_property(schema: Any, **others: Any) -> list[Sent]:
    """Return the result of a call that lacks a required argument."""
    known = {"type": "object", "required": ["a"], "properties": {"a": schema, **others}}
    tools = S(result("l", tools=[{"name": "t", "inputSchema": known}]))
    return [*BEGIN, errors.TOOLS[0], tools, errors.WRONG_CALL, errors.CALLED]


def read_unlisted(number: int, **templates: Any) -> list[Sent]:
    listed = errors.RESOURCES if not templates else [*errors.RESOURCES[:3], S(templates["given"])]
    return [*BEGIN, *listed, errors.READ, code(number)]


def method_of_others(client: dict[str, Any], server: dict[str, Any]) -> list[Sent]:
    return [*Start(D, client, server).messages(), errors.X, S(result(1))]


TEMPLATE: Final = {"uriTemplate": "x:{a}", "name": "n"}

ERRORS: Final[list[Row]] = [
    ("RPC-12", D, [*BEGIN, errors.X, S(error(1, text="a\nb"))], "passes"),
    ("RPC-12", D, [*BEGIN, errors.X, S(error(1, text="a\n \nb"))], "passes"),
    ("RPC-12", D, [*BEGIN, errors.X, S(error(1, text="a\nb\nc"))], "fails"),
    ("RPC-12", D, [*BEGIN, errors.X, S(error(1, text=5))], "not judged"),
    ("ERR-1", D, [*BEGIN, of_size(500), code(-32700)], "fails"),
    ("ERR-1", D, [*BEGIN, of_size(501), code(-32700)], "perhaps"),
    ("ERR-1", D, [*BEGIN, errors.X, code(-32603)], "passes"),
    ("ERR-1", D, [*BEGIN, errors.X, code(-32000)], "not judged"),
    ("ERR-1", D, [*BEGIN, errors.X, S(error(None, -32601))], "not judged"),
    ("ERR-1", D, method_of_others({}, {}), "perhaps"),
    ("ERR-1", D, method_of_others({}, {"extensions": {TASKS: {}}}), "perhaps"),
    ("ERR-1", D, method_of_others({}, {"extensions": {"a/b": {}}}), "not judged"),
    ("ERR-1", D, method_of_others({"extensions": {"a/b": {}}}, {}), "not judged"),
    ("ERR-1", D, method_of_others({"experimental": {}}, {}), "perhaps"),
    ("ERR-1", D, method_of_others({}, {"experimental": {"y": {}}}), "not judged"),
    ("ERR-5", E, [*SERVED, S(error(None, -32002))], "fails"),
    ("ERR-5", E, [*SERVED, errors.X, code(-32042)], "not judged"),
    ("ERR-5", E, [*SERVED, errors.READ, code(-32002)], "not judged"),
    ("ERR-7", E, [*SERVED, S(error(None, -32022))], "not judged"),
    ("ERR-7", E, [sent(1, CALL_E, MIRRORED), got(1, 400, error(1, -32020))], "passes"),
    ("ERR-8", E, refused(-32019), "perhaps"),
    ("ERR-8", E, refused(-32020), "passes"),
    ("ERR-8", E, refused(-32000), "perhaps"),
    ("ERR-8", E, refused(-31999), "passes"),
    ("ERR-8", E, refused(-32002), "not judged"),
    ("ERR-9", E, refused(-32768), "fails"),
    ("ERR-9", E, refused(-32769), "passes"),
    ("ERR-9", E, refused(-32100), "fails"),
    ("ERR-9", E, refused(-32099), "not judged"),
    ("ERR-9", E, refused(-32000), "not judged"),
    ("ERR-9", E, refused(-31999), "passes"),
    ("ERR-9", E, refused(-32600), "not judged"),
    ("TX-5", E, [errors.CALL, code(-32021, requiredCapabilities={"extensions": {"a": {}, "b": 1}})],
     "fails"),
    ("TX-5", E, [errors.CALL, code(-32021, requiredCapabilities={"extensions": ["a"]})],
     "not judged"),
    ("TX-5", E, [errors.CALL, code(-32602, requiredCapabilities={"extensions": {"a": 1}})],
     "not judged"),
    ("LOG-5", D, level(-32602), "passes"),
    ("LOG-5", D, level(-32600), "fails"),
    ("LOG-5", D, level(-32601), "fails"),
    ("LOG-5", D, level(0), "fails"),
    ("LOG-5", D, level(-32603), "perhaps"),
    ("LOG-5", D, level(1), "perhaps"),
    # Without a handshake, the error can be about that.
    ("PRM-4", D, [*errors.PROMPTS, C(ask(1, "prompts/get", name="q")), code(-32600)],
     "not judged"),
    ("PRM-4", D, prompt_without_argument(), "fails"),
    ("PRM-4", D, prompt_without_argument(changed=True), "perhaps"),
    ("COMP-4", D, [*BEGIN, *errors.PROMPTS, errors.complete(1, "q"), code(-32600)], "fails"),
    ("COMP-4", D, [*BEGIN, *errors.PROMPTS, errors.complete(1, "p"), code(-32600)], "not judged"),
    ("RES-7", D, read_unlisted(-32002), "passes"),
    ("RES-7", D, read_unlisted(-32602), "perhaps"),
    ("RES-7", D, read_unlisted(-32601), "fails"),
    ("RES-7", D, read_unlisted(-32601, given=result("m", resourceTemplates=[TEMPLATE])),
     "not judged"),
    ("RES-7", D, read_unlisted(-32601, given=error("m")), "not judged"),
    ("RES-9", E, [*errors.RESOURCES, errors.READ, S(result(1, contents=[]))], "perhaps"),
    ("RES-9", E, [*errors.RESOURCES, errors.READ, code(-32603)], "passes"),
    ("ROOT-5", D, no_roots(-32601), "passes"),
    ("ROOT-5", D, no_roots(-32602), "fails"),
    ("ROOT-5", D, no_roots(0), "fails"),
    ("ROOT-5", D, no_roots(-32000), "perhaps"),
    ("ROOT-5", D, no_roots(-32603), "not judged"),
    ("TOOL-17", D, unlisted(-32602), "passes"),
    ("TOOL-17", D, unlisted(-32601), "fails"),
    ("TOOL-17", D, unlisted(-32601, task={}), "perhaps"),
    ("TOOL-17", D, unlisted(-32600), "perhaps"),
    ("TOOL-17", D, [*BEGIN, *errors.TOOLS, C(ask(1, "tools/call", name="other")), errors.FAILED],
     "perhaps"),
    ("TOOL-17", D, [*BEGIN, *errors.TOOLS, C(ask(1, "tools/call", name="other")), errors.CALLED],
     "not judged"),
    ("TOOL-17", E, [*errors.TOOLS, C(ask(1, "tools/call", name="other", _meta=OTHER_VERSION)),
                    code(-32601)], "not judged"),
    ("TOOL-15", D, tool_failed(-32603), "perhaps"),
    ("TOOL-15", D, tool_failed(-32000), "not judged"),
    ("TOOL-15", D, tool_failed(-31999), "perhaps"),
    ("TOOL-15", D, tool_failed(-32768), "not judged"),
    ("TOOL-15", D, tool_failed(-32769), "perhaps"),
    ("TOOL-15", D, [*BEGIN, *errors.TOOLS, errors.CALL, S(result(1, content=TEXT, isError=1))],
     "not judged"),
    ("TOOL-16", D, [*BEGIN, *errors.TOOLS, errors.WRONG_CALL, code(-32602)], "fails"),
    ("TOOL-16", D, [*BEGIN, *errors.TOOLS, errors.WRONG_CALL, code(-32603)], "not judged"),
    ("TOOL-16", D, [*BEGIN, *errors.TOOLS, errors.WRONG_CALL, errors.FAILED], "passes"),
    ("TOOL-24", D, with_property({"type": "string"}), "fails"),
    ("TOOL-24", D, with_property({"type": "string", "default": "x"}), "perhaps"),
    ("TOOL-24", D, with_property(True), "perhaps"),
]  # fmt: skip

# -- Features --------------------------------------------------------------------------------------


def named_tools(*names: str) -> list[Sent]:
    return features.listed(*({**TOOL, "name": each} for each in names))


def sampled(*messages: Any, answer: Any = SAMPLED) -> list[Sent]:
    return [*BEGIN, features.sample(*messages), C(answer)]


def sampling_with(**tool_choice: Any) -> dict[str, Any]:
    return {"method": "sampling/createMessage", "params": {**SAMPLE["params"], **tool_choice}}


def rounds_of(asked: list[Any], given: list[Any], **meta: Any) -> list[Sent]:
    """Return a round of input requests, and the responses to them."""
    requests = {str(at): each for at, each in enumerate(asked)}
    responses = {str(at): each for at, each in enumerate(given)}
    found: dict[str, Any] = {"_meta": meta} if meta else {}
    return [
        C(call(1)),
        rounds.required(inputRequests=requests, requestState="s"),
        rounds.retry(2, inputResponses=responses, **found),
    ]


def by_url(url: str, mode: str = "url") -> list[Sent]:
    params = {**features.BY_URL["params"], "mode": mode, "url": url}
    return [*BEGIN, S(ask(1, "elicitation/create", **params))]


def asked_for_tools(*inputs: Any) -> list[Sent]:
    requests = {str(at): each for at, each in enumerate(inputs)}
    return [C(call(1, **features.WITHOUT_TOOLS)), rounds.required(inputRequests=requests)]


def embedded(**members: Any) -> list[Sent]:
    resource = {"type": "resource", "resource": members}
    return [*BEGIN, *features.prompt(role="user", content=resource)]


PLAIN: Final = {"role": "assistant", "content": TEXT[0], "model": "m"}
USING: Final = {**PLAIN, "content": [features.USE]}
NONE: Final = sampling_with(toolChoice={"mode": "none"})
REQUIRED: Final = sampling_with(toolChoice={"mode": "required"})
ROOTS: Final = {"method": "roots/list"}
FILE: Final = {"roots": [{"uri": "file:///x"}]}
WEB: Final = {"roots": [{"uri": "https://x"}]}
MIXED: Final = {"role": "user", "content": [features.RESULT, TEXT[0]]}
ARRAY: Final = {"type": "array", "items": {"type": "string", "enum": ["a"]}}

FEATURES: Final[list[Row]] = [
    ("TOOL-19", D, [*BEGIN, *named_tools("a" * 128)], "passes"),
    ("TOOL-19", D, [*BEGIN, *named_tools("a" * 129)], "fails"),
    ("TOOL-19", D, [*BEGIN, *named_tools("")], "fails"),
    ("TOOL-19", D, [*BEGIN, *named_tools("A.b_c-9")], "passes"),
    ("TOOL-19", D, [*BEGIN, *named_tools("a", "b/c")], "fails"),
    ("TOOL-19", D, [*BEGIN, *named_tools("a", "b", "a")], "fails"),
    ("RES-8", E, [*SERVED, errors.READ, code(-32602)], "passes"),
    ("RES-8", E, [*SERVED, errors.READ, code(-32002)], "fails"),
    ("RES-8", E, [*SERVED, errors.READ, code(-32603)], "not judged"),
    ("RES-11", D, [*BEGIN, *features.resources(uri="git:x y")], "not judged"),
    ("RES-11", D, [*BEGIN, *features.resources(uri="x:%aF")], "passes"),
    ("RES-11", D, [*BEGIN, *features.resources(uri="x:%zz")], "fails"),
    ("RES-11", D, [*BEGIN, C(ask(1, "resources/list")),
                   S(result(1, resources=[{"uri": uri, "name": "n"} for uri in ("git:x", "x:%")]))],
     "fails"),
    ("RES-11", D, [*BEGIN, *features.resources(uri="1x:a")], "fails"),
    ("RES-11", D, [*BEGIN, *features.resources(uri="x")], "fails"),
    ("RES-11", D, [*BEGIN, *features.resources(uri=5)], "not judged"),
    ("CONT-8", D, embedded(uri="a:b", text="x", mimeType="text/plain"), "passes"),
    ("CONT-8", D, embedded(uri="a:b", text="x"), "fails"),
    ("CONT-8", D, embedded(uri="a", text="x", mimeType="text/plain"), "fails"),
    ("CONT-8", D, embedded(uri=5, text="x", mimeType="text/plain"), "fails"),
    ("SAMP-5", E, asked_for_tools(sampling_with()), "not judged"),
    ("SAMP-5", E, asked_for_tools(sampling_with(), sampling_with(tools=[])), "fails"),
    ("SAMP-5", E, asked_for_tools(sampling_with(), NONE), "fails"),
    ("SAMP-10", E, rounds_of([NONE, NONE], [PLAIN, PLAIN]), "passes"),
    ("SAMP-10", E, rounds_of([NONE, NONE], [PLAIN, USING]), "fails"),
    ("SAMP-10", E, rounds_of([NONE, NONE], [USING, PLAIN]), "fails"),
    ("SAMP-10", E, rounds_of([sampling_with(), NONE], [USING, PLAIN]), "passes"),
    ("SAMP-10", E, rounds_of([NONE, sampling_with()], [PLAIN, USING]), "passes"),
    ("SAMP-10", E, rounds_of([sampling_with()], [USING]), "not judged"),
    ("SAMP-10", E, rounds_of([REQUIRED], [PLAIN]), "fails"),
    ("SAMP-10", E, rounds_of([REQUIRED], [{**PLAIN, "stopReason": "maxTokens"}]), "perhaps"),
    ("SAMP-10", E, rounds_of([REQUIRED], [USING]), "passes"),
    ("SAMP-10", E, rounds_of([sampling_with(toolChoice={"mode": "auto"})], [PLAIN]),
     "not judged"),
    ("ROOT-3", E, rounds_of([ROOTS, ROOTS], [FILE, WEB]), "fails"),
    ("ROOT-3", E, rounds_of([ROOTS, ROOTS], [WEB, FILE]), "fails"),
    ("ROOT-3", E, rounds_of([ROOTS, ROOTS], [FILE, FILE]), "passes"),
    ("ROOT-3", E, rounds_of([ROOTS, ROOTS], [FILE, {"roots": []}]), "passes"),
    ("ROOT-3", E, rounds_of([ROOTS], [{"roots": []}]), "not judged"),
    ("ROOT-3", E, rounds_of([rounds.FORM_INPUT, ROOTS], [WEB, FILE]), "passes"),
    ("ROOT-3", D, [*BEGIN, errors.ROOTS, C(result(1, roots=[{"uri": 5}, *FILE["roots"]]))],
     "passes"),
    ("ROOT-1", E, rounds_of([ROOTS], [FILE], **{META + "clientCapabilities": {}}), "fails"),
    ("ROOT-1", E, rounds_of([ROOTS], [FILE], **{META + "clientCapabilities": 5}), "not judged"),
    ("ROOT-1", E, rounds_of([NONE, ROOTS], [PLAIN, FILE],
                            **{META + "clientCapabilities": {"sampling": {}}}), "fails"),
    ("SAMP-11", D, sampled(features.ASSISTANT, features.USER), "not judged"),
    ("SAMP-11", D, sampled(features.ASSISTANT), "fails"),
    ("SAMP-11", D, sampled(features.ASSISTANT, {"role": "user", "content": TEXT}), "fails"),
    ("SAMP-11", D, sampled(features.ASSISTANT, MIXED), "fails"),
    ("SAMP-11", D, sampled(features.ASSISTANT, answer=error(1, -32602)), "passes"),
    ("SAMP-11", D, sampled(features.ASSISTANT, answer=error(1, -1)), "not judged"),
    ("SAMP-11", D, sampled({"role": "user", "content": TEXT}), "not judged"),
    ("ELIC-6", D, [*BEGIN, features.form(a=ARRAY)], "passes"),
    ("ELIC-6", C_, [*Start(C_).messages(), features.form(a=ARRAY)], "fails"),
    ("ELIC-6", D, [*BEGIN, features.form(a={"type": "string"}, b={"type": "object"})], "fails"),
    ("ELIC-6", D, [*BEGIN, features.form(a={"type": "number"}, b={"type": "integer"},
                                         c={"type": "boolean"})], "passes"),
    ("ELIC-2", D, Start(D, {"elicitation": {}}, {}).messages(), "passes"),
    ("ELIC-2", D, Start(D, {"elicitation": {"form": {}}}, {}).messages(), "passes"),
    ("ELIC-2", D, Start(D, {"elicitation": {"url": {}}}, {}).messages(), "passes"),
    ("ELIC-2", D, Start(D, {"elicitation": {"other": {}}}, {}).messages(), "perhaps"),
    ("ELIC-2", D, Start(D, {}, {}).messages(), "not judged"),
    ("ELIC-12", D, [*BEGIN, features.form(a={"type": "string"})], "passes"),
    ("ELIC-12", D, [*BEGIN, features.form(a={"type": "string"}, password={"type": "string"})],
     "perhaps"),
    ("ELIC-19", D, by_url("https://u@x"), "perhaps"),
    ("ELIC-19", D, by_url("https://u:p@x"), "fails"),
    ("ELIC-19", D, by_url("https://x:1/u:p@y"), "passes"),
    ("ELIC-19", D, by_url("https://u:p@x", mode="form"), "not judged"),
    ("ELIC-13", D, by_url("x"), "fails"),
    ("ELIC-13", D, by_url("x:"), "passes"),
    ("ELIC-13", D, by_url("x", mode="form"), "not judged"),
    ("TOOL-12", D, [*BEGIN, *features.called(structuredContent={}, content=[])], "fails"),
    ("TOOL-12", D, [*BEGIN, *features.called(structuredContent={}, content=TEXT)], "passes"),
    ("TOOL-12", D, [*BEGIN, *features.called(structuredContent={}, content=[], isError=True)],
     "not judged"),
    ("TOOL-5", E, [*named_tools("a", "b"), *features.listed(
        *({**TOOL, "name": each} for each in "ba"), id=2)], "fails"),
    ("TOOL-5", E, [*named_tools("a", "b"), *features.listed(
        *({**TOOL, "name": each} for each in "ab"), id=2)], "passes"),
    ("TOOL-5", E, [*named_tools("a", "b"), *features.listed(
        *({**TOOL, "name": each} for each in "bac"), id=2)], "not judged"),
    ("TOOL-10", D, [*BEGIN, *features.listed(features.STRICT),
                    C(ask(2, "tools/call", name="t", task={})), S(result(2, **TASK_D))],
     "not judged"),
]  # fmt: skip

# -- Headers ---------------------------------------------------------------------------------------

CAFE: Final = headers.listed(headers.tool({}, "café"))
NAMED: Final = headers.called(name="café", headers=headers.LATIN)
TWO: Final = headers.listed(
    headers.tool({"a": {"type": "string", "x-mcp-header": "A"}, **headers.REGION})
)


def encoded(*before: Sent, said: Sent = NAMED) -> list[Sent]:
    return [*before, said, headers.MISMATCH]


def with_headers(**changed: str) -> Sent:
    found = {key.replace("_", "-"): value for key, value in changed.items()}
    return headers.called(name="café", headers={**headers.LATIN, **found})


def unknown_version(status: int) -> list[Sent]:
    wrong = {**IN, "mcp-protocol-version": headers.BAD}
    return [*START, sent(3, CALL, wrong), got(3, status, CALLED if status < 300 else None)]


CAFE_PROMPT: Final = sent(
    2,
    ask(2, "prompts/get", name="café", _meta=META_E),
    {**MIRRORED, **headers.LATIN, "mcp-method": "prompts/get"},
)

OF_HEADERS: Final[list[Row]] = [
    ("HDR-6", E, encoded(*CAFE), "fails"),
    ("HDR-6", E, encoded(), "not judged"),
    ("HDR-6", E, encoded(*CAFE, said=with_headers(mcp_method="x")), "not judged"),
    ("HDR-6", E, encoded(*CAFE, said=with_headers(mcp_protocol_version=D)), "not judged"),
    ("HDR-6", E, encoded(*headers.listed(headers.tool(headers.REGION, "café")),
                         said=headers.called(name="café", headers=headers.LATIN, region="west")),
     "not judged"),
    ("HDR-6", E, encoded(*headers.listed(headers.tool(headers.REGION, "café")),
                         said=headers.called(name="café", region="west",
                                             headers={**headers.LATIN, **headers.WEST})),
     "fails"),
    ("HDR-6", E, encoded(said=CAFE_PROMPT), "fails"),
    # An argument that can't be in a header, and another one that should be
    ("HDR-7", E, [*TWO, headers.called(a=1.5, region="west")], "fails"),
    ("HDR-7", E, [*TWO, headers.called(a=1.5, headers=headers.WEST, region="west")], "passes"),
    ("HDR-10", E, [*headers.TOOLS, headers.called(region="west"), got(2, 299)], "fails"),
    ("HDR-10", E, [*headers.TOOLS, headers.called(region="west"), got(2, 300)], "not judged"),
    ("HDR-10", E, [*headers.TOOLS, headers.called(region="west"), got(2, 400)], "not judged"),
    ("SHL-29", D, unknown_version(299), "fails"),
    ("SHL-29", D, unknown_version(300), "not judged"),
    ("SHL-29", D, unknown_version(400), "passes"),
    ("SHL-29", D, unknown_version(401), "not judged"),
    ("SHM-4", E, [headers.BAD_E, got(1, 299, result(1, content=TEXT))], "fails"),
    ("SHM-4", E, [headers.BAD_E, got(1, 300)], "not judged"),
]  # fmt: skip

# -- Eras ------------------------------------------------------------------------------------------

LISTED_AGAIN: Final = raw_client(ask(2, "tools/list", _meta=eras.FUTURE))
CROSSED: Final = [eras.DISCOVER, S(error("d", -32022, data=eras.OTHER))]
CLOSED: Final = [C(ask(1, "tools/list")), S(result(1, tools=[])), eras.ended(1, "client")]

OF_ERAS: Final[list[Row]] = [
    ("VER-2", E, [*eras.REJECTED, at(0.9, LISTED_AGAIN)], "not judged"),
    ("VER-2", E, [*eras.REJECTED, at(1.0, LISTED_AGAIN)], "fails"),
    ("PROBE-3", E, [*CROSSED, at(0.9, eras.INITIALIZE)], "perhaps"),
    ("PROBE-3", E, [*CROSSED, at(1.0, eras.INITIALIZE)], "fails"),
    ("STDIO-11", E, [*CLOSED, eras.exited(11, 0)], "passes"),
    ("STDIO-11", E, [*CLOSED, eras.exited(11.5, 0)], "fails"),
    ("STDIO-11", E, [*CLOSED, eras.exited(2, -9)], "not judged"),
    ("STDIO-11", E, [*CLOSED, eras.exited(2, -15)], "not judged"),
    ("STDIO-11", E, [*CLOSED, eras.exited(2, 1)], "passes"),
    ("LIFE-18", D, [*BEGIN, eras.exited(2, -15)], "perhaps"),
    ("LIFE-18", D, [*BEGIN, eras.exited(2, -9)], "perhaps"),
    ("LIFE-18", D, [*BEGIN, eras.exited(2, -11)], "not judged"),
    ("LIFE-18", D, [*BEGIN, eras.ended(1, "client"), eras.exited(2, -9)], "passes"),
]


# -- Messages --------------------------------------------------------------------------------------


def repeated(status: int, message: Any = None) -> list[Sent]:
    """Return a call that is sent again with its id after this answer."""
    return [*START, sent(3, CALL, IN), got(3, status, message), sent(4, CALL, IN)]


OF_MESSAGES: Final[list[Row]] = [
    # The client may repeat a call that was rejected before the server read it, and any other
    # that has no response.
    *(("RPC-4", D, repeated(status, error(2, -32600)), "passes") for status in (301, 401, 403)),
    *(("RPC-4", D, repeated(status, error(2, -32600)), "fails") for status in (400, 402, 404)),
    ("RPC-4", D, repeated(299), "fails"),
    ("RPC-4", D, repeated(400), "passes"),
    ("RPC-4", D, [*START, sent(3, CALL, IN), sent(4, CALL, IN)], "passes"),
    ("RPC-4", D, repeated(400, error(None, -32600)), "passes"),
]


@pytest.mark.parametrize(
    ("row", "revision", "said", "verdict"),
    [*ERRORS, *FEATURES, *OF_HEADERS, *OF_ERAS, *OF_MESSAGES],
)
def test_rule_judges_each_side_of_a_limit(
    row: str, revision: str, said: list[Sent], verdict: Judged
) -> None:
    assert judged_row(row, revision, said) == verdict


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("2024-11-05", True), (D, True), (E, True)),
        # A draft that some SDKs still speak, a later revision, and drafts
        *(("2024-10-07", None), ("2099-01-01", None), ("DRAFT-2026-v1", None), ("draft", None)),
        *(("2024-10-08", False), ("1999-01-01", False), ("2099-1-01", False), ("x", False)),
        *(("", False), (5, False), (None, False), ([D], False)),
    ],
)
def test_text_that_may_be_a_revision_is_in_doubt(text: Any, expected: bool | None) -> None:
    assert is_revision(text) is expected


@pytest.mark.parametrize("keyword", ["not", "items", "additionalProperties"])
@pytest.mark.parametrize(("depth", "is_found"), [(32, True), (33, False)])
def test_annotation_below_other_keywords_is_found_down_to_the_same_depth(
    keyword: str, depth: int, is_found: bool
) -> None:
    for wrapped in (lambda each: {keyword: each}, lambda each: {keyword: [each]}):
        schema: Any = {"type": "string", "x-mcp-header": "Leaf"}
        for _ in range(depth):
            schema = wrapped(schema)
        found, text = _read(schema)
        assert found == []
        assert bool(text) is is_found


@pytest.mark.parametrize(("number", "judged_sides"), [(-32602, 2), (-32603, 1)])
def test_mode_that_was_not_declared_is_refused_by_one_code_only(
    number: int, judged_sides: int
) -> None:
    """The server's question is judged, too."""
    start = Start(D, {"elicitation": {}}, {})
    _, judged = judge(start, [S(features.BY_URL), C(error(1, number))])
    assert judged.opportunities["ELIC-3"] == judged_sides


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        ("t", "t"),
        ("=?base64?dA==?=", "t"),
        ("=?base64?d$A==?=", None),
        ("=?base64?dA=?=", None),
        ("=?base64?/w==?=", None),
        ("=?base64??=", ""),
        ("=?base64?dA==", "=?base64?dA=="),
        ("base64?dA==?=", "base64?dA==?="),
    ],
)
def test_header_that_is_encoded_wrongly_has_no_value(value: str, decoded: str | None) -> None:
    assert decode_header(value) == decoded
