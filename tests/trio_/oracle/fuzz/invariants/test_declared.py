"""A file with invariants: what it declares, and the errors, which name the line and the cure."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from mcp_trio.oracle.fuzz.invariants._load import load_invariants
from mcp_trio.testing import invariants as public
from mcp_trio.testing.invariants import InvariantError
from tests.trio_.oracle.fuzz.notes_server import CAN_BE_READ, CREATED, write_invariants

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_file_declares_functions_and_uses_in_its_order(tmp_path: Path) -> None:
    found = load_invariants(write_invariants(tmp_path, CREATED, CAN_BE_READ))
    assert [(each.kind, each.name, each.tool) for each in found.functions] == [
        ("after_call", "created", "create_note"),
        ("invariant", "created_note_can_be_read", "read_note"),
    ]
    assert [each.place for each in found.functions] == ["checks.py, line 3", "checks.py, line 9"]
    assert [(each.value, each.tool, each.argument) for each in found.uses] == [
        ("note_id", "read_note", "id")
    ]
    assert found.known == {"created", "created_note_can_be_read", "note_id"}


def test_file_that_is_loaded_twice_declares_each_function_once(tmp_path: Path) -> None:
    path = write_invariants(tmp_path, CREATED)
    assert load_invariants(path).functions[0].name == "created"
    assert len(load_invariants(path).functions) == 1


def test_functions_that_are_imported_count_too(tmp_path: Path) -> None:
    (tmp_path / "shared_checks.py").write_text(
        "from mcp_trio.testing.invariants import invariant\n"
        "@invariant()\ndef shared(call, result): pass\n"
        "@invariant()\ndef not_imported(call, result): pass\n"
    )
    path = write_invariants(tmp_path, "from shared_checks import shared\n")
    assert [each.name for each in load_invariants(path).functions] == ["shared"]
    sys.modules.pop("shared_checks")


def test_module_is_as_good_as_a_file() -> None:
    module = ModuleType("checks_module")
    exec("from mcp_trio.testing.invariants import *\n@invariant('a')\ndef f(c, r): 1", vars(module))
    found = load_invariants(module)
    assert (found.source, found.path) == ("checks_module", None)
    assert [each.name for each in found.functions] == ["f"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "checks.py has no invariant: write `@invariant()` of mcp_trio.testing.invariants"),
        ("def f(: pass\n", "could not be imported: SyntaxError: invalid syntax (checks.py, line 2"),
        ("\nx = 1 / 0\n", "ZeroDivisionError: division by zero (checks.py, line 3)"),
        ("import no_such_module_x\n", "install it for"),
        ("import sys\nsys.exit(0)\n", "ends the program while it is imported (checks.py, line 3)"),
        ("@invariant\ndef f(call, result): pass\n", "line 2: write @invariant() with parentheses"),
        ("@before_call\ndef f(call): pass\n", "line 2: write @before_call() with parentheses"),
        (
            "@invariant()\ndef f(call): pass\n",
            "line 2: @invariant: f(call) does not take (call, result): write `def NAME(call, resul",
        ),
        ("@before_call()\ndef f(call, result): pass\n", "does not take (call): write `def NAME(c"),
        ("@invariant()\nasync def f(c, r): pass\n", "line 2: @invariant: write a plain function"),
        ("@after_call()\ndef f(c, r): yield 1\n", "line 2: @after_call: write a plain function"),
        (
            "@invariant()\nclass F: pass\n",
            "@invariant: write a function: `def NAME(call, result):`",
        ),
        ("invariant()(lambda call, result: 1)\n", "line 2: @invariant: the name <lambda> is taken"),
        ("@invariant()\ndef crash(call, result): pass\n", "the name crash is taken: give the func"),
        (
            f"@invariant()\ndef {'f' * 81}(c, r): pass\n",
            "its name has 81 characters: give it one o",
        ),
        ("@invariant(7)\ndef f(c, r): pass\n", "line 2: @invariant: tool= is a tool's name, not 7"),
        (
            "@invariant('a')\ndef f(c, r): pass\n@invariant('b')\ndef f(c, r): pass\n",
            "checks.py, line 4: there is another function f in checks.py, line 2: rename one",
        ),
        (
            "uses('id', tool='a', argument='b')\n",
            "checks.py, line 2: no @after_call provides 'id', there is none: write @after_call(",
        ),
        (CREATED + "uses('x', tool='a', argument='b')\n", "provides 'x', it has note_id: write"),
        ("uses('id', tool=None, argument='b')\n", "line 2: uses(tool=...) is a name, not None"),
    ],
)
def test_file_that_is_wrong_names_line_and_cure(
    tmp_path: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvariantError) as caught:
        load_invariants(write_invariants(tmp_path, text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    is_imported = text.count("1 / 0") + text.count("def f(: ") + text.count("no_such") == 0
    assert is_imported or "Error" in capsys.readouterr().err


def test_file_that_is_missing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InvariantError, match=r"there is no file .*none\.py: give the path"):
        load_invariants(tmp_path / "none.py")


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (["create_note"], "checks.py, line 7: the server has no tool read_note"),
        (["create_notes", "read_note"], "line 3: the server has no tool create_note; did you mean"),
    ],
)
def test_tool_that_is_missing_is_reported(tmp_path: Path, listed: list[str], says: str) -> None:
    found = load_invariants(write_invariants(tmp_path, CREATED))
    found.check_tools(["create_note", "read_note", "more"])
    with pytest.raises(InvariantError, match=says):
        found.check_tools(listed)


def test_tool_that_is_not_called_is_reported_with_what_never_runs(tmp_path: Path) -> None:
    found = load_invariants(write_invariants(tmp_path, CREATED, CAN_BE_READ))
    assert list(found.find_unreached(["create_note", "read_note"])) == []
    (line,) = found.find_unreached(["create_note"])
    assert line.startswith("the tool read_note is not called, so nothing runs of: created_note_can")
    assert line.endswith(", uses of note_id")
    everywhere = load_invariants(
        write_invariants(tmp_path, "@invariant()\ndef f(call, result): pass\n")
    )
    assert list(everywhere.find_unreached([])) == ["no tool is called, so no invariant is checked"]


def test_public_names_are_those_that_the_page_shows() -> None:
    assert sorted(public.__all__) == [
        "CallToolResult",
        "InvariantError",
        "ToolCall",
        "after_call",
        "before_call",
        "invariant",
        "uses",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"@invariant()\ndef {'f' * 80}(c, r): pass\n", ""),
        ("@invariant('')\ndef f(c, r): pass\n", "line 2: @invariant: tool= is a tool's name, not"),
        ("@invariant(int)\ndef f(c, r): pass\n", "write @invariant() with parentheses"),
        ("@after_call()\nasync def f(c, r): yield 1\n", "write a plain function, `def NAME(call, "),
        ("@invariant()\nasync def f(c, r): 1\n", "result):`: it runs in a thread, so it may wait"),
        ("@before_call()\ndef hang(call): pass\n", "the name hang is taken"),
        ("@after_call()\ndef endless(c, r): pass\n", "the name endless is taken"),
        ("f = invariant()(lambda c, r: 1)\n", "the name <lambda> is taken"),
        ("invariant()(print)\n", "a declaration: @invariant: write a function: `def NAME(call, r"),
        ("uses('', tool='a', argument='b')\n", "line 2: uses(value=...) is a name, not ''"),
        ("uses('v', tool='a', argument='')\n", "line 2: uses(argument=...) is a name, not ''"),
        (f"uses({'v' * 99!r}, tool=['{'x' * 99}'], argument='b')\n", "not ['xxx"),
        ("import os\nos.nothing\n", "(checks.py, line 3)"),
        ("import json\njson.loads('{')\n", "(checks.py, line 3)"),
    ],
)
def test_declaration_at_a_limit_is_taken_or_refused(tmp_path: Path, text: str, says: str) -> None:
    path = write_invariants(tmp_path, text)
    if not says:
        assert load_invariants(path).functions[0].tool is None
        return
    with pytest.raises(InvariantError) as caught:
        load_invariants(path)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_declaration_without_options_is_for_all_tools_and_successes(tmp_path: Path) -> None:
    """An invariant that got errors by default would call each right refusal a fault."""
    text = (
        "@invariant()\ndef a(c, r): pass\n"
        "@invariant('t', errors=True)\ndef b(c, r): pass\n"
        "@after_call()\ndef d(c, r): pass\n"
        "@after_call('t', provides='v')\ndef e(c, r): pass\n"
        "@before_call('t')\ndef f(c): pass\n"
    )
    found = load_invariants(write_invariants(tmp_path, text))
    assert [(each.name, each.tool, each.errors, each.provides) for each in found.functions] == [
        ("a", None, False, ""),
        ("b", "t", True, ""),
        ("d", None, False, ""),
        ("e", "t", False, "v"),
        ("f", "t", False, ""),
    ]
    assert [each.name for each in found.of_kind("after_call")] == ["d", "e"]
    assert [each.takes("other") for each in found.functions] == [True, False, True, False, False]
    assert found.known == {"a", "b", "d", "e", "f", "v"}
    found.check_tools(["t"])
    with pytest.raises(InvariantError, match=r"the server has no tool t$"):
        found.check_tools([])
    assert list(found.find_unreached(["other"])) == [
        "the tool t is not called, so nothing runs of: b, e, f"
    ]


def test_error_of_a_module_that_the_file_imports_names_the_files_own_line(tmp_path: Path) -> None:
    (tmp_path / "broken_checks.py").write_text("\n\n\n\n\n\nx = 1 / 0\n")
    path = write_invariants(tmp_path, "\nimport broken_checks\n")
    with pytest.raises(InvariantError, match=r"division by zero \(checks\.py, line 3\)$"):
        load_invariants(path)


def test_function_that_is_imported_twice_is_no_second_one(tmp_path: Path) -> None:
    (tmp_path / "twice_checks.py").write_text(
        "from mcp_trio.testing.invariants import invariant\n"
        "@invariant()\ndef shared(call, result): pass\n"
    )
    text = "from twice_checks import shared\nagain = shared\n"
    functions = load_invariants(write_invariants(tmp_path, text)).functions
    assert {each.name for each in functions} == {"shared"}
    sys.modules.pop("twice_checks")
