"""The declarations of a file, checked against each other and against the server's tools."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from mcp_core.adapters import ServedSource, ServedSourceError

from ._declared import DECLARED, Declared, InvariantError, Use

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator

__all__ = ["Invariants", "load_invariants"]

_MODULE: Final = "__mcp_invariants__"  # the name of a file's module


@dataclass(frozen=True, kw_only=True)
class Invariants:
    """The declarations of a file or a module.

    Attributes:
        source: the file or the module, for messages.
        path: the file; None for a module.
        functions: in the order of the file.
        uses: the arguments that get values of earlier calls.
    """

    source: str
    path: Path | None
    functions: tuple[Declared, ...]
    uses: tuple[Use, ...]

    @property
    def known(self) -> frozenset[str]:
        """The names of the functions and of the values, which stored cases refer to."""
        names = [name for each in self.functions for name in (each.name, each.provides)]
        return frozenset(filter(None, names))

    def of_kind(self, kind: str) -> list[Declared]:
        """Return the functions of one decorator."""
        return [each for each in self.functions if each.kind == kind]

    def check_tools(self, listed: Collection[str]) -> None:
        """Check that the server has each tool that is named.

        Raises:
            InvariantError: it lacks one.
        """
        named: list[Declared | Use] = [*self.functions, *self.uses]
        for each in named:
            if each.tool is not None and each.tool not in listed:
                close = get_close_matches(each.tool, [str(name) for name in listed], 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise InvariantError(f"{each.place}: the server has no tool {each.tool}{hint}")

    def find_unreached(self, called: Collection[str]) -> Iterator[str]:
        """Yield a line for each tool that isn't called, with what is never run because of it."""
        lacking: dict[str, list[str]] = {}
        for each in self.functions:
            if each.tool is not None and each.tool not in called:
                lacking.setdefault(each.tool, []).append(each.name)
        for use in self.uses:
            if use.tool not in called:
                lacking.setdefault(use.tool, []).append(f"uses of {use.value}")
        for tool, names in lacking.items():
            yield f"the tool {tool} is not called, so nothing runs of: {', '.join(names)}"
        if self.functions and not called and not lacking:
            yield "no tool is called, so no invariant is checked"


def load_invariants(source: str | os.PathLike[str] | ModuleType) -> Invariants:
    """Import a file, and return its declarations. A module is imported already.

    Raises:
        InvariantError: there is no such file; the import fails, and stderr has the traceback; or
            its declarations don't fit each other.
    """
    path = None if isinstance(source, ModuleType) else Path(source)
    module = source if isinstance(source, ModuleType) else _import(Path(source))
    shown = module.__name__ if path is None else str(path)
    declared = list(_declarations(module))
    functions = tuple(each for each in declared if isinstance(each, Declared))
    uses = tuple(each for each in declared if isinstance(each, Use))
    if not declared:
        raise InvariantError(
            f"{shown} has no invariant: write `@invariant()` of mcp_trio.testing.invariants before"
            " a function"
        )
    _check_names(functions)
    _check_uses(functions, uses)
    return Invariants(source=shown, path=path, functions=functions, uses=uses)


def _import(path: Path) -> ModuleType:
    try:
        if not path.is_file():
            raise InvariantError(f"there is no file {path}: give the path of a Python file")
        return ServedSource.from_file(str(path)).load_module(_MODULE)
    except ServedSourceError as exc:
        if isinstance(exc.__context__, InvariantError):
            raise exc.__context__ from None
        line = _line_of(exc.__context__, path)
        raise InvariantError(f"{exc}{line}") from exc.__context__
    except SystemExit as exc:
        line = _line_of(exc, path)
        raise InvariantError(
            f"{path} ends the program while it is imported{line}: move what runs under"
            ' `if __name__ == "__main__":`'
        ) from exc


def _line_of(error: BaseException | None, path: Path) -> str:
    """Return the last line of a file that an error came through, as ` (line 7)`, or ""."""
    if error is None or isinstance(error, SyntaxError | InvariantError):
        return ""  # the text has it
    line, trace = 0, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" ({path.name}, line {line})" if line else ""


def _declarations(module: ModuleType) -> Iterator[Declared | Use]:
    """Yield a module's own declarations, then those of the functions that it imports."""
    own: list[Declared | Use] = vars(module).get(DECLARED, [])
    yield from own
    for value in list(vars(module).values()):
        if inspect.isfunction(value) and value.__globals__ is not vars(module):
            for each in value.__globals__.get(DECLARED, ()):
                if isinstance(each, Declared) and each.function is value:
                    yield each


def _check_names(functions: tuple[Declared, ...]) -> None:
    first: dict[str, Declared] = {}
    for each in functions:
        other = first.setdefault(each.name, each)
        if other.function is not each.function:
            raise InvariantError(
                f"{each.place}: there is another function {each.name} in {other.place}: rename one,"
                " since findings are named after it"
            )


def _check_uses(functions: tuple[Declared, ...], uses: tuple[Use, ...]) -> None:
    provided = {each.provides for each in functions if each.provides}
    for use in uses:
        if use.value not in provided:
            has = f"it has {', '.join(sorted(provided))}" if provided else "there is none"
            raise InvariantError(
                f"{use.place}: no @after_call provides {use.value!r}, {has}: write"
                f" @after_call(provides={use.value!r})"
            )
