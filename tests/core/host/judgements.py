"""The judgements of names, definitions, rules and variables, in `judgements.txt`.

    python -m tests.core.host.judgements

writes the file again.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core.host import (
    NameCollision,
    NameTable,
    QualifiedName,
    ResourceTable,
    ToolNames,
    ToolRule,
    canonical_json,
    compare_pins,
    decide_call,
    define,
    describe_definition,
    describe_definition_change,
    find_warnings,
    fit_name,
    read_resource_label,
    replace_pins,
    resource_label,
)
from mcp_core.host._names import merged_prefix, plain_name, replace_unwritten, written_names
from mcp_core.host._variables_of_code import can_redirect_code, redirects_code
from mcp_core.types import Prompt, ResourceTemplate, Tool, ToolAnnotations
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core.host import Definition

__all__ = ["judged_lines", "judgements_to_make", "kept_judgements"]

_FILE: Final = Path(__file__).with_name("judgements.txt")

_PATTERNS: Final = (
    "", "*", "**", "a", "a*", "*a", "a*b", "a*bc*d", "*bc*", "ab*ba", "a**d", "*a*a*", "abc*cd",
)  # fmt: skip
_TOOLS: Final = (
    "", "a", "b", "d", "ab", "ad", "aa", "aba", "abba", "abcd", "axd", "axbcxd", "abcxd", "abccd",
    "*", "a*",
)  # fmt: skip

_LOOKING: Final = (
    "create_issue", "createIssue", "create-issue", "create.issues", "creat_issue", "craete_issue",
    "crate_issue", "create_isxue", "create_ixxue", "xreate_issue", "create_issux", "rceate_issue",
    "create_issueab", "сreate_issue", "CREATE ISSUE", "create\u200b_issue", "mcp__a__create_issue",
    "search", "seаrch", "Search", "serach", "time", "tine", "modern", "modem", "vvait_a", "wait_a",
    "abcdef", "abcdeg", "abcde", "abcdx", "abcd", "é_issue", "e_issue", "x" * 40, "x" * 39 + "z",
    "x" * 41, "x" * 40 + "z", "x" * 200, "x" * 200 + "z", "l1I_toolname", "lll_toolname",
    # not alike, though they are equal once a letter is left out of each
    "abcdefg", "bcdefgx", "aabbccq", "abbccxq",
)  # fmt: skip

_TEXTS: Final = (
    "use create_issue first", "create_issues", "`search` it", "search it", "'search'", "`search",
    "search`", '"search" x', "x “search”", "search", "`search`", "a/create_issue", "x/search/y",
    "`a/search`", "fs.read", "fs.reader", "my-search", "mcp__github__search",
    "own_tool and create_issue", "Time", "time", "fsRead", "create_issue create_issue fs.read",
    "plain", "a\nb\tc\r\nd\re", "\x1b[31mred", "\x9b1m", "\x07 bell", "\u202eabc\u2066", "\u200b",
    "a\u200bb\u200bc", "\U000e0041", "\u200d joiner", "👩\u200d💻", "❤\ufe0f", "\ufeffa", "\u00ad",
    "\ud800", "a\x1b\u202e\u200b\x01",
)  # fmt: skip

_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 2**53 - 1, -(2**53 - 1), 2**53, 2**53 + 1, -(2**53), 2**53 + 2,
    9223372036854776000, 2**63, 2**64 - 1, 10**20, 10**21, 10**22, 10**400, 0.0, -0.0, 1.0, -1.5,
    0.1, 100.0, 123.456, 1e-5, 1e-6, 1.5e-6, 1e-7, 1.5e-7, 9.99e-7, 1e20, 1.5e20, 1e21, 1.5e21,
    123456789012345680000.0, 1.7976931348623157e308, 5e-324, 0.00001234, 1e16, 1234567890123456.7,
    float("nan"), float("inf"), "", "é", "\u2028", '\x00\x1f\x7f"\\/', "😀", "\ud800", [], {}, [[]],
    [1, "a", None], {"b": 1, "a": 2}, {"😀": 1, "\uffff": 2, "a": 3}, {"a": [{}, {"b": None}]},
    {"a": "x", "B": "y"}, [1.5, {"x": 2**53}], {1: 2}, (1, 2), "1.5", {"a": 1234567890123456},
    {"a": 12345678901234567},
)  # fmt: skip

_NAMES: Final = (
    ("a", "b"), ("", ""), ("a b", "c/d"), ("é", "😀"), ("a", "x" * 57), ("a", "x" * 58),
    ("s" * 70, "t"), ("a", "\ud800"), ("a:b", "c"), ("a%b", "c:d"), ("a\x00b\xa0", "\x7f"),
    ("A-_9", "z"),
)  # fmt: skip
_LABELS: Final = (
    "",
    "@",
    "@a",
    "@a:",
    "@:b",
    "a:b",
    "@a:b:c",
    "@a%3Ab:c",
    "@a b:c",
    "@a\x7f:b",
    "@a%zz:b",
    "@é:é",
)

_VARIABLES: Final = (
    "PATH", "path", "My_Path", "MYPATH", "X_PATH", "PATHX", "PYTHONPATH", "PYTHONUTF8", "PYTHON",
    "PERL5LIB", "_JAVA_OPTIONS", "JAVAX", "LD_PRELOAD", "LD", "LDX", "NODE_ENV", "NODE_OPTIONS",
    "npm-config-registry", "GOPATH", "GOX", "GONOSUMDB", "R", "R_LIBS", "RX", "API_KEY", "apiKey",
    "API_PATH", "SASS_BINARY_HOST", "MY_REGISTRY_URL", "TOKEN", "X", "", "LANG", "LC_ALL", "LC_1",
    "lc_all", "HOME", "XHOME", "X_HOME", "GIT_AUTHOR_NAME", "GIT_TOKEN", "a b", "é_KEY", "KEY",
    "DB-URL", "db.url", "Model", "DEBUG", "X_OPTION", "X_OPTIONS", "X_OPT", "X_ARG", "X_FLAG",
    "X_CONFIG_FILE", "X_INDEX_URL", "X_CA_CERT", "_", "__KEY",
)  # fmt: skip


def judgements_to_make() -> dict[str, Iterator[str]]:
    """Return the lines of each kind of judgement, which are made as they are read, by its name."""
    return {
        "patterns": _of_patterns(),
        "calls": _of_calls(),
        "similar names": _of_similar(),
        "texts": _of_texts(),
        "pins": _of_pins(),
        "values": _of_values(),
        "names": _of_names(),
        "tables": _of_tables(),
        "variables": _of_variables(),
    }


def judged_lines(lines: Iterator[str]) -> str:
    """Return lines as one text, in ASCII."""
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _of_patterns() -> Iterator[str]:
    for pattern, is_pattern in product(_PATTERNS, (True, False)):
        rule = ToolRule(tool=pattern, is_pattern=is_pattern)
        yield f"  {pattern!r} {is_pattern}: {[tool for tool in _TOOLS if rule.matches(tool, 'd')]}"
    for digest in None, "d", "e":
        rule = ToolRule(tool="a", digest=digest)
        yield f"  {digest}: {[each for each in (None, 'd', 'e') if rule.matches('a', each)]}"


def _of_calls() -> Iterator[str]:
    rules = {
        "none": (),
        "allows": (ToolRule(tool="a", lifetime="call"), ToolRule(tool="a", lifetime="session")),
        "always": (ToolRule(tool="a", lifetime="session"), ToolRule(tool="*", is_pattern=True)),
        "denies": (ToolRule(tool="a"), ToolRule(tool="a*", is_pattern=True, is_allowed=False)),
        "other digest": (ToolRule(tool="a", digest="e"), ToolRule(tool="b")),
    }
    for pin in "pinned", "changed", "new", "ambiguous", "absent":
        for name, each in rules.items():
            yield f"  {pin}, {name}: {decide_call('a', pin, is_server_approved=True, rules=each)}"
    hints = (None, ToolAnnotations(), ToolAnnotations(read_only_hint=True))
    for trusted, approve_all, hint in product((False, True), (False, True), hints):
        found = decide_call(
            "a",
            "pinned",
            is_server_approved=True,
            digest="d",
            is_trusted=trusted,
            annotations=hint,
            approve_all=approve_all,
        )
        given = None if hint is None else hint.read_only_hint
        yield f"  {trusted} {approve_all} {given}: {found.verdict} {found.reason}"
    yield f"  {decide_call('a', 'pinned', is_server_approved=False, approve_all=True)}"


def _of_similar() -> Iterator[str]:
    for name in _LOOKING:
        found = []
        for other in _LOOKING:
            known = ToolNames([QualifiedName("a", other)])
            similar = known.find_similar("b", name)
            if similar is not None and other != name:
                found.append(f"{similar[0][:4]} {other[:30]!r} ({len(other)})")
        own = ToolNames([QualifiedName("b", name)]).find_similar("b", name)
        yield f"  {name[:30]!r} ({len(name)}): {', '.join(found)} {own}"


def _of_texts() -> Iterator[str]:
    github = [
        QualifiedName("github", name) for name in ("create_issue", "search", "fs.read", "Time")
    ]
    tools = ToolNames([*github, QualifiedName("evil", "own_tool"), QualifiedName("x", "search")])
    for text in _TEXTS:
        yield f"  {text!r}"
        schema = {"type": "object", "properties": {text: {"description": text, "enum": ["", text]}}}
        for definition in (
            define(text),
            define(Tool(name=text, description=text, input_schema=schema)),
        ):
            for each in find_warnings(definition, "evil", tools):
                yield f"    {definition.kind}: {each.kind} {each.path}: {each.text}"
    many = define(Tool(name="a", input_schema={"enum": ["\x1b"] * 30}))
    yield f"  {len(find_warnings(many, 'evil'))} of 30"
    deep: dict[str, Any] = {"d": "\x1b"}
    for _ in range(40):
        deep = {"property": deep}
    schemas = (deep, *({"x" * length: "\x1b"} for length in (107, 108, 109)))
    for schema in schemas:
        warned = find_warnings(define(Tool(name="a", input_schema=schema)), "b")
        yield f"  {[each.path for each in warned]}"


def _of_pins() -> Iterator[str]:
    old = [
        define("Use the tool. " * 3),
        define(Tool(name="a", description="One. Two.\nThree.", input_schema={"type": "object"})),
        define(Tool(name="b", input_schema={"maximum": 2**64 - 1, "default": 1.0})),
        define(Prompt(name="a", description="p")),
        define(ResourceTemplate(name="t", uri_template="x://H/{a}")),
        define(ResourceTemplate(name="u", uri_template="x:/{u}")),
    ]
    new = [
        define("Use the tool. " * 20),
        define(
            Tool(name="a", description="One. Three.\nTwo. \x1b", input_schema={"type": "object"})
        ),
        define(Tool(name="b", input_schema={"maximum": 2**64 - 1, "default": True})),
        define(Tool(name="c", title="C", input_schema={})),
        define(Tool(name="c", title="D", input_schema={})),
        define(ResourceTemplate(name="t", uri_template="x://h/{a}")),
        define(ResourceTemplate(name="u", uri_template="x:/{u}")),
    ]
    for pins, offered in (old, new), (new, old), (None, new), ([], old), (old, old):
        found = compare_pins(pins, offered)
        yield f"  first {found.is_first_sight}, needs approval {found.needs_approval}"
        for name in "unchanged", "new", "gone", "ambiguous", "offered":
            yield f"    {name}: {[_shown(each) for each in getattr(found, name)]}"
        yield f"    changed: {[(_shown(pin), _shown(each)) for pin, each in found.changed]}"
        yield f"    states: {found.states()}"
        yield f"    replaced: {[_shown(each) for each in replace_pins(pins, offered)]}"
        for pin, each in found.changed:
            for limit in None, 0, 1, 2:
                yield f"    limit {limit}: {list(describe_definition_change(pin, each, limit))}"
    for each in (*old, *new):
        yield f"  {_shown(each)}: {list(describe_definition(each))}"


def _shown(definition: Definition) -> str:
    return f"{definition.kind} {definition.name} {definition.digest[7:13]}"


def _of_values() -> Iterator[str]:
    for value in _VALUES:
        shown = repr(value) if not isinstance(value, int) or value < 10**30 else "10**400"
        yield f"  {shown}: {_tried(canonical_json, value)}"


def _of_names() -> Iterator[str]:
    for server, name in _NAMES:
        merged = f"{server}__{name}"
        yield f"  {server[:20]!r} {name[:20]!r}: {fit_name(merged)!r} {merged_prefix(server)!r}"
        yield f"    {plain_name(server, name)[:20]!r} {replace_unwritten(merged)!r}"
        yield f"    {sorted(written_names(server, name))} {str(QualifiedName(server, name))!r}"
        label = resource_label(server, name)
        yield f"    {label!r} {read_resource_label(label)!r}"
    for label in _LABELS:
        yield f"  {label!r}: {read_resource_label(label)!r}"


def _of_tables() -> Iterator[str]:
    table = NameTable()
    for server, names in (
        ("a", ["x", "x", "b__y"]),
        ("a__b", ["y"]),
        ("c", ["x y", "x_y"]),
        ("a", ["z"]),
    ):
        table.set_server(server, names)
        yield f"  {server} {names}: {len(table)} {list(table)}"
        yield from (f"    ! {each} {each.merged} {each.names}" for each in table.collisions())
    for server, name in ("a", "z"), ("c", "x y"), ("a__b", "y"):
        merged = table.merged(server, name)
        yield f"  {merged} {table.find(merged)} {table.find('none')}"
    table.discard_server("c")
    table.discard_server("none")
    yield f"  {len(table)} {list(table)}"
    resources = ResourceTable()
    uris = (
        "x:1",
        "X:1",
        "x:2",
        "mcp-gateway://a/x%3A1",
        "MCP-GATEWAY://b/x:9",
        "mcp-gateway:x",
        "@a",
        "x:%7e",
    )
    for server, listed in ("a", uris), ("b", ["x:2", "x:~"]), ("c", ["x:2"]):
        resources.set_server(server, listed)
        yield f"  {server}: {len(resources)} {[str(each) for each in resources.collisions()]}"
        for uri in (
            *uris,
            "x:~",
            "x:%7E",
            "mcp-gateway://",
            "mcp-gateway://a",
            "mcp-gateway://a/",
            "mcp-gateway:///x",
        ):
            wires = [resources.wire_uri(each, uri) for each in ("a", "b")]
            yield f"    {uri}: {wires} {_tried(resources.find, uri)}"
    resources.discard_server("a")
    yield f"  {len(resources)} {resources.find('x:1')} {resources.find('x:%7E')}"


def _of_variables() -> Iterator[str]:
    for name in _VARIABLES:
        yield f"  {name!r}: {redirects_code(name)} {can_redirect_code(name)}"


def _tried(function: Callable[..., Any], *args: Any) -> str:
    try:
        return repr(function(*args))
    except TypeError:  # of the encoder: its text depends on the version
        return "! TypeError"
    except (ValueError, NameCollision) as error:
        return f"! {type(error).__name__} {str(error)[:100]}"


def kept_judgements() -> dict[str, str]:
    """Return the lines in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: judged_lines(lines) for name, lines in judgements_to_make().items()})
