"""Write `signatures.jsonl` from the repositories of servers: types of their tools, without code.

    python -m tests.core.registry.published.collect FOLDER

`FOLDER` has a bare clone of each repository, in `OWNER+NAME/repo`. A tool is a function with a
decorator `.tool`. It is left out if one of its types isn't in the repository, or is too long.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import subprocess
import sys
import typing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.core.registry.published import SIGNATURES, function_of

COUNT: Final = 150
MOST_OF_A_SERVER: Final = 62
MOST_CHARACTERS: Final = 2_200
KNOWN: Final = frozenset(
    (
        *dir(builtins),
        *typing.__all__,
        *("BaseModel", "Field", "ConfigDict", "Enum", "IntEnum", "StrEnum", "dataclass"),
        *("datetime", "date", "time", "timedelta", "Decimal", "UUID", "Path", "JsonValue"),
        *("AnyUrl", "HttpUrl"),
    )
)
TEXTS: Final = frozenset({"description", "title", "examples", "json_schema_extra"})
MODULES: Final = frozenset({"typing", "t", "pydantic", "datetime"})


class WithoutTexts(ast.NodeTransformer):
    """Remove what is for people from `Field(...)`, and the modules before names."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) == "Field":
            node.keywords = [word for word in node.keywords if word.arg not in TEXTS]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        is_module = isinstance(node.value, ast.Name) and node.value.id in MODULES
        return ast.Name(node.attr, ast.Load()) if is_module else node


class Repository:
    """The Python files of one repository, and the types that they define, by their package."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name.replace("+", "/")
        self._git = ["git", "--git-dir", str(folder / "repo")]
        self.commit = self._run("rev-parse", "HEAD").strip()
        self.files: dict[str, ast.Module] = {}
        self._types: dict[str, dict[str, ast.stmt]] = {}
        for file in self._run("ls-tree", "-r", "--name-only", "HEAD").splitlines():
            if file.endswith(".py") and "test" not in file:
                self._read(file)

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._git, *words], capture_output=True, check=True)
        return done.stdout.decode("utf-8", "replace")

    def _read(self, file: str) -> None:
        try:
            tree = self.files[file] = ast.parse(self._run("show", f"HEAD:{file}"))
        except SyntaxError:
            return
        found = self.types_for(file)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                found.setdefault(ast.unparse(node.targets[0]), node)

    def types_for(self, file: str) -> dict[str, ast.stmt]:
        """Return the types that a file can use: its server's, if a repository has several."""
        server = "/".join(file.split("/")[:2]) if file.startswith("src/") else ""
        return self._types.setdefault(server, {})


def typed(node: ast.expr) -> ast.expr:
    """Return an expression without the texts in it."""
    copied = ast.parse(ast.unparse(node), mode="eval").body
    changed: ast.expr = WithoutTexts().visit(copied)
    return changed


def define(node: ast.AST, types: dict[str, ast.stmt], made: dict[str, str]) -> None:
    """Add to `made` the definition of each type that `node` names.

    Raises:
        LookupError: one isn't in the repository.
    """
    for part in ast.walk(node):
        name = part.id if isinstance(part, ast.Name) else ""
        if isinstance(part, ast.Constant) and part.value in types:
            name = str(part.value)
        if not name or name in KNOWN or name in made:
            continue
        found = types[name]
        if isinstance(found, ast.Assign):
            value = typed(found.value)
            define(value, types, made)
            made[name] = f"{name} = {ast.unparse(value)}"
        elif isinstance(found, ast.ClassDef):
            made[name] = ""  # it may name itself
            text = "\n".join(lines_of_class(found, types, made))
            del made[name]  # after the types that it names
            made[name] = text


def lines_of_class(
    found: ast.ClassDef, types: dict[str, ast.stmt], made: dict[str, str]
) -> Iterator[str]:
    for base in found.bases:
        define(base, types, made)
    bases = ", ".join(map(ast.unparse, found.bases))
    if any("dataclass" in ast.unparse(each) for each in found.decorator_list):
        yield "@dataclass"
    yield f"class {found.name}({bases}):" if bases else f"class {found.name}:"
    lines = 0
    for statement in found.body:
        if isinstance(statement, ast.AnnAssign):
            statement.annotation = typed(statement.annotation)
            define(statement.annotation, types, made)
            if statement.value is not None:
                statement.value = typed(statement.value)
                define(statement.value, types, made)
        elif not (isinstance(statement, ast.Assign) and "Enum" in bases):
            continue
        lines += 1
        yield f"    {ast.unparse(statement)}"
    if not lines:
        yield "    pass"


def signature_of(function: ast.FunctionDef, types: dict[str, ast.stmt]) -> dict[str, str]:
    """Return the signature as text, without the context, and the types in it.

    Raises:
        LookupError: a type isn't in the repository.
    """
    made: dict[str, str] = {}
    given = function.args
    positional: list[ast.expr | None] = [None] * (len(given.args) - len(given.defaults))
    parts = []
    for parameter, default in zip(
        given.args + given.kwonlyargs,
        [*positional, *given.defaults, *given.kw_defaults],
        strict=True,
    ):
        annotation = parameter.annotation
        if annotation is not None and "Context" in ast.unparse(annotation):
            continue
        if annotation is None and parameter.arg in ("self", "ctx", "service"):
            raise LookupError(parameter.arg)
        text = parameter.arg
        for sign, node in (": ", annotation), (" = ", default):
            if node is not None:
                node = typed(node)
                define(node, types, made)
                text += sign + ast.unparse(node)
        parts.append(text)
    returns = ""
    if function.returns is not None:
        node = typed(function.returns)
        define(node, types, made)
        returns = f" -> {ast.unparse(node)}"
    words = "*, " * bool(parts) + ", ".join(parts)
    return {"types": "\n".join(made.values()), "signature": f"({words}){returns}"}


def tools_of(repository: Repository) -> Iterator[dict[str, Any]]:
    for file, tree in repository.files.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not any(".tool" in ast.unparse(each) for each in node.decorator_list):
                continue
            about = {"server": repository.name, "commit": repository.commit, "file": file}
            try:
                found = signature_of(node, repository.types_for(file))  # type: ignore[arg-type]
                tool = {**about, "name": node.name, **found}
                function_of(tool)
            except Exception:  # noqa: BLE001 - types that aren't whole without their code
                continue
            if len(found["types"] + found["signature"]) <= MOST_CHARACTERS:
                yield tool


def main() -> None:
    shapes: dict[tuple[str, str], dict[str, Any]] = {}
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        if (folder / "repo").exists():
            for tool in tools_of(Repository(folder)):
                # Of tools that differ only in names of parameters, one is enough.
                shape = re.sub(r"\b\w+(?=[:=])", "_", tool["signature"])
                shapes.setdefault((shape, tool["types"]), tool)
    chosen: list[dict[str, Any]] = []
    count: Counter[str] = Counter()
    # First those with types of their own, then those with many words.
    for tool in sorted(
        shapes.values(),
        key=lambda each: (not each["types"], -len(set(re.findall(r"\w+", each["signature"])))),
    ):
        if len(chosen) < COUNT and count[tool["server"]] < MOST_OF_A_SERVER:
            chosen.append(tool)
            count[tool["server"]] += 1
    chosen.sort(key=lambda each: (each["server"], each["file"], each["name"]))
    SIGNATURES.write_text("".join(f"{json.dumps(each)}\n" for each in chosen), "utf-8")


if __name__ == "__main__":
    main()
