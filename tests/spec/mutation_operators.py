"""Small faults that a programmer could make, as changes to a syntax tree.

An operator takes an expression or a statement, and yields what could stand in its place. What only
people or type checkers read is left alone: docstrings, annotations, log calls, assertions, `repr`.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tests.spec.code_match import Replacement, SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["OPERATORS", "Place", "RandomMutant", "find_places", "make_mutant"]

# Outermost first. The last one is the parent.
Parents: TypeAlias = "Sequence[ast.AST]"
Operator: TypeAlias = "Callable[[Any, Parents], Iterator[ast.AST | None]]"


@dataclass(frozen=True, eq=False)
class Place:
    """A node that some operators can change.

    Attributes:
        node: the node.
        parents: the nodes around it, outermost first.
        choices: each operator's name with a node for its place, or None to remove it.
    """

    node: ast.AST
    parents: tuple[ast.AST, ...]
    choices: list[tuple[str, ast.AST | None]]


@dataclass(frozen=True)
class RandomMutant:
    """A change to one place of the code.

    Attributes:
        file: the path below the repository's root.
        scope: the qualified name of the definition in which it is, "" for the module.
        operator: a key of `OPERATORS`.
        line: the line's number.
        old: the statement before, with `...` for the bodies of compound statements.
        new: the same statement after the change.
        replacement: the change to the file's text.
    """

    file: str
    scope: str
    operator: str
    line: int
    old: str
    new: str
    replacement: Replacement

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the scope and the statements, which are equal for two mutants that do the same."""
        return f"{self.file}::{self.scope}", self.old, self.new

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.scope or '<module>'} {self.operator}"


# -- Operators -------------------------------------------------------------------------------------

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_TEXTS: Final = (ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set)
_FACTOR: Final = 1000
# Without these decorators the code means the same, or nothing works at all.
_KEPT_DECORATORS: Final = frozenset(
    """
    abstractmethod classmethod dataclass final fixture hookimpl overload override property
    runtime_checkable staticmethod
    """.split()
)


