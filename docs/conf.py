"""The documentation site: `python -m sphinx -W docs site`.

The pages are plain Markdown that also reads well in the repository. What only the site needs is
made here: the tables of contents out of `index.md`, the pages outside `docs/`, and links from
docstrings to the public names of the project. The build uses no network.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import inspect
import re
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_origin

from docutils import nodes
from msgspec import Struct
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective
from sphinx.util.logging import getLogger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

DOCS: Final = Path(__file__).parent
ROOT: Final = DOCS.parent
sys.path.insert(0, str(ROOT))

from mcp_core import __version__  # noqa: E402 (needs the path above)

project = "mcp-trio"
author = "The mcp-trio authors"
version = release = __version__
exclude_patterns = ["conf.py"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nitpicky = True  # a reference to a name that no page documents is an error

myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # transcripts of curl, which the lexer for consoles gives up on
]

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Keys", "params_style")]

smartquotes_action = "De"  # dashes and dots; quotation marks mostly enclose strings

html_theme = "furo"
html_title = f"mcp-trio {version}"
html_favicon = "images/favicon.svg"
html_copy_source = False

# Nearly all that a build makes stays to its end: to look for garbage took a quarter of its time.
gc.set_threshold(200_000, 20, 100)

logger: Final = getLogger(__name__)
LONGEST_VALUE: Final = 150  # characters of a constant's value
# The public packages, and the page of each. A name that several export belongs to the first.
PUBLIC: Final = {
    "mcp_trio": "reference/api/mcp_trio",
    "mcp_trio.host": "reference/api/mcp_trio_host",
    "mcp_trio.testing": "reference/api/testing",
    "mcp_trio.testing.strategies": "reference/api/testing",
    "mcp_trio.testing.invariants": "reference/api/testing",
    "mcp_trio.testing.hostile": "reference/api/testing",
    "mcp_asyncio_shim": "reference/api/mcp_asyncio_shim",
    "mcp_core": "reference/api/mcp_core",
    "mcp_core.types": "reference/api/types",
    "mcp_core.registry": "reference/api/registry",
    "mcp_core.drivers": "reference/api/drivers",
    "mcp_core.processes": "reference/api/processes",
    "mcp_core.runtime": "reference/api/runtime",
    "mcp_core.sharing": "reference/api/sharing",
    "mcp_core.tasks": "reference/api/tasks",
    "mcp_core.runtime.tasks": "reference/api/tasks",
    "mcp_core.runtime.sharing": "reference/api/sharing",
    "mcp_core.urls": "reference/api/urls",
    "mcp_core.http": "reference/api/http",
    "mcp_core.auth": "reference/api/auth",
    "mcp_core.host": "reference/api/host",
    "mcp_core.runtime.host": "reference/api/host",
    "mcp_core.contract": "reference/api/contract",
    "mcp_core.trace": "reference/api/trace",
    "mcp_core.adapters": "reference/api/trace",
}

PACKAGES: Final = ("mcp_core", "mcp_trio", "mcp_asyncio_shim")
# Pages of the site for files outside `docs/`.
OUTSIDE: Final = {
    "README.md": "index",
    "CHANGELOG.md": "project/changelog",
    "CONTRIBUTING.md": "project/contributing",
    "SECURITY.md": "project/security",
    "benchmarks/README.md": "project/benchmarks",
    "fuzz/README.md": "project/fuzzing",
}


# -- Markdown -------------------------------------------------------------------------------------

_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#]*)(#[^)]*)?\)")
_SECTION: Final = re.compile(r"^## (.*)\n", re.MULTILINE)


def resolve_links(text: str, folder: Path, page: str) -> str:
    """Point the links of a Markdown text at pages of the site.

    A link to a file that the site does not have becomes the text of the link.

    Args:
        text: the Markdown text.
        folder: the folder that its links are relative to.
        page: the page that shows it, such as `howto/asgi`.
    """
    up = "../" * page.count("/")

    def resolved(link: re.Match[str]) -> str:
        title, path, heading = link[1], link[2], link[3] or ""
        target = (folder / path).resolve()
        if target.is_relative_to(DOCS):
            return f"[{title}]({up}{target.relative_to(DOCS)}{heading})"
        name = OUTSIDE.get(str(target.relative_to(ROOT)))
        return title if name is None else f"[{title}]({up}{name}.md{heading})"

    return _LINK.sub(resolved, text)


def tables_of_contents(text: str) -> str:
    """Return one hidden table of contents for each section of `index.md`, from its links."""
    tables = []
    sections = _SECTION.split(text)
    for title, section in zip(sections[1::2], sections[2::2], strict=True):
        pages = [link[2] for link in _LINK.finditer(section) if link[2].endswith(".md")]
        lines = ["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""]
        tables.append("\n".join(lines))
    return "\n" + "\n".join(tables)


def read_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Prepare the text of a page. One below `project/` shows the file outside `docs/`."""
    shown = {name: path for path, name in OUTSIDE.items() if page.startswith("project/")}
    path = ROOT / shown[page] if page in shown else DOCS / f"{page}.md"
    text = path.read_text("utf-8") if page in shown else source[0]
    source[0] = resolve_links(text, path.parent, page)
    if page == "index":
        source[0] += tables_of_contents(source[0])


