"""Find the words that the project does not use, in the texts that people read.

1. Prose is: docstrings, comments, names of test functions, the texts of `raise` and of log calls,
   and Markdown.
2. Code spans, code blocks and text in double quotes are not prose. Neither is any other string
   literal.
3. A banned word is one hit each time. A counted word has plain uses too, so only its frequency is
   limited.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BANNED: Final = (
    *("whoever", "whomever", "nobody", "somebody", "anybody", "whatever", "wherever"),
    *(
        "what is no",
        "what is none",
        "who asks",
        "who waits",
        "of ours",
        "of theirs",
        "of its own accord",
    ),
    *("stands open", "stands once", "at the door", "put up with", "tells of", "take leave"),
    *("he", "him", "his", "she", "her"),  # code and peers are "it", a user is "they"
)
OPENINGS: Final = ("what", "who", "of")  # as the first word of a docstring or of a test name
COUNTED: Final = (
    *(
        "told",
        "heard",
        "said",
        "say so",
        "is none",
        "let in",
        "let go",
        "take up",
        "taken up",
        "come back",
    ),
    *("give up", "hang up", "turn away", "last words"),
)
MAX_PER_THOUSAND: Final = 0.5  # counted words in a thousand words of a package

_LOG_METHODS: Final = frozenset(
    {"critical", "debug", "error", "exception", "info", "log", "warning"}
)
# Strings come first, so that a `#` inside one begins no comment.
_STRING_OR_COMMENT: Final = re.compile(
    r"""
    \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} |
    "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' |
    (?P<comment>\#[^\n]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE: Final = re.compile(r"^(type: ignore|noqa|fmt: |pragma: )[^ ]*( [A-Z]+\d+,?)*( - )?")
_CODE_SPAN: Final = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_QUOTATION: Final = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d")
_LINK_TARGET: Final = re.compile(r"\]\([^)]*\)|<https?://[^>]*>")
_FENCE: Final = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def _pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    either = "|".join(sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?:{either})(?![\w-])", re.IGNORECASE)


_BANNED: Final = _pattern(BANNED)
_COUNTED: Final = _pattern(COUNTED)
_OPENING: Final = re.compile(rf"^(?:{'|'.join(OPENINGS)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Prose:
    """One paragraph without its code and quotations, and the line on which its text begins."""

    line: int
    text: str
    first: bool = False  # the beginning of a docstring, or a test name

    @property
    def banned(self) -> list[str]:
        """The banned words in it, in order."""
        found = _BANNED.findall(self.text)
        if self.first and (opening := _OPENING.match(self.text)):
            found.insert(0, f"{opening[0]} (as the first word)")
        return found

    @property
    def counted(self) -> list[str]:
        """The counted words in it, in order; `is None` is code, not the counted word."""
        return [word for word in _COUNTED.findall(self.text) if not word.endswith("None")]

    @property
    def words(self) -> int:
        """The number of words."""
        return len(_WORD.findall(self.text))


def prose_of_python(source: str) -> Iterator[Prose]:
    """Return the prose of a module."""
    return prose_of_module(source, ast.parse(source))


def prose_of_module(source: str, tree: ast.Module) -> Iterator[Prose]:
    """Return the prose of a module that was parsed before."""
    yield from _comments(source)
    yield from _of_statements([tree])


def prose_of_markdown(source: str) -> Iterator[Prose]:
    """Return the prose of a Markdown text, without code and block quotations."""
    text = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), source)
    text = re.sub(r"^ *>.*$", "", _LINK_TARGET.sub("]", text), flags=re.MULTILINE)
    yield from _paragraphs(text, 1)


def _comments(source: str) -> Iterator[Prose]:
    """Join comments on consecutive lines: a phrase or a quotation may go on in the next one."""
    block: list[str] = []
    last = line = end = 0
    for match in _STRING_OR_COMMENT.finditer(source):
        comment = match["comment"]
        if comment is None:
            continue
        line += source.count("\n", end, match.start())
        end = match.start()
        if block and line != last + 1:
            yield from _paragraphs("\n".join(block), last - len(block) + 2)
            block = []
        block.append(_DIRECTIVE.sub("", comment.lstrip("#!: ")))
        last = line
    yield from _paragraphs("\n".join(block), last - len(block) + 2)


def _of_statements(statements: Iterable[ast.AST]) -> Iterator[Prose]:
    # Only the expressions in `raise` and in log calls are read: to walk all of them takes longer
    # than everything else.
    for node in statements:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if not isinstance(node, ast.Module) and node.name.startswith("test_"):
                yield Prose(
                    node.lineno, node.name.removeprefix("test_").replace("_", " "), first=True
                )
            yield from _docstring(node)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _messages(node.exc)
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and _is_log_call(node.value)
        ):
            yield from _messages(node.value)
        for name in "body", "orelse", "handlers", "finalbody", "cases":
            yield from _of_statements(getattr(node, name, ()))


def _docstring(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[Prose]:
    text = ast.get_docstring(node, clean=False)
    if text is None:
        return
    text = re.sub(rf"^ {{{node.body[0].col_offset}}}", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(>>>|\.\.\. ).*$", "", text, flags=re.MULTILINE)
    # An indented block after `::` is code.
    text = re.sub(r"::\n\n(( +[^\n]*)?\n)+", lambda code: "\n" * code[0].count("\n"), f"{text}\n")
    for at, prose in enumerate(_paragraphs(text, node.body[0].lineno)):
        yield Prose(prose.line, prose.text, first=at == 0)


def _is_log_call(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in _LOG_METHODS
        and "log" in ast.unparse(call.func.value).rpartition(".")[2].lower()
    )


def _messages(call: ast.Call) -> Iterator[Prose]:
    """Return the texts among the arguments of a call; a value in an f-string becomes `x`."""
    inside: set[ast.AST] = set()
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        for node in ast.walk(argument):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else "x" for part in node.values
                )
                yield from _paragraphs("".join(map(str, parts)), node.lineno)
                inside.update(node.values)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and node not in inside
            ):
                yield from _paragraphs(node.value, node.lineno)


def _paragraphs(text: str, line: int) -> Iterator[Prose]:
    for paragraph in re.split(r"(\n[ \t]*(?=\n))", text):
        plain = _QUOTATION.sub(" ", _CODE_SPAN.sub(" ", " ".join(paragraph.split())))
        if plain.strip():
            before = paragraph[: len(paragraph) - len(paragraph.lstrip())]
            yield Prose(line + before.count("\n"), plain)
        line += paragraph.count("\n")
