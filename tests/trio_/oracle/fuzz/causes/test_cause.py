"""The cause of a fault: the same in another seed's case, and another one for another fault."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_trio.oracle.fuzz._case import AFTER_CANCEL, UNSUPPORTED_TASK, on_client
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.causes._cause import (
    ANY,
    Cause,
    _revision_at,
    _sent_by,
    _with_method,
    case_without,
    cases_elsewhere,
    cases_of_other_types,
    has_several_messages,
    plain_cases,
    possible_causes,
    shows_all,
    smallest_cause,
)
from mcp_trio.oracle.fuzz.draw._cases import cases
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from tests.levels import fewer_examples
from tests.trio_.oracle.fuzz.memory_target import BATCHED, NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.oracle.fuzz._case import Case, Step

OPEN: Step = ("open", OLD, "whole", "all")
OPEN_NEW: Step = ("open", NEW, "whole", "all")
TOOLS = ["search"]
CALL: Step = ("call", "search", {}, ())
LIST: Step = ("request", "tools/list", {}, "int")


def cause_of(fault: TargetFault, case: Case, tools: Sequence[str] = ()) -> Cause:
    return possible_causes(fault, case, tools)[-1]


def row(row: str, method: str = "tools/list", **members: Any) -> TargetFault:
    return TargetFault(kind="row", row=row, method=method, **members)


def crash(detail: str = "1", method: str = "tools/list", row: str = "crash") -> TargetFault:
    return TargetFault(kind="crash", row=row, detail=detail, method=method)


def hang() -> TargetFault:
    return TargetFault(kind="hang", row="RPC-35", detail="hang", method="ping")


def text(method: str, **members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, **members})


@pytest.mark.parametrize(
    ("fault", "steps", "expected"),
    [
        # Values aren't in it; types are.
        (row("RPC-17"), [("request", "tools/list", 82, "int")],
         Cause("RPC-17", "request params:number", "tools/list")),
        (row("RPC-17"), [("request", "tools/list", "x", "text")],
         Cause("RPC-17", "request params:string", "tools/list")),
        (row("RPC-17"), [("mutate", text("tools/list", params="y"))],
         Cause("RPC-17", "request params:string", "tools/list")),
        (row("RPC-17"), [("damage", text("tools/list", params="y").encode())],
         Cause("RPC-17", "request params:string", "tools/list")),
        (row("RPC-35"), [("request", "tools/list", {"cursor": 5}, "int")],
         Cause("RPC-35", "request params/cursor:number", "tools/list")),
        (row("RPC-35"), [("burst", 3, "tools/list", {})],
         Cause("RPC-35", "burst of request", "tools/list")),
        (row("RPC-35"), [("burst", 1, "tools/list", {})], Cause("RPC-35", "request", "tools/list")),
        # A call has its tool's name, unless the server doesn't list it.
        (row("RPC-35", "tools/call"), [("call", "search", {"a": 1}, ("progress",))],
         Cause("RPC-35", "request progress", "search")),
        (row("RPC-35", "tools/call"), [("call", "other", {}, ())],
         Cause("RPC-35", "request", "tools/call")),
        (row("RPC-35", "tools/call"), [("request", "tools/call", {"name": "search"}, "int")],
         Cause("RPC-35", "request", "search")),
        (row("RPC-17", "tools/call"), [("request", "tools/call", [], "int")],
         Cause("RPC-17", "request params:array", "tools/call")),
        # Methods that no revision has are drawn: they are one scope.
        (row("RPC-35", "tools/List"), [("request", "tools/List", {}, "int")],
         Cause("RPC-35", "request", "unknown method")),
        (row("RPC-14", "a" * 99), [("notify", "a" * 99, {})],
         Cause("RPC-14", "notification", "unknown method")),
        # The step that sends the fault's method, not the last one.
        (row("RPC-7"), [("request", "tools/list", {}, "int"), ("request", "ping", {}, "int")],
         Cause("RPC-7", "request", "tools/list")),
        (row("CXL-6"), [("request", "tools/list", {}, "int"), ("cancel", 0),
                        ("request", "tools/list", {}, "int")],
         Cause("CXL-6", "request", "tools/list")),
        # The player's own ping, after the case.
        (row("PING-2", "ping"), [("notify", "notifications/acme", "absent")],
         Cause("PING-2", "request", "ping")),
        # What the server sends by itself shows what it was sent before.
        (row("LOG-2", "notifications/message"), [("call", "search", {}, ())],
         Cause("LOG-2", "request", "search")),
        (row("LIFE-15", "notifications/tasks/status",
             received='{"method":"notifications/tasks/status"}'), [("call", "search", {}, ())],
         Cause("negotiated-features", "request", "search")),
        (row("PROG-1", "notifications/progress", received='{"method":"notifications/progress"}'),
         [("progress", 0), ("call", "search", {}, ("progress",))],
         Cause("PROG-1", "request progress", "search")),
        (row("PING-1", "ping", received='{"id":1,"result":{}}'), [("call", "search", {}, ())],
         Cause("PING-1", "request", "ping")),
        (row("RPC-7", "tools/call", is_cancellation_error=True), [("call", "search", {}, ())],
         Cause("RPC-7", "request, answered again after its cancellation", ANY)),
        # No server may run it as a task, so it isn't about the tool. But the tool may run.
        *((fault, [("call", "search", {}, ("progress", "unsupported task"))],
           Cause(fault.row, shape, scope))
          for fault, shape, scope in (
              (row("TSK-7", "tools/call"), "request params/task:object", "tools/call"),
              (row("TOOL-10", "tools/call"), "request params/task:object", "search"),
              (crash("1", "tools/call"), "exit status 1 after malformed request", "search"))),
        # Two rows of one requirement.
        (row("RPC-9", "ping"), [("request", "ping", {}, "int")],
         Cause("result-or-error", "request", "ping")),
        (row("RPC-10", "ping"), [("request", "ping", {}, "int")],
         Cause("result-or-error", "request", "ping")),
        (row("RPC-8", "x/y"), [("notify", "x/y", {})],
         Cause("RPC-14", "notification", "unknown method")),
        # The end of a process: how, and after what kind of message.
        (crash(), [("request", "tools/list", {}, "int")],
         Cause("crash", "exit status 1 after request", "tools/list")),
        (crash("-6"), [("request", "tools/list", 5, "int")],
         Cause("crash", "signal 6 after malformed request", "tools/list")),
        (crash("closed", "bytes"), [("mutate", "[]")],
         Cause("crash", "closed after malformed message", ANY)),
        (crash("1", "bytes", "STDIO-6"), [("damage", b"\xff")],
         Cause("STDIO-6", "exit status 1 after bytes", ANY)),
        (crash("1", ""), [], Cause("crash", "exit status 1 after opening", "initialize")),
        # What wasn't answered any more was the player's ping. What hangs was sent before.
        (hang(), [("half",)], Cause("hang", "half", ANY)),
        (hang(), [("call", "search", {}, ())], Cause("hang", "request", "search")),
        (hang(), [("notify", "notifications/roots/list_changed")],
         Cause("hang", "notification", "notifications/roots/list_changed")),
        (hang(), [("request", "tools/list", {"cursor": 5}, "int")],
         Cause("hang", "request params/cursor:number", "tools/list")),
        (hang(), [("damage", b"\xff")], Cause("hang", "bytes", ANY)),
        (hang(), [("request", "ping", {}, "int")], Cause("hang", "request", "ping")),
        (hang(), [], Cause("hang", "opening", "initialize")),
        # A crash that is known of an SDK hides no other crash with its status.
        (crash("1 https://a/pull/1", "tools/call"), [("call", "search", {}, ())],
         Cause("crash", "exit status 1: https://a/pull/1", ANY)),
        # A malformed call is about calls, not about its tool, whichever step sends it.
        *((row("RPC-12", "tools/call"), [step],
           Cause("RPC-12", "request params/arguments:number", "tools/call"))
          for step in (("call", "search", 0.5, ("progress",)),
                       ("request", "tools/call", {"name": "search", "arguments": 5}, "int"),
                       ("mutate", text("tools/call",
                                       params={"name": "search", "arguments": 1})))),
        (crash("1", "tools/call"), [("call", "search", None, ())],
         Cause("crash", "exit status 1 after malformed request", "tools/call")),
        (row("RPC-35", detail="cancelled"), [("request", "tools/list", {}, "int")],
         Cause("RPC-35", "request, after a cancelled call", "tools/list")),
        (row("PAGE-6"), [("page", "tools/list", "invented")],
         Cause("PAGE-6", "request", "tools/list")),
        (row("HTTP-1"), [("head", "origin", "tools/list", {})],
         Cause("HTTP-1", "request header:origin", "tools/list")),
        (row("SHL-11", ""), [("get", "stream")], Cause("SHL-11", "get stream", ANY)),
        # Only a message of the server that both sides may send is told by its text.
        *((fault, [LIST, ("request", "ping", {}, "int"), CALL], cause)
          for fault, cause in (
              (row("PING-1", "ping", received='{"method":"ping"}'),
               Cause("PING-1", "request", "search")),
              *((row("PING-1", "ping", received=received), Cause("PING-1", "request", "ping"))
                for received in ("", "{", "[" * 100_000, '["ping"]', '{"method":"tools/list"}')),
              (row("RPC-7", "tools/list", received='{"method":"tools/list"}'),
               Cause("RPC-7", "request", "tools/list")),
              (TargetFault(kind="crash", row="crash", detail="1", method="ping",
                           received='{"method":"ping"}'),
               Cause("crash", "exit status 1 after request", "ping")))),
        (crash("", "ping"), [("request", "ping", {}, "int")],
         Cause("crash", "end after request", "ping")),
        (crash("0", "ping"), [("request", "ping", {}, "int")],
         Cause("crash", "exit status 0 after request", "ping")),
        (TargetFault(kind="invariant", row="total_is_right", method="tools/call", detail="ping"),
         [CALL], Cause("total_is_right", "result", "tools/call:ping")),
        (TargetFault(kind="invariant", row="total_is_right", method="tools/call", detail="add"),
         [], Cause("total_is_right", "result", "add")),
    ],
)  # fmt: skip
def test_cause_is_made_of_the_smallest_case(
    fault: TargetFault, steps: list[Step], expected: Cause
) -> None:
    assert cause_of(fault, [OPEN, *steps], TOOLS) == expected


@pytest.mark.parametrize(
    ("opening", "expected"),
    [("half", "opening half"), ("whole", "opening"), ("late", "opening late")],
)
def test_cause_of_a_fault_in_the_handshake_names_the_handshake(opening: str, expected: str) -> None:
    fault = row("LIFE-3", "initialize")
    found = cause_of(fault, [("open", OLD, opening, "all")])
    assert found == Cause("LIFE-3", expected, "initialize")


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ("whole", "request"),
        ("absent", "request params/_meta:absent"),
        ("old", "request params/_meta/protocolVersion:string"),
        ("bare", "request params/_meta/clientCapabilities:absent"),
    ],
)
def test_cause_without_a_handshake_names_what_the_meta_lacks(meta: str, expected: str) -> None:
    case: Case = [OPEN_NEW, ("request", "tools/list", {}, "int", meta)]
    assert cause_of(row("META-8"), case) == Cause("META-8", expected, "tools/list")


def test_cause_of_a_client_is_what_its_server_has_done() -> None:
    """The method is that of the client's message; the number of a variant is a value."""
    case: Case = [("serve", (OLD,), ("a",)), ("push", "progress", 1, 4), ("answer", "late", 2, 7)]
    fault = row("RPC-7", "tools/call")
    assert cause_of(fault, case) == Cause("RPC-7", "answer late", "tools/call")
    assert cause_of(row("hang", ""), case) == Cause("hang", "answer late", ANY)
    other: Case = [("serve", (OLD,), ()), ("answer", "late", 0, 3), ("push", "ping", 1, 1)]
    assert cause_of(fault, case) in possible_causes(fault, other)


