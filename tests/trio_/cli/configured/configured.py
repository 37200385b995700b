"""Configured servers for the tests of the command, which note each start in a file."""

from __future__ import annotations

import json
import sys
import textwrap
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_trio.host import ApprovalFile
from tests.harness.world.command import Terminal, run
from tests.trio_.cli.servers.conftest import HostFiles

if TYPE_CHECKING:
    import subprocess

    import pytest

    from mcp_core.host import ServerApproval

# A server of 2025-11-25 without packages, so that it starts fast. What it offers is in a file.
SCRIPT = """
    import json, sys
    from pathlib import Path

    place = Path(sys.argv[1])
    with (place / "starts").open("a") as starts:
        starts.write("x")
    offer = json.loads((place / "offer.json").read_text())
    if offer.get("exit"):
        sys.exit(offer["exit"])

    def respond(id, **members):
        print(json.dumps({"jsonrpc": "2.0", "id": id, **members}), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        method, id = message.get("method"), message.get("id")
        params = message.get("params", {})
        if offer.get("silent") or id is None:
            pass
        elif method == "initialize":
            lists = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
            info = {"name": "s", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": lists, "serverInfo": info}
            respond(id, result=result | offer.get("initialize", {}))
        elif method in ("tools/list", "prompts/list", "resources/list"):
            kind = method.partition("/")[0]
            respond(id, result={kind: offer.get(kind, [])})
        elif method == "resources/templates/list":
            respond(id, result={"resourceTemplates": []})
        elif method == "tools/call":
            text = json.dumps(params.get("arguments"))
            respond(id, result={"content": [{"type": "text", "text": text}]})
        elif method == "prompts/get":
            content = {"type": "text", "text": json.dumps(params.get("arguments"))}
            respond(id, result={"messages": [{"role": "user", "content": content}]})
        elif method == "resources/read":
            respond(id, result={"contents": [{"uri": params["uri"], "text": "assam"}]})
        elif method == "completion/complete":
            respond(id, result={"completion": {"values": ["Oslo"]}})
        else:
            respond(id, error={"code": -32601, "message": "Method not found"})
"""


def tool(name: str = "greet", description: str = "Say hello.", **members: Any) -> dict[str, Any]:
    properties = {"name": {"type": "string"}}
    return {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties},
        **members,
    }


READ_ONLY = {"readOnlyHint": True}
PROMPT = {"name": "pack", "arguments": [{"name": "city"}]}
MENU = {"uri": "tea://menu", "name": "menu"}
OFFER = {"tools": [tool()], "prompts": [PROMPT], "resources": [MENU]}


class ConfiguredServers(HostFiles):
    """A home and a project whose configuration files have servers that note their starts."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(path, monkeypatch)
        self.state = path / "state"
        self.env["XDG_STATE_HOME"] = str(self.state)
        self._places = path / "servers"
        self._script = path / "script.py"
        self._script.write_text(textwrap.dedent(SCRIPT))
        self._entries: dict[Path, dict[str, Any]] = {}

    def add(self, name: str = "demo", *, user: bool = False, **members: Any) -> None:
        """Add a server to the file of the project or the user."""
        self._place(name).mkdir(parents=True, exist_ok=True)
        self.offer(OFFER, name)
        command, arguments = self.command(name)
        self.add_entry(name, {"command": command, "args": arguments, **members}, user=user)

    def command(self, name: str = "demo") -> tuple[str, list[str]]:
        """The program of a server, and its arguments."""
        return sys.executable, ["-S", str(self._script), str(self._place(name))]

    def add_entry(self, name: str, entry: Any, *, user: bool = False) -> None:
        path = self.user_file if user else self.project_file
        entries = self._entries.setdefault(path, {})
        entries[name] = entry
        self.write(path, {"mcpServers": entries})

    def offer(self, offer: dict[str, Any], name: str = "demo") -> None:
        """Change what a server offers from its next start on."""
        (self._place(name) / "offer.json").write_text(json.dumps(offer))

    def starts(self, name: str = "demo") -> int:
        """The number of starts of a server so far."""
        file = self._place(name) / "starts"
        return len(file.read_text()) if file.exists() else 0

    def _place(self, name: str) -> Path:
        return self._places / name.encode().hex()[:100]

    def run(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the command without a terminal."""
        result = run(*words, cwd=self.project, env=self.env)
        assert result.returncode == status, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result

    def terminal(self, *words: str, **env: str) -> Terminal:
        """Run the command at a terminal."""
        with chdir(self.project):
            return Terminal(*words, **{**self.env, "COLUMNS": "200", **env})

    @property
    def approvals(self) -> ApprovalFile:
        return ApprovalFile(self.state / "mcp-trio" / "approvals.json")

    def approval(self, name: str = "demo", *, user: bool = False) -> ServerApproval | None:
        path = self.user_file if user else self.project_file
        return self.approvals.load().find(str(path), name)
