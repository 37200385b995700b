"""The record of a call: what it says, and which secrets it does not."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcp_core.host import (
    AuditRecord,
    canonical_json,
    digest_arguments,
    digest_json,
    encode_audit_record,
    redact_arguments,
)
from mcp_core.host._audit import has_secret_form
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD = AuditRecord(
    time=1.5,
    server="git",
    tool="log",
    outcome="ok",
    duration=0.25,
    approved_by="rule",
    arguments={"n": 1},
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def test_record_is_one_line_of_json() -> None:
    line = encode_audit_record(RECORD)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "time": 1.5,
        "server": "git",
        "tool": "log",
        "outcome": "ok",
        "duration": 0.25,
        "approved_by": "rule",
        "arguments": {"n": 1},
    }


def test_record_without_more_has_the_members_that_it_needs() -> None:
    record = AuditRecord(time=1.0, server="s", tool="t", outcome="ok", duration=0.5)
    assert (record.approved_by, record.definition, record.arguments_digest) == ("", "", "")
    assert (record.arguments, record.error) == (UNSET, "")
    line = b'{"time":1.0,"server":"s","tool":"t","outcome":"ok","duration":0.5}\n'
    assert encode_audit_record(record) == line


def test_record_has_only_names_and_does_not_change() -> None:
    """Several functions get the same record, and see what was written."""
    with pytest.raises(TypeError):
        AuditRecord(1.5, "git", "log", "ok", 0.25)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        RECORD.outcome = "error"  # type: ignore[misc]


def test_record_of_hostile_texts_is_one_line() -> None:
    record = AuditRecord(
        time=0, server="a\nb", tool="\r\x1b", outcome="denied", duration=0, error="x\n{}"
    )
    assert encode_audit_record(record).count(b"\n") == 1


def test_digest_of_arguments_ignores_the_order_of_members() -> None:
    digest = digest_arguments({"a": 1, "b": 2})
    assert digest == digest_arguments({"b": 2, "a": 1}) == digest_json({"a": 1, "b": 2})
    assert digest != digest_arguments({"a": 1})


def test_digest_of_arguments_with_key_cannot_be_guessed() -> None:
    keyed = digest_arguments({"pin": 1234}, b"key")
    assert keyed.startswith("hmac-sha256:")
    assert keyed == digest_arguments({"pin": 1234}, b"key")
    assert keyed != digest_arguments({"pin": 1234}, b"other")
    assert keyed[-64:] != digest_arguments({"pin": 1234})[-64:]


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "PASSWD",
        "api_key",
        "apiKey",
        "X-Api-Key",
        "accessToken",
        "client_secret",
        "key",
        "otp_code",
        "PIN",
    ],
)
def test_member_with_the_name_of_a_secret_is_redacted(name: str) -> None:
    for value in ("x", 1234, {"a": "x"}, ["x"], False):
        found = redact_arguments({"to": [{name: value, "path": "/x"}]})
        assert found == {"to": [{name: "(redacted)", "path": "/x"}]}
    assert redact_arguments({name: ""}) == {name: ""}


@pytest.mark.parametrize(
    "name", ["path", "keyboard", "monkey", "spin", "shopping", "primary_keyword", "author"]
)
def test_member_with_another_name_is_kept(name: str) -> None:
    assert redact_arguments({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdefgh123",
        "authorization: bearer abc.def-ghi_jkl",
        "Basic dXNlcjpwYXNzd29yZA==",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "sk-ant-" + "abcdefghijklmnop",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_abcdefghijklmnop",
        "xoxb-1234567890-abc",
        "AKIAIOSFODNN7EXAMPLE",
        "https://user:hunter22@example.com/x",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_text_with_a_token_loses_it(secret: str) -> None:
    assert has_secret_form(f"curl {secret} now")
    found = redact_arguments([f"curl {secret} now", {secret: 1}])
    text = json.dumps(found)
    assert "(redacted)" in found[0]
    assert found[0].startswith("curl ")
    assert found[0].endswith(" now")
    assert secret not in text
    for part in ("hunter22", "MIIabc", "c2lnbmF0dXJl", "dXNlcjpwYXNzd29yZA", "IOSFODNN7"):
        assert part not in text


@pytest.mark.parametrize(
    "text",
    ["a bearer of news", "skip-to-content", "basic usage", "https://a:80/b@c", "eyJ", "see @me"],
)
def test_text_of_people_is_kept(text: str) -> None:
    assert redact_arguments({"text": text}) == {"text": text}
    assert has_secret_form(text) is False


def test_known_secret_is_redacted_anywhere() -> None:
    found = redact_arguments({"a": "x hunter2 y", "hunter2": ["ab"]}, ["hunter2", "ab", "hunter2x"])
    assert found == {"a": "x (redacted) y", "(redacted)": ["ab"]}


def test_known_secret_that_begins_with_another_is_redacted_whole() -> None:
    assert redact_arguments("hunter2xyz", ["hunter2", "hunter2xyz"]) == "(redacted)"


def test_half_of_a_surrogate_pair_becomes_an_escape() -> None:
    assert redact_arguments({"\ud800": ["a\udc00"]}) == {"\\ud800": ["a\\udc00"]}


def test_arguments_that_are_large_are_cut() -> None:
    found = redact_arguments({"text": "x" * 5000, "many": list(range(5000))})
    assert found["text"].endswith("… (5000 characters)")
    assert len(found["many"]) < 1001
    assert found["many"][-1] == f"({5000 - len(found['many']) + 1} more)"
    assert "…" in redact_arguments({str(n): n for n in range(5000)})


def test_arguments_of_many_values_keep_a_thousand_in_all() -> None:
    """The call's object counts too. What is left out is one text, in each list and object."""
    members = redact_arguments({str(number): number for number in range(1002)})
    assert members == {**{str(number): number for number in range(999)}, "…": "(3 more)"}
    assert redact_arguments([*range(999)]) == [*range(999)]
    assert redact_arguments([*range(1000)]) == [*range(999), "(1 more)"]
    nested = redact_arguments({"a": [*range(2000)], "b": 1, "c": 2})
    assert nested == {"a": [*range(998), "(1002 more)"], "…": "(2 more)"}


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_arguments_are_kept_twenty_levels_deep(wrap: Callable[[Any], Any]) -> None:
    value: Any = 1
    for _ in range(20):
        value = wrap(value)
    assert redact_arguments(value) == value
    assert "(nested too deeply)" in json.dumps(redact_arguments(wrap(value)))