# -- In another case -------------------------------------------------------------------------------

STRING = Cause("RPC-17", "request params:string", "tools/list")


@pytest.mark.parametrize(
    ("cause", "steps", "expected"),
    [
        (STRING, [("request", "tools/list", "other", "text")], True),
        (STRING, [("request", "ping", {}, "int"), ("request", "tools/list", "z", "int"), ("wait",)],
         True),
        (STRING, [("request", "tools/list", 5, "int")], False),
        (STRING, [("request", "tools/list", {}, "int")], False),
        # Another method has the shape, and the fault is in this one.
        (STRING, [("request", "ping", "x", "int"), ("request", "tools/list", {}, "int")], False),
        (Cause("RPC-17", "request params:string", ANY), [("request", "tools/list", "x", "int")],
         True),
        # A valid message shows it: what is wrong in another one doesn't matter.
        (Cause("RPC-17", "request", "tools/list"), [("request", "tools/list", "x", "int")], True),
        (Cause("RPC-17", "request", ANY), [("mutate", text("tools/list", jsonrpc="1"))], True),
        (Cause("RPC-17", "request", "ping"), [("request", "tools/list", "x", "int")], False),
        (STRING, [("burst", 9, "tools/list", "x")], True),
        (Cause("RPC-35", "request params:string", "tools/list"),
         [("request", "tools/list", "x", "int")], False),
    ],
)  # fmt: skip
def test_known_cause_explains_a_fault_of_a_case_only_with_its_message(
    cause: Cause, steps: list[Step], expected: bool
) -> None:
    found = possible_causes(row("RPC-17"), [OPEN, *steps], TOOLS)
    assert any(cause in each.wider for each in found) is expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (("request", "tools/list", "x", "int"),
         [("request", "ping", "x", "int"), ("request", "acme/none", "x", "int")]),
        (("request", "ping", "x", "int"), [("request", "acme/none", "x", "int")]),
        (("request", "tools/List", "x", "int"), [("request", "ping", "x", "int")]),
        (("request", "tools/call", "x", "int"),
         [("request", "ping", "x", "int"), ("request", "acme/none", "x", "int")]),
        # The shape isn't the same elsewhere: only a list has a cursor.
        (("request", "tools/list", {"cursor": 5}, "int"), []),
        (("call", "search", {}, ()), []),
        (("request", "tools/call", {"name": "search"}, "int"), []),
        (("page", "tools/list", "invented"), []),
        (("damage", b"\xff"), []),
        (("notify", "notifications/acme", []), [("notify", "ping", [])]),
        (("batch", [["tools/list", {}, "int"], ["ping", {}, "int"]]), []),
    ],
)  # fmt: skip
def test_message_is_sent_elsewhere_with_the_same_shape(step: Step, expected: list[Step]) -> None:
    fault = row("RPC-17", str(step[1]) if isinstance(step[1], str) else "bytes")
    case: Case = [OPEN, step, ("wait",)]
    assert cases_elsewhere(fault, case, TOOLS) == [[OPEN, each, ("wait",)] for each in expected]