# -- Docstrings -----------------------------------------------------------------------------------

_CODE: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def names_of(package: str) -> list[str]:
    """Return the public names of a package."""
    return [name for name in importlib.import_module(package).__all__ if name != "__version__"]


def homes() -> Iterator[tuple[str, str]]:
    """Yield each public name, and the package whose page describes it."""
    for package in PUBLIC:
        for name in names_of(package):
            yield name, package


def find_public(text: str, place: str = "") -> str | None:
    """Return the full name of what `text` names in a docstring: `Server.tool`, `connect(url)`.

    A function is meant only in the package that exports it: elsewhere its name is a plain word.
    """
    name = text.partition("(")[0]
    for prefix in (*PUBLIC, "types"):
        if name.startswith(prefix + "."):
            name = name.removeprefix(prefix + ".")
    first, _, rest = name.partition(".")
    home = HOME.get(first)
    if home is None or (first.islower() and not is_top_level(place, home)):
        return None
    found = getattr(importlib.import_module(home), first)
    for part in filter(None, rest.split(".")):
        if not hasattr(found, part):
            return None
        found = getattr(found, part)
    return None if isinstance(found, ModuleType) else f"{home}.{name}"


def is_top_level(place: str, package: str) -> bool:
    """Return True if `place` is a name of `package`, and not a member of one of its classes."""
    return place.rpartition(".")[0] == package


HOME: Final = dict(reversed(list(homes())))
# Where a class is defined -> its public name, for annotations.
DEFINED: Final = {
    f"{value.__module__}.{value.__qualname__}": f"{package}.{name}"  # as `place_of`
    for name, package in HOME.items()
    if isinstance(value := getattr(importlib.import_module(package), name), type)
}


