"""The reference pages are complete, and agree with the code."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

import mcp_asyncio_shim
import mcp_trio
from mcp_core import CLIENT_LIMITS, DIALECTS, Fault, Limits, McpTrioError, Rate
from mcp_core.client._options import ClientConfigOptions
from mcp_core.host import CatalogLimits
from mcp_core.http import HttpLimits
from mcp_core.protocol.revisions._config import PROBE_TIMEOUT
from mcp_core.runtime import Runtime
from mcp_core.runtime.host import HostLimits, HostOptions
from mcp_core.runtime.host._servers import HOST_TIMEOUT
from mcp_core.tasks import TaskLimits
from mcp_trio._connect import ClientOptions
from mcp_trio.http_server._serve import serve_http
from tests.examples.pages import PAGES, read
from tests.examples.reference import TABLES
from tests.layering.rules import PUBLIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

OPTIONS = "docs/reference/options-and-limits.md"
ERRORS = "docs/reference/errors.md"
_UNITS = {"KiB": 1024, "MiB": 1024 * 1024}


def section(page: str, title: str) -> str:
    """Return the text below a heading, up to the next one."""
    [text] = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", read(page), re.MULTILINE | re.DOTALL)
    assert isinstance(text, str)
    return text


def rows(text: str) -> list[list[str]]:
    """Return the cells of all tables, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    heads = {number - 1 for number, line in enumerate(lines) if set(line) <= set("|-: ")}
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for number, line in enumerate(lines)
        if number not in heads and number - 1 not in heads
    ]


def options_of(title: str) -> dict[str, str]:
    """Return the options in a section, and their defaults as they are shown."""
    return {
        name: cells[2]
        for cells in rows(section(OPTIONS, title))
        for name in re.findall(r"`(\w+)`", cells[0])
    }


def number(shown: str) -> Any:
    """Return the value that a cell shows, or the cell itself."""
    if shown in {"None", "True", "False"}:
        return {"None": None, "True": True, "False": False}[shown]
    if rate := re.fullmatch(r"([\d,]+)/s, burst ([\d,]+)", shown):
        return Rate(float(rate[1].replace(",", "")), int(rate[2].replace(",", "")))
    amount = re.fullmatch(r"([\d,.]+)(?: ([KM]iB))?", shown)
    if amount is None:
        return shown.strip("`").strip("'")
    return float(amount[1].replace(",", "")) * _UNITS.get(amount[2], 1)


def parameters(function: Callable[..., Any], *without: str) -> dict[str, inspect.Parameter]:
    found = inspect.signature(function).parameters
    return {
        name: each
        for name, each in found.items()
        if each.kind is not each.VAR_KEYWORD and name not in {"task_status", *without}
    }


# What the page shows in words: a table in another place, a union, or an empty collection.
IN_WORDS = {
    "all",
    "none",
    "mcp alone",
    "required",
    "Limits()",
    "HttpLimits()",
    "Grace()",
    "the system's trust",
}


@pytest.mark.parametrize(
    ("title", "function"), [("Server", mcp_trio.Server), ("HTTP server", serve_http)]
)
def test_options_page_lists_parameters_with_defaults(
    title: str, function: Callable[..., Any]
) -> None:
    expected = parameters(function)
    shown = options_of(title)
    assert shown.keys() == expected.keys()
    for name, default in shown.items():
        if default.strip("`") not in IN_WORDS:
            assert number(default) == expected[name].default, name


@pytest.mark.parametrize(
    ("title", "options"),
    [
        ("Tools", mcp_trio.ToolOptions),
        ("Resources", mcp_trio.ResourceOptions),
        ("Prompts", mcp_trio.PromptOptions),
        ("Calls", mcp_trio.CallOptions),
    ],
)
def test_options_page_lists_keywords(title: str, options: Any) -> None:
    assert options_of(title).keys() == keys(options)


def keys(options: Any) -> set[str]:
    return set(options.__required_keys__ | options.__optional_keys__)


def test_options_page_lists_options_of_clients() -> None:
    """Names and defaults come from the signatures, so a new option fails until it is described."""
    url = parameters(mcp_trio.connect_http, *keys(ClientOptions), "url")
    child = parameters(mcp_trio.connect_stdio, *keys(ClientOptions), "argv")
    expected: set[str] = {*keys(ClientOptions), *url, *child, "stdin", "terminate"}
    shown = options_of("Client")
    assert shown.keys() == expected
    assert keys(ClientConfigOptions) <= shown.keys()
    for name, parameter in {**url, **child}.items():
        if shown[name].strip("`") not in IN_WORDS:
            assert number(shown[name]) == parameter.default, name
    grace = mcp_trio.Grace()
    assert (number(shown["stdin"]), number(shown["terminate"])) == (grace.stdin, grace.terminate)
    assert number(shown["probe_timeout"]) == PROBE_TIMEOUT
    assert number(shown["max_listing"]) == CLIENT_LIMITS.listing
    websocket = parameters(mcp_trio.connect_websocket, *keys(ClientOptions), "url")
    assert url.keys() - websocket.keys() == {"auth", "prior_knowledge"}


