"""Removal of one member of a JSON or TOML text: what goes with it, and what stays."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.host import ConfigFileError, JsonSyntax
from mcp_core.host.edit import _removal
from mcp_core.host.edit._json_edit import read_json, set_member
from mcp_core.host.edit._removal import remove_json_member, remove_toml_member
from tests.levels import fewer_examples

ALL = JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True)
PATH = ("s", "a")

# text before and after removing s.a
JSON_CASES = [
    ("", ""),
    ("{}", "{}"),
    ('{"s": {}}', '{"s": {}}'),
    ('{"s": {"a": 1}}', '{"s": {}}'),
    ('{"s": {"a": 1,}}', '{"s": {}}'),
    ('{"s": {\n  "a": {"b": 1}\n}}', '{"s": {}}'),
    ('{"s": {"a": 1, "b": 2}}', '{"s": {"b": 2}}'),
    ('{"s":{"a":1,"b":2}}', '{"s":{"b":2}}'),
    ('{"s": {"z": 0, "a": 1, "b": 2}}', '{"s": {"z": 0, "b": 2}}'),
    ('{"s": {"z": 0, "a": 1}}', '{"s": {"z": 0}}'),
    ('{"s": {"z": 0, "a": 1, }}', '{"s": {"z": 0, }}'),
    (
        '{\n  "s": {\n    "a": {\n      "x": 1\n    },\n    "b": 2\n  }\n}\n',
        '{\n  "s": {\n    "b": 2\n  }\n}\n',
    ),
    ('{\r\n"s": {\r\n"z": 0,\r\n"a": 1\r\n}}', '{\r\n"s": {\r\n"z": 0\r\n}}'),
    # comments: those inside go, those around stay
    (
        '{"s": {\n  // one\n  "a": {/* in */}, // two\n  // three\n  "b": 2 // four\n}}',
        '{"s": {\n  // one\n  // two\n  // three\n  "b": 2 // four\n}}',
    ),
    (
        '{"s": {\n  "z": 0, // zero\n  // one\n  "a": 1 // two\n}}',
        '{"s": {\n  "z": 0 // zero\n  // one\n  // two\n}}',
    ),
    ('{"s": {\n  // one\n  "a": 1\n}}', '{"s": {\n  // one\n}}'),
    ('{"s": {"a": 1 /* x */, "b": 2}}', '{"s": {/* x */ "b": 2}}'),
    ('{"s": {"z": 0, "a": 1,\n  "b": 2}}', '{"s": {"z": 0,\n  "b": 2}}'),
    # a name next to it that occurs twice
    ('{"s": {"x": [1, 2], "a": 1, "x": "3, 4"}}', '{"s": {"x": [1, 2], "x": "3, 4"}}'),
    ('{"s": {"x": {"y": 1}, "x": 0, "a": 1}}', '{"s": {"x": {"y": 1}, "x": 0}}'),
    ('\ufeff{"s": {"a": null}}', '\ufeff{"s": {}}'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), JSON_CASES)
def test_remove_json_member_keeps_the_rest(before: str, after: str) -> None:
    assert remove_json_member(before, PATH, ALL) == after
    read_json(after, ALL)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('{"s": {\n"a": 1,\n"a": 2}}', 3, '"a" is there a second time'),
        ('{"s": {"a": 1}, \n"s": {}}', 2, '"s" is there a second time'),
        ('\n{"s": [1]}', 2, '"s" is not an object'),
        ('{"s": {"a": 1}', 1, "has no end"),
    ],
)
def test_remove_json_member_of_doubtful_text_is_refused(text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigFileError, match=problem) as caught:
        remove_json_member(text, PATH, ALL)
    assert caught.value.line == line


NAMES = st.sampled_from(["a", "b", "c", "d", "é\n,"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.sampled_from(["", ",", "}//", '"']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@fewer_examples(2)
@given(
    st.dictionaries(NAMES, VALUES, min_size=1),
    st.sampled_from([None, 1, "\t"]),
    st.sampled_from(["", "/* , */", "// ,\n", "\n"]),
    st.sampled_from(["", ","]),
    st.data(),
)
def test_remove_json_member_leaves_all_other_values(
    members: dict[str, Any], indent: Any, comment: str, comma: str, data: st.DataObject
) -> None:
    pairs = [f"{json.dumps(n)}:{json.dumps(v, indent=indent)}" for n, v in members.items()]
    text = '{"s": {' + f"{comment},{comment} ".join(pairs) + comment + comma + '}, "t": 1}'
    name = data.draw(st.sampled_from(sorted(members)))
    new = remove_json_member(text, ("s", name), ALL)
    others = {n: v for n, v in members.items() if n != name}
    assert read_json(new, ALL) == {"s": others, "t": 1}
    assert new.count("/* , */") == text.count("/* , */")
    assert new.count("// ,") == text.count("// ,")


@given(
    st.sampled_from(['{"s": {}}', '{\n  "s": {\n    "z": 0\n  }\n}\n', '{"s": {"z": 0}}', "{\n}"]),
    VALUES,
)
def test_remove_json_member_undoes_set_member(text: str, value: Any) -> None:
    added = set_member(text, PATH, value, ALL)
    expected = text if '"s"' in text else '{\n  "s": {}\n}'
    assert remove_json_member(added, PATH, ALL) == expected


TOML_PATH = ("m", "a")
TOML_CASES = [
    ("", ""),
    ("[m.b]\nc = 1\n", "[m.b]\nc = 1\n"),
    ("[m.a]\nc = 1\n", ""),
    ("x = 1\n\n[m.a]\nc = 1\n\n[m.a.env]\nK = 'v'\n", "x = 1\n"),
    (
        "# top\n[m.a]\nc = 1 # c\n# in\nargs = [\n  'x', # [m.b]\n]\n\n# about b\n[m.b]\nc = 2\n",
        "# top\n\n# about b\n[m.b]\nc = 2\n",
    ),
    (
        "x = 1\n\n[m.a]\nc = 1\n\n# about b\n[m.b]\nc = 2\n\n[m.a.env]\nK = 'v'\n\n[t]\n",
        "x = 1\n\n# about b\n[m.b]\nc = 2\n\n[t]\n",
    ),
    ("[m]\na.c = 1\na.d = 2\nb.c = 3\n", "[m]\nb.c = 3\n"),
    ("[m]\na = {c = 1}\nb = {c = 2}\n", "[m]\nb = {c = 2}\n"),
    ("x = 1\r\n\r\n[m.a]\r\nc = 1\r\n\r\n[t]\r\n", "x = 1\r\n\r\n[t]\r\n"),
    ("x = 1\r\n\r\n[m.a]\r\nc = 1\r\n", "x = 1\r\n"),
    ('y = """\n[m.a]\n"""\n[m."a"]\nc = 1', 'y = """\n[m.a]\n"""\n'),
    ("[m.a]\nc = 1\n# last\n", "# last\n"),
    ("m = {a = {c = 1}, b = 2}\n", "m = { b = 2}\n"),
]


@pytest.mark.parametrize(("before", "after"), TOML_CASES)
def test_remove_toml_member_keeps_all_other_lines(before: str, after: str) -> None:
    assert remove_toml_member(before, TOML_PATH) == after


def test_remove_toml_member_of_invalid_text_is_refused() -> None:
    with pytest.raises(ConfigFileError) as caught:
        remove_toml_member("[m.a]\nc = \n", TOML_PATH)
    assert caught.value.line == 2


def test_remove_toml_member_key_of_table_keeps_the_table() -> None:
    text = "[m.a]\nc = 1\nenabled = false # off\n\n[m.a.env]\n"
    assert remove_toml_member(text, ("m", "a", "enabled")) == "[m.a]\nc = 1\n\n[m.a.env]\n"
    assert remove_toml_member("[m.a]\ne = 1\n", ("m", "a", "e")) == "[m.a]\n"


@pytest.mark.parametrize(
    ("new", "has_all"),
    [
        ("[m.b]\nc = 1\n[t]\n", True),
        ("[m]\n[m.b]\nc = 1\n[t]\n", True),
        ("[m.b]\nc = 2\n[t]\n", False),
        ("[m.b]\nc = 1\n", False),
        ("[m.b]\nc = 1\n[t]\n[u]\n", False),
        ("[m.a]\n[m.b]\nc = 1\n[t]\n", False),
        ("[m.b]\nc =\n[t]\n", False),
    ],
)
def test_text_without_a_table_is_proved_to_have_all_others(new: str, has_all: bool) -> None:
    old = {"m": {"a": {}, "b": {"c": 1}}, "t": {}}
    assert _removal._has_all_others(new, old, TOML_PATH, {"b": {"c": 1}}) is has_all


TABLES = st.sampled_from(
    ["[m.a]\nc = 1\n", "[m.b]\nc = 1\n", "# x\n", "\n", "[m.a.env]\nK = '''\n[m.a]'''\n",
     "[t]\nm.a = 1\n", "[m.c] # a\nargs = [\n'[m.a]'\n]\n", "[[m.a.l]]\nz = 1\n", "  [ m . d ]\n"]
)  # fmt: skip


def comments_inside(parts: list[str]) -> int:
    """Return the number of comments between two parts of the member: they are inside it."""
    count = found = 0
    is_inside = False
    for part in parts:
        if part == "# x\n":
            found += 1
        elif part != "\n":
            is_part = part.startswith(("[m.a", "[[m.a"))
            count += found if is_part and is_inside else 0
            found, is_inside = 0, is_part
    return count


@given(st.lists(TABLES, max_size=6))
@example(["[m.a]\nc = 1\n", "# x\n", "# x\n", "# x\n", "[[m.a.l]]\nz = 1\n"])
def test_remove_toml_member_any_file_loses_that_value_only(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    new = remove_toml_member(text, TOML_PATH)
    value.get("m", {}).pop("a", None)
    found = tomllib.loads(new)
    assert {"m": {}, **found} == {"m": {}, **value}
    assert new.count("# x") >= text.count("# x") - comments_inside(parts)