@pytest.mark.parametrize(
    ("shape", "plain"),
    [
        ("request params:string", "request"),
        ("request progress task", "request"),
        ("burst of request params/cursor:number", "request"),
        ("request header:origin", "request"),
        ("notification params:array", "notification"),
        ("exit status 1 after malformed request", "exit status 1 after request"),
        ("exit status 1 after bytes", "exit status 1 after bytes"),
        ("request params:string, after a cancelled call",
         "request params:string, after a cancelled call"),
        ("bytes", "request"),  # they have a method
        ("opening half", "opening"),
    ],
)  # fmt: skip
def test_plain_shape_is_without_what_is_wrong(shape: str, plain: str) -> None:
    found = Cause("RPC-7", shape, "ping").wider
    wider = {each.shape.removeprefix("burst of ") for each in found}
    assert {each for each in wider if "no-object" not in each} == {
        shape.removeprefix("burst of "),
        plain,
    }
    is_burst = shape.startswith("burst")
    assert any(each.shape.startswith("burst") for each in found) is is_burst
    assert any("no-object" in each.shape for each in found) is ("params:" in shape)
    assert {each.scope for each in found} == {"ping", ANY}
    assert found[0].shape == shape


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (("request", "tools/list", "x", "int"), ("request", "tools/list", {}, "int")),
        (("mutate", text("tools/list", jsonrpc="1")), ("request", "tools/list", {}, "int")),
        (("damage", text("tools/list", id=None).encode()), ("request", "tools/list", {}, "int")),
        (("burst", 3, "tools/list", {}), ("request", "tools/list", {}, "int")),
        (("head", "type", "tools/list"), ("request", "tools/list", {}, "int")),
        (("notify", "notifications/initialized", 5), ("notify", "notifications/initialized", {})),
        (("request", "tools/list", {}, "int"), None),
        (("request", "tools/call", "x", "int"), None),
        (("request", "acme/none", "x", "int"), None),
        (("request", "prompts/get", "x", "int"), None),  # without a name it isn't valid
        (("damage", b"\xff"), None),
    ],
)
def test_plain_case_has_a_valid_message_of_the_same_method(
    step: Step, expected: Step | None
) -> None:
    method = str(step[1]) if step[0] in ("request", "notify") else "tools/list"
    case: Case = [OPEN, step]
    found = plain_cases(row("RPC-7", method), case)
    assert found == ([] if expected is None else [[OPEN, expected]])


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (("request", "tools/list", 5, "int"),
         [("request", "tools/list", "x", "int"), ("request", "tools/list", [], "int")]),
        (("notify", "x", "a"), [("notify", "x", 82), ("notify", "x", [])]),
        (("burst", 2, "tools/list", []), [("burst", 2, "tools/list", 82),
                                          ("burst", 2, "tools/list", "x")]),
        (("request", "tools/list", {"cursor": 5}, "int"), []),
        (("request", "x", {"_meta": 5, "a": 1}, "int"),
         [("request", "x", {"_meta": "x"}, "int"), ("request", "x", {"_meta": []}, "int")]),
        (("request", "x", {"_meta": {"progressToken": []}}, "int"),
         [("request", "x", {"_meta": {"progressToken": {}}}, "int"),
          ("request", "x", {"_meta": {"progressToken": True}}, "int")]),
        (("request", "tools/list", None, "int"),
         [("request", "tools/list", 82, "int"), ("request", "tools/list", "x", "int")]),
        (("request", "tools/list", True, "int"),
         [("request", "tools/list", 82, "int"), ("request", "tools/list", "x", "int")]),
        (("head", "type", "tools/list", "x"), []),  # its head is what is wrong
        (("request", "x", {"_meta": {"progressToken": None}}, "int"),
         [("request", "x", {"_meta": {"progressToken": []}}, "int"),
          ("request", "x", {"_meta": {"progressToken": {}}}, "int")]),
        (("request", "x", {"_meta": {"progressToken": True}}, "int"),
         [("request", "x", {"_meta": {"progressToken": []}}, "int"),
          ("request", "x", {"_meta": {"progressToken": {}}}, "int")]),
        (("mutate", text("tools/list", params=5)), []),
        (("damage", b"\xff"), []),
    ],
)  # fmt: skip
def test_params_of_other_types_are_no_object_either(step: Step, expected: list[Step]) -> None:
    method = next((each for each in step[1:] if isinstance(each, str)), "bytes")
    fault = row("RPC-17", method)
    found = cases_of_other_types(fault, [OPEN, step])
    assert found == [[OPEN, each] for each in expected]


