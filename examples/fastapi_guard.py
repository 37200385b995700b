"""A FastAPI application with an MCP server beside its own routes. The MCP server needs a login.

It accepts access tokens of one issuer, and only those that were issued for itself. A client without
one gets status 401 with the address of the metadata, finds the issuer there, and logs its user in.
Try it with the small authorization server of the tests, which logs in every user as alice::

    python tests/fakes/authorization_server.py 9000 &
    hypercorn -k trio examples/fastapi_guard.py:app &
    mcp-trio login --scope notes:write http://127.0.0.1:8000/notes/mcp
    mcp-trio call add_note text=milk http://127.0.0.1:8000/notes/mcp
    curl http://127.0.0.1:8000/health

`-k trio` is needed because `mcp_trio` runs on trio. For uvicorn there is `mcp_asyncio_shim.asgi`.
"""

import os

from fastapi import FastAPI
from starlette.routing import Route

import mcp_trio

URL = os.environ.get("NOTES_URL", "http://127.0.0.1:8000/notes/mcp")  # as clients know it
ISSUER = os.environ.get("NOTES_ISSUER", "http://127.0.0.1:9000")

server = mcp_trio.Server("notes")
notes: dict[str, list[str]] = {}


@server.tool
def read_notes(context: mcp_trio.Context) -> list[str]:
    """Return the notes of the user."""
    return notes.get(context.principal, [])


@server.tool
def add_note(text: str, context: mcp_trio.Context) -> str:
    """Keep a note."""
    notes.setdefault(context.principal, []).append(text)
    return "kept"


resource_server = mcp_trio.OAuthResourceServer(
    URL,
    [ISSUER],
    mcp_trio.JwtVerifier(ISSUER, audience=URL),
    scopes=["notes:read"],
    tool_scopes={"add_note": ["notes:write"]},
)

app = FastAPI(title="notes")


@app.get("/health")
def health() -> dict[str, int]:
    """Return the number of users. This route needs no login."""
    return {"users": len(notes)}


protected = mcp_trio.asgi(server, auth=resource_server)
app.mount("/notes", protected)
for path in protected.metadata_paths:  # clients look for it at the root of the host
    app.router.routes.append(Route(path, protected.metadata))
