"""Files as values with places: bytes that are no text, too large, not JSON, not TOML."""

from __future__ import annotations

import pytest

from mcp_core.host import InvalidConfig, JsonSyntax
from mcp_core.host.config import _tree
from mcp_core.host.config._tree import ConfigTree, ValueTree, parse_tree
from mcp_core.host.config._yaml import MAX_YAML_SIZE

STRICT = JsonSyntax(byte_order_mark=True)
JSON = '\ufeff{"a": {"b c": [1,\n  {"d": 2}]},\n "a": {"b c": 3, "b c": 4}}'


def parse(data: bytes | str, syntax: JsonSyntax | None = STRICT, max_size: int = 99) -> ConfigTree:
    return parse_tree(data, file="f", syntax=syntax, max_size=max_size)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), "f:1:1"),
        (("a",), "f:1:2: a"),
        (("a", "b c"), 'f:1:8: a."b c"'),
        (("a", "b c", 1), 'f:2:3: a."b c"[1]'),
        (("a", "b c", 1, "d"), 'f:2:4: a."b c"[1].d'),
        (("a", "missing", "e"), "f:1:2: a.missing.e"),
        (("a", "b c", 2), 'f:1:8: a."b c"[2]'),
        (("a", "b c", 7, "e"), 'f:1:8: a."b c"[7].e'),
    ],
)
def test_place_in_json_is_that_of_the_nearest_member(
    path: tuple[str | int, ...], place: str
) -> None:
    tree = parse(JSON.partition("]},")[0] + "]}}")
    assert str(tree.place(path)) == place


def test_repeated_names_have_their_second_place() -> None:
    tree = parse(JSON)
    assert [(name, str(place)) for name, place in tree.repeated(())] == [("a", "f:3:2: a")]
    assert [(name, str(place)) for name, place in tree.repeated(("a",))] == [
        ("b c", 'f:3:18: a."b c"')
    ]
    assert list(tree.repeated(("a", "b c"))) == []
    assert list(tree.repeated(("missing",))) == []


def test_place_in_toml_is_that_of_the_nearest_statement() -> None:
    tree = parse("x = 1\n[t.a]\n  b = [{c = 2}]\n", None)
    assert str(tree.place(())) == "f:1:1"
    assert str(tree.place(("t", "a"))) == "f:2:1: t.a"
    assert str(tree.place(("t",))) == "f:2:1: t"
    assert str(tree.place(("t", "a", "b", 0, "c"))) == "f:3:3: t.a.b[0].c"
    assert str(tree.place(("missing",))) == "f:1:1: missing"
    assert list(tree.repeated(("t",))) == []


@pytest.mark.parametrize("data", [b"", b" \n", b"\xef\xbb\xbf", ""])
def test_parse_tree_empty_file_has_no_value(data: bytes | str) -> None:
    assert parse(data).value is None
    assert str(parse(data).place(("a",))) == "f:1:1: a"
    assert parse(b"# nothing", None).value is None


@pytest.mark.parametrize(
    ("data", "syntax", "text"),
    [
        (b'{"a": 1}' + b" " * 92, STRICT, "f:1:1: the file is larger than"),
        (b'{\n "a": \xff}', STRICT, "f:2:7: the file is not UTF-8"),
        ('{\n "ä": "'.encode() + b'\xc3"}', STRICT, "f:2:8: the file is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), STRICT, "f:1:1: the file is not UTF-8, but UTF-16"),
        (b'{"a": 1,\n// x\n}', STRICT, "f:2:1: a comment, with which its program"),
        (b"\xef\xbb\xbf{}", JsonSyntax(), "f:1:1: a byte order mark"),
        (b'{"a" 1}', STRICT, "f:1:6: expected a colon"),
        (b"a = 1\nb = ?", None, "f:2:5: invalid value"),
        (b"\xef\xbb\xbfa = 1", None, "f:1:1: invalid statement"),
        (b"a = " + b"[" * 80, None, "f:1:"),
    ],
)
def test_parse_tree_unreadable_file_is_refused_with_its_place(
    data: bytes, syntax: JsonSyntax | None, text: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse(data, syntax)
    assert str(caught.value).startswith(text)
    assert str(caught.value).endswith("save it as UTF-8") == ("UTF-16" in text)
    assert len(caught.value.problems) == 1


def test_place_in_a_value_of_a_program_is_the_member_alone() -> None:
    place = ValueTree({"a": {"b": 1}}).place(("a", "b"))
    assert (place.line, place.column, place.member) == (1, 1, "a.b")


@pytest.mark.parametrize("file", ["f.json", "f.yaml"])
def test_parse_tree_error_that_is_not_of_the_file_is_raised_as_it_is(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise LookupError

    monkeypatch.setattr(_tree, "parse_json", fail)
    with pytest.raises(LookupError):
        parse_tree("{}", file=file, syntax=STRICT, max_size=1 << 20)


def test_yaml_of_the_largest_size_is_read() -> None:
    text = "a: 1\n".ljust(MAX_YAML_SIZE, "#")
    assert parse_tree(text, file="a.yaml", syntax=STRICT, max_size=1 << 20).value == {"a": 1}
    with pytest.raises(InvalidConfig) as refused:
        parse_tree(f"{text}#", file="a.yaml", syntax=STRICT, max_size=1 << 20)
    assert str(refused.value) == "a.yaml:1:1: the YAML is larger than 256 KiB"