def test_cause_for_any_type_of_params_explains_each_type_and_no_other_member() -> None:
    cause = Cause("RPC-17", "request params:no-object", ANY)
    every: tuple[Any, ...] = (5, "x", [], None)
    for params in every:
        (found,) = possible_causes(row("RPC-17"), [OPEN, ("request", "tools/list", params, "int")])
        assert cause in found.wider
        assert found.of_any_params.anywhere == cause
    other = Cause("RPC-17", "request params/cursor:number", "tools/list")
    assert cause not in other.wider
    assert other.of_any_params == other


@pytest.mark.parametrize(
    ("part", "values", "joined"),
    [
        ("_meta", (0, "", []), "params/_meta:no-object"),
        ("progressToken", ([], {}, None), "params/_meta/progressToken:no-token"),
    ],
)
def test_cause_for_any_type_of_meta_explains_each_type(part: str, values: Any, joined: str) -> None:
    cause = Cause("RPC-17", f"request {joined}", ANY)
    for value in values:
        params = {"_meta": value if part == "_meta" else {part: value}}
        (found,) = possible_causes(row("RPC-17"), [OPEN, ("request", "tools/list", params, "int")])
        assert cause in found.wider
        assert found.of_any_params.anywhere == cause
    absent = Cause("META-8", "request params/_meta:absent", "tools/list")
    assert absent.of_any_params == absent


def test_batch_of_one_request_is_sent_elsewhere_with_another_method() -> None:
    case: Case = [("open", BATCHED, "whole", "all"), ("batch", [["tools/list", {}, "int"]])]
    found = cases_elsewhere(row("RPC-35", detail="batch"), case)
    assert [each[1] for each in found] == [
        ("batch", [[method, {}, "int"]]) for method in ("ping", "acme/none")
    ]


def test_mutated_message_is_sent_elsewhere_with_another_method() -> None:
    case: Case = [OPEN, ("mutate", text("tools/list", params="x"))]
    first, second = cases_elsewhere(row("RPC-17"), case)
    assert [json.loads(each[1][1])["method"] for each in (first, second)] == ["ping", "acme/none"]


def test_elsewhere_without_a_handshake_is_the_probe_of_that_revision() -> None:
    first, _ = cases_elsewhere(row("RPC-17"), [OPEN_NEW, ("request", "tools/list", [], "int")])
    assert first[1] == ("request", "server/discover", [], "int")


@fewer_examples(10)
@given(st.data())
def test_cause_of_any_drawn_case_is_short_and_names_words_only(data: st.DataObject) -> None:
    """Each drawn case has a cause."""
    tools = [{"name": "search", "inputSchema": {"type": "object"}}]
    choices = CaseChoices(Offers(revisions=[NEW, OLD], tools=tools), TOOLS, http=True, stress=True)
    case = data.draw(cases(choices))
    for fault in (row("RPC-7", "tools/list"), row("RPC-7", ""), crash(method="bytes")):
        found = cause_of(fault, case, TOOLS)
        assert len(repr(found)) < 200
        for other in cases_elsewhere(fault, case, TOOLS):
            assert cause_of(fault, other, TOOLS).family == found.family


