"""A server with authorization: it accepts access tokens of one issuer, and only those for itself.

Try it with the small authorization server of the tests, which logs in every user as alice:

    python tests/fakes/authorization_server.py 9000 &
    python examples/protected.py
"""

import mcp_trio
from mcp_core.auth import JwtVerifier, OAuthResourceServer

URL, ISSUER = "http://127.0.0.1:8000/mcp", "http://127.0.0.1:9000"

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


verifier = JwtVerifier(ISSUER, audience=URL)
resource_server = OAuthResourceServer(
    URL, [ISSUER], verifier, scopes=["notes:read"], tool_scopes={"add_note": ["notes:write"]}
)

if __name__ == "__main__":
    mcp_trio.run_http(server, port=8000, auth=resource_server)
