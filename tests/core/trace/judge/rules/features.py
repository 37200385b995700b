"""Conversations for tools, content, resources, prompts, sampling, elicitation and roots."""

from __future__ import annotations

from typing import Any, Final

from tests.core.trace.judge.conversations import META, C, S, Sent, ask, error, notify, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.messages import (
    FORM,
    LIST,
    RESOURCES,
    SAMPLE,
    SAMPLED,
    SERVED,
    TEXT,
    without,
)
from tests.core.trace.judge.rules.utilities import TOOL, call

OUTPUT: Final = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
STRICT: Final = {**TOOL, "outputSchema": OUTPUT}
# 2025-11-25: elicitation by URL.
BY_URL: Final = ask(
    1, "elicitation/create", mode="url", message="m", url="https://x", elicitationId="e"
)
USE: Final = {"type": "tool_use", "id": "u", "name": "t", "input": {}}
RESULT: Final = {"type": "tool_result", "toolUseId": "u", "content": []}
SAMPLE_TOOLS: Final = ask(1, "sampling/createMessage", **SAMPLE["params"], tools=[])
# The same in a round of 2026-07-28, and a client that declares no tools for it
ASKED: Final = {"k": {key: SAMPLE_TOOLS[key] for key in ("method", "params")}}
NESTED: Final = S(result(1, resultType="input_required", inputRequests=ASKED))
WITHOUT_TOOLS: Final[dict[str, Any]] = {META + "clientCapabilities": {"sampling": {}}}


def listed(*tools: Any, id: int = 1) -> list[Sent]:
    return [C(ask(id, "tools/list")), S(result(id, tools=list(tools)))]


def called(**members: Any) -> list[Sent]:
    return [C(call(2)), S(result(2, **members))]


def content(*blocks: Any) -> list[Sent]:
    return called(content=list(blocks))


def resources(**members: Any) -> list[Sent]:
    return [
        C(ask(1, "resources/list")),
        S(result(1, resources=[{"uri": "a:b", "name": "n", **members}])),
    ]


def read(**members: Any) -> list[Sent]:
    return [C(ask(1, "resources/read", uri="a:b")), S(result(1, contents=[members]))]


def prompt(**members: Any) -> list[Sent]:
    return [C(ask(1, "prompts/get", name="p")), S(result(1, messages=[members]))]


def sample(*messages: Any) -> Sent:
    return S(ask(1, "sampling/createMessage", maxTokens=1, messages=list(messages)))


def form(**properties: Any) -> Sent:
    return S(
        ask(
            1,
            "elicitation/create",
            message="m",
            requestedSchema={"type": "object", "properties": properties},
        )
    )


def answered(**members: Any) -> list[Sent]:
    return [S(FORM), C(result(1, **members))]


ASSISTANT: Final = {"role": "assistant", "content": [USE]}
USER: Final = {"role": "user", "content": [RESULT]}
FORM_ONLY: Final[tuple[dict[str, Any], dict[str, Any]]] = ({"elicitation": {}}, {})
NO_TOOLS: Final[tuple[dict[str, Any], dict[str, Any]]] = ({"sampling": {}}, {})
EVERY: Final[tuple[dict[str, Any], dict[str, Any]]] = (
    {"sampling": {"tools": {}, "context": {}}},
    {},
)
IMAGE: Final = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
FINE: Final = content(TEXT[0], IMAGE)

