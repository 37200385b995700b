"""Files for a model, in directories that both the operator and the client allow.

    mcp-trio call read_file path=todo.txt --root ~/notes -- python files.py ~/notes

The directories of the command line are the limit. The client's roots are guidance, not a
permission: they narrow the limit, and never widen it. A client without roots gets the whole limit.
Without arguments the program is a client of itself, in a directory of its own.
"""

import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import trio

import mcp_trio
from mcp_core import ALL
from mcp_core.registry import Context, Proceed, RootsContext, Server
from mcp_core.types import Root, ToolAnnotations

MAX_BYTES, MAX_NAMES = 100_000, 1_000
READS = ToolAnnotations(read_only_hint=True)


def path_of(root: Root) -> Path | None:
    """Return the directory of a root, or None if it isn't on this machine."""
    parts = urlsplit(root.uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    try:
        return Path(url2pathname(parts.path)).resolve()
    except (OSError, RuntimeError, ValueError):  # a circle of links, a NUL
        return None


def is_utf8(name: str) -> bool:
    return name == name.encode(errors="replace").decode()


def narrow(limit: list[Path], roots: list[Root]) -> list[Path]:
    """Return what is inside of the limit and of a root: the smaller one, where both overlap."""
    found: list[Path] = []
    for root in filter(None, map(path_of, roots)):
        found += [root] if any(root.is_relative_to(each) for each in limit) else []
        found += [each for each in limit if each != root and each.is_relative_to(root)]
    return list(dict.fromkeys(found))


def find(path: str, context: Context) -> Path:
    """Return the real path of what a tool was asked for, if it is allowed."""
    allowed: list[Path] = context.state["allowed"]
    for base in allowed:  # an absolute path stays as it is
        try:
            found = (base / path).resolve(strict=True)  # follows links, and ".."
        except (OSError, RuntimeError, ValueError):
            continue
        if any(found.is_relative_to(each) for each in allowed):
            return found
    raise mcp_trio.ToolError(
        f"There is no {path!r} in {', '.join(map(str, allowed)) or 'no roots'}"
    )


def make_server(directories: list[Path]) -> Server:
    limit = [each.resolve(strict=True) for each in directories]
    server = Server("files")
    server.middleware(mcp_trio.MaskErrors({OSError: "The system doesn't let me read that."}))

    @server.middleware
    async def ask_for_roots(context: Context, proceed: Proceed) -> Any:
        """Ask once in a session, and in 2026-07-28 in each call."""
        context.state["allowed"] = limit
        if context.method == "tools/call" and context.can("roots"):
            if "roots" not in context.session_state:
                context.session_state["roots"] = await context.roots()
            context.state["allowed"] = narrow(limit, context.session_state["roots"])
        return await proceed()

    @server.on_roots_changed
    def forget_roots(context: RootsContext) -> None:
        context.session_state.pop("roots", None)

    @server.tool(annotations=READS)
    def list_allowed(context: Context) -> list[str]:
        """List the directories to work in."""
        return [str(each) for each in context.state["allowed"]]

    @server.tool(thread=True, annotations=READS)
    def list_directory(context: Context, path: str = ".") -> list[str]:
        """List up to 1,000 names in a directory. Those of directories end with a slash."""
        found = find(path, context)
        if not found.is_dir():
            raise mcp_trio.ToolError(f"{path!r} isn't a directory")
        listed = [each for each in islice(found.iterdir(), MAX_NAMES) if is_utf8(each.name)]
        return sorted(each.name + "/" * each.is_dir() for each in listed)

    @server.tool(thread=True, annotations=READS)
    def read_file(path: str, context: Context) -> str:
        """Read a text, up to 100,000 bytes of it."""
        found = find(path, context)
        if not found.is_file():  # a FIFO would wait for a writer
            raise mcp_trio.ToolError(f"{path!r} isn't a file")
        with found.open("rb") as file:
            return file.read(MAX_BYTES).decode(errors="replace")

    return server


async def main() -> None:
    with TemporaryDirectory() as name:
        base = Path(name)
        for each in "notes", "diary":
            (base / each).mkdir()
            (base / each / "todo.txt").write_text(f"Buy a pen for the {each}.")
        (base / "notes" / "link").symlink_to(base / "diary" / "todo.txt")
        server, versions = make_server([base]), sys.argv[1:] or ALL
        roots: list[str | Path] = [base / "notes", "file:///etc"]
        async with mcp_trio.connect(server, on_roots=roots, versions=versions) as client:
            print(*(await client.call_tool("list_directory", returns=list[str])).data)
            for path in "todo.txt", "../diary/todo.txt", "link", "/etc/passwd":
                result = await client.call_tool("read_file", {"path": path})
                print(f"{path}: {'refused' if result.is_error else result.text}")


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] not in ALL:
        mcp_trio.run(make_server([Path(each) for each in sys.argv[1:]]))
    else:
        trio.run(main)
