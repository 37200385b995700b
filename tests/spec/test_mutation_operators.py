"""Each operator makes the changes that it should, and leaves alone what only people read."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tests.spec.code_match import SourceFile
from tests.spec.mutation_operators import OPERATORS, RandomMutant, find_places, make_mutant

# operator, a statement, what it becomes
CHANGES = [
    ("compare", "x = a < b", ["x = a <= b"]),
    ("compare", "x = a <= b", ["x = a < b"]),
    ("compare", "x = a > b", ["x = a >= b"]),
    ("compare", "x = a >= b", ["x = a > b"]),
    ("compare", "x = a == b", ["x = a != b"]),
    ("compare", "x = a != b", ["x = a == b"]),
    ("compare", "x = a in b", ["x = a not in b"]),
    ("compare", "x = a not in b", ["x = a in b"]),
    ("compare", "x = a is b", ["x = a is not b"]),
    ("compare", "x = a is not b", ["x = a is b"]),
    ("compare", "x = a < b < c", ["x = a <= b < c", "x = a < b <= c"]),
    ("and/or", "x = a and b and c", ["x = a or b or c"]),
    ("and/or", "x = (a or b) and c", ["x = (a or b) or c", "x = (a and b) and c"]),
    ("negate", "if a:\n    f()", ["if not a:\n    ..."]),
    ("negate", "x = [y for y in z if y.ok]", ["x = [y for y in z if not y.ok]"]),
    ("negate", "if a < b:\n    f()", []),
    ("negate", "if not a:\n    f()", []),
    ("drop not", "x = not a", ["x = a"]),
    ("drop not", "x = -a", []),
    ("condition", "if a:\n    f()", ["if True:\n    ...", "if False:\n    ..."]),
    ("condition", "if a:\n    f()\nelif b:\n    g()", ["True", "False", "True", "False"]),
    ("condition", "while a:\n    f()", ["while False:\n    ..."]),
    ("condition", "x = 1 if a else 2", ["x = 1 if True else 2", "x = 1 if False else 2"]),
    ("arithmetic", "x = a + b", ["x = a - b"]),
    ("arithmetic", "x = a - b", ["x = a + b"]),
    ("arithmetic", "x += a", ["x -= a"]),
    ("arithmetic", "x = a + 'text'", []),
    ("arithmetic", "x = [*a] + b", []),
    ("number", "x = f(1)", ["x = f(2)", "x = f(0)"]),
    ("number", "x = 0.5", ["x = 1.5", "x = -0.5"]),
    ("number", "x = True", []),
    ("limit", "MAX_SIZE = 10", ["MAX_SIZE = 10000"]),
    ("limit", "MAX_SIZE: Final = 10", ["MAX_SIZE: Final = 10000"]),
    (
        "limit",
        "def f(size: int = 10) -> None:\n    g()",
        ["def f(size: int=10000) -> None:\n    ..."],
    ),
    ("limit", "class A:\n    size: int = 10", ["size: int = 10000"]),
    ("limit", "MAX_SIZE: Final = 64 * 1024", ["MAX_SIZE: Final = 64 * 1024 * 1000"]),
    ("limit", "MAX_SIZE = 2 * 1024 * 1024", ["MAX_SIZE = 2 * 1024 * 1024 * 1000"]),
    ("limit", "class A:\n    size: int = 2 * 1024", ["size: int = 2 * 1024 * 1000"]),
    ("limit", "MAX_SIZE = 2 * OTHER", []),
    ("number", "MAX_SIZE: Final = 2 * 64 * 1024", []),
    ("number", "x = 2 * y", ["x = 3 * y", "x = 1 * y"]),
    ("number", "x = 'a' * 1_100_000", []),
    ("limit", "size = 10", []),
    ("limit", "FIRST = 1", []),
    (
        "default",
        "def f(a: bool = False) -> None:\n    g()",
        ["def f(a: bool=True) -> None:\n    ..."],
    ),
    ("default", "def f(*, a: X = None) -> None:\n    g()", ["def f(*, a: X=1) -> None:\n    ..."]),
    (
        "default",
        "def f(a: int = 3) -> None:\n    g()",
        ["def f(a: int=6) -> None:\n    ...", "def f(a: int=0) -> None:\n    ..."],
    ),
    ("default", "class A:\n    b: str = 'x'", ["b: str = ''"]),
    ("default", "class A:\n    b: float = 0", ["b: float = 1"]),
    ("default", "x = f(a=True)", []),
    ("boolean", "x = f(a=True)", ["x = f(a=False)"]),
    ("boolean", "return False", ["return True"]),
    ("boolean", "while True:\n    f()", []),
    ("string", "x = a == 'b'", ["x = a == 'b_'"]),
    ("string", "x = a in ('b', 'c')", ["x = a in ('b_', 'c')", "x = a in ('b', 'c_')"]),
    ("string", "x = a == b'b'", ["x = a == b'b_'"]),
    ("string", "x = f('b')", []),
    ("slice", "x = a[b:c]", ["x = a[:c]", "x = a[b:]"]),
    ("slice", "x = a[:]", []),
    ("return None", "return a", ["return None"]),
    ("return None", "return None", []),
    ("return None", "return False", []),
    ("return None", "return True", ["return None"]),
    ("return None", "return ''", ["return None"]),
    ("return None", "return", []),
    ("remove", "f(a)", ["pass"]),
    ("remove", "await f(a)", ["pass"]),
    ("remove", "raise ValueError(a)", ["pass"]),
    ("remove", "a.b = c", ["pass"]),
    ("remove", "a[b] = c", ["pass"]),
    ("remove", "a.b += c", ["pass"]),
    ("remove", "del a[b]", ["pass"]),
    ("remove", "a = b", []),
    (
        "except",
        "try:\n    f()\nexcept A:\n    g()",
        ["except ZeroDivisionError:"],
    ),
    (
        "except",
        "try:\n    f()\nexcept (A, B):\n    g()",
        ["except (B,):", "except (A,):"],
    ),
    (
        "except",
        "try:\n    f()\nexcept A:\n    if g():\n        raise",
        ["except Exception:", "except ZeroDivisionError:"],
    ),
    (
        "except",
        "try:\n    f()\nexcept A as e:\n    raise B from e",
        ["except Exception as e:", "except ZeroDivisionError as e:"],
    ),
    (
        "except",
        "try:\n    f()\nexcept A as e:\n    raise B(e) from None",
        ["except ZeroDivisionError as e:"],
    ),
    ("except", "try:\n    f()\nexcept Exception:\n    g()", []),
    ("loop", "for a in b:\n    break", ["continue"]),
    ("loop", "for a in b:\n    continue", ["break"]),
    ("decorator", "@cache\n@g(1)\ndef f() -> None:\n    g()", ["@g(1)\ndef", "@cache\ndef"]),
    ("decorator", "@property\ndef f(self) -> None:\n    g()", []),
]
LEFT_ALONE = {
    "docstring": '"""A text."""',
    "annotation": "x: Literal[1, 2]",
    "annotation of a parameter": "def f(a: Literal[1] | None) -> Literal[2]:\n    ...",
    "export": "__all__ = [f(1)]",
    "log call": "_log.debug('a %s', 1 + 1)",
    "assertion": "assert a < 1",
    "impossible case": "assert_never(a)",
    "impossible error": "raise AssertionError(1)",
    "repr": "def __repr__(self) -> str:\n    return f(1)",
    "f-string": "x = f'{1 + 1}'",
    "type variable": "T = TypeVar('T', bound=f(1))",
    "alias": "A: TypeAlias = f(1)",
    "overload": "@overload\ndef f(a: int = 1) -> int: ...",
    "for types": "if TYPE_CHECKING:\n    x = 1",
    "program": "if __name__ == '__main__':\n    f(1)",
    "layout of an object": "class A(Struct, gc=False): ...",
}


def mutants_of(code: str, operator: str | None = None) -> list[tuple[str, RandomMutant]]:
    """Return the source and the mutants of a statement in an async method."""
    text = "class Z:\n    async def z(self):\n        for _ in ():\n"
    text += textwrap.indent(code, " " * 12) + "\n"
    source = SourceFile(text)
    return [
        (text, make_mutant(source, "a.py", place, index))
        for place in find_places(source)
        for index, (name, _) in enumerate(place.choices)
        if operator in (None, name)
    ]


@pytest.mark.parametrize(("operator", "code", "expected"), CHANGES)
def test_operator_makes_its_changes(operator: str, code: str, expected: list[str]) -> None:
    found = mutants_of(code, operator)
    assert len(found) == len(expected)
    for (text, mutant), part in zip(found, expected, strict=True):
        assert part in mutant.new
        assert mutant.old != mutant.new
        changed = mutant.replacement.apply(text)
        compile(changed, "a.py", "exec")
        # The text changes as the tree does, and nowhere else.
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
        before, after = mutant.replacement.start, mutant.replacement.end
        assert changed.startswith(text[:before])
        assert changed.endswith(text[after:])


@pytest.mark.parametrize("operator", OPERATORS)
def test_operator_has_a_change_in_the_table(operator: str) -> None:
    assert [expected for name, _, expected in CHANGES if name == operator and expected]


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_text_for_people_and_type_checkers_is_left_alone(name: str) -> None:
    assert [str(mutant) for _, mutant in mutants_of(LEFT_ALONE[name])] == []


def test_else_of_type_checking_is_changed() -> None:
    code = "if TYPE_CHECKING:\n    x = 1\nelse:\n    x = 2"
    assert {mutant.new for _, mutant in mutants_of(code)} == {"x = 3", "x = 1"}


def test_mutant_names_its_scope_and_its_statement_without_bodies() -> None:
    [(_, mutant)] = mutants_of("if a == 1:\n    f\nelse:\n    g", "compare")
    assert mutant.key == ("a.py::Z.z", "if a == 1:\n    ...", "if a != 1:\n    ...")
    assert str(mutant) == "a.py:4 Z.z compare"


@pytest.mark.parametrize(
    ("source", "operator", "place", "old", "new"),
    [
        ("if a:\n    f\nelif b < c:\n    g", "compare", 0, "b < c", "(b <= c)"),
        (
            "@cache  # why\n@g\ndef f() -> None:\n    pass",
            "decorator",
            1,
            "@g\n            ",
            "",
        ),
    ],
)
def test_mutant_keeps_branches_and_definition(
    source: str, operator: str, place: int, old: str, new: str
) -> None:
    text, mutant = mutants_of(source, operator)[place]
    assert mutant.replacement.apply(text) == text.replace(old, new)