# -- No wider than what was shown ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cause", "hidden"),
    [
        (Cause("crash", "exit status 1 after request", ANY), False),
        (Cause("crash", "exit status 1 after malformed request", ANY), False),
        (Cause("crash", "exit status 1: https://a/pull/1", ANY), False),
        (Cause("crash", "exit status 1 after request, beside ping request", "search"), False),
        (Cause("crash", "exit status 1 after request", "other"), False),
        (Cause("crash", "exit status 1 after request", "search"), True),
    ],
)
def test_known_crash_hides_a_valid_call_only_of_its_own_tool(cause: Cause, hidden: bool) -> None:
    """Also a baseline that an earlier version has written with any method hides no valid call."""
    found = possible_causes(crash("1", "tools/call"), [OPEN, CALL], TOOLS)
    assert any(cause in each.wider for each in found) is hidden


@pytest.mark.parametrize("fault", [crash("1", "prompts/get"), hang()])
@pytest.mark.parametrize("params", [{"name": "p"}, {"name": 5}])
def test_valid_message_that_ends_or_hangs_a_server_says_nothing_of_other_methods(
    fault: TargetFault, params: Any
) -> None:
    shape = "request" if fault.kind == "hang" else "exit status 1 after request"
    known = Cause(fault.kind, shape, ANY)
    (found,) = possible_causes(fault, [OPEN, ("request", "prompts/get", params, "int")])
    assert known not in found.wider
    assert not cases_elsewhere(fault, [OPEN, LIST])


@pytest.mark.parametrize("row_", ["RPC-7", "LOG-1"])
def test_fault_of_any_method_is_not_one_of_a_tool(row_: str) -> None:
    method = "tools/call" if row_ == "RPC-7" else "notifications/message"
    (found,) = possible_causes(row(row_, method), [OPEN, CALL], TOOLS)
    assert found.wider == [Cause(row_, "request", "search")]


def test_tool_with_the_name_of_a_method_has_another_scope() -> None:
    (found,) = possible_causes(
        row("RPC-7", "tools/call"), [OPEN, ("call", "ping", {}, ())], ["ping"]
    )
    assert found == Cause("RPC-7", "request", "tools/call:ping")
    assert found.is_of_tool


@pytest.mark.parametrize(
    ("fault", "steps", "shape"),
    [
        (crash(method="tools/call"), [CALL], "exit status 1 after request"),
        (crash(method="tools/call"), [CALL, ("wait",)], "exit status 1 after request"),
        (crash(method="tools/call"), [LIST, CALL],
         "exit status 1 after request, beside tools/list request"),
        (crash(method="tools/list"), [CALL, ("cancel", 0), LIST],
         ("exit status 1 after request, beside search request and notifications/cancelled"
          " notification")),
        (hang(), [("damage", b"x"), CALL], "request, beside bytes"),
        (row("RPC-7", "tools/call"), [CALL, LIST], "request, beside tools/list request"),
        # These faults are about a request and its cancellation.
        (row("CXL-6"), [LIST, ("cancel", 0), LIST], "request"),
        (crash("1 https://a/b", "tools/call"), [LIST, CALL], "exit status 1: https://a/b"),
    ],
)  # fmt: skip
def test_cause_of_a_case_with_several_messages_names_them_all(
    fault: TargetFault, steps: list[Step], shape: str
) -> None:
    """It isn't known which one shows the fault, so that no one alone may be hidden by it."""
    case: Case = [OPEN, *steps]
    found = smallest_cause(fault, case, TOOLS)
    assert found is not None
    assert found.shape == shape
    wider = [wide for each in possible_causes(fault, case, TOOLS) for wide in each.wider]
    assert (found in wider) is ("beside" not in shape)


def test_case_with_messages_of_many_kinds_is_not_the_smallest_one() -> None:
    others: Case = [("request", method, {}, "int") for method in
              ("ping", "prompts/list", "resources/list", "resources/templates/list")]  # fmt: skip
    assert smallest_cause(crash(method="tools/call"), [OPEN, *others, *others, CALL], TOOLS)
    case: Case = [OPEN, *others, LIST, CALL]
    assert smallest_cause(crash(method="tools/call"), case, TOOLS) is None


@pytest.mark.parametrize(
    ("extras", "expected"),
    [
        ((), []),
        (("task",), [()]),
        (("unsupported task",), [()]),
        (("progress", "task"), [(), ("progress",), ("task",)]),
    ],
)
def test_call_is_tried_without_what_it_may_have_beside_its_params(
    extras: tuple[str, ...], expected: list[tuple[str, ...]]
) -> None:
    case: Case = [OPEN, ("call", "search", {"a": 1}, extras), ("wait",)]
    found = plain_cases(row("TOOL-13", "tools/call"), case, TOOLS)
    assert found == [[OPEN, ("call", "search", {"a": 1}, each), ("wait",)] for each in expected]
    assert plain_cases(row("TOOL-13", "tools/call"), [OPEN, ("call", "search", 5, extras)]) == []


def test_case_without_its_step_keeps_the_rest() -> None:
    assert case_without(crash(), [OPEN, LIST, ("wait",)]) == [OPEN, ("wait",)]
    assert case_without(row("PING-2", "ping"), [OPEN, LIST]) == [OPEN, LIST]


