"""The committed figures of `compare.py`, and the tables that are made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.targets import TARGETS

__all__ = [
    "FILE",
    "MEASURES",
    "PAGES",
    "Measure",
    "cell",
    "read",
    "row_table",
    "tables",
    "with_tables",
]

FILE: Final = Path(__file__).with_name("compared.json")
# The pages with tables of these figures.
PAGES: Final = ("README.md", "docs/explanation/performance.md", "benchmarks/README.md")


class Measure(NamedTuple):
    """A kind of figure.

    Attributes:
        title: what stands before it in a table.
        unit: the unit of its figures in the file.
        is_rate: whether more is better.
    """

    title: str
    unit: str
    is_rate: bool = False

    def times_better(self, value: float, reference: float) -> float:
        """Return how many times better `value` is."""
        return value / reference if self.is_rate else reference / value


MEASURES: Final = {
    "rate": Measure("", "calls/s", is_rate=True),
    "p50": Measure("p50", "µs"),
    "p99": Measure("p99", "µs"),
    "events": Measure("", "events/s", is_rate=True),
    "cpu": Measure("processor time", "µs"),
    "sequential": Measure("one call at a time", "calls/s", is_rate=True),
    "sequential_cpu": Measure("processor time", "µs"),
    "concurrent": Measure("32 at a time", "calls/s", is_rate=True),
    "concurrent_cpu": Measure("processor time", "µs"),
    "start": Measure("", "ms"),
    "start_cpu": Measure("processor time", "ms"),
    "import": Measure("processor time", "ms"),
    "memory": Measure("", "MB"),
    "session": Measure("memory of each", "KiB"),
    "few_cpu": Measure("processor time of a call beside ten", "µs"),
    "many_cpu": Measure("processor time of a call beside all", "µs"),
}

# What stands in the README, and there and in `performance.md`: row, measure, and what it is called.
_SUMMARY: Final = (
    ("stdio", "rate", "stdio, calls of 100 B, 64 in flight, calls/s"),
    ("stdio_sequential", "p50", "stdio, one call at a time, median, µs"),
    ("stdio_1mb", "rate", "stdio, calls of 1 MB, 8 in flight, calls/s"),
    ("http_sse", "rate", "HTTP, 16 clients, sessions, SSE, calls/s"),
    ("http_modern", "rate", "HTTP, 16 clients, 2026-07-28, calls/s"),
    ("client_stdio", "concurrent", "client, 32 calls at a time, calls/s"),
    ("start", "start", "start of a server to its first answer, ms"),
    ("sessions", "session", "memory of an idle HTTP session, KiB"),
)
_PEERS: Final = ("mcp", "fastmcp", "ts1", "ts2")
_LIBRARIES: Final = ("ours", "ours_async", "mcp", "mcpserver", "fastmcp", "ts1", "ts2")
_FLOORS: Final = {
    "bytes only": ("pipe",),
    "floor": ("inline", "h11"),
    "floor, a task a call": ("task",),
}


def read() -> dict[str, Any]:
    """Return the committed figures."""
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


# -- Tables ----------------------------------------------------------------------------------------


def cell(row: dict[str, Any], measure: str, *names: str) -> str:
    """Return the figure of the first of these targets that has one, or nothing.

    It begins with "≥" if the load itself couldn't call faster.
    """
    figures = row["measures"].get(measure, {}).get("figures", {})
    for name in names:
        if name in figures:
            bound = MEASURES[measure].is_rate and name in row.get("load_bound", ())
            return ("≥ " if bound else "") + _digits(figures[name])
    return ""


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _ratio(row: dict[str, Any], measure: str, *names: str) -> str:
    """Return how many times better ours is than the first of these targets that has a figure."""
    found = row["measures"].get(measure)
    if found is None or "ours" not in found["figures"]:
        return ""
    if names == ("mcp",):  # as the median of the rounds
        ratio = found["ratios"].get("ours")
    else:
        others = [found["figures"][name] for name in names if name in found["figures"]]
        ours = found["figures"]["ours"]
        ratio = MEASURES[measure].times_better(ours, others[0]) if others else None
    return "" if ratio is None else _digits(ratio) if ratio >= 10 else f"{ratio:.2f}"


def _table(head: list[str], lines: list[list[str]]) -> str:
    """Return a table in Markdown. Its first column is text, the others are numbers."""
    rule = "|".join(["---", *["--:"] * (len(head) - 1)])
    rows = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([f"| {' | '.join(head)} |", f"|{rule}|", *rows]) + "\n"


def row_table(row: dict[str, Any]) -> str:
    """Return one row of a comparison: a column for each target, and a line for each measure."""
    names = [
        name for name in TARGETS if any(name in m["figures"] for m in row["measures"].values())
    ]
    lines = [
        [f"{_name(key)}", *(cell(row, key, name) for name in names), _ratio(row, key, "mcp")]
        for key in row["measures"]
    ]
    return _table([row["title"], *(TARGETS[name].title for name in names), "ours / mcp"], lines)


def _name(measure: str) -> str:
    return ", ".join(filter(None, [MEASURES[measure].title, MEASURES[measure].unit]))


def _summary(data: dict[str, Any], names: tuple[str, ...]) -> str:
    lines = []
    for key, measure, title in _SUMMARY:
        row = data["rows"][key]
        cells = [cell(row, measure, name) for name in names]
        lines.append([title, *cells, _ratio(row, measure, "mcp")])
    return _table(["", *(TARGETS[name].title for name in names), "ratio"], lines)


def _complete(data: dict[str, Any]) -> str:
    """Return the table of all figures."""
    lines = []
    for row in data["rows"].values():
        for number, measure in enumerate(row["measures"]):
            title = f"... {_name(measure)}" if number else f"{row['title']}, {_name(measure)}"
            cells = [cell(row, measure, name) for name in _LIBRARIES]
            cells += [cell(row, measure, *names) for names in _FLOORS.values()]
            ratios = [_ratio(row, measure, "mcp"), _ratio(row, measure, *_FLOORS["floor"])]
            lines.append([title, *cells, *ratios])
    titles = [TARGETS[name].title for name in _LIBRARIES]
    return _table(["", *titles, *_FLOORS, "ours / SDK", "ours / floor"], lines)


_NAMES: Final = {
    "mcp": "`mcp` {}",
    "fastmcp": "FastMCP {}",
    "@modelcontextprotocol/sdk": "`@modelcontextprotocol/sdk` {}",
    "@modelcontextprotocol/server": "`@modelcontextprotocol/server` {}",
}


def _facts(data: dict[str, Any]) -> str:
    """Return a paragraph about the run."""
    peers = [
        text.format(data["versions"][name])
        for name, text in _NAMES.items()
        if name in data["versions"]
    ]
    low, high = data["load"]
    load = f"a load average of {low:g} to {high:g} by all that ran"
    if data["real_time"]:
        load += ", the measured programs with real-time priority"
    node = f", Node {data['node']}" if "node" in data else ""
    machine = f"{data['system']}, {data['cores']} cores, {load}"
    return (
        f"{data['date']}, Python {data['python']}{node}, {machine}, {data['rounds']} rounds:"
        f" {', '.join(peers)}.\n"
    )


def tables(data: dict[str, Any]) -> dict[str, str]:
    """Return what stands between the markers of the pages, by the name in the marker."""
    return {
        "facts": _facts(data),
        "summary": _summary(data, ("ours", *_PEERS)),
        "libraries": _summary(data, _LIBRARIES),
        "all": _complete(data),
    }


def with_tables(text: str, made: dict[str, str]) -> str:
    """Return a page with each table between its markers, `<!-- compared: NAME -->` and `end`."""
    for name, content in made.items():
        head, marker, rest = text.partition(f"<!-- compared: {name} -->\n")
        if marker:
            text = head + marker + content + rest[rest.index("<!-- end -->") :]
    return text
