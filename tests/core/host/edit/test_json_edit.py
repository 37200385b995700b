"""Changes of one member in a JSON text: the value that results, and the bytes that stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core._nesting import MAX_NESTING
from mcp_core.host import ConfigFileError
from mcp_core.host.edit._json_edit import (
    JsonSyntax,
    apply_edits,
    find_edits,
    parse_json,
    read_json,
    set_member,
)
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

STRICT = JsonSyntax()
COMMENTS = JsonSyntax(comments=True)
ALL = JsonSyntax(comments=True, trailing_commas=True, byte_order_mark=True)
PATH = ("servers", "us")
ENTRY = {"command": "/p"}

# name, text before, text after setting servers.us to ENTRY
CASES = [
    ("empty", "", '{\n  "servers": {\n    "us": {\n      "command": "/p"\n    }\n  }\n}\n'),
    (
        "blank lines with CRLF",
        "\r\n",
        '\r\n{\r\n  "servers": {\r\n    "us": {\r\n      "command": "/p"\r\n    }\r\n  }\r\n}\r\n',
    ),
    (
        "comments only",
        "// none yet",
        '// none yet\n{\n  "servers": {\n    "us": {\n      "command": "/p"\n    }\n  }\n}\n',
    ),
    ("empty object", "{}", '{\n  "servers": {\n    "us": {\n      "command": "/p"\n    }\n  }\n}'),
    ("one line", '{"a":1}', '{"a":1,"servers":{"us":{"command":"/p"}}}'),
    ("one line, spaced", '{ "a": 1 }', '{ "a": 1, "servers": {"us": {"command": "/p"}} }'),
    ("one line, empty servers", '{"servers": {}}', '{"servers": {"us": {"command": "/p"}}}'),
    (
        "tabs",
        '{\n\t"servers": {\n\t\t"x": 1\n\t}\n}\n',
        '{\n\t"servers": {\n\t\t"x": 1,\n\t\t"us": {\n\t\t\t"command": "/p"\n\t\t}\n\t}\n}\n',
    ),
    (
        "CRLF and four spaces",
        '{\r\n    "a": 1,\r\n    "servers": {}\r\n}',
        (
            '{\r\n    "a": 1,\r\n    "servers": {\r\n        "us": {\r\n            "command": "/p"'
            "\r\n        }\r\n    }\r\n}"
        ),
    ),
    (
        "trailing comma and comment",
        '{\n  "servers": {\n    "x": 1, // x\n  } // s\n}',
        (
            '{\n  "servers": {\n    "x": 1, // x\n    "us": {\n      "command": "/p"\n    },\n'
            "  } // s\n}"
        ),
    ),
    (
        "comment behind the last member",
        '{\n  "servers": {\n    "x": 1 // x, {\n    /* y */\n  }\n}',
        (
            '{\n  "servers": {\n    "x": 1, // x, {\n    /* y */\n    "us": {\n'
            '      "command": "/p"\n    }\n  }\n}'
        ),
    ),
    (
        "comment in empty servers",
        '{\n  "servers": {\n    // none\n  }\n}',
        '{\n  "servers": {\n    // none\n    "us": {\n      "command": "/p"\n    }\n  }\n}',
    ),
    (
        "entry replaced",
        '{\n  "servers": {\n    "us": {\n      "a": [1]\n    }, // us\n    "x": 1\n  }\n}',
        '{\n  "servers": {\n    "us": {\n      "command": "/p"\n    }, // us\n    "x": 1\n  }\n}',
    ),
    (
        "short entry replaced",
        '{\n  "servers": {\n    "us": {"a": 1},\n    "x": 1\n  }\n}',
        '{\n  "servers": {\n    "us": {"command": "/p"},\n    "x": 1\n  }\n}',
    ),
    (
        "null replaced",
        '{\n  "servers": {\n    "us": null\n  }\n}',
        '{\n  "servers": {\n    "us": {\n      "command": "/p"\n    }\n  }\n}',
    ),
    ("equal", '{"servers":{"us":{ "command":"\\u002fp" }}}', None),
    ("byte order mark", '\ufeff{"a": 1}', '\ufeff{"a": 1, "servers": {"us": {"command": "/p"}}}'),
    (
        "other repeated name",
        '{\n  "a": 1,\n  "b": 2,\n  "a": 3\n}',
        (
            '{\n  "a": 1,\n  "b": 2,\n  "a": 3,\n  "servers": {\n    "us": {\n'
            '      "command": "/p"\n    }\n  }\n}'
        ),
    ),
]


@pytest.mark.parametrize(
    ("before", "after"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_set_member_keeps_the_style_of_the_text(before: str, after: str | None) -> None:
    assert set_member(before, PATH, ENTRY, ALL) == (before if after is None else after)


# syntax, text, the line and the beginning of the problem
REFUSED = [
    (STRICT, '{\n// x\n"a": 1}', 2, "a comment"),
    (STRICT, '{\n"a": 1\n,\n}', 3, "a comma before }"),
    (COMMENTS, '{"a": [1, // x\n2,\n]}', 2, "a comma before ]"),
    (STRICT, "\ufeff{}", 1, "a byte order mark"),
    (ALL, '{"servers": 3}', 1, '"servers" is not an object'),
    (ALL, '{\n"servers":\n null}', 3, '"servers" is not an object'),
    (ALL, "\n[]", 2, "the file is not an object"),
    (ALL, '{"servers": {},\n"servers": {}}', 2, '"servers" is there a second time'),
    (ALL, '{"servers": {"us": 1,\n\n"u\\u0073": 2}}', 3, '"us" is there a second time'),
    (ALL, '{"a" 1}', 1, "expected a colon"),
    (ALL, '{"a": 1\n"b": 2}', 2, "expected a comma"),
    (ALL, "{a: 1}", 1, "expected the name of a member in double quotes"),
    (ALL, "{,}", 1, "expected the name"),
    (ALL, '{"a": [,]}', 1, "expected a value"),
    (ALL, '{"a":\n 01}', 2, "expected a value"),
    (ALL, '{"a": NaN}', 1, "expected a value"),
    (ALL, '{"a": "\t"}', 1, "expected a value"),
    (ALL, '{"a": "\\x"}', 1, "expected a value"),
    (ALL, '{"a": 1]', 1, "expected a comma"),
    (ALL, "}", 1, "expected a value"),
    (ALL, "{}\n{}", 2, "expected the end of the file"),
    (ALL, '{\n"a": [', 2, "this object or array has no end"),
    (ALL, '{"a"', 1, "this object or array has no end"),
    (ALL, "{} /* x", 1, "expected the end of the file"),
    (ALL, '{"a": ' + "1" * 5_000 + "}", 1, "a number of too many digits"),
]


@pytest.mark.parametrize(("syntax", "text", "line", "problem"), REFUSED)
def test_set_member_invalid_text_is_refused_with_line(
    syntax: JsonSyntax, text: str, line: int, problem: str
) -> None:
    with pytest.raises(ConfigFileError) as caught:
        set_member(text, PATH, ENTRY, syntax)
    assert caught.value.line == line
    assert caught.value.problem.startswith(problem)


def test_parse_json_error_has_line_and_column() -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse_json('{\n  "a": x\n}', STRICT)
    assert (caught.value.line, caught.value.column) == (2, 8)
    assert str(caught.value) == "line 2: expected a value"


def test_parse_json_array_has_a_position_for_each_item() -> None:
    root = parse_json('{"a": [1, {"b": 2}]}', STRICT)
    assert root is not None
    array = root.members["a"].node
    assert [(item.start, item.value) for item in array.items] == [(7, 1), (10, {"b": 2})]
    assert array.items[1].members["b"].start == 11


@pytest.mark.parametrize("path", [PATH, ["a"]])
def test_set_member_beside_or_in_place_of_a_deep_value_needs_no_deep_stack(
    path: Sequence[str],
) -> None:
    def nested(levels: int) -> str:
        return '{"a":' + "[" * levels + "0" + "]" * levels + "}"

    changed = read_json(set_member(nested(MAX_NESTING - 1), path, 1, STRICT), STRICT)
    assert changed["a"] == 1 or changed["servers"] == {"us": 1}
    for levels in MAX_NESTING, 900, 100_000:
        with pytest.raises(ConfigFileError, match=r"line 1: .* nested too deeply") as caught:
            set_member(nested(levels), path, 1, STRICT)
        assert caught.value.column == len('{"a":') + MAX_NESTING


@pytest.mark.parametrize("text", ["", " \n", "// x", "\ufeff"])
def test_read_json_without_value_returns_none(text: str) -> None:
    assert read_json(text, ALL) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
names = st.sampled_from(["a", "b", "us", "them", "\u00e9", 'q"'])
servers = st.dictionaries(names, json_values, max_size=4)
GAPS = ["", "", "", " ", "\n", "\n  ", "\r\n\t", "/* } , */", " // ]\n", "\n  // c\r\n  "]


@st.composite
def documents(draw: DrawFn, syntax: JsonSyntax) -> tuple[str, dict[str, Any]]:
    """A text in any style, and its value."""
    value = draw(st.dictionaries(names, json_values, max_size=3))
    if draw(st.booleans()):
        value["servers"] = draw(servers)
    gaps = st.sampled_from(GAPS if syntax.comments else [gap for gap in GAPS if gap.isspace()])

    def gap() -> str:
        return draw(gaps)

    def comma(is_empty: bool) -> str:
        return "," if syntax.trailing_commas and not is_empty and draw(st.booleans()) else ""

    def render(value: Any) -> str:
        if isinstance(value, dict):
            items = [f"{render(name)}{gap()}:{gap()}{render(each)}" for name, each in value.items()]
        elif isinstance(value, list):
            items = [render(each) for each in value]
        else:
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        inside = ",".join(f"{gap()}{item}{gap()}" for item in items) + comma(not items) + gap()
        return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"

    return gap() + render(value) + gap(), value


@pytest.mark.parametrize("syntax", [STRICT, COMMENTS, ALL])
@fewer_examples(5)
@given(data=st.data(), name=names, value=json_values)
def test_set_member_sets_the_value_and_keeps_all_other_bytes(
    syntax: JsonSyntax, data: st.DataObject, name: str, value: Any
) -> None:
    """Other people's files keep comments, spacing and order; a second run changes nothing."""
    text, before = data.draw(documents(syntax))
    path = ("servers", name)
    edits = find_edits(text, path, value, syntax)
    result = apply_edits(text, edits)
    old = before.get("servers", {})
    assert read_json(result, syntax) == {**before, "servers": {**old, name: value}}
    assert read_json(text, syntax) == before
    # Member by member: a changed order would be a change too.
    order = list(read_json(result, syntax))
    assert order == [*before, *({"servers"} - set(before))]
    if not syntax.comments:
        assert json.loads(result) == read_json(result, syntax)
    for edit in edits:
        removed = text[edit.start : edit.end]
        if name in old:
            assert read_json(removed, syntax) == old[name]
        else:
            assert not removed.strip()
    assert find_edits(result, path, value, syntax) == []


@given(text=st.text(alphabet='{}[]:,"\\/*a1-. \n\r\t\ufeff'), strict=st.booleans())
def test_set_member_any_text_is_changed_or_refused(text: str, strict: bool) -> None:
    """Random text never crashes the editor, and in strict JSON it accepts what `json` accepts."""
    syntax = STRICT if strict else ALL
    try:
        result = set_member(text, PATH, ENTRY, syntax)
        line = 1
        assert read_json(result, syntax)["servers"]["us"] == ENTRY
    except ConfigFileError as exc:
        line = exc.line
    assert 1 <= line <= text.count("\n") + 1
    if strict:
        try:
            expected = json.loads(text, parse_constant=lambda _: 1 / 0)
        except (ValueError, ZeroDivisionError):
            expected = None
        try:
            assert read_json(text, STRICT) == expected
        except ConfigFileError:
            assert expected is None
