"""The tools of ported servers have the names, parameters, types and defaults of the originals."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio

from mcp_trio import connect, connect_stdio
from tests.ported import fetch_server, git_server, sample_server, time_server

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.registry import Server
    from mcp_core.types import Tool

SERVERS_PYTHON = "MCP_TRIO_SERVERS_PYTHON"

# name: parameters with their types and defaults, those that are required first
FETCH = {"fetch": "url:string max_length:integer=5000 raw:boolean=false start_index:integer=0"}
TIME = {
    "get_current_time": "timezone:string",
    "convert_time": "source_timezone:string target_timezone:string time:string",
}
GIT = {
    "git_status": "repo_path:string",
    "git_diff_unstaged": "repo_path:string context_lines:integer=3",
    "git_diff_staged": "repo_path:string context_lines:integer=3",
    "git_diff": "repo_path:string target:string context_lines:integer=3",
    "git_commit": "message:string repo_path:string",
    "git_add": "files:array repo_path:string",
    "git_reset": "repo_path:string",
    "git_log": (
        "repo_path:string end_timestamp:string|null=null max_count:integer=10 "
        "start_timestamp:string|null=null"
    ),
    "git_create_branch": "branch_name:string repo_path:string base_branch:string|null=null",
    "git_checkout": "branch_name:string repo_path:string",
    "git_show": "repo_path:string revision:string",
    "git_branch": (
        "branch_type:string repo_path:string contains:string|null=null "
        "not_contains:string|null=null"
    ),
}
SAMPLE = {
    "calculate": "expression:string",
    "get_server_time": "",
    "random_number": "max_val:integer=100 min_val:integer=1",
    "analyze_text": "text:string",
    "echo": "message:string",
    "hash_text": 'text:string algorithm:string="sha256"',
    "base64_encode": "text:string url_safe:boolean=false",
    "base64_decode": "data:string url_safe:boolean=false",
    "uuid_generate": "count:integer=1 version:integer=4",
    "password_generate": (
        "length:integer=20 use_digits:boolean=true use_symbols:boolean=true "
        "use_uppercase:boolean=true"
    ),
    "json_format": "data:string indent:integer=2 sort_keys:boolean=false",
    "regex_match": "pattern:string text:string ignore_case:boolean=false multiline:boolean=false",
    "convert_units": "from_unit:string to_unit:string value:number",
    "fetch_url": 'url:string max_bytes:integer=200000 method:string="GET"',
    "weather": "latitude:number longitude:number",
    "note_add": 'title:string body:string=""',
    "note_list": "limit:integer=50 search:string|null=null",
    "note_get": "note_id:integer",
    "note_update": "note_id:integer body:string|null=null title:string|null=null",
    "note_delete": "note_id:integer",
}


def interface_of(tools: Iterable[Tool]) -> dict[str, str]:
    """Return the parameters of each tool, sorted, without descriptions."""
    found = {}
    for tool in tools:
        schema: Any = tool.input_schema
        required = schema.get("required", [])
        words = []
        for name, member in schema.get("properties", {}).items():
            kinds = [each["type"] for each in member.get("anyOf", [member])]
            default = (
                f"={msgspec.json.encode(member['default']).decode()}" if "default" in member else ""
            )
            words.append((name not in required, f"{name}:{'|'.join(kinds)}{default}"))
        found[tool.name] = " ".join(word for _, word in sorted(words))
    return found


@pytest.mark.parametrize("name", ["fetch", "git", "sample", "time"])
async def test_ported_server_has_the_interface_of_the_published_one(
    name: str, tmp_path: Path
) -> None:
    servers: dict[str, tuple[Server, dict[str, str]]] = {
        "fetch": (fetch_server.make_server(), FETCH),
        "git": (git_server.make_server(), GIT),
        "sample": (sample_server.make_server(tmp_path / "notes"), SAMPLE),
        "time": (time_server.make_server(), TIME),
    }
    server, interface = servers[name]
    async with connect(server) as client:
        assert interface_of(await client.list_tools()) == interface


@pytest.mark.interop
@pytest.mark.parametrize(("name", "interface"), [("git", GIT), ("time", TIME)])
async def test_published_server_has_this_interface(name: str, interface: dict[str, str]) -> None:
    python = sys.executable if name == "time" else os.environ.get(SERVERS_PYTHON)
    if python is None:
        pytest.skip(f"needs {SERVERS_PYTHON}, the Python of an environment with mcp-server-git")
    with trio.fail_after(20):
        async with connect_stdio([python, "-m", f"mcp_server_{name}"], stderr="discard") as client:
            assert interface_of(await client.list_tools()) == interface
