"""Code is found by its syntax tree, within a scope, in exactly one place."""

from __future__ import annotations

import ast

import pytest

from tests.spec.code_match import load_source, replace_code, replace_text

SOURCE = '''\
"""A module."""

LIMIT = 3
WORDS = ("one", "two",
         "three")
TABLE = {"a": f(1, strict=True), "ü": {"b": 2}}  # ü: offsets count characters


class Reader(Base, gc=False):
    size: int = 4096

    @property
    def full(self) -> bool:
        return len(self.data) >= self.size

    @staticmethod
    def read(text: str, *, limit: int = 10) -> str:
        # A comment: with a colon.
        if text == "" or (
            len(text) > limit  # another: one
        ):
            raise ValueError('text')
        elif limit:
            log(text)
            log(limit)
        return text


def read(text: str) -> str:
    if text == "":
        raise ValueError("text")
    return text
'''

# scope, old, new, what changes in the source, and to what
MATCHES = {
    "expression": ("Reader.full", "len(self.data)", "0", "len(self.data)", "0"),
    "expression in a scope": ("read", 'text == ""', "True", 'text == "":\n', "True:\n"),
    "quotes": ("Reader.read", 'ValueError("text")', "OSError()", "ValueError('text')", "OSError()"),
    "statement": ("LIMIT", "LIMIT = 3", "LIMIT = 4", "LIMIT = 3", "LIMIT = 4"),
    "annotated": ("Reader", "size: int = 4096", "size: int = 1", "4096", "1"),
    "line breaks": (
        "WORDS",
        'WORDS = (\n    "one",\n    "two",\n    "three",\n)',
        "WORDS = ()",
        '("one", "two",\n         "three")',
        "()",
    ),
    "statements removed": (
        "Reader.read",
        "log(text)\nlog(limit)",
        "",
        "log(text)\n            log(limit)",
        "pass",
    ),
    "statements indented": (
        "Reader.read",
        "log(limit)",
        "if limit:\n    log(limit)",
        "log(limit)",
        "if limit:\n                log(limit)",
    ),
    "header": ("read", 'if text == "": ...', "if text: ...", 'if text == "":', "if text:"),
    "header with a comment": (
        "Reader.read",
        'if text == "" or len(text) > limit: ...',
        "if text: ...",
        'if text == "" or (\n            len(text) > limit  # another: one\n        ):',
        "if text:",
    ),
    "header of a branch": (
        "Reader.read",
        "elif limit: ...",
        "elif not limit: ...",
        "elif limit:",
        "elif not limit:",
    ),
    "header of a class": (
        "Reader",
        "class Reader(Base, gc=False): ...",
        "class Reader(Base): ...",
        "(Base, gc=False)",
        "(Base)",
    ),
    "decorator": (
        "Reader.full",
        "@property\ndef full(self) -> bool: ...",
        "def full(self) -> bool: ...",
        "@property\n    def full",
        "def full",
    ),
    "argument": ("TABLE", "1, strict=True", "1", "1, strict=True", "1"),
    "argument removed": ("TABLE", "strict=True", "", ", strict=True", ""),
    "trailing comma": ("TABLE", "strict=True,", "strict=False,", "True", "False"),
    "element": ("WORDS", '"one", "two"', '"one"', '"one", "two"', '"one"'),
    "element removed": ("WORDS", '"one"', "", '"one", ', ""),
    "base": ("Reader", "gc=False", "", ", gc=False", ""),
    "item": ("TABLE", '"b": 2', '"b": 3', '"b": 2', '"b": 3'),
    "parameter": ("Reader.read", "limit: int = 10", "limit: int = 0", "= 10", "= 0"),
    "text": (
        "Reader.read",
        "elif limit:\n log(",
        "elif limit:\n            log(not ",
        "elif limit:\n            log(",
        "elif limit:\n            log(not ",
    ),
}


@pytest.mark.parametrize("name", MATCHES)
def test_code_in_its_scope_is_replaced_in_the_source_alone(name: str) -> None:
    scope, old, new, before, after = MATCHES[name]
    changed = replace_code(SOURCE, scope, old, new)
    assert before in SOURCE
    at = SOURCE.index(before, SOURCE.rindex("def read") if scope == "read" else 0)
    assert changed == SOURCE[:at] + after + SOURCE[at + len(before) :]
    ast.parse(changed)


UNCHANGED = {
    "moved lines": ("\n\nclass", "\n\nimport os\n\n\nclass"),
    "reformatted": (
        'text == "" or (\n            len(text) > limit  # another: one\n        ):',
        "text=='' or len( text )>limit :",
    ),
    "parentheses": ('if text == "" or (', 'if (text == "") or ('),
    "comment": ("# another: one", "\n"),
    "neighbour renamed": ("def full", "def is_full"),
    "neighbour with the same code": (
        "def read(text: str) -> str:",
        (
            'def old(text: str) -> str:\n    return text == "" or len(text) > limit\n\n\n'
            "def read(text: str) -> str:"
        ),
    ),
    "definition in a branch": ("LIMIT = 3", "if WORDS:\n    LIMIT = 3\nelse:\n    LIMIT = 4"),
}
CHANGED = {
    "code": ("len(text) > limit", "len(text) > self.limit"),
    "constant": ('text == "" or', "text == b'' or"),
    "scope renamed": ("class Reader", "class Writer"),
    "code repeated": ("return text\n\n", 'return text == "" or len(text) > limit\n\n'),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_code_whose_form_or_surroundings_change_still_matches(name: str) -> None:
    source = SOURCE.replace(*UNCHANGED[name])
    assert source != SOURCE
    changed = replace_code(source, "Reader.read", 'text == "" or len(text) > limit', "limit")
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("name", CHANGED)
def test_code_that_changes_matches_no_longer(name: str) -> None:
    source = SOURCE.replace(*CHANGED[name], 1)
    assert source != SOURCE
    with pytest.raises(ValueError, match=r"`old` occurs [02] times in Reader.read"):
        replace_code(source, "Reader.read", 'text == "" or len(text) > limit', "limit")


def test_true_is_not_one() -> None:
    with pytest.raises(ValueError, match="0 times in x"):
        replace_code("x = 1\n", "x", "True", "2")


def test_code_in_the_whole_file_needs_no_scope() -> None:
    assert replace_code(SOURCE, "", "LIMIT = 3", "LIMIT = 4") == SOURCE.replace("= 3", "= 4")
    with pytest.raises(ValueError, match="2 times in the file"):
        replace_code(SOURCE, "", "return text", "")


def test_text_of_another_language_ignores_white_space() -> None:
    assert replace_text("# A  page\nabout x", "A page about", "B") == "# B x"


@pytest.mark.parametrize(
    ("code", "scope"),
    [
        ("4096", "Reader.size"),
        ("log(limit)", "Reader.read"),
        ("@property", "Reader.full"),
        ("class Reader", "Reader"),
        ("strict", "TABLE"),
        ('"""A module', ""),
    ],
)
def test_scope_of_a_place_is_its_innermost_name(code: str, scope: str) -> None:
    at = SOURCE.index(code)
    assert load_source(SOURCE).scope_at(at, at + len(code)) == scope