@pytest.mark.parametrize(
    ("row_", "known", "step", "is_known"),
    [
        ("RPC-35", "burst of request", ("request", "ping", {}, "int"), False),
        ("RPC-35", "burst of request", ("request", "ping", 5, "int"), False),
        ("RPC-35", "burst of request", ("burst", 1, "ping", {}), False),
        ("RPC-35", "burst of request", ("burst", 3, "ping", {}), True),
        ("RPC-35", "burst of request", ("burst", 3, "ping", 5), True),
        ("RPC-35", "burst of request params:number", ("request", "ping", {}, "int"), False),
        ("RPC-35", "request", ("burst", 3, "ping", {}), True),
        # A repeated member: some servers read another message.
        ("RPC-35", "request", ("damage", b'{"id":1,"id":2,"jsonrpc":"2.0","method":"ping"}'), True),
    ],
)
def test_request_stands_for_bursts_and_bytes_and_no_burst_for_a_request(
    row_: str, known: str, step: Step, is_known: bool
) -> None:
    possible = possible_causes(row(row_, "ping"), [OPEN, step])
    wider = [wide for each in possible for wide in each.wider]
    assert (Cause(row_, known, "ping") in wider) is is_known


def test_burst_of_calls_stands_for_no_single_call() -> None:
    """A call runs the author's code, and several at once can be what is too much for it."""
    call: Step = ("request", "tools/call", {"name": "search"}, "int")
    possible = possible_causes(row("RPC-35", "tools/call"), [OPEN, call], TOOLS)
    wider = [wide for each in possible for wide in each.wider]
    assert wider
    assert not [each for each in wider if "burst" in each.shape]


PING = ["ping", {}, "int"]
LISTED = ["tools/list", {}, "digits"]
IN_BATCH: Step = ("batch", [PING])


@pytest.mark.parametrize(
    ("detail", "steps", "known", "is_known"),
    [
        ("batch", [IN_BATCH], "batch of request", True),
        ("batch", [("batch", [LISTED, PING])], "batch of request", True),
        ("batch", [("batch", [["ping", 5, "int"]])], "batch of request", True),
        ("batch", [IN_BATCH], "request", True),
        ("batch", [IN_BATCH, ("request", "ping", 5, "int")], "request params:number", False),
        ("batch large", [IN_BATCH], "batch of request", True),
        # A baseline with batches that the SDK drops hides no request that was sent alone.
        ("", [("request", "ping", {}, "int")], "batch of request", False),
        ("", [IN_BATCH, ("request", "ping", {}, "int")], "batch of request", False),
        ("", [IN_BATCH], "batch of request", False),
        ("", [IN_BATCH], "request", True),  # the player's own
    ],
)
def test_request_in_a_batch_has_another_cause_than_a_request_alone(
    detail: str, steps: list[Step], known: str, is_known: bool
) -> None:
    fault = row("RPC-35", "ping", detail=detail)
    possible = possible_causes(fault, [("open", BATCHED, "whole", "all"), *steps])
    wider = [wide for each in possible for wide in each.wider]
    for scope in ("ping", ANY):
        assert (Cause("RPC-35", known, scope) in wider) is is_known


@pytest.mark.parametrize(
    ("fault", "revision", "members", "expected"),
    [
        (row("RPC-7", "ping"), BATCHED, [PING, LISTED], Cause("RPC-7", "batch of request", "ping")),
        (row("RPC-14", "notifications/acme"), BATCHED, [["notifications/acme", {}, None]],
         Cause("RPC-14", "batch of notification", "unknown method")),
        (row("RPC-7", "tools/call"), BATCHED, [["tools/call", {"name": "search"}, "int"]],
         Cause("RPC-7", "batch of request", "search")),
        (crash("1", "batch"), BATCHED, [PING], Cause("crash", "exit status 1 after batch", "ping")),
        # It isn't known which of them it was.
        (crash("1", "batch"), BATCHED, [PING, LISTED],
         Cause("crash", "exit status 1 after batch", ANY)),
        (hang(), BATCHED, [], Cause("hang", "batch", ANY)),
        # Without batches it is no request.
        (crash("1", "batch"), OLD, [PING], Cause("crash", "exit status 1 after batch", ANY)),
        (hang(), BATCHED, [["ping"], 5], Cause("hang", "batch", ANY)),
    ],
)  # fmt: skip
def test_cause_names_what_a_batch_has(
    fault: TargetFault, revision: str, members: list[Any], expected: Cause
) -> None:
    case: Case = [("open", revision, "whole", "all"), ("batch", members)]
    assert cause_of(fault, case, TOOLS) == expected
    assert smallest_cause(fault, case, TOOLS) == expected


def test_batch_beside_another_message_is_one_message() -> None:
    """However many members it has: they are no further messages of the smallest case."""
    case: Case = [("open", BATCHED, "whole", "all"), ("batch", [PING, LISTED] * 3), CALL]
    found = smallest_cause(crash(method="tools/call"), case, TOOLS)
    assert found == Cause("crash", "exit status 1 after request, beside batch", "search")


@pytest.mark.parametrize(
    ("steps", "before", "expected"),
    [
        ([LIST, CALL], [], True),
        ([("wait",), CALL, LIST, ("notify", "notifications/acme")], [], True),
        ([CALL], [[OPEN, LIST]], True),
        ([CALL], [[OPEN, ("page", "tools/list", "all")]], True),
        ([CALL], [], False),
        ([LIST], [[OPEN, CALL]], False),
        ([("request", "tools/list", 5, "int"), CALL], [], False),
    ],
)
def test_drawn_case_shows_a_cause_of_several_messages_if_all_were_sent(
    steps: list[Step], before: list[Case], expected: bool
) -> None:
    fault = row("RPC-7", "tools/call")
    cause = Cause("RPC-7", "request, beside tools/list request", "search")
    assert shows_all(cause, fault, [OPEN, *steps], before, TOOLS) is expected
    single = Cause("RPC-7", "request", "search")
    assert not shows_all(single, fault, [OPEN, *steps], before, TOOLS)


