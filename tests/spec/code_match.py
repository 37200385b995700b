"""Find a piece of code by its syntax tree, and replace it in the source.

1. Comments, line breaks, quotes and redundant parentheses do not count, nor does the code outside
   of the scope.
2. A snippet is one of: statements, an expression, some arguments or elements, some items of a
   dictionary, some parameters. A body `...` stands for any body: `if x is None: ...`.
3. A snippet that is none of these is text, in which the amount of white space does not count.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "Replacement",
    "SourceFile",
    "find_matches",
    "load_source",
    "replace_code",
    "replace_text",
]

Kind: TypeAlias = Literal["statements", "expression", "items", "pairs", "parameters"]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = ast.ClassDef | Function
_BRANCHES: Final = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith),
    *(ast.Try, ast.TryStar, ast.ExceptHandler, ast.Match, ast.match_case),
)
# Two lists of nodes are equal if these fields differ.
_IGNORED: Final = frozenset({"ctx", "kind", "type_comment", "type_params"})


@dataclass(frozen=True)
class Replacement:
    """New text for the source between two offsets."""

    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


@dataclass(frozen=True)
class _Snippet:
    """A parsed snippet. A pair or a parameter is a tuple of two nodes, or of a node and None."""

    kind: Kind
    nodes: list[Any]


class SourceFile:
    """A Python file: its text, its tree, and the offsets of its nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def offset(self, line: int, column: int) -> int:
        """Return the offset in the text. `column` counts bytes, as in `ast`."""
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column

    def start(self, node: ast.AST) -> int:
        """Return the offset at which the node begins, including decorators."""
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            return self.text.rindex("@", 0, self.start(decorators[0]))
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def end_of_header(self, node: ast.stmt) -> int:
        """Return the offset after the colon that begins the body of a compound statement."""
        depth = 0
        start = self.start(node)
        readline = io.StringIO(self.text[start:]).readline
        for token in tokenize.generate_tokens(readline):
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
                if token.string == ":" and not depth:
                    line, column = token.end
                    skipped = self.text.count("\n", 0, start)
                    before = 0 if line > 1 else start - self._starts[skipped]
                    return self._starts[skipped + line - 1] + before + column
        raise AssertionError(node)

    def scopes(self, name: str) -> list[ast.AST]:
        """Return the definitions and assignments with a qualified name, the module for ""."""
        found: list[ast.AST] = [self.tree]
        for part in filter(None, name.split(".")):
            found = [
                each
                for scope in found
                for each in _statements_within(scope)
                if part in _names_of(each, scope)
            ]
        return found

    def scope_at(self, start: int, end: int) -> str:
        """Return the qualified name of the innermost scope around a range."""
        names: list[str] = []
        within: ast.AST | None = self.tree
        while within is not None:
            inner = None
            for each in _statements_within(within):
                named = _names_of(each, within)
                if named and self.start(each) <= start and end <= self.end(each):
                    inner = each
                    names.append(named[0])
            within = inner if isinstance(inner, Definition) else None
        return ".".join(names)


@lru_cache(maxsize=128)
def load_source(text: str) -> SourceFile:
    """Parse the text of a file, once."""
    return SourceFile(text)


def replace_code(text: str, scope: str, old: str, new: str) -> str:
    """Replace the code `old` in the scope of a Python file.

    Raises:
        ValueError: `old` stands there more than once, or not at all.
    """
    found = find_matches(load_source(text), scope, old, new)
    return _only(found, scope or "the file").apply(text)


def replace_text(text: str, old: str, new: str) -> str:
    """Replace a text that is not Python, in which the amount of white space does not count.

    Raises:
        ValueError: `old` stands there more than once, or not at all.
    """
    return _only(_find_text(text, 0, len(text), old, new), "the file").apply(text)


def _only(found: set[Replacement], scope: str) -> Replacement:
    if len(found) != 1:
        raise ValueError(f"`old` occurs {len(found)} times in {scope}")
    return found.pop()


def find_matches(source: SourceFile, scope: str, old: str, new: str) -> set[Replacement]:
    """Return how `new` can replace `old` in the scope, under each reading of the two."""
    nodes = source.scopes(scope)
    readings = list(_readings(old, new))
    if not readings:
        found = set()
        for node in nodes:
            whole = isinstance(node, ast.Module)
            start, end = (0, len(source.text)) if whole else (source.start(node), source.end(node))
            found |= _find_text(source.text, start, end, old, new)
        return found
    return {
        _replacement(source, snippet, run, new)
        for snippet in readings
        for node in nodes
        for run in _runs(node, snippet)
    }


def _find_text(text: str, start: int, end: int, old: str, new: str) -> set[Replacement]:
    pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
    found = pattern.finditer(text, start, end)
    return {Replacement(match.start(), match.end(), new) for match in found}


# -- Scopes ----------------------------------------------------------------------------------------


