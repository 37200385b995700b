"""Positions of tables and keys in a TOML text."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host.edit._toml_places import find_toml_places
from tests.levels import fewer_examples, long

TEXT = '''\
# a comment [with
a = 1
[mcp_servers.x]   # [y]
args = ["a", # ]
 "[z]", """
[no.header]
k = 1 """" ]
 "q.r".s = 2
env = { A = "b" }
[[l]]
'q' = "\\"["
[mcp_servers."y z"]
b = \'\'\'
[c]\'\'\'
d = 2
'''


def test_find_toml_places_distinguishes_statements_from_strings_and_arrays() -> None:
    """Text inside strings and arrays may look like a header or a key; neither has a place."""
    tomllib.loads(TEXT)
    lines = {path: TEXT.count("\n", 0, at) + 1 for path, at in find_toml_places(TEXT).items()}
    assert lines == {
        ("a",): 2,
        ("mcp_servers",): 3,
        ("mcp_servers", "x"): 3,
        ("mcp_servers", "x", "args"): 4,
        ("mcp_servers", "x", "q.r"): 8,
        ("mcp_servers", "x", "q.r", "s"): 8,
        ("mcp_servers", "x", "env"): 9,
        ("l",): 10,
        ("l", "q"): 11,
        ("mcp_servers", "y z"): 12,
        ("mcp_servers", "y z", "b"): 13,
        ("mcp_servers", "y z", "d"): 15,
    }


@pytest.mark.parametrize(
    ("start", "part", "count", "end"),
    [
        ('"""', '"a', 1_000_000, '"""'),
        ("'''", "''a", 700_000, "'''"),
        ('"', "\\n", 1_000_000, '"'),
        ("[", '"a",', 150_000, "]"),
        long("[", '"a",', 500_000, "]"),
    ],
)
def test_find_toml_places_long_value_takes_linear_time(
    start: str, part: str, count: int, end: str
) -> None:
    """A quadratic scan of 2 MB, or of so many strings, would take minutes."""
    value = start + part * count + end
    found = find_toml_places(f"a = {value}\nb = 1\n")
    assert found == {("a",): 0, ("b",): len(f"a = {value}\n")}


@fewer_examples(2)
@given(st.lists(st.tuples(st.text(min_size=1), st.text()), unique_by=lambda pair: pair[0]))
def test_find_toml_places_any_names_and_values_are_found(pairs: list[tuple[str, str]]) -> None:
    def quoted(text: str) -> str:
        return '"' + "".join(f"\\U{ord(character):08x}" for character in text) + '"'

    pairs = [pair for pair in pairs if not any("\ud800" <= c <= "\udfff" for c in "".join(pair))]
    text = "".join(f"[t.{quoted(name)}]\n v = {quoted(value)}\n" for name, value in pairs)
    found = find_toml_places(text)
    for n, (name, _) in enumerate(pairs):
        assert text.count("\n", 0, found["t", name]) == 2 * n
        assert text.count("\n", 0, found["t", name, "v"]) == 2 * n + 1
