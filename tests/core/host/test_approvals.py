"""Approvals: the decision about a call, rules and their limits, and the JSON that is kept."""

from __future__ import annotations

import json
import re
import time
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core.host import (
    ApprovalRequired,
    Approvals,
    CallDecision,
    InvalidApprovals,
    PinState,
    ServerApproval,
    ServerLaunch,
    ToolRule,
    approval_state,
    decide_call,
    decode_approvals,
    define,
    digest_launch,
    encode_approvals,
)
from mcp_core.types import Tool, ToolAnnotations
from tests.levels import fewer_examples

LAUNCH = ServerLaunch(transport="stdio", command="/bin/a")
READ_ONLY = ToolAnnotations(read_only_hint=True)
ALLOW = ToolRule(tool="t")
DENY = ToolRule(tool="t", is_allowed=False)
FILE = "/home/me/.mcp.json"


def decide(pin: PinState = "pinned", **options: Any) -> CallDecision:
    """Decide about a call at a server that is approved, unless the options say otherwise."""
    return decide_call("t", pin, **{"is_server_approved": True, **options})


def verdict(pin: PinState = "pinned", **options: Any) -> str:
    found = decide(pin, **options)
    return f"{found.verdict} {found.about}"


def test_call_without_rule_is_asked_about() -> None:
    assert verdict() == "ask call"
    assert verdict(is_trusted=True) == "ask call"


@pytest.mark.parametrize(
    ("is_trusted", "annotations", "expected"),
    [
        (True, READ_ONLY, "allow call"),
        (False, READ_ONLY, "ask call"),
        (True, ToolAnnotations(read_only_hint=False), "ask call"),
        (True, ToolAnnotations(destructive_hint=False, idempotent_hint=True), "ask call"),
    ],
)
def test_annotations_count_for_trusted_servers_only(
    is_trusted: bool, annotations: ToolAnnotations, expected: str
) -> None:
    assert verdict(is_trusted=is_trusted, annotations=annotations) == expected


@pytest.mark.parametrize(
    ("pin", "expected"),
    [
        ("changed", "ask definition"),
        ("new", "ask definition"),
        ("ambiguous", "deny definition"),
        ("absent", "deny call"),
    ],
)
def test_tool_that_is_not_pinned_is_never_called(pin: PinState, expected: str) -> None:
    everything: dict[str, Any] = {
        "is_trusted": True,
        "annotations": READ_ONLY,
        "rules": [ALLOW, ToolRule(tool="*", is_pattern=True)],
        "approve_all": True,
    }
    assert verdict(pin, **everything) == expected
    assert verdict("pinned", **everything) == "allow call"


def test_call_at_server_that_is_not_approved_is_denied() -> None:
    for pin in get_args(PinState):
        found = verdict(pin, is_server_approved=False, rules=[ALLOW], approve_all=True)
        assert found == "deny call"


def test_denying_rule_precedes_all_others() -> None:
    options: dict[str, Any] = {"approve_all": True, "is_trusted": True, "annotations": READ_ONLY}
    for rules in ([ALLOW, DENY], [DENY, ALLOW]):
        assert decide(rules=rules, **options) == CallDecision("deny", "rule", rule=DENY)
        assert verdict("new", rules=rules) == "deny call"


def test_rule_that_lasts_longest_decides() -> None:
    once, session = (ToolRule(tool="t", lifetime=each) for each in ("call", "session"))
    assert decide(rules=[once, session]).rule == session
    assert decide(rules=[once, ALLOW, session]).rule == ALLOW
    assert decide(rules=[once]).rule == once


def test_rule_for_a_definition_ends_with_it() -> None:
    rule = ToolRule(tool="t", digest="sha256:1")
    assert verdict(rules=[rule], digest="sha256:1") == "allow call"
    assert verdict(rules=[rule], digest="sha256:2") == "ask call"
    assert verdict(rules=[rule]) == "ask call"


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("get_*", "get_issue", True),
        ("get_*", "forget_issue", False),
        ("*", "", True),
        ("*_*", "a_b", True),
        ("a.c", "abc", False),
        ("[a]", "a", False),
        ("a*", "a\nb", True),
        ("a", "a\n", False),
        ("a*a", "a", False),
        ("a*ba*a", "aba", False),
        ("*b*", "a", False),
        ("a*b*c", "ac", False),
    ],
)
def test_pattern_has_stars_only(pattern: str, tool: str, matches: bool) -> None:
    assert ToolRule(tool=pattern, is_pattern=True).matches(tool, None) is matches


def test_tool_called_star_is_no_pattern() -> None:
    rule = ToolRule(tool="*")
    assert rule.matches("*", None)
    assert not rule.matches("delete_everything", None)


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_pattern_matches_like_a_regular_expression(pattern: str, tool: str) -> None:
    expected = re.fullmatch(pattern.replace("*", ".*"), tool) is not None
    assert ToolRule(tool=pattern, is_pattern=True).matches(tool, None) is expected


@pytest.mark.perf
def test_pattern_with_many_stars_is_matched_in_linear_time() -> None:
    before = time.process_time()
    assert not ToolRule(tool="*a" * 1000 + "b", is_pattern=True).matches("a" * 100_000, None)
    assert time.process_time() - before < 1