def _compare(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for index, each in enumerate(node.ops):
            ops = [*node.ops[:index], _COMPARISONS[type(each)](), *node.ops[index + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)


def _and_or(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _negate(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    if negated or isinstance(node, ast.Compare) or not _is_condition(node, parents):
        return
    assert isinstance(node, ast.expr)
    yield ast.UnaryOp(ast.Not(), node)


def _drop_not(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _condition(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    if _is_condition(node, parents):
        if not isinstance(parents[-1], ast.While):  # it would not end
            yield ast.Constant(True)
        yield ast.Constant(False)


def _arithmetic(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    swapped: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in swapped:
            if not _is_text(left) and not _is_text(right):
                yield ast.BinOp(left, swapped[type(op)](), right)
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in swapped:
            if not _is_text(value):
                yield ast.AugAssign(target, swapped[type(op)](), value)


def _number(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    # A part more or less of a limit such as 64 * 1024 bytes is no fault, nor is a character more
    # or less of a long text.
    within = isinstance(parents[-1], ast.BinOp) and (
        _is_product(parents[-1])
        or (_is_text(parents[-1].left) and isinstance(parents[-1].op, ast.Mult))
    )
    if _is_number(node) and not _is_default(node, parents) and not within:
        yield ast.Constant(node.value + 1)  # type: ignore[attr-defined]
        yield ast.Constant(node.value - 1)  # type: ignore[attr-defined]


def _limit(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    is_constant = isinstance(parents[-1], ast.Assign | ast.AnnAssign) and any(
        isinstance(each, ast.Name) and each.id.isupper() for each in _targets(parents[-1])
    )
    if not is_constant and not _is_default(node, parents):
        return
    if _is_product(node):
        assert isinstance(node, ast.expr)
        yield ast.BinOp(node, ast.Mult(), ast.Constant(_FACTOR))
    elif _is_number(node) and node.value >= 2:  # type: ignore[attr-defined]
        yield ast.Constant(node.value * _FACTOR)  # type: ignore[attr-defined]


def _default(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    if not _is_default(node, parents):
        return
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=None):
            yield ast.Constant(1)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value * 2 if value else 1)
            if value:
                yield ast.Constant(0)
        case ast.Constant(value=str(value)):
            yield ast.Constant("" if value else "other")


def _boolean(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool(value)) if not _is_default(node, parents):
            if not isinstance(parents[-1], ast.While):
                yield ast.Constant(not value)


def _string(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    within = parents[-1]
    if isinstance(within, ast.Tuple | ast.Set | ast.List) and len(parents) > 1:
        within = parents[-2]
    if isinstance(within, ast.Compare | ast.MatchValue):
        match node:
            case ast.Constant(value=str(value)):
                yield ast.Constant(f"{value}_")
            case ast.Constant(value=bytes(value)):
                yield ast.Constant(value + b"_")


def _slice(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    match node:
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower, upper=upper, step=step)):
            if lower is not None:
                yield ast.Subscript(value, ast.Slice(None, upper, step), ast.Load())
            if upper is not None:
                yield ast.Subscript(value, ast.Slice(lower, None, step), ast.Load())


def _return_none(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    match node:
        case ast.Return(value=ast.expr() as value):
            # What returns False is only asked whether it is true: mypy sees that it is a bool.
            if not isinstance(value, ast.Constant) or (
                value.value is not None and value.value is not False
            ):
                yield ast.Return(ast.Constant(None))


def _remove(node: ast.AST, parents: Parents) -> Iterator[ast.AST | None]:
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield None
        case ast.Assign() | ast.AugAssign():
            if any(isinstance(each, ast.Attribute | ast.Subscript) for each in _targets(node)):
                yield None


def _except(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    parent = parents[-1]
    if not isinstance(parent, ast.ExceptHandler) or parent.type is not node:
        return
    if isinstance(node, ast.Name) and node.id in ("Exception", "BaseException"):
        return
    # Elsewhere ruff refuses it (BLE001), as mypy does some others.
    if _raises_again(parent):
        yield ast.Name("Exception")
    if isinstance(node, ast.Tuple):
        for each in node.elts:
            yield ast.Tuple([other for other in node.elts if other is not each], ast.Load())
    else:
        yield ast.Name("ZeroDivisionError")


def _raises_again(handler: ast.ExceptHandler) -> bool:
    """True if a handler raises what it has caught, or names it as the cause."""
    return any(
        isinstance(each, ast.Raise)
        and (each.exc is None or handler.name in _names_of(each.exc, each.cause))
        for statement in handler.body
        for each in ast.walk(statement)
    )


def _names_of(*values: ast.expr | None) -> list[str]:
    return [each.id for each in values if isinstance(each, ast.Name)]


def _loop(node: ast.AST, parents: Parents) -> Iterator[ast.AST]:
    if isinstance(node, ast.Break):
        yield ast.Continue()
    elif isinstance(node, ast.Continue):
        yield ast.Break()


def _decorator(node: ast.AST, parents: Parents) -> Iterator[ast.AST | None]:
    if node in getattr(parents[-1], "decorator_list", ()):
        name = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        if name.rpartition(".")[2] not in _KEPT_DECORATORS:
            yield None


OPERATORS: Final[dict[str, Operator]] = {
    "compare": _compare,
    "and/or": _and_or,
    "negate": _negate,
    "drop not": _drop_not,
    "condition": _condition,
    "arithmetic": _arithmetic,
    "number": _number,
    "limit": _limit,
    "default": _default,
    "boolean": _boolean,
    "string": _string,
    "slice": _slice,
    "return None": _return_none,
    "remove": _remove,
    "except": _except,
    "loop": _loop,
    "decorator": _decorator,
}


def _is_condition(node: ast.AST, parents: Parents) -> bool:
    parent = parents[-1]
    return getattr(parent, "test", None) is node or node in getattr(parent, "ifs", ())


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, _TEXTS) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_product(node: ast.AST) -> bool:
    """True for numbers that are multiplied, such as 64 * 1024."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return (_is_number(left) or _is_product(left)) and _is_number(right)
    return False


def _is_default(node: ast.AST, parents: Parents) -> bool:
    """True for a default of a parameter, or of a dataclass's field."""
    parent = parents[-1]
    return isinstance(parent, ast.arguments) or (
        isinstance(parent, ast.AnnAssign)
        and parent.value is node
        and isinstance(parents[-2], ast.ClassDef)
    )


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else []


# -- What is left alone ----------------------------------------------------------------------------

_LOGGERS: Final = frozenset({"_log", "log", "logger", "logging"})
_FOR_TYPES: Final = frozenset({"NewType", "ParamSpec", "TypeVar", "TypeVarTuple", "Union"})
# Faster, smaller, or for the reader of a warning.
_KEYWORDS: Final = frozenset({"gc", "frozen", "slots", "stacklevel"})
_ANNOTATIONS: Final = frozenset({"annotation", "returns", "type_params"})


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.JoinedStr() | ast.Global():
            return True
        case ast.Expr(value=ast.Constant()):  # a docstring, or the body of a protocol
            return True
        case ast.keyword(arg=name):
            return name in _KEYWORDS
        case ast.Call(func=ast.Name(id="assert_never" | "cast")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGGERS
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name in ("AssertionError", "NotImplementedError")
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__")]):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
            return True
        case ast.Assign(value=ast.Call(func=ast.Name(id=name))):
            return name in _FOR_TYPES
        case ast.FunctionDef(name="__repr__"):
            return True
        case ast.FunctionDef(decorator_list=decorators):
            return any(ast.unparse(each).endswith("overload") for each in decorators)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False


def find_places(source: SourceFile) -> list[Place]:
    """Return the places of a file that at least one operator can change."""
    return list(_places(source.tree, ()))


def _places(node: ast.AST, parents: tuple[ast.AST, ...]) -> Iterator[Place]:
    if _is_skipped(node):
        if isinstance(node, ast.If):
            for each in node.orelse:
                yield from _places(each, parents)
        return
    if parents and isinstance(node, ast.expr | ast.stmt):
        choices = [
            (name, new) for name, operator in OPERATORS.items() for new in operator(node, parents)
        ]
        if choices:
            yield Place(node, parents, choices)
    parents = (*parents, node)
    for name, value in ast.iter_fields(node):
        if name not in _ANNOTATIONS:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from _places(each, parents)


# -- From a choice to a mutant ---------------------------------------------------------------------


def make_mutant(source: SourceFile, file: str, place: Place, choice: int) -> RandomMutant:
    """Return the mutant of a place by one of its choices."""
    operator, new = place.choices[choice]
    node = place.node
    start, end = source.start(node), source.end(node)
    if isinstance(node, ast.stmt):
        text = "pass" if new is None else ast.unparse(new)
    elif new is None:  # a decorator
        start = source.text.rindex("@", 0, start)
        end += len(source.text[end:]) - len(source.text[end:].lstrip())
        text = ""
    else:
        text = f"({ast.unparse(new)})"
    statement = next(
        each for each in (node, *reversed(place.parents)) if isinstance(each, ast.stmt)
    )
    return RandomMutant(
        file,
        source.scope_at(start, end),
        operator,
        node.lineno,  # type: ignore[attr-defined]
        _shown(statement),
        _shown(_with_change(statement, node, new)),
        Replacement(start, end, text),
    )


def _with_change(statement: ast.stmt, node: ast.AST, new: ast.AST | None) -> ast.stmt:
    """Return a copy of the statement with another node."""
    if statement is node:
        return new if isinstance(new, ast.stmt) else ast.Pass()
    # The copy shares no node, so that the place can be found by its position in the walk.
    index = next(index for index, each in enumerate(ast.walk(statement)) if each is node)
    copied = copy.deepcopy(statement)
    target = list(ast.walk(copied))[index]

    class Change(ast.NodeTransformer):
        def visit(self, each: ast.AST) -> Any:
            return copy.deepcopy(new) if each is target else self.generic_visit(each)

    changed = Change().visit(copied)
    assert isinstance(changed, ast.stmt)
    return changed


def _shown(statement: ast.stmt) -> str:
    """Return the statement's code, with `...` for each body."""
    if not hasattr(statement, "body"):
        return ast.unparse(statement)
    shown = copy.copy(statement)
    body: list[ast.stmt] = [ast.Expr(ast.Constant(...))]
    for name in ("body", "orelse", "finalbody"):
        if getattr(shown, name, None):
            setattr(shown, name, body if name == "body" else [])
    if isinstance(shown, ast.Match):
        shown.cases = []
    if isinstance(shown, ast.Try) and not shown.handlers:
        shown.finalbody = body
    return ast.unparse(shown)
