"""YAML files: their values and places, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import ConfigFileError, InvalidConfig, read_config
from mcp_core.host.config import _yaml
from mcp_core.host.config._yaml import MAX_YAML_SIZE, parse_yaml
from tests.levels import fewer_examples

# Texts, and what YAML 1.2 makes of them. The second ones are where YAML 1.1 differs.
VALUES = [
    ("", None),
    ("# a comment\n", None),
    ("~", None),
    ("a: \nb: null", {"a": None, "b": None}),
    ("[true, False, TRUE]", [True, False, True]),
    ("[1, -2, 0, 1.5, -0.5]", [1, -2, 0, 1.5, -0.5]),
    ("['1', \"2\", ! 3, !!str 4]", ["1", "2", "3", "4"]),
    ("|\n  a\n  b\n", "a\nb\n"),
    (">-\n  a\n  b\n", "a b"),
    ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}),
    ("? a\n: 1", {"a": 1}),
    ("{1: a, true: b, ~: c}", {"1": "a", "true": "b", "~": "c"}),
    ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
    ("&k a: &v 1\n*k : *v\n", {"a": 1}),
    ("a: &k b\nc: {*k : 1}", {"a": "b", "c": {"b": 1}}),
    ("! {a: ! [1]}", {"a": [1]}),
    ("[.inf, +.INF, .Inf]", [math.inf] * 3),
    ("[yes, no, on, off, y]", ["yes", "no", "on", "off", "y"]),
    ("[22:80, 190:20:30]", ["22:80", "190:20:30"]),
    ("[2024-01-01, =, <<]", ["2024-01-01", "=", "<<"]),
    ("[1_000, 0b11, 017_7]", ["1_000", "0b11", "017_7"]),
    ("\ufeffa: 1", {"a": 1}),
    ("---\na: 1\n...\n", {"a": 1}),
    ("%YAML 1.2\n---\na: 1", {"a": 1}),
]


@pytest.fixture(params=["libyaml", "Python"])
def _each_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some installations of PyYAML lack libyaml."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader")


@pytest.mark.usefixtures("_each_loader")
def test_items_and_members_have_their_places() -> None:
    """By these a problem within a list is shown at its line."""
    root = parse_yaml("a:\n  - x\n  - [1, {b: 2}]\n")
    assert root is not None
    items = root.members["a"].node.items
    assert [(each.value, each.start) for each in items] == [("x", 7), ([1, {"b": 2}], 13)]
    assert [(each.value, each.start) for each in items[1].items] == [(1, 14), ({"b": 2}, 17)]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_value_is_what_yaml_1_2_makes_of_it(text: str, value: Any) -> None:
    node = parse_yaml(text)
    assert (None if node is None else node.value) == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.10", 1.1),
        ("0755", 755.0),
        ("+5", 5.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("0x1F", 31.0),
        ("0o17", 15.0),
        ("12345678901234567890123", 1.2345678901234568e22),
    ],
)
def test_number_in_arguments_and_variables_is_as_it_was_written(text: str, number: float) -> None:
    """Where a number is needed it is one."""
    entry = f"a: {{cmd: x, args: [{text}], envs: {{A: {text}}}, timeout: {text}}}"
    server = read_config(f"extensions: {{{entry}}}", file="goose/config.yaml").servers["a"]
    assert (server.args, dict(server.env)) == ((text,), {"A": text})
    assert server.call_timeout == number


def test_number_that_is_not_finite_is_no_text() -> None:
    node = parse_yaml("[.inf, -.INF, .nan, " + "9" * 400 + "]")
    assert node is not None
    assert [math.isfinite(each) for each in node.value] == [False] * 4
    found = read_config("mcpServers: {a: {command: x, args: [.nan]}}", file="a.yaml")
    assert "must be a string, not a number: write it in quotes" in str(found.problems[0])


REFUSED = [
    ("a: &x [*x]", "1:8: an alias, *x, inside of what it stands for"),
    ("a: *y", "1:4: an alias, *y, without an anchor before it"),
    ("a:\n  <<: {b: 1}", "2:3: a merge key, <<, which isn't read here: write its members out"),
    ("? [a]\n: b", "1:3: a name that isn't a text"),
    ("a: {[b]: c}", "1:5: a name that isn't a text"),
    ("a: &x [1]\n*x : 1", "2:1: a name that isn't a text"),
    ("a: !!python/object/apply:os.system [x]", "1:4: a tag, tag:yaml.org,2002:python/object/apply"),
    ("a: !!int 5", "1:4: a tag, tag:yaml.org,2002:int, which isn't read here: remove it"),
    ("a: !mine {}", "1:4: a tag, !mine, which isn't read here"),
    ("a: 1\n---\nb: 2", "2:1: a second document: one file has one"),
    ("[" * 201 + "]" * 201, "1:201: mappings or sequences are nested too deeply"),
    ("a:\n\tb: 1", "2:1: not YAML: found character"),
    ("\ufeffa: [", "1:5: not YAML: "),
    ("a: '\U0001f600\n", "2:1: not YAML: found unexpected end of stream"),
    ("a: \x01", "1:4: not YAML: "),
    ("a: \ud800", "1:4: not YAML: "),
    ("\ufeffa: \ud800", "1:4: not YAML: "),
    ("\ufeffa:\n  !x b: 1", "2:3: a tag, !x, which isn't read here: remove it"),
]


@pytest.mark.usefixtures("_each_loader")
@pytest.mark.parametrize(("text", "problem"), REFUSED)
def test_text_that_is_refused_has_place_and_cause(text: str, problem: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        read_config(text, file="a.yml")
    assert str(refused.value).startswith(f"a.yml:{problem}")


def test_bomb_of_aliases_is_refused_where_it_becomes_too_large() -> None:
    """Ten to the nineteenth values, in 19 short lines."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 19)]
    with pytest.raises(ConfigFileError, match="line 7: more than 4 Mi characters with all aliases"):
        parse_yaml("\n".join(lines))
    long = "a: &x " + "x" * 100_000 + "\nb: [" + ", ".join(["*x"] * 100) + "]"
    with pytest.raises(ConfigFileError, match="line 2: more than 4 Mi characters"):
        parse_yaml(long)