# A step, and what it sends in 2025-11-25: the form of a message, its method and a listed tool.
# fmt: off
SENT: list[tuple[Step, tuple[str, str, str]]] = [
    (("open", OLD, "whole", "all"), ("opening", "initialize", "")),
    (("open", OLD), ("opening", "initialize", "")),
    (("open", OLD, "late", "all"), ("opening late", "initialize", "")),
    (("request", "ping", {}, ["own"]), ("request own-id", "ping", "")),
    (("request", "ping", 5, ["own"]), ("request params:number", "ping", "")),
    (("burst", 3, "ping", {}, "absent"), ("burst of request", "ping", "")),
    (("head", "none", "tools/call", {"name": "search"}), ("request header:none", "tools/call", "")),
    (("request", "ping", {}, "int", "old"), ("request", "ping", "")),  # it has no `_meta` to lack
    (("request", "tools/call", {"name": ["search"]}),
     ("request params/name:array", "tools/call", "")),
    (("request", "prompts/get", {"name": "search"}), ("request", "prompts/get", "")),
    (("call", "other", {}, ("text",)), ("request text", "tools/call", "")),
    (("notify", "ping"), ("notification", "ping", "")),
    (("notify", "ping", 5), ("notification params:number", "ping", "")),
    (("listen", {}), ("request", "subscriptions/listen", "")),
    (("task", 0, "update"), ("request", "tasks/update", "")),
    (("batch", [["ping", {}, "int"]]), ("batch", "", "")),  # which this revision doesn't have
    (("damage", text("ping").encode() + b"\n"), ("request", "ping", "")),
    (("damage", text("tools/call", params={"name": "search"}).encode()),
     ("request", "tools/call", "search")),
    # A repeated member: some servers read another message.
    (("damage", text("ping").encode()[:-1] + b',"id":2}'), ("bytes", "ping", "")),
    (("damage", b"[" * 100_000), ("bytes", "", "")),
    (("mutate", "\ud800"), ("bytes", "", "")),
    (("mutate", "5"), ("message:number", "", "")),
    (("mutate", text("ping").replace('"ping"', "5")), ("request method:number", "", "")),
    (("delete", "other"), ("delete other", "", "")),
    (("slow",), ("slow", "", "")),
    (("request", "ping", {}), ("request", "ping", "")),
    (("request", "ping", 5, "int"), ("request params:number", "ping", "")),
    (("request", "tools/call", {"name": "search"}, "int"), ("request", "tools/call", "search")),
    (("burst", 1, "ping", {}), ("request", "ping", "")),
    (("burst", 2, "ping", {}), ("burst of request", "ping", "")),
    (("head", "origin", "ping", {}), ("request header:origin", "ping", "")),
    (("call", "search", {}, ()), ("request", "tools/call", "search")),
    (("call", "search", {}), ("request", "tools/call", "search")),
    (("call", "other", {}, ()), ("request", "tools/call", "")),
    (
        ("call", "search", {}, ("text", "progress")),
        ("request progress text", "tools/call", "search"),
    ),
    (
        ("call", "search", {}, (UNSUPPORTED_TASK,)),
        ("request params/task:object", "tools/call", "search"),
    ),
    (("call", "search", 5, ("text",)), ("request params/arguments:number", "tools/call", "")),
    (("notify", "ping", {}), ("notification", "ping", "")),
    (("notify", "ping", "absent"), ("notification", "ping", "")),
    (("cancel", 0), ("notification", "notifications/cancelled", "")),
    (("progress", 0), ("notification", "notifications/progress", "")),
    (("respond", 0, "right"), ("response", "", "")),
    (("respond", 0, "twice"), ("response:twice", "", "")),
    (("reply", 0, {"result": {}}), ("response", "", "")),
    (("reply", 0, {"error": {}}), ("response:error", "", "")),
    (("parts", 1), ("request parts", "tools/list", "")),
    (("page", "prompts/list", "all"), ("request", "prompts/list", "")),
    (("retry", 0, "right"), ("retry", "", "")),
    (("retry", 0, "other"), ("retry:other", "", "")),
    (("task", 0, "follow"), ("request", "tasks/get", "")),
    (("task", 0, "unknown"), ("request", "tasks/get", "")),
    (("task", 0, "cancel"), ("request", "tasks/cancel", "")),
    (("mutate", "[1"), ("bytes", "", "")),
    (("half",), ("half", "", "")),
    (("get", "stream"), ("get stream", "", "")),
    (("large", "message", 5), ("large message", "", "")),
    (("streams", 5), ("streams", "", "")),
]
# fmt: on


@pytest.mark.parametrize(("step", "sent"), SENT)
def test_step_sends_a_message_of_a_form(step: Step, sent: tuple[str, str, str]) -> None:
    """A second client's step sends the same, and its form says whose it is."""
    found = _sent_by(step, OLD, TOOLS)
    assert found is not None
    assert (found.shape, found.method, found.tool) == sent
    again = _sent_by(on_client(1, step), OLD, TOOLS)
    assert again is not None
    assert (again.method, again.tool) == sent[1:]
    assert again.shape.startswith(found.shape)
    assert again.shape != found.shape


@pytest.mark.parametrize("name", ["wait", "hand", "reconnect", "release", "serve"])
def test_step_that_sends_nothing_has_no_form(name: str) -> None:
    assert _sent_by((name,), OLD, TOOLS) is None
    assert _sent_by(on_client(1, (name,)), OLD, TOOLS) is None


def test_revision_of_a_step_is_that_of_its_client() -> None:
    case = [OPEN, on_client(1, OPEN_NEW), ("wait",), on_client(1, ("wait",)), OPEN_NEW, ("wait",)]
    assert [_revision_at(case, place) for place in range(6)] == ["", "", OLD, NEW, OLD, NEW]


