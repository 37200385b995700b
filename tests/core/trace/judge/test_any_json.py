"""Members of any JSON type, where a message has an id or a name: no reader of traces fails.

An id that is a list cannot be the key of a dictionary, `True` equals 1, and 1e308 is no time.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import (
    HttpHead,
    Judge,
    Redactor,
    ReplayClient,
    ReplayServer,
    TraceEncoder,
    TraceHeader,
    TraceLine,
    diff_traces,
    load_trace,
)
from tests.levels import fewer_examples, long

Message = tuple[Literal["client", "server"], Any]

META: Final = "io.modelcontextprotocol/"
INFO: Final = {"name": "a", "version": "1"}
VALUES: Final = (None, True, 2**70, 1.5, "", [1], {"a": [1]})
METHODS: Final = """
initialize notifications/initialized ping server/discover tools/list tools/call resources/read
resources/subscribe resources/unsubscribe prompts/get completion/complete logging/setLevel
tasks/get tasks/result tasks/cancel tasks/update tasks/list subscriptions/listen
sampling/createMessage elicitation/create roots/list notifications/cancelled
notifications/progress notifications/message notifications/resources/updated
notifications/tasks/status notifications/subscriptions/acknowledged
notifications/elicitation/complete
""".split()
PARAMS: Final = """
name uri cursor requestId progressToken progress total taskId task arguments protocolVersion
capabilities clientInfo level ref argument messages maxTokens tools mode message requestedSchema
url elicitationId inputResponses requestState notifications status _meta
""".split()
RESULTS: Final = """
resultType tools resources prompts contents messages nextCursor task tasks taskId status content
structuredContent isError protocolVersion capabilities serverInfo supportedVersions inputRequests
requestState ttlMs cacheScope action roots completion pollInterval ttl _meta
""".split()
OF_META: Final = [
    "progressToken",
    *(
        META + each
        for each in (
            *("protocolVersion", "clientInfo", "clientCapabilities", "subscriptionId"),
            *("related-task", "serverInfo"),
        )
    ),
]
WHOLE_META: Final = {
    META + "protocolVersion": "2026-07-28",
    META + "clientInfo": INFO,
    META + "clientCapabilities": {},
}
OPENINGS: Final[dict[str, list[Any]]] = {
    version: [
        ("client", {"id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": INFO}}),
        ("server", {"id": 0, "result": {
            "protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO}}),
        ("client", {"method": "notifications/initialized"}),
    ]
    for version in ("2025-03-26", "2025-11-25")
} | {
    "2026-07-28": [
        ("client", {"id": 0, "method": "server/discover", "params": {"_meta": WHOLE_META}})
    ],
}  # fmt: skip
TRANSPORTS: Final = ("stdio", "http")


def trace(said: list[Message], transport: str) -> tuple[TraceHeader, list[tuple[int, TraceLine]]]:
    header = TraceHeader(format_version=1, transport=transport)
    lines = []
    exchange = 0
    for place, (sender, message) in enumerate(said):
        http = None
        if transport == "http":
            exchange += sender == "client"
            http = HttpHead(method="POST", target="/mcp")
            if sender == "server":
                http = HttpHead(status=200, headers=(("content-type", "application/json"),))
        raw = json.dumps({"jsonrpc": "2.0"} | message if isinstance(message, dict) else message)
        line = TraceLine(t=float(place), sender=sender, raw=raw, exchange=exchange, http=http)
        lines.append((place + 2, line))
    return header, lines


def read_in_every_way(said: list[Message], transport: str) -> None:
    """Judge, redact, load, compare and replay a conversation. Nothing of that may raise."""
    header, lines = trace(said, transport)
    judge = Judge(header, from_start=True, all_conversations=True)
    for number, line in lines:
        judge.receive(line, number)
    judge.close()
    encoder = TraceEncoder(header, Redactor(b"x" * 32), 1 << 20)
    encoder.begin()
    encoder.encode([line for _, line in lines])
    whole, part = load_trace(header, iter(lines)), load_trace(header, iter(lines[:-1]))
    for old, new in ((whole, whole), (whole, part)):
        diff_traces(old, new, with_meta=True)
    for session in whole.sessions:
        play_client(ReplayClient(session), [each for sender, each in said if sender == "server"])
    play_server(ReplayServer(whole), [each for _, each in said])


def play_client(client: ReplayClient, answers: list[Any]) -> None:
    client.begin(0.0)
    for now, message in enumerate([*answers, *answers]):
        client.messages_to_send()
        client.receive(json.dumps(message).encode(), float(now))
    client.messages_to_send()
    client.advance(1e6)
    client.disconnected()


def play_server(server: ReplayServer, messages: list[Any]) -> None:
    session = server.open()
    session.begin(0.0)
    for now, message in enumerate(messages):
        session.receive(json.dumps(message).encode(), float(now))
        session.outputs_to_send()
        session.advance(float(now))


def with_members(names: list[str], value: Any) -> dict[str, Any]:
    return dict.fromkeys(names, value) | {"_meta": dict.fromkeys(OF_META, value)}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("version", OPENINGS)
@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("stride", [len(VALUES), long(1)])
def test_member_of_any_type_raises_nowhere(
    stride: int, version: str, value: Any, transport: str
) -> None:
    """Each method has the value in all params, as its id and as its response, both ways.

    In the default run each value has its part of the methods.
    """
    said = list(OPENINGS[version])
    for number, method in enumerate(METHODS[VALUES.index(value) % stride :: stride], 10):
        for params in (value, with_members(PARAMS, value)):
            said += [
                ("client", {"id": number, "method": method, "params": params}),
                ("server", {"id": number, "result": with_members(RESULTS, value)}),
                ("server", {"id": value, "method": method, "params": params}),
                ("client", {"id": value, "result": value}),
                ("client", {"id": value, "method": method, "params": params}),
                (
                    "server",
                    {"id": value, "error": {"code": value, "message": value, "data": value}},
                ),
                ("server", {"id": number, "error": value}),
                ("server", {"method": method, "params": params}),
                ("client", {"method": method, "params": params}),
            ]
    said += [("client", value), ("server", [value, value]), ("client", {"id": 1, "method": value})]
    read_in_every_way(said, transport)


values = st.recursive(
    st.sampled_from(VALUES),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(PARAMS), inner, max_size=3)
    ),
    max_leaves=5,
)
params = values | st.dictionaries(st.sampled_from([*PARAMS, *RESULTS]), values, max_size=6)
messages = st.one_of(
    st.fixed_dictionaries(
        {"method": st.sampled_from(METHODS) | values},
        optional={"id": st.integers(0, 3) | values, "params": params},
    ),
    st.fixed_dictionaries(
        {"id": st.integers(0, 3) | values}, optional={"result": params, "error": params}
    ),
    values,
)


@fewer_examples(5)
@given(
    st.sampled_from(sorted(OPENINGS)),
    st.lists(st.tuples(st.sampled_from(("client", "server")), messages), max_size=8),
    st.sampled_from(TRANSPORTS),
)
def test_messages_with_members_of_any_type_raise_nowhere(
    version: str, said: list[Any], transport: str
) -> None:
    read_in_every_way([*OPENINGS[version], *said], transport)