CASES: Final[list[Case]] = [
    # Tools
    case("TOOL-2", "2025-11-25", listed({"inputSchema": {"type": "object"}}), LIST),
    case("TOOL-6", "2025-11-25", listed({"name": "t", "inputSchema": None}), listed(TOOL)),
    case(
        "TOOL-7",
        "2025-06-18",
        listed({"name": "t", "inputSchema": {"type": "array"}}),
        listed(TOOL),
        is_part=True,
    ),
    case(
        "TOOL-8",
        "2025-11-25",
        listed({**TOOL, "outputSchema": {"type": "array"}}),
        listed(STRICT),
        is_part=True,
    ),
    case("TOOL-9", "2026-07-28", listed({**TOOL, "outputSchema": 1}), listed(STRICT), is_part=True),
    case(
        "TOOL-10",
        "2025-11-25",
        [*listed(STRICT), *called(content=TEXT)],
        [*listed(STRICT), *called(content=TEXT, structuredContent={"a": 1})],
    ),
    case(
        "TOOL-10",
        "2025-11-25",
        [*listed(STRICT), *called(content=TEXT, structuredContent={"a": "x"})],
        [*listed(STRICT), *called(content=TEXT, structuredContent={"a": 1})],
    ),
    case(
        "TOOL-12",
        "2025-11-25",
        called(content=[], structuredContent={}),
        called(content=TEXT, structuredContent={}),
    ),
    case("TOOL-13", "2025-11-25", called(isError=True), called(content=[])),
    case("TOOL-14", "2025-11-25", [C(ask(1, "tools/call", arguments={}))], [C(call(1))]),
    case(
        "TOOL-17",
        "2025-11-25",
        [*listed(), C(call(2)), S(error(2, -32601))],
        [*listed(), C(call(2)), S(error(2))],
    ),
    case(
        "TOOL-17",
        "2025-11-25",
        [*listed(), C(call(2)), S(error(2, -32000))],
        [*listed(), C(call(2)), S(error(2))],
        is_certain=False,
    ),
    case("TOOL-19", "2025-11-25", listed({**TOOL, "name": "a b"}), listed(TOOL)),
    case("TOOL-19", "2025-11-25", listed(TOOL, TOOL), listed(TOOL)),
    case(
        "JSCH-3",
        "2025-11-25",
        listed({**TOOL, "inputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}}),
        listed(TOOL),
    ),
    # Content
    case("CONT-1", "2025-11-25", content({"type": "text", "text": 5}), FINE, is_part=True),
    case(
        "CONT-2",
        "2024-11-05",
        content({"type": "audio", "data": "AAAA", "mimeType": "a/b"}),
        FINE,
        is_part=True,
    ),
    case(
        "CONT-3",
        "2025-06-18",
        [sample({"role": "user", "content": [TEXT[0]]})],
        [S(SAMPLE)],
        is_part=True,
    ),
    case("CONT-4", "2025-11-25", content({**IMAGE, "data": "?"}), FINE, is_part=True),
    case(
        "CONT-5",
        "2025-11-25",
        content({**TEXT[0], "annotations": {"priority": 2}}),
        FINE,
        is_part=True,
    ),
    case("CONT-6", "2025-11-25", read(uri="a:b"), read(uri="a:b", text="x"), is_part=True),
    case(
        "META-19",
        "2025-11-25",
        listed({**TOOL, "icons": [{"src": 1}]}),
        listed({**TOOL, "icons": [{"src": "https://x"}]}),
        is_part=True,
    ),
    # Resources and prompts
    case(
        "RES-2",
        "2025-11-25",
        [C(ask(1, "resources/list")), S(result(1, resources=[{"uri": "a:b"}]))],
        RESOURCES,
    ),
    case("RES-3", "2025-11-25", [C(ask(1, "resources/read", name="x"))], read(uri="a:b", text="x")),
    case(
        "RES-4",
        "2025-11-25",
        [C(ask(1, "resources/subscribe", name="x"))],
        [C(ask(1, "resources/subscribe", uri="a:b"))],
    ),
    case(
        "RES-5",
        "2025-11-25",
        [S(notify("notifications/resources/updated", uri="a:b"))],
        [
            C(ask(1, "resources/subscribe", uri="a:b")),
            S(notify("notifications/resources/updated", uri="a:b")),
        ],
    ),
    case(
        "RES-6",
        "2026-07-28",
        [C(ask(1, "resources/subscribe", uri="a:b")), S(result(1))],
        [*SERVED, C(ask(1, "resources/subscribe", uri="a:b")), S(error(1, -32601))],
        allowed=("LIFE-14",),
    ),
    case(
        "RES-8",
        "2026-07-28",
        [*SERVED, C(ask(1, "resources/read", uri="a:b")), S(error(1, -32002))],
        [*SERVED, C(ask(1, "resources/read", uri="a:b")), S(error(1))],
    ),
    case(
        "PRM-2",
        "2025-11-25",
        [C(ask(1, "prompts/get", name="p", arguments={"a": 1}))],
        prompt(role="user", content=TEXT[0]),
    ),
    case(
        "PRM-3",
        "2025-11-25",
        prompt(role="system", content=TEXT[0]),
        prompt(role="user", content=TEXT[0]),
    ),
    # Sampling
    case("SAMP-2", "2025-11-25", [S(without(SAMPLE, "maxTokens"))], [S(SAMPLE)]),
    case(
        "SAMP-3",
        "2025-11-25",
        [S(SAMPLE), C(without(SAMPLED, "model", "result"))],
        [S(SAMPLE), C(SAMPLED)],
    ),
    case(
        "SAMP-5",
        "2025-11-25",
        [S(SAMPLE_TOOLS)],
        [S(SAMPLE_TOOLS)],
        start=NO_TOOLS,
        pass_start=EVERY,
    ),
    case(
        "SAMP-5",
        "2026-07-28",
        [C(call(1, **WITHOUT_TOOLS)), NESTED],
        [C(call(1)), NESTED],
        allowed=("MRTR-5",),
    ),
    case(
        "SAMP-6",
        "2025-11-25",
        [S(ask(1, "sampling/createMessage", **SAMPLE["params"], includeContext="thisServer"))],
        [S(ask(1, "sampling/createMessage", **SAMPLE["params"], includeContext="thisServer"))],
        start=NO_TOOLS,
        pass_start=EVERY,
    ),
    case(
        "SAMP-7",
        "2025-11-25",
        [sample(ASSISTANT, {"role": "user", "content": [RESULT, TEXT[0]]})],
        [sample(ASSISTANT, USER)],
    ),
    case("SAMP-8", "2025-11-25", [sample(ASSISTANT)], [sample(ASSISTANT, USER)]),
    case("SAMP-9", "2025-11-25", [sample(USER)], [sample(ASSISTANT, USER)]),
    # Elicitation
    case(
        "ELIC-3",
        "2025-11-25",
        [S(BY_URL)],
        [S(BY_URL)],
        start=FORM_ONLY,
        pass_start=({"elicitation": {"url": {}}}, {}),
    ),
    # The client answers what it did not declare, and is at fault, too.
    case(
        "ELIC-3",
        "2025-11-25",
        [S(BY_URL), C(result(1, action="accept"))],
        [S(BY_URL), C(result(1, action="accept"))],
        start=FORM_ONLY,
        pass_start=({"elicitation": {"url": {}}}, {}),
        side="server",
    ),
    case(
        "SAMP-5",
        "2025-11-25",
        [S(SAMPLE_TOOLS), C(SAMPLED)],
        [S(SAMPLE_TOOLS), C(SAMPLED)],
        start=NO_TOOLS,
        pass_start=EVERY,
        side="server",
    ),
    case("ELIC-4", "2025-06-18", [S(without(FORM, "message"))], [S(FORM)]),
    case("ELIC-5", "2025-11-25", [S(without(FORM, "message"))], [S(FORM)]),
    case("ELIC-6", "2025-11-25", [form(a={"type": "object"})], [S(FORM)], allowed=("ELIC-8",)),
    case(
        "ELIC-7",
        "2025-06-18",
        [form(a={"type": "string", "minLength": "1"})],
        [S(FORM)],
        is_part=True,
    ),
    case(
        "ELIC-8",
        "2025-11-25",
        [form(a={"type": "string", "minLength": "1"})],
        [S(FORM)],
        is_part=True,
    ),
    case("ELIC-9", "2025-11-25", answered(action="yes"), answered(action="decline")),
    case(
        "ELIC-10",
        "2025-11-25",
        answered(action="accept", content={"a": 1}),
        answered(action="accept", content={"a": "x"}),
    ),
    case(
        "ELIC-13",
        "2025-11-25",
        [S({**BY_URL, "params": {**BY_URL["params"], "url": "x"}})],
        [S(BY_URL)],
    ),
    case(
        "ELIC-15",
        "2025-11-25",
        [S(notify("notifications/elicitation/complete", id=1))],
        [S(notify("notifications/elicitation/complete", elicitationId="e"))],
    ),
    case(
        "ELIC-16",
        "2025-11-25",
        [C(call(1)), S(error(1, -32042, data={"elicitations": []}))],
        [C(call(1)), S(error(1, -32042, data={"elicitations": [BY_URL["params"]]}))],
    ),
    case(
        "ELIC-17",
        "2026-07-28",
        [*SERVED, C(call(1)), S(error(1, -32042))],
        [*SERVED, C(call(1)), S(error(1, -32602))],
    ),
    case(
        "ELIC-17",
        "2026-07-28",
        [*SERVED, S(notify("notifications/elicitation/complete", elicitationId="x"))],
        [*SERVED, C(call(1)), S(error(1, -32602))],
        allowed=("LIFE-14",),
    ),
    # Roots
    case(
        "ROOT-2",
        "2025-11-25",
        [S(ask(1, "roots/list")), C(result(1))],
        [S(ask(1, "roots/list")), C(result(1, roots=[]))],
    ),
    case(
        "ROOT-3",
        "2025-11-25",
        [S(ask(1, "roots/list")), C(result(1, roots=[{"uri": "https://x"}]))],
        [S(ask(1, "roots/list")), C(result(1, roots=[{"uri": "file:///x"}]))],
    ),
]
