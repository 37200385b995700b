"""A program for which MCP has one revision more. `test_sixth_revision.py` runs it.

    python -m tests.sixth_revision NAME ARGUMENT...

`NAME` is one of its functions without an underscore, such as `serve`.

It adds the revision to the two tables of the engine while they are imported, as a new revision
would be added to the files. Nothing else is changed.
"""

from __future__ import annotations

import importlib.machinery
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

    from mcp_trio import Server
    from tests.core.trace.judge.conversations import Sent

__all__ = ["NEW", "NEWEST", "ROOT", "command"]

NEW: Final = "2026-12-01"
NEWEST: Final = "2026-07-28"  # of those that exist
ROOT: Final = Path(__file__).parents[1]


def command(*arguments: str) -> list[str]:
    """Return the command line of this program. Its working directory is `ROOT`."""
    return [sys.executable, "-m", "tests.sixth_revision", *arguments]


# -- The tables ------------------------------------------------------------------------------------


def _with_name(source: str) -> str:
    """Return the table of revisions with the new one."""
    source = _replaced(source, f'"{NEWEST}"\n', f'"{NEWEST}"\nR_NEW: Final = "{NEW}"\n')
    source = _replaced(source, "    R_2026_07_28,\n)", "    R_2026_07_28,\n    R_NEW,\n)")
    return _replaced(source, "D, E = REVISIONS", "D, E, F = REVISIONS")


def _with_dialect(source: str) -> str:
    """Return the table of dialects with a copy of the newest one."""
    begin, end = "        Dialect(\n            R_2026_07_28,", "    )\n}\n"
    row = begin + source.partition(begin)[2].partition(end)[0]
    source = _replaced(source, row, row + row.replace("R_2026_07_28", "R_NEW"))
    return _replaced(source, "    R_2026_07_28,\n    REV", "    R_2026_07_28,\n    R_NEW,\n    REV")


def _replaced(source: str, old: str, new: str) -> str:
    assert source.count(old) == 1, f"the table has changed: {old!r}"
    return source.replace(old, new)


_TABLES: Final = {
    "mcp_core.types._revisions": _with_name,
    "mcp_core.protocol.revisions._dialects": _with_dialect,
}


class _Loader(importlib.machinery.SourceFileLoader):
    """A loader of a changed source, which keeps no bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        source = _TABLES[fullname](Path(self.path).read_text("utf-8"))
        return compile(source, self.path, "exec")


class _Finder:
    """A finder of the two tables."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _TABLES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(name, spec.origin)
        return spec


# -- What is played --------------------------------------------------------------------------------


def _server() -> Server:
    import mcp_trio
    from mcp_core import types as t

    server = mcp_trio.Server("new")

    @server.tool(annotations=t.ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


def serve() -> None:
    """Serve a tool on stdin and stdout."""
    import mcp_trio

    mcp_trio.run(_server())


def serve_http() -> None:
    """Serve the tool over HTTP, and print the URL on stderr."""
    import trio

    import mcp_trio

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            address = await nursery.start(mcp_trio.serve_http, _server())
            print(address.url, file=sys.stderr, flush=True)

    trio.run(run)


def connect(path: str, *server: str) -> None:
    """Call the tool of a server, record that to a file, and print what the judge says of it.

    Args:
        path: the file.
        server: the server's URL, or its command line; by default of `serve`.
    """
    import trio

    from mcp_core.trace import Judge, read_trace
    from mcp_trio import connect as connect_server

    target = server[0] if len(server) == 1 else server or command("serve")

    async def call() -> dict[str, Any]:
        async with connect_server(target, record=path) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
            return {"revision": client.peer.dialect.version, "answer": result.structured_content}

    found = trio.run(call)
    with Path(path).open("rb") as file:
        header, lines = read_trace(file)
        judge = Judge(header, from_start=True)
        findings = [each for number, line in lines for each in judge.receive(line, number)]
    findings += judge.close()
    rows = {"findings": [each.row for each in findings], "judged": [*judge.opportunities]}
    print(json.dumps({**found, **rows}))


def judge() -> None:
    """Judge the conversations for the newest revision, and the same ones in the new one.

    Prints the rows that are judged in each, how many conversations there are, and the rows of those
    with another verdict.
    """
    from mcp_core.trace.judge.rules import RULES
    from tests.core.trace.judge.rules.test_rules import CASES

    judged = {
        revision: sorted(filter(None, {each.row_for((revision,)) for each in RULES}))
        for revision in (NEWEST, NEW)
    }
    conversations = [
        (each.row, said)
        for each in CASES
        if each.revision == NEWEST
        for said in (each.fails, each.passes, each.none)
    ]
    other = [row for row, said in conversations if _verdict(said, NEWEST) != _verdict(said, NEW)]
    report = {
        "judged": judged,
        "conversations": len(conversations),
        "other": other,
    }
    print(json.dumps(report))


def _verdict(said: Sequence[Sent], revision: str) -> tuple[Any, ...]:
    """Return what the judge finds in a conversation if its messages are of a revision."""
    from mcp_core.trace import Judge, TraceHeader, TraceLine, encode_line, read_line
    from tests.core.trace.judge.conversations import as_lines

    judge = Judge(TraceHeader(format_version=1, transport="stdio"), from_start=True)
    findings = []
    for line in as_lines(said, NEWEST):
        of_revision = read_line(encode_line(line).replace(NEWEST.encode(), revision.encode()))
        assert isinstance(of_revision, TraceLine)
        findings += judge.receive(of_revision)
    findings += judge.close()
    texts = [(each.row, each.is_certain, each.side, each.lines) for each in findings]
    return texts, sorted(judge.opportunities.items())


def mcp(*arguments: str) -> None:
    """Run the command `mcp-trio`."""
    from mcp_trio.cli import main

    sys.exit(main(arguments))


if __name__ == "__main__":
    sys.meta_path.insert(0, _Finder())
    globals()[sys.argv[1]](*sys.argv[2:])