def test_text_of_a_thousand_characters_is_kept() -> None:
    assert redact_arguments(["x" * 1000]) == ["x" * 1000]
    assert redact_arguments(["x" * 1001]) != ["x" * 1001]


def test_secret_at_the_cut_is_redacted() -> None:
    text = "x" * 990 + " ghp_abcdefghijklmnopqrstuvwxyz"
    assert "ghp" not in redact_arguments(text)


def test_arguments_nested_deeply_are_cut() -> None:
    value: Any = "x"
    for _ in range(100_000):
        value = [value]
    assert "(nested too deeply)" in json.dumps(redact_arguments(value))


@pytest.mark.perf
@pytest.mark.parametrize("text", ["-----BEGIN " * 20_000, "://a:" * 50_000, "bearer " * 50_000])
def test_hostile_text_is_redacted_in_linear_time(text: str) -> None:
    before = time.process_time()
    redact_arguments(text)
    assert time.process_time() - before < 3


@fewer_examples(5)
@given(json_values)
def test_redacted_arguments_can_always_be_written(value: Any) -> None:
    assert canonical_json(redact_arguments(value))


@fewer_examples(5)
@given(json_values)
def test_redaction_does_not_change_the_arguments_themselves(value: Any) -> None:
    before = json.dumps(value)
    redact_arguments(value, ["secret"])
    assert json.dumps(value) == before
