"""Files of environment variables: the values that VS Code and dotenv read, and errors with lines.

The expected values were compared with `src/vs/base/common/envfile.ts` of VS Code and with the
parsing rules of dotenv. A comment says where only one of the two reads the same.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import InvalidConfig, parse_env_file
from tests.levels import fewer_examples


def read(text: str) -> dict[str, str]:
    return parse_env_file(text.encode(), file="/project/.env")


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("A = 1", "1"),
        ("  A=1  ", "1"),
        ("A: 1", "1"),
        ("A:1", "1"),  # VS Code; dotenv wants a space
        ("export A=1", "1"),
        ("export\tA=1", "1"),
        ("A=", ""),
        ("A=two words", "two words"),
        ("A=equals==", "equals=="),
        ("A=https://x.example/?q=1", "https://x.example/?q=1"),
        ("A=1 # comment", "1"),
        ("A=1# comment", "1"),
        ("A=# comment", ""),
        ("A=$HOME/${X}", "$HOME/${X}"),
        (r"A=no\nescape", r"no\nescape"),
        ('A=""', ""),
        ('A="  two words  "', "  two words  "),
        ('A="a # b" # comment', "a # b"),
        (r'A="a\nb\r"', "a\nb\r"),
        (r'A="tab\t \"quoted\""', r"tab\t \"quoted\""),
        (r"A='a\nb'", r"a\nb"),
        ("A='say \"hi\"'", 'say "hi"'),
        ("A=`\"x\" 'y'`", "\"x\" 'y'"),
        ('A={"x": "y"}', '{"x": "y"}'),
        ('A={"x": "y#z"} # comment', '{"x": "y#z"}'),  # VS Code
        ("A=it's # kept", "it's # kept"),  # VS Code
        ('A="C:\\directory\\"', "C:\\directory\\"),
        ('A="foo" bar', '"foo" bar'),
        ('A="a"b"', 'a"b'),
        ('A="\nB=1"', "\nB=1"),  # dotenv: a quotation mark alone begins a value of several lines
        ('A="one\ntwo # three\n  = four" # five', "one\ntwo # three\n  = four"),  # dotenv
        ("A='one\r\ntwo'", "one\ntwo"),  # dotenv
        ('A="one \n two"', "one \n two"),  # dotenv
    ],
)
def test_value_is_that_of_other_programs(line: str, value: str) -> None:
    assert read(f"# first\n\n{line}\nB=2\n") == {"A": value, "B": "2"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_systems_are_read(end: str) -> None:
    assert read(f"\ufeffA=1{end}B=2{end}") == {"A": "1", "B": "2"}


def test_variable_that_is_there_twice_has_the_last_value() -> None:
    assert read("A=1\nB=2\nA=3") == {"A": "3", "B": "2"}


@pytest.mark.parametrize("text", ["", "\n\n", "# A=1", "  \t\n#"])
def test_file_without_variables_is_empty(text: str) -> None:
    assert read(text) == {}


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("A=1\nhunter2", 2, "is no variable: write NAME=value"),
        ("=hunter2", 1, "is no variable"),
        ("export hunter2", 1, "is no variable"),
        ("hunter2 x=1", 1, "is no variable"),
        ("hunter2$=1", 1, "the name of a variable may have"),
        ("A=1\nB=hunter2\x00", 2, "B: the value has a NUL character"),
        ('A=1\nB="hunter2\nC=3', 2, 'B: the value begins with " and has no " at its end'),
        ("A='hunter2\nC' hunter2", 2, "A: the value has text after the ' at its end"),
        ('A="x\ny"\nhunter2', 3, "is no variable"),
    ],
)
def test_error_names_the_line_and_shows_no_value(text: str, line: int, problem: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        read(text)
    assert f"/project/.env:{line}:1: {problem}" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_bytes_that_are_no_utf8_have_a_place() -> None:
    with pytest.raises(InvalidConfig, match=r"\.env:2:3: the file is not UTF-8"):
        parse_env_file(b"A=1\nB=\xff", file=".env")


def test_file_above_the_limit_is_refused() -> None:
    limit = 1024 * 1024
    assert parse_env_file(b"A=".ljust(limit, b"x"), file=".env")["A"] == "x" * (limit - 2)
    with pytest.raises(InvalidConfig, match=r"^\.env:1:1: the file is larger than 1 MiB"):
        parse_env_file(b"A=".ljust(limit + 1, b"x"), file=".env")


@pytest.mark.perf
@pytest.mark.parametrize(
    "part", ['A="\n"\n', "A='\\'\n", 'A="x" y\n', "A=`#`#\n", "A=\"'`\n", "\n", "A=" + "'x'" * 99]
)
def test_file_of_full_size_takes_linear_time(part: str) -> None:
    data = (part * (1024 * 1024 // len(part))).encode()
    began = time.process_time()
    try:
        parse_env_file(data, file=".env")
    except InvalidConfig:
        pass
    assert time.process_time() - began < 10


@given(
    st.binary(max_size=200) | st.text("AB=: \n\r\\\"'`#$x\x00\ufeff", max_size=40).map(str.encode)
)
def test_any_bytes_are_variables_or_an_error(data: bytes) -> None:
    try:
        variables = parse_env_file(data, file=".env")
    except InvalidConfig:
        return
    for name, value in variables.items():
        assert name
        assert not set("=\x00 \n") & set(name)
        assert "\x00" not in value


@fewer_examples(5)
@given(st.dictionaries(st.from_regex(r"[A-Za-z_][\w.-]*", fullmatch=True), st.text(max_size=20)))
def test_single_quoted_values_are_read_as_they_are(values: dict[str, str]) -> None:
    names = [name for name in values if name.isascii()]
    plain = {
        name: "".join(each for each in values[name] if each.isprintable() and each not in "'\\")
        for name in names
    }
    assert read("".join(f"{name}='{value}'\n" for name, value in plain.items())) == plain