def test_server_is_approved_as_it_was_shown() -> None:
    approval = ServerApproval(launch=digest_launch(LAUNCH))
    assert approval_state(LAUNCH, approval, ()) == "approved"
    assert approval_state(LAUNCH, None, ()) == "new"
    assert approval_state(LAUNCH, ServerApproval(rules=(ALLOW,)), ()) == "new"
    changed = ServerLaunch(transport="stdio", command="/bin/a", args=("-x",))
    assert approval_state(changed, approval, ()) == "changed"


@pytest.mark.parametrize(
    ("shown", "replaces", "expected"),
    [
        (("u (user)",), ("u (user)",), "approved"),
        (("u (user)", "v (user)"), ("u (user)",), "approved"),
        (("u (user)",), (), "approved"),
        ((), ("u (user)",), "new"),
        (("v (user)",), ("u (user)",), "new"),
    ],
)
def test_server_that_takes_a_place_is_approved_for_what_was_shown(
    shown: tuple[str, ...], replaces: tuple[str, ...], expected: str
) -> None:
    approval = ServerApproval(launch=digest_launch(LAUNCH), replaces=shown)
    assert approval_state(LAUNCH, approval, replaces) == expected
    data = encode_approvals(Approvals().with_server(FILE, "a", approval))
    stored = decode_approvals(data).find(FILE, "a")
    assert approval_state(LAUNCH, stored, replaces) == expected


def test_approval_stored_before_replacements_were_holds_for_none() -> None:
    of_server = {"launch": digest_launch(LAUNCH), "approved": 5.0, "rules": [], "pins": None}
    data = json.dumps({"servers": {FILE: {"a": of_server}}, "version": 1}).encode()
    stored = decode_approvals(data).find(FILE, "a")
    assert approval_state(LAUNCH, stored, ()) == "approved"
    assert approval_state(LAUNCH, stored, ("u (user)",)) == "new"


def test_approvals_are_kept_by_file_and_name() -> None:
    approval = ServerApproval(launch="sha256:1", approved=5.0)
    found = Approvals().with_server(FILE, "a", approval)
    assert found.find(FILE, "a") == approval
    assert found.find(FILE, "b") is None
    assert found.find("/other", "a") is None
    assert found.with_server(FILE, "a", None) == Approvals()
    assert Approvals().with_server(FILE, "a", None) == Approvals()


def test_approvals_read_back_without_rules_of_a_session() -> None:
    pins = (define(Tool(name="t", input_schema={"type": "object", "minimum": 1})),)
    always = ToolRule(tool="x*", is_pattern=True, digest="sha256:2")
    rules = (always, ToolRule(tool="t", lifetime="session"), ToolRule(tool="t", lifetime="call"))
    approval = ServerApproval(launch="sha256:1", approved=5.0, rules=rules, pins=pins)
    data = encode_approvals(Approvals().with_server(FILE, "a", approval))
    kept = ServerApproval(launch="sha256:1", approved=5.0, rules=(always,), pins=pins)
    assert decode_approvals(data) == Approvals().with_server(FILE, "a", kept)
    assert json.loads(data)["version"] == 1


def test_approvals_of_empty_file_are_empty() -> None:
    assert decode_approvals(b" \n") == Approvals()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"{", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"{}", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b'{"version":2,"servers":7}', "version 2"),
        (b'{"version":1,"servers":{"/f":{"a":{"rules":[{}]}}}}', "cannot be read"),
    ],
)
def test_approvals_that_are_not_understood_are_refused(data: bytes, text: str) -> None:
    with pytest.raises(InvalidApprovals, match=text):
        decode_approvals(data)


def test_error_names_what_is_to_be_approved() -> None:
    error = ApprovalRequired("git\x1b", "log", "the call was not approved")
    assert str(error) == "log of git\\u001b is not approved: the call was not approved"
    assert str(ApprovalRequired("git", None, "it is new")) == "git is not approved: it is new"


rules = st.builds(
    ToolRule,
    tool=st.sampled_from(["t", "*", "u"]),
    is_pattern=st.booleans(),
    is_allowed=st.booleans(),
    lifetime=st.sampled_from(["call", "session", "always"]),
    digest=st.sampled_from([None, "1", "2"]),
)


@fewer_examples(2)
@given(
    st.sampled_from(get_args(PinState)),
    st.lists(rules),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_call_is_allowed_only_for_a_reason(
    pin: PinState, rules: list[ToolRule], approved: bool, trusted: bool, approve_all: bool
) -> None:
    """Any rules and pins are drawn: a denying rule wins, and a changed tool is never allowed."""
    found = decide_call(
        "t",
        pin,
        digest="1",
        is_server_approved=approved,
        is_trusted=trusted,
        annotations=READ_ONLY,
        rules=rules,
        approve_all=approve_all,
    )
    matching = [rule for rule in rules if rule.matches("t", "1")]
    if found.verdict == "allow":
        assert approved
        assert pin == "pinned"
        assert all(rule.is_allowed for rule in matching)
        assert matching or trusted or approve_all


def test_with_change_replaces_the_approval_of_one_server() -> None:
    def pin_nothing(old: ServerApproval) -> ServerApproval:
        return replace(old, pins=())

    before = Approvals().with_server("/f", "b", ServerApproval(launch="x"))
    after = before.with_change("/f", "a", pin_nothing).with_change("/f", "b", pin_nothing)
    assert after.find("/f", "a") == ServerApproval(pins=())
    assert after.find("/f", "b") == ServerApproval(launch="x", pins=())
    assert before.find("/f", "a") is None
