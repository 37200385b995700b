"""Both drivers run the same core: equal transcripts, and no import of the other runtime."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance import everything_server
from tests.harness.jsonrpc import (
    INITIALIZED,
    STATEFUL,
    VERSIONS,
    D,
    E,
    Message,
    initialize,
    line,
    request,
    stateless_request,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("imported", "unknown"),
    [
        ("mcp_asyncio_shim", "trio"),
        ("mcp_asyncio_shim", "mcp_trio"),
        ("mcp_asyncio_shim", "h11"),  # not before a URL is asked for
        ("mcp_asyncio_shim", "wsproto"),
        ("mcp_trio", "asyncio"),
    ],
)
def test_driver_does_not_load_other_runtime(imported: str, unknown: str) -> None:
    program = (
        f"import sys\nsys.path[:] = {[str(ROOT), *sys.path]!r}\nimport "
        f"{imported}\nprint(*sys.modules)"
    )
    loaded = subprocess.check_output(
        [sys.executable, "-S", "-E", "-W", "error", "-c", program], text=True
    )
    assert imported in loaded.split()
    assert unknown not in loaded.split()


# -- Transcripts -----------------------------------------------------------------------------------

# Method and params; `_meta` is added as the revision wants it.
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("server/discover", {}),
    ("ping", {}),
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("tools/call", {"name": "echo", "arguments": {"text": "naïve ☃ \U0001f600\u2028"}}),
    ("tools/call", {"name": "echo", "arguments": {"text": 1}}),
    ("tools/call", {"name": "echo", "arguments": {"text": "x", "more": 1}}),
    ("tools/call", {"name": "weather", "arguments": {"city": "Rome"}}),
    ("tools/call", {"name": "test_image_content"}),
    ("tools/call", {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "p"}}),
    ("tools/call", {"name": "count", "arguments": {"to": 3}}),
    ("tools/call", {"name": "block", "arguments": {"to": 3}, "_meta": {"progressToken": 7}}),
    ("tools/call", {"name": "fail", "arguments": {"how": "reason"}}),
    ("tools/call", {"name": "fail", "arguments": {"how": "error"}}),
    ("tools/call", {"name": "fail", "arguments": {"how": "accident"}}),
    ("tools/call", {"name": "fail", "arguments": {"how": "exit"}}),
    ("tools/call", {"name": "meta", "_meta": {"com.example/word": "hello"}}),
    ("tools/call", {"name": "nobody"}),
    ("tools/call", {"arguments": {}}),
    ("resources/read", {"uri": "test://static-text"}),
    ("resources/read", {"uri": "test://static-binary"}),
    ("resources/read", {"uri": "test://template/1/data"}),
    ("resources/read", {"uri": "test://template/../data"}),
    ("prompts/get", {"name": "review", "arguments": {"code": "x = 1"}}),
    ("prompts/get", {"name": "review"}),
    ("acme/reindex", {"shelf": "A"}),
    ("acme/reindex", {"shelf": 1}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "a", "value": ""}},
    ),
    ("nothing/known", {}),
]
# Input without an id to respond to. Its effect is seen before the next response.
OTHERS: list[Message | list[Any] | bytes] = [
    b"no JSON",
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    b'{"jsonrpc":"1.0","method":"ping"}',
    b"\xff",
    b"",
    [request("in a batch", "ping"), {"jsonrpc": "2.0", "method": "notifications/unknown"}],
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "nobody's"}},
    {"jsonrpc": "2.0", "id": 99, "result": {}},
]


def recorded(version: str) -> Iterator[tuple[bytes, Any]]:
    """Yield the lines of a client of that revision, each with the id of the awaited response."""
    number = 0

    def numbered(method: str, params: dict[str, Any]) -> tuple[bytes, Any]:
        nonlocal number
        number += 1
        if version == E:
            return line(
                stateless_request(number, method, params, **params.get("_meta", {}))
            ), number
        return line(request(number, method, params)), number

    if version in STATEFUL:
        yield numbered("tools/list", {})  # too early
        yield line(initialize(version, id="open")), "open"
        yield line(INITIALIZED), None
    for row in REQUESTS:
        yield numbered(*row)
    for other in OTHERS:
        yield line(other), None
        yield numbered("tools/list", {})


def transcript(runtime: str, version: str, *wrapper: str) -> tuple[bytes, str]:
    """Return what the server writes to stdout and to stderr for the recorded stream.

    `wrapper` is a program that runs the server.
    """
    process = subprocess.Popen(
        [sys.executable, *wrapper, everything_server.__file__, "--stdio", "--runtime", runtime],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        output = b""
        for raw, id in recorded(version):
            process.stdin.write(raw)
            process.stdin.flush()
            while id is not None:
                received = process.stdout.readline()
                assert received, process.stderr.read()
                output += received
                message = json.loads(received)
                if "method" not in message and message.get("id") == id:
                    break
        process.stdin.close()
        output += process.stdout.read()
        complaints = process.stderr.read().decode()
    assert process.returncode == 0
    return re.sub(rb"reference [0-9a-f]{8}", b"reference ?", output), complaints


SOME_VERSIONS = [
    pytest.param(version, marks=[pytest.mark.slow] * (version not in (D, E)))
    for version in VERSIONS
]


@pytest.mark.parametrize("version", SOME_VERSIONS)
def test_stdio_transcripts_of_both_drivers_are_equal(version: str) -> None:
    trio, noise = transcript("trio", version)
    asyncio, other_noise = transcript("asyncio", version)
    assert asyncio == trio
    answers = [json.loads(received) for received in trio.splitlines()]
    assert sum("result" in answer for answer in answers) > 20
    assert sum("error" in answer for answer in answers) > 5
    assert sum(answer.get("method") == "notifications/progress" for answer in answers) == 6
    assert noise.count("this must not reach") == other_noise.count("this must not reach") == 1
    assert "a secret of the server" not in trio.decode()
    assert "a secret of the server" in noise
    assert "a secret of the server" in other_noise


@pytest.mark.parametrize("version", SOME_VERSIONS)
def test_stdio_transcripts_without_posix_are_equal(version: str) -> None:
    expected, noise = transcript("trio", version)
    for runtime in ("trio", "asyncio"):
        output, other_noise = transcript(runtime, version, str(ROOT / "tests/other_system.py"))
        assert output == expected
        assert noise.count("this must not reach") == other_noise.count("this must not reach") == 1