def read_docstring(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Turn `code` of a docstring into a literal, or into a link if it is a public name."""

    # Python gives each field of a named tuple a docstring: "Alias for field number 0".
    generated = "\n".join(lines).startswith("Alias for field number ")
    if kind == "attribute" and (generated or not any(lines)):
        lines[:] = [ASSIGNED.get(".".join(name.split(".")[-2:]), Assignment("", "")).comment]
    lines[:] = marked("\n".join(lines), name).split("\n")


def marked(text: str, place: str) -> str:
    """Turn `code` into a literal of reStructuredText, or into a link if it is a public name.

    `place` is the full name of what the text describes.
    """

    def replacement(found: re.Match[str]) -> str:
        code = " ".join(found[1].split())
        target = find_public(code, place)
        return f"``{code}``" if target is None else f":py:obj:`{code} <{target}>`"

    return _CODE.sub(replacement, text)


def find_reference(
    app: Sphinx, environment: BuildEnvironment, node: pending_xref, shown: nodes.Element
) -> nodes.Node | None:
    """Resolve a type of the project by its public name. Leave names of other projects as text."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    public = DEFINED.get(target) or find_public(target)
    if public is not None and public != target:
        domain = environment.domains.python_domain
        made = domain.resolve_xref(
            environment, node["refdoc"], app.builder, "obj", public, node, shown
        )
        if made is not None:
            return made
    if target.rpartition(".")[0] in PUBLIC:
        return None  # a public name without a description is an error
    return shown


def release_builtins(app: Sphinx, document: nodes.document) -> None:
    """Show `list` and the like as text: the site has fields of these names, and no such classes."""
    for node in list(document.findall(pending_xref)):
        if node.get("refdomain") == "py" and hasattr(builtins, node["reftarget"]):
            node.replace_self(node.children)


def read_bases(app: Sphinx, name: str, value: type, options: Any, bases: list[Any]) -> None:
    """Leave out base classes that say nothing to a reader."""
    bases[:] = [base for base in bases if is_shown(get_origin(base) or base)]


def is_shown(base: Any) -> bool:
    """Return True for public base classes, Python's exceptions, and other projects' classes."""
    project = base.__module__.partition(".")[0]
    if project == "builtins":
        return issubclass(base, Exception)
    return project not in {"typing", "msgspec", *PACKAGES} or place_of(base) in DEFINED


def place_of(value: type) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def read_signature(
    app: Sphinx, kind: str, name: str, value: Any, options: Any, arguments: str, returned: str
) -> tuple[str, str] | None:
    """Leave out the signature of a struct: its fields follow, each with its type."""
    return ("", "") if isinstance(value, type) and issubclass(value, Struct) else None


class PublicNames(SphinxDirective):
    """Describe public names of a package, from their docstrings.

    The argument is the package, the content the names; without content, all names that no other
    directive of the page lists. Names whose home is another package are listed with a link.
    """

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        module = importlib.import_module(package)
        names = " ".join(self.content).split() or names_of(package)
        lines = [f".. currentmodule:: {package}", ""]
        elsewhere = []
        for name in names:
            home = HOME[name]
            if home != package:
                elsewhere.append(f":py:obj:`{name} <{home}.{name}>`")
                continue
            lines += ["", *description(name, getattr(module, name)), ""]
        if elsewhere:
            lines += ["Also exported: " + ", ".join(elsewhere) + ".", ""]
        return self.parse_text_to_nodes("\n".join(lines))


def description(name: str, value: Any) -> list[str]:
    """Return the reStructuredText that describes one public name."""
    if isinstance(value, ModuleType):
        package = f"mcp_core.{name}"
        return [f"``{name}`` has the names of :doc:`{package} </{PUBLIC[package]}>`."]
    if isinstance(value, type):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        lines = [f".. {kind}:: {name}", "   :members:"]
        if any(map(is_shown, value.__bases__)):
            lines += ["   :show-inheritance:"]
        if issubclass(value, Struct) and "Attributes:" not in (value.__doc__ or ""):
            lines += ["   :undoc-members:"]
        return lines
    if isinstance(inspect.unwrap(value), FunctionType):
        return [f".. autofunction:: {name}"]
    assigned = ASSIGNED[name]
    if not assigned.comment and not name.startswith(("R_", "META_")):  # one comment for all
        logger.warning("no comment describes %s", name)
    value = [f"   :value: {assigned.value}"] if len(assigned.value) <= LONGEST_VALUE else []
    return [f".. py:data:: {name}", *value, "", f"   {marked(assigned.comment, name)}"]


class Assignment(NamedTuple):
    """The source of an assigned value, and the comment at the statement."""

    value: str
    comment: str


def assigned_names() -> Iterator[tuple[str, Assignment]]:
    """Yield what modules and classes of the packages assign: `NAME` or `Class.field`."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        text = path.read_text("utf-8")
        lines = text.splitlines()
        # Also what only one kind of reader assigns, in `if TYPE_CHECKING:` or its `else:`.
        body = ast.parse(text).body
        inner = [each for node in body if isinstance(node, ast.If) for each in _branches(node)]
        for node in [*body, *inner]:
            inside = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for each in node.body if isinstance(node, ast.ClassDef) else [node]:
                match each:
                    case (
                        ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name))
                    ):
                        value = "" if each.value is None else ast.unparse(each.value)
                        yield inside + name, Assignment(value, comment_of(each, lines))


def _branches(node: ast.If) -> list[ast.stmt]:
    return [*node.body, *node.orelse]


def comment_of(node: ast.stmt, lines: list[str]) -> str:
    """Return the comment above a statement and beside it, as one line."""
    first = above = node.lineno - 1
    while above > 0 and lines[above - 1].strip().startswith("# "):
        above -= 1
    last = lines[(node.end_lineno or node.lineno) - 1]
    _, _, beside = last[node.end_col_offset or 0 :].partition("# ")
    comments = [line.strip().removeprefix("# ") for line in lines[above:first]]
    return " ".join(filter(None, [*comments, beside]))


# One without a comment does not replace another of its name.
ASSIGNED: Final = dict(sorted(assigned_names(), key=lambda each: bool(each[1].comment)))


def check_reference(app: Sphinx, environment: BuildEnvironment) -> None:
    """Warn of public names that no page describes."""
    described = {name for name, *_ in environment.domains.python_domain.get_objects()}
    for name, package in HOME.items():
        if f"{package}.{name}" not in described and name != "types":
            logger.warning("no page describes %s.%s", package, name)


def shorten_navigation(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let the theme's navigation, which has titles only, be made of titles only.

    Sphinx would copy the headings and names of all pages for each page, and then drop them.
    """
    if "toctree" in context:
        make_tree = context["toctree"]
        context["toctree"] = lambda **options: make_tree(**options | {"maxdepth": 1})


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the functions above."""
    app.add_directive("public", PublicNames)
    app.connect("source-read", read_page)
    app.connect("autodoc-process-docstring", read_docstring, priority=100)  # before napoleon
    app.connect("autodoc-process-bases", read_bases)
    app.connect("autodoc-process-signature", read_signature)
    app.connect("env-check-consistency", check_reference)
    app.connect("doctree-read", release_builtins)
    app.connect("missing-reference", find_reference, priority=100)
    app.connect("html-page-context", shorten_navigation, priority=400)  # before the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