@pytest.mark.parametrize(
    ("title", "limits"),
    [
        ("Limits of a connection", Limits),
        ("Limits of tasks", TaskLimits),
        ("Limits of a host", HostLimits),
        ("Limits of the lists of a server", CatalogLimits),
        ("Limits of an endpoint", HttpLimits),
    ],
)
def test_options_page_lists_limits_with_defaults(title: str, limits: type[msgspec.Struct]) -> None:
    shown = options_of(title)
    expected = {field.name: field.default for field in msgspec.structs.fields(limits)}
    if limits is HostLimits:
        assert expected["catalog"] == CatalogLimits()
        expected["catalog"] = "CatalogLimits()"
    assert {name: number(default) for name, default in shown.items()} == expected


_AMOUNT: Final = re.compile(r"(\d[\d,.]*)(?: (KiB|MiB|s|min|bytes))?(?:, |$)")
_AMOUNTS: Final = {"KiB": 1024, "MiB": 1024**2, "min": 60}


def limits_in_tables(page: str) -> Iterator[tuple[type[msgspec.Struct], list[str], str]]:
    """Yield the rows of the tables whose head names a class of limits: names, and what is shown."""
    classes = {each.__name__: each for each in (Limits, HttpLimits, TaskLimits, HostLimits)}
    limits = None
    for line in read(page).splitlines():
        if not line.startswith("|"):
            limits = None
            continue
        first, shown = [cell.strip() for cell in line.split("|")[1:3]]
        if first.strip("`") in classes:
            limits = classes[first.strip("`")]
        elif limits is not None and not first.startswith("-"):
            yield limits, re.findall(r"`(\w+)`", first), shown


def test_howto_tables_of_limits_show_the_defaults() -> None:
    """Numbers in prose go stale silently: each one in a table is compared with the code."""
    compared = 0
    for page in PAGES:
        for limits, names, shown in limits_in_tables(page):
            defaults = [getattr(limits(), name) for name in names]
            values: list[Any] = [
                float(amount.replace(",", "")) * _AMOUNTS.get(unit, 1)
                for amount, unit in _AMOUNT.findall(shown)
            ]
            if isinstance(defaults[0], Rate):
                values = [number(shown)]
            if shown == "10 times `message`":
                values = [10 * Limits().message]
            assert (values if len(values) > 1 else values * len(names)) == defaults, (page, names)
            compared += len(names)
    assert compared >= 25


def test_embedding_page_names_methods_of_the_runtime() -> None:
    page = read("docs/howto/embedding-the-core.md")
    table = page.partition("| method of `Runtime` |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert "report" in named
    assert [name for name in named if not hasattr(Runtime, name)] == []
    assert set(re.findall(r"implement `(\w+)` and `(\w+)`", page)[0]) <= set(named)


def test_options_page_lists_options_of_hosts() -> None:
    shown = options_of("Host")
    own = parameters(mcp_trio.Host, *keys(HostOptions))
    assert shown.keys() == {*keys(HostOptions), *own}
    assert parameters(mcp_asyncio_shim.Host, *keys(HostOptions)).keys() == {
        "servers",
        "env",
        "inherit_env",
        "record",
    }
    for name, parameter in own.items():
        assert number(shown[name]) == parameter.default, name
    for name in "connect_timeout", "call_timeout", "wait":
        assert number(shown[name]) == HOST_TIMEOUT, name


def test_options_page_names_limits_that_clients_change() -> None:
    changed = {
        field.name
        for field in msgspec.structs.fields(Limits)
        if getattr(CLIENT_LIMITS, field.name) != field.default
    }
    assert changed == {"message", "decoded", "waiting"}
    text = section(OPTIONS, "Limits of a connection")
    assert "`message` (32 MiB) and `waiting` (0), and so in `decoded` (320 MiB)" in " ".join(
        text.split()
    )


def test_options_page_lists_options_of_asgi() -> None:
    listed = set(re.findall(r"`(\w+)`", section(OPTIONS, "ASGI").partition("`: ")[2]))
    listed |= {"path"}  # the first one, before which the partition is
    for function in mcp_trio.asgi, mcp_asyncio_shim.asgi:
        assert listed >= parameters(function, "server").keys()


# -- Errors ---------------------------------------------------------------------------------------


def public_errors() -> Iterable[str]:
    for package in PUBLIC | {"mcp_trio", "mcp_trio.testing.invariants"}:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, McpTrioError):
                yield name


def test_errors_page_lists_every_public_error_with_cause_and_cure() -> None:
    before, _, _ = read(ERRORS).partition("## JSON-RPC codes")
    listed = rows(before)
    assert {cells[0].strip("`") for cells in listed} == set(public_errors())
    assert all(all(cells) for cells in listed)


def test_errors_page_lists_codes_of_every_fault() -> None:
    shown = {
        cells[0].strip("`"): (int(cells[1]), int(cells[2]))
        for cells in rows(section(ERRORS, "JSON-RPC codes"))
    }
    *earlier, modern = DIALECTS.values()
    assert shown == {fault.name: (earlier[-1].codes[fault], modern.codes[fault]) for fault in Fault}
    assert all(row.codes == earlier[-1].codes for row in earlier)


# -- Revisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("title", TABLES)
def test_revisions_page_has_tables_of_data(title: str) -> None:
    """To mend it, copy the output of `python -m tests.examples.reference`."""
    assert TABLES[title]() in section("docs/reference/revisions.md", title)


def test_limit_that_is_missing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    text = read(OPTIONS)
    without = re.sub(r"^\| `batch` .*\n", "", text, flags=re.MULTILINE)
    assert without != text
    monkeypatch.setattr(f"{__name__}.read", lambda page: without)
    with pytest.raises(AssertionError):
        test_options_page_lists_limits_with_defaults("Limits of a connection", Limits)