def test_yaml_above_its_limit_is_refused_before_it_is_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """10 MB are refused as any file is. JSON of that name has the limit of JSON."""
    monkeypatch.setattr(_yaml, "parse_yaml", None)
    text = "#" * (MAX_YAML_SIZE + 1)
    with pytest.raises(InvalidConfig, match="the YAML is larger than 256 KiB"):
        read_config(text, file="a.yaml")
    with pytest.raises(InvalidConfig, match="the file is larger than 4 MiB"):
        read_config("#" * 10_000_000, file="a.yaml")
    entry = {"mcpServers": {"a": {"command": "x", "description": "y" * 300_000}}}
    assert read_config(json.dumps(entry), file="a.yaml").servers


@pytest.mark.usefixtures("_each_loader")
def test_places_are_those_of_the_text() -> None:
    """With a byte order mark, line ends of Windows, and characters outside of the first plane."""
    text = (
        "\ufeff# \U0001f600\r\nmcpServers:\r\n  '\U0001f600': {command: 5}\r\n  b: {command: 6}\r\n"
    )
    found = read_config(text, file="a.yaml")
    assert [(each.place.line, each.place.column) for each in found.problems] == [(3, 9), (4, 7)]
    first = read_config("\ufeffmcpServers: {a: 5}", file="a.yaml").problems[0]
    assert (first.place.line, first.place.column) == (1, 14)


def test_name_twice_is_a_problem_with_its_second_place() -> None:
    text = "mcpServers:\n  a: {command: x}\n  a: {command: y}\n"
    found = read_config(text, file="a.yaml")
    assert not found.servers
    assert str(found.problems[0]).startswith("a.yaml:3:3: mcpServers.a: is there a second time")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text("ab:#'\" é\n", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab ", max_size=3), inner),
    max_leaves=8,
)


@fewer_examples(5)
@given(JSON_VALUES)
def test_yaml_of_any_writer_is_read_back(value: Any) -> None:
    for options in {"default_flow_style": False}, {"default_flow_style": True}:
        node = parse_yaml(yaml.safe_dump(value, allow_unicode=True, **options))
        assert (None if node is None else node.value) == value
    node = parse_yaml(json.dumps(value))
    assert (None if node is None else node.value) == value


@fewer_examples(5)
@given(st.text("ab01:-#&*!|>?%@{}[],'\"<~. \n\t\x00\ud800\ufeff", max_size=30))
def test_any_text_is_a_value_or_an_error_with_a_place(text: str) -> None:
    error = None
    try:
        parse_yaml(text)
    except ConfigFileError as exc:
        error = exc
    if error is not None:
        assert 1 <= error.line <= text.count("\n") + 2
        assert error.column is not None
        assert error.column >= 1


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("abc", None),  # one value without a container has no aliases
        ("[]", None),
        ("[[]]", 3),  # each container and each value counts one
        ("[abc, de]", 1 + 4 + 3),
        ("{ab: cde}", 1 + 2 + 4),
        ("{a: [b], c: d}", 1 + 1 + (2 + 2) + 1 + 2),
        ("[&x abc, *x]", 1 + 4 + 5),
        ("[&x [a], *x]", 1 + 4 + 5),
        ("{&x ab: *x}", 1 + 2 + 3),
    ],
)
def test_size_of_a_text_with_its_aliases_written_out(
    text: str, size: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_yaml, "_MAX_WRITTEN_OUT", size or 0)
    assert parse_yaml(text) is not None
    if size is not None:
        monkeypatch.setattr(_yaml, "_MAX_WRITTEN_OUT", size - 1)
        with pytest.raises(ConfigFileError, match="with all aliases written out"):
            parse_yaml(text)


def test_member_that_is_there_twice_stands_at_its_second_place() -> None:
    root = parse_yaml("a: 1\nb: 2\na: 3\n")
    assert root is not None
    assert [(name, each.start) for name, each in root.members.items()] == [("b", 5), ("a", 10)]
    assert root.repeated == {"a": 10}


@pytest.mark.parametrize("prefix", ["0x", "0o"])
def test_number_of_another_base_has_up_to_16_digits(prefix: str) -> None:
    root = parse_yaml(f"[{prefix}{'7' * 16}, {prefix}{'7' * 17}]")
    assert root is not None
    base = 16 if prefix == "0x" else 8
    assert root.value == [float(int("7" * 16, base)), math.inf]


def test_number_that_is_too_large_is_no_text() -> None:
    for number in "9" * 400, "0x" + "7" * 17:
        found = read_config(f"mcpServers: {{a: {{command: x, args: [{number}]}}}}", file="a.yaml")
        assert "must be a string, not a number" in str(found.problems[0])


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_nan_is_a_number_that_is_none(text: str) -> None:
    root = parse_yaml(text)
    assert root is not None
    assert math.isnan(root.value)