@pytest.mark.parametrize(
    ("step", "changed"),
    [
        (("request", "a", {}, "int", "old"), ("request", "b", {}, "int", "old")),
        (("notify", "a", {}), ("notify", "b", {})),
        (("burst", 3, "a", {}), ("burst", 3, "b", {})),
        (("head", "origin", "a", {}), ("head", "origin", "b", {})),
        (("mutate", "[]"), None),
        (("mutate", "{"), None),
        (("wait",), None),
    ],
)
def test_same_message_with_another_method(step: Step, changed: Step | None) -> None:
    assert _with_method(step, "b") == changed
    second = _with_method(on_client(1, step), "b")
    assert second == (None if changed is None else on_client(1, changed))


@pytest.mark.parametrize(
    ("step", "changed"),
    [
        (("batch", [["a", {}, "int"]]), ("batch", [["b", {}, "int"]])),
        (("batch", [["a", {}, "int"], ["c", {}, "int"]]), None),
        (("batch", []), None),
        (("mutate", '{"id": 1, "method": "a"}'), ("mutate", '{"id":1,"method":"b"}')),
        (("mutate", '{"id": 1}'), ("mutate", '{"id":1,"method":"b"}')),
        (("mutate", "[" * 100_000), None),
        (("damage", b"{}"), None),
        (("call", "a", {}), None),
    ],
)
def test_message_in_a_batch_or_a_text_gets_another_method(step: Step, changed: Step | None) -> None:
    assert _with_method(step, "b") == changed


@pytest.mark.parametrize(
    ("step", "shapes"),
    [
        (("burst", 3, "tools/call", {"name": "search"}), ["request", "burst of request"]),
        (("burst", 1, "tools/call", {"name": "search"}), ["request", "request"]),
        (("call", "search", {}, (UNSUPPORTED_TASK,)), ["request", "request params/task:object"]),
        (("call", "search", {}, ("task",)), ["request task"]),
        (("call", "search", {}), ["request"]),
    ],
)
def test_step_shows_what_a_simpler_one_can_show(step: Step, shapes: list[str]) -> None:
    """The least likely cause is first."""
    found = possible_causes(row("TOOL-10", "tools/call"), [OPEN, step], TOOLS)
    assert [each.shape for each in found] == shapes
    second = possible_causes(
        row("TOOL-10", "tools/call"), [OPEN, on_client(1, OPEN), on_client(1, step)], TOOLS
    )
    assert [each.shape for each in second] == [f"{each} of the second client" for each in shapes]


@pytest.mark.parametrize(
    ("steps", "shape"),
    [
        ([CALL, ("cancel", 0), AFTER_CANCEL],
         "request, beside notifications/cancelled notification"),
        # What shows that a cancellation was read isn't a message of the case.
        ([CALL, ("cancel", 0), AFTER_CANCEL, AFTER_CANCEL],
         "request, beside notifications/cancelled notification and tools/list request"),
        ([CALL, LIST, LIST], "request, beside tools/list request"),
        ([("wait",), CALL, ("wait",)], "request"),
        ([CALL, CALL], "request, beside search request"),
        ([CALL, *(("notify", f"notifications/a{number}") for number in range(4))],
         "request, beside " + " and ".join(f"notifications/a{number} notification"
                                            for number in range(4))),
        ([CALL, *(("notify", f"notifications/a{number}") for number in range(5))], None),
    ],
)  # fmt: skip
def test_smallest_cause_names_up_to_four_further_messages(
    steps: list[Step], shape: str | None
) -> None:
    """Otherwise the case can hardly be the smallest one."""
    fault = row("RPC-7", "tools/call")
    found = smallest_cause(fault, [OPEN, *steps], TOOLS)
    assert found == (None if shape is None else Cause("RPC-7", shape, "search"))
    assert has_several_messages(fault, [OPEN, *steps], TOOLS) is (shape != "request")


def test_cancellation_is_no_further_message_of_a_fault_about_it() -> None:
    case: Case = [OPEN, CALL, ("cancel", 0)]
    fault = row("CXL-2", "tools/call")
    found = smallest_cause(fault, case, TOOLS)
    assert found is not None
    assert "beside" not in found.shape
    assert not has_several_messages(fault, case, TOOLS)


@pytest.mark.parametrize(
    ("cause", "is_of_tool", "is_of_row", "is_known_crash", "stands_alone"),
    [
        (Cause("RPC-7", "request", "search"), True, True, False, False),
        (Cause("RPC-7", "request", "tools/call"), False, True, False, False),
        (Cause("RPC-7", "request", ANY), False, True, False, False),
        (Cause("RPC-7", "request", "unknown method"), False, True, False, False),
        (Cause("RPC-7", "request, answered again after its cancellation", ANY), False, True, False,
         True),
        (Cause("crash", "exit status 1 after request", "ping"), False, False, False, False),
        (Cause("crash", "exit status 1: https://a/pull/1", ANY), False, False, True, True),
        (Cause("RPC-7", "request https://a", ANY), False, True, False, False),
        (Cause("hang", "half", ANY), False, False, False, False),
        (Cause("total_is_right", "result", "add"), True, True, False, True),
    ],
)  # fmt: skip
def test_cause_is_of_a_kind(
    cause: Cause, is_of_tool: bool, is_of_row: bool, is_known_crash: bool, stands_alone: bool
) -> None:
    assert (cause.is_of_tool, cause.is_of_row) == (is_of_tool, is_of_row)
    assert (cause.is_known_crash, cause.stands_alone) == (is_known_crash, stands_alone)
    assert cause.anywhere == Cause(cause.family, cause.shape, ANY)


def test_single_cause_of_a_burst_is_that_of_one_request() -> None:
    assert Cause("RPC-7", "burst of request", "ping").single == Cause("RPC-7", "request", "ping")
    batch = Cause("RPC-7", "batch of request", "ping")
    assert batch.single == batch
