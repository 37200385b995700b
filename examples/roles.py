"""A server that shows each client what its user may do.

Scopes alone refuse a call: the model sees the tool, tries it, and gets an error. With `visible=`
a tool isn't there for callers who may not use it. `server.disable` takes it away from all of them,
here while a report is being made, and `server.enable` brings it back.
"""

import sys
from functools import partial

import trio

import mcp_trio
from mcp_core import ALL

ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"
keys = mcp_trio.ApiKeys({"ann": ANN, "bob": BOB}, granted_scopes={"ann": ["write"]})
server = mcp_trio.Server("ledger")
entries = ["tea 3.50"]


def may_write(caller: mcp_trio.Caller) -> bool:
    return caller.grant is not None and "write" in caller.grant.scopes


@server.tool(visible=may_write)
def add(entry: str) -> str:
    """Add an entry."""
    entries.append(entry)
    return f"There are {len(entries)} entries."


@server.tool
async def report() -> str:
    """Report on all entries, which do not change meanwhile."""
    server.disable("add")
    try:
        await trio.sleep(0.1)
        return ", ".join(entries)
    finally:
        server.enable("add")


async def show(url: str, name: str, key: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    versions = sys.argv[1:] or ALL
    async with mcp_trio.connect_http(url, headers=headers, versions=versions) as client:
        print(f"{name}:", *[tool.name for tool in await client.list_tools()])
        if name == "Ann":
            print((await client.call_tool("add", {"entry": "milk 1.20"})).text)
        print((await client.call_tool("report")).text)


async def main() -> None:
    async with trio.open_nursery() as nursery:
        serve = partial(mcp_trio.serve_http, server, port=0, auth=keys)
        address = await nursery.start(serve)
        await show(address.url, "Ann", ANN)
        await show(address.url, "Bob", BOB)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