def _statements_within(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a body, and those below `if`, `try` and `with`."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.stmt):
            yield each
        if isinstance(each, _BRANCHES):
            yield from _statements_within(each)


def _names_of(node: ast.AST, scope: ast.AST) -> list[str]:
    """Return the names that a statement defines. Local variables of a function do not count."""
    if not isinstance(node, Definition) and isinstance(scope, Function):
        return []
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return [node.name]
        case ast.Assign():
            return [each.id for each in node.targets if isinstance(each, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


# -- Snippets --------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _parse(code: str, kind: Kind) -> list[Any] | None:
    """Return the nodes of a snippet, or None if it is of another kind."""
    code = _plain(code)
    try:
        match kind:
            case "statements":
                return list(ast.parse(code).body)
            case "expression":
                return [ast.parse(f"(\n{code}\n)", mode="eval").body] if code else None
            case "items":
                return _items(ast.parse(f"f(\n{code}\n)", mode="eval").body)
            case "pairs":
                return _pairs(ast.parse(f"{{\n{code}\n}}", mode="eval").body)
            case "parameters":
                return _parameters(ast.parse(f"def f(\n{code}\n): ...").body[0])
    except SyntaxError:
        return None


def _plain(code: str) -> str:
    """Return a snippet without indentation, and with `elif` as `if`."""
    return re.sub(r"\Ael(?=if\b)", "", textwrap.dedent(code).strip())


def _readings(old: str, new: str) -> Iterator[_Snippet]:
    kinds: tuple[Kind, ...] = ("statements", "expression", "items", "pairs", "parameters")
    for kind in kinds:
        nodes = _parse(old, kind)
        if nodes and _parse(new, kind) is not None:
            yield _Snippet(kind, nodes)


def _items(node: ast.AST) -> list[Any]:
    """Return the arguments of a call, the bases of a class, or the elements of a collection."""
    match node:
        case ast.Call(args=args, keywords=keywords) | ast.ClassDef(bases=args, keywords=keywords):
            return sorted((*args, *keywords), key=lambda each: (each.lineno, each.col_offset))
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return list(elements)
    return []


def _pairs(node: ast.AST) -> list[Any]:
    if isinstance(node, ast.Dict):
        return [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key]
    return []


def _parameters(node: ast.AST) -> list[Any]:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    found = node.args
    positional = [*found.posonlyargs, *found.args]
    missing = [None] * (len(positional) - len(found.defaults))
    return [
        *zip(positional, [*missing, *found.defaults], strict=True),
        *zip(found.kwonlyargs, found.kw_defaults, strict=True),
    ]


# -- Matching --------------------------------------------------------------------------------------


def _runs(scope: ast.AST, snippet: _Snippet) -> Iterator[list[Any]]:
    """Yield the runs of nodes in the scope that equal the snippet's."""
    if snippet.kind == "statements":
        yield from _runs_in([scope], snippet.nodes)
    pending = [scope]
    while pending:
        node = pending.pop()
        if snippet.kind == "expression":
            yield from _runs_in([node], snippet.nodes)
        elif snippet.kind == "statements":
            for name in ("body", "orelse", "finalbody"):
                body = getattr(node, name, None)
                if isinstance(body, list):
                    yield from _runs_in(body, snippet.nodes)
        else:
            parts = {"items": _items, "pairs": _pairs, "parameters": _parameters}[snippet.kind]
            yield from _runs_in(parts(node), snippet.nodes)
        # Before Python 3.12 the nodes within an f-string have no places.
        if not isinstance(node, ast.JoinedStr):
            pending += ast.iter_child_nodes(node)


def _runs_in(nodes: Sequence[Any], wanted: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(len(nodes) - len(wanted) + 1):
        run = list(nodes[start : start + len(wanted)])
        if all(_equals(*pair) for pair in zip(wanted, run, strict=True)):
            yield run


def _equals(wanted: Any, node: Any) -> bool:
    """True if two nodes, or values of their fields, are the same code."""
    if isinstance(wanted, list | tuple):
        return (
            isinstance(node, list | tuple)
            and len(wanted) == len(node)
            and all(_equals(*pair) for pair in zip(wanted, node, strict=True))
        )
    if type(wanted) is not type(node):
        return False
    if not isinstance(wanted, ast.AST):
        return bool(wanted == node)
    fields: Sequence[str] = wanted._fields
    if _has_any_body(wanted):
        fields = [name for name in fields if name not in ("body", "orelse", "finalbody")]
    return all(
        _equals(getattr(wanted, name, None), getattr(node, name, None))
        for name in fields
        if name not in _IGNORED
    )


def _has_any_body(node: Any) -> bool:
    """True for a compound statement whose body is `...` and which has no other branch."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or len(body) != 1 or getattr(node, "orelse", None):
        return False
    match body[0]:
        case ast.Expr(value=ast.Constant(value=value)):
            return value is ...
    return False


# -- Replacing -------------------------------------------------------------------------------------


def _replacement(source: SourceFile, snippet: _Snippet, run: list[Any], new: str) -> Replacement:
    first, last = run[0], run[-1]
    if isinstance(first, tuple):
        first = first[0]
        last = last[1] or last[0]
    start = source.start(first)
    end = source.end(last)
    new = textwrap.dedent(new).strip()
    if snippet.kind == "statements":
        if _ends_in_any_body(snippet.nodes[-1]):
            end = _end_of_headers(source, snippet.nodes[-1], last)
            new = new.removesuffix("...").rstrip()
        new = _indented(new or "pass", start - source.text.rfind("\n", 0, start) - 1)
        if source.text.startswith("elif", start) and new.startswith("if"):
            new = f"el{new}"
    elif snippet.kind != "expression":
        new = new.removesuffix(",")
        if not new:
            start, end = _with_comma(source.text, start, end)
    return Replacement(start, end, new)


def _ends_in_any_body(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    return _has_any_body(node) or (isinstance(body, list) and _ends_in_any_body(body[-1]))


def _end_of_headers(source: SourceFile, wanted: Any, node: Any) -> int:
    while not _has_any_body(wanted):
        wanted = wanted.body[-1]
        node = node.body[-1]
    return source.end_of_header(node)


def _indented(code: str, column: int) -> str:
    first, *rest = code.split("\n")
    return "\n".join([first, *(line and " " * column + line for line in rest)])


def _with_comma(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range with the comma that follows, or the one before."""
    after = re.compile(r"\s*,[^\S\n]*").match(text, end)
    if after:
        return start, after.end()
    before = re.compile(r",\s*\Z").search(text, 0, start)
    return (before.start() if before else start), end
