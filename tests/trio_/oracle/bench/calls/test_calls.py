"""The calls that the command line names, and each kind of calls as a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_trio.oracle.bench._requests import PreparedCall
from mcp_trio.oracle.bench.calls._call_documents import calls_of
from mcp_trio.oracle.bench.calls._calls import BenchCalls
from mcp_trio.oracle.bench.calls._recorded import Recorded
from mcp_trio.oracle.bench.calls._script import Script

OLD = "2025-11-25"
NEW = "2026-07-28"
ECHO_CALL = {"name": "echo", "arguments": {"a": 1}}
CALLS: list[tuple[dict[str, Any], str, tuple[str, ...], PreparedCall]] = [
    ({}, "ping", (), PreparedCall("ping", None, "ping")),
    (
        {"kind": "tool", "name": "echo", "arguments": {"a": 1}},
        "tools/call echo",
        ("echo",),
        PreparedCall("tools/call", ECHO_CALL, "tools/call echo"),
    ),
    (
        {"kind": "read", "name": "tea://pot"},
        "resources/read tea://pot",
        (),
        PreparedCall("resources/read", {"uri": "tea://pot"}, "resources/read tea://pot"),
    ),
    *(
        (
            {"kind": "list", "name": name},
            method,
            (),
            PreparedCall(method, None, method),
        )
        for name, method in {
            "tools": "tools/list",
            "resources": "resources/list",
            "templates": "resources/templates/list",
            "prompts": "prompts/list",
        }.items()
    ),
]


@pytest.mark.parametrize(("members", "text", "tools", "call"), CALLS)
def test_calls_have_a_text_their_tools_and_one_request(
    members: dict[str, Any], text: str, tools: tuple[str, ...], call: PreparedCall
) -> None:
    calls = BenchCalls(**members)
    assert (calls.text, calls.tools) == (text, tools)
    work = calls.work(OLD)
    assert work.worker(0, 0).next_call(None) == call
    assert not work.reads_answers
    assert calls_of(json.loads(json.dumps(calls.to_json()))) == calls


def test_ping_of_a_revision_without_one_is_another_request() -> None:
    call = BenchCalls().work(NEW).worker(0, 0).next_call(None)
    assert (call.method, call.name) == ("server/discover", "server/discover")


def test_call_has_nothing_but_its_request_unless_it_says_so() -> None:
    call = PreparedCall("ping", None, "ping")
    assert call[3:] == (1.0, 0.0, False, "")
    assert BenchCalls().to_json() == {"kind": "ping", "name": "", "arguments": {}, "vary": False}


def test_lengths_are_drawn_if_they_vary() -> None:
    calls = BenchCalls(kind="tool", name="echo", arguments={"a": "x"}, vary=True)
    worker = calls.work(OLD).worker(0, 0)
    assert len({str(worker.next_call(None).params) for _ in range(400)}) > 50


def test_script_as_a_document_is_the_same_script() -> None:
    script = calls_of({"script": '[[call]]\nping = true\n[[call]]\ntool = "ä"\n'})
    assert isinstance(script, Script)
    assert script.text == "2 calls, in order"
    assert calls_of(script.to_json()) == script


def test_recording_as_a_document_is_read_again() -> None:
    path = str(Path(__file__).parents[4] / "stored" / "a.mcp.jsonl")
    document = {"load": path, "answers_itself": True}
    calls = calls_of(document)
    assert isinstance(calls, Recorded)
    assert calls.to_json() == document
    assert (calls.count, calls.era, calls.tools) == (2, "2025-11-25", ())
    assert calls.text == f"the requests of {path}"
