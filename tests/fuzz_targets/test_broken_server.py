"""The server broken on purpose is correct without a fault, and has the fault that it is given.

What shows in messages is found by the judge, with a row of the fault's entry. What takes a probe is
probed here.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from mcp_core import ALL, PeerError
from mcp_core.trace import ROWS, Judge, read_trace
from mcp_trio import connect
from tests.fuzz_targets.catalog import REVISIONS, span
from tests.fuzz_targets.conversations import (
    SERVER,
    HttpConversation,
    StdioConversation,
    wire,
)
from tests.fuzz_targets.faults import FAULTS
from tests.fuzz_targets.scripts import SCRIPTS, create_task, tour
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TRANSPORTS: Final = ("stdio", "http")
# Our client speaks HTTP+SSE in 2024-11-05, and the server does not.
SPOKEN: Final = [
    (kind, each) for kind in TRANSPORTS for each in ALL if kind == "stdio" or each != ALL[-1]
]


def offers_of(revision: str) -> dict[str, Any]:
    offers: dict[str, Any] = {"sampling": {}, "roots": {}}
    return offers | {"elicitation": {}} if revision in span("2025-06-18") else offers


# -- Without a fault -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "revision",
    [
        *(
            pytest.param(revision, marks=pytest.mark.slow)
            for revision in span("2024-11-05", "2025-11-25")
        ),
        "2025-11-25",
        "2026-07-28",
    ],
)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("has_offers", [False, True], ids=["bare", "offers"])
def test_server_without_fault_is_clean(transport: str, revision: str, has_offers: bool) -> None:
    with wire(
        transport, revision=revision, offers=offers_of(revision) if has_offers else {}
    ) as clean:
        tour(clean)
    assert [each for each in clean.findings if each.side == "server"] == []


INVALID: Final = {
    "not JSON": b"{",
    "not UTF-8": b'{"\xff',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "deep": b"[" * 20_000,
    "NaN": b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    "a number": b"1",
    "an empty batch": b"[]",
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    "another version": b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    "id null": b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    "id with a fraction": b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    "no string as method": b'{"jsonrpc":"2.0","id":1,"method":1}',
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_server_invalid_message_rejects_and_lives(revision: str) -> None:
    """Without a fault the target is correct, or each finding of the fuzzer could be its own."""
    with StdioConversation(revision=revision) as clean:
        if revision == "2026-07-28":
            clean.result("server/discover")
        for name, line in INVALID.items():
            clean.send(line)
            response = clean.receive()
            assert response is not None, name
            if name != "a batch" or revision != "2025-03-26":
                assert response["error"]["code"] in (-32700, -32600), name
        for params in ([1], "text", 1):
            message = {"jsonrpc": "2.0", "id": "p", "method": "tools/list", "params": params}
            clean.send(message)
            response = clean.receive()
            assert response is not None
            assert response["id"] == "p"
            assert response["error"]["code"] == -32602
        clean.call("tools/list")
    assert [each for each in clean.findings if each.side == "server"] == []


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_server_invalid_http_rejects_and_lives(revision: str) -> None:
    """Without a fault the target has the status of the specification for each wrong request."""
    with HttpConversation(revision=revision) as clean:
        for name, body in INVALID.items():
            assert clean.post(body)[0] == 400, name
        message = clean.message("tools/call", {"name": "echo", "arguments": {"text": "x"}})
        for changed, status in (
            ({"origin": "http://elsewhere.example"}, 403),
            ({"host": "elsewhere.example"}, 403),
            ({"accept": "text/html"}, 406),
            ({"content_type": "text/plain"}, 415),
            ({"mcp_protocol_version": "2001-01-01"}, 400),
            (
                {"mcp_session_id": "unknown"} if revision == "2025-11-25" else {"mcp_name": "add"},
                None,
            ),
        ):
            found, _ = clean.post(message, **changed)
            assert found == (status or {"2025-11-25": 404, "2026-07-28": 400}[revision]), changed
        clean.session = clean.session if revision == "2026-07-28" else None
        if revision == "2025-11-25":
            clean.open()
        clean.call("tools/list")
    assert [each for each in clean.findings if each.side == "server"] == []


async def use_client(client: Any) -> None:
    """Use everything with our own client."""
    tools = await client.list_tools()
    assert len(tools) == 8
    await client.list_resources()
    await client.list_prompts()
    await client.read_resource("note:///one")
    await client.get_prompt("greet", {"name": "Ada"})
    result = await client.call_tool("add", {"a": 1, "b": 2})
    assert json.loads(result.content[0].text) == {"sum": 3}
    await client.call_tool("count", {"steps": 3}, progress=lambda *_: None)
    await client.call_tool("locate", {"region": "eu"})
    await client.call_tool("ask", {"kind": "roots"})
    await client.call_tool("change")
    for name in ("unknown", "fail"):
        with suppress(PeerError):
            await client.call_tool(name)


@pytest.mark.parametrize(("transport", "version"), SPOKEN)
async def test_server_with_our_client_is_clean(
    transport: str, version: str, tmp_path: Path
) -> None:
    """The judge has nothing to say about the target without a fault, nor about our client."""
    file = tmp_path / "trace.mcp.jsonl"
    with trio.fail_after(PATIENCE):
        if transport == "stdio":
            target: Any = [sys.executable, str(SERVER)]
            async with connect(target, versions=[version], record=file, on_roots=list) as client:
                await use_client(client)
        else:
            with HttpConversation(revision="2026-07-28") as server:
                async with connect(
                    server.url, versions=[version], record=file, on_roots=list
                ) as client:
                    await use_client(client)
    with file.open("rb") as lines:
        header, entries = read_trace(lines)
        judge = Judge(header)
        findings = [found for number, entry in entries for found in judge.receive(entry, number)]
        findings += judge.close()
    assert judge.messages > 20
    assert findings == []


# -- The table -------------------------------------------------------------------------------------


def test_faults_name_rows_of_their_revisions() -> None:
    assert len(FAULTS) == 45
    for name, fault in FAULTS.items():
        assert set(fault.transports) <= set(TRANSPORTS), name
        assert set(fault.revisions) <= set(REVISIONS), name
        assert all(row in ROWS for row in fault.rows), name
        assert (name in SCRIPTS) == (fault.sight == "judge"), name


def test_server_lists_faults() -> None:
    done = subprocess.run([sys.executable, SERVER, "--list"], capture_output=True, check=True)
    assert [line.split(b":")[0].decode() for line in done.stdout.splitlines()] == list(FAULTS)


# -- What the judge sees ---------------------------------------------------------------------------


def cases() -> list[Any]:
    found = []
    for name in SCRIPTS:
        fault = FAULTS[name]
        for transport in fault.transports:
            # Over HTTP the first two revisions only differ from the third by a header.
            revisions = [
                each
                for each in fault.revisions
                if transport == "stdio" or each in fault.revisions[-2:]
            ]
            found += [
                pytest.param(
                    name,
                    transport,
                    revision,
                    id=f"{name}-{transport}-{revision}",
                    marks=[pytest.mark.slow] * (revision != revisions[-1]),
                )
                for revision in revisions
            ]
    return found


@pytest.mark.parametrize(("name", "transport", "revision"), cases())
def test_fault_is_found_by_judge(name: str, transport: str, revision: str) -> None:
    needs_offers = name in ("task-key-reused", "cancelled-task-completes")
    offers = offers_of(revision) if needs_offers else {}
    with wire(transport, name, revision, offers) as broken:
        SCRIPTS[name](broken)
    found = {each.row for each in broken.findings if each.side == "server"}
    certain = {each.row for each in broken.findings if each.side == "server" and each.is_certain}
    # Before 2026-07-28 a server may ignore a cancellation. An id in a session opens nothing else.
    is_advice = (name == "cancel-mixes-ids" and revision != "2026-07-28") or (
        (name, transport, revision) == ("guessable-task-ids", "http", "2025-11-25")
    )
    assert (found if is_advice else certain) & set(FAULTS[name].rows), broken.findings


@pytest.mark.parametrize("name", SCRIPTS)
def test_fault_is_not_found_without_it(name: str) -> None:
    fault = FAULTS[name]
    revision, transport = fault.revisions[-1], fault.transports[0]
    with wire(transport, "", revision, offers_of(revision)) as clean:
        SCRIPTS[name](clean)
    assert [each for each in clean.findings if each.side == "server"] == []


# -- What a probe sees -----------------------------------------------------------------------------


def is_silent_on(fault: str, **members: Any) -> bool:
    """Return True if a request with these members has no response, and the next one has."""
    with StdioConversation(fault) as server:
        return server.is_silent_on(server.message("tools/list") | members)


def drops_batches(fault: str) -> bool:
    """Return True if a batch has no response, and the next request has one."""
    with StdioConversation(fault, "2025-03-26") as server:
        server.call("tools/list")
        server.send(json.dumps([server.message("tools/list")]).encode())
        is_silent = server.receive(1.0) is None
        server.call("tools/list")
    return is_silent


def is_dead_after_bad_utf8(fault: str) -> bool:
    with StdioConversation(fault) as server:
        server.send(b"\xff")
        if server.receive() is not None:
            server.call("tools/list")
            return False
        return server.process.wait(PATIENCE) != 0


def serves_before_initialize(fault: str) -> bool:
    server = StdioConversation(fault, "2025-11-25")
    response = server.call("tools/list")
    with server:
        return "result" in response


def accepts_altered_state(fault: str) -> bool:
    with StdioConversation(fault, offers={"roots": {}}) as server:
        first = server.tool("ask", {"kind": "roots"})["result"]
        state = first["requestState"]
        altered = ("A" if state[0] != "A" else "B") + state[1:]
        given: dict[str, Any] = {"answer": {"roots": []}}
        second = server.tool("ask", {"kind": "roots"}, requestState=altered, inputResponses=given)
        return "result" in second


def serves_foreign_origin(fault: str) -> bool:
    with HttpConversation(fault) as server:
        status, _ = server.post(server.message("tools/list"), origin="http://elsewhere.example")
        return status == 200


def hangs_on_half_bodies(fault: str) -> bool:
    with HttpConversation(fault) as server:
        message = server.message("tools/list")
        head = "".join(f"{name}: {value}\r\n" for name, value in server.headers_of(message).items())
        with ExitStack() as halves:
            for _ in range(3):
                half = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
                halves.enter_context(half).sendall(
                    f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{head}"
                    'Content-Length: 100\r\n\r\n{"jsonrpc"'.encode()
                )
            # It hangs once it reads the bodies, or not at all.
            end = time.monotonic() + (PATIENCE if fault else 0.5)
            is_hung = False
            while not is_hung and time.monotonic() < end:
                is_hung = not answers_get(server.port, 2 if fault else PATIENCE)
                time.sleep(0.01)
        assert answers_get(server.port, PATIENCE), "it hangs although the bodies have ended"
        return is_hung


def answers_get(port: int | None, timeout: float) -> bool:
    assert port is not None
    probe = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        probe.request("GET", "/mcp")
        return probe.getresponse().status == 405
    except TimeoutError:
        return False
    finally:
        probe.close()


def serves_other_owner(fault: str) -> bool:
    with HttpConversation(fault) as server:
        server.owner = "ada"
        id = create_task(server, milliseconds=1_000)
        server.owner = "grace"
        return "result" in server.call("tasks/get", {"taskId": id})


def serves_unknown_methods(fault: str) -> bool:
    with StdioConversation(fault) as server:
        return "result" in server.call("acme/none")


def ignores_end_of_input(fault: str) -> bool:
    server = StdioConversation(fault)
    # Its block closes the pipes. `communicate` would flush the one that is closed.
    with server.process as process:
        server.call("tools/list")
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(1.0 if fault else PATIENCE)
        except subprocess.TimeoutExpired:
            return True
        finally:
            process.kill()
    return False


def stops_after_three_calls(fault: str) -> bool:
    with StdioConversation(fault) as server:
        for _ in range(3):
            server.tool("echo", {"text": "x"})
        message = server.message("tools/call", {"name": "echo", "arguments": {"text": "x"}})
        return server.is_silent_on(message)


PROBES: Final[dict[str, Callable[[str], bool]]] = {
    "silent-on-array-params": partial(is_silent_on, params=[1]),
    "silent-on-null-params": partial(is_silent_on, params=None),
    "silent-on-other-members": partial(is_silent_on, other=1),
    "silent-on-wrong-meta": partial(is_silent_on, params={"_meta": 5}),
    "silent-on-batches": drops_batches,
    "dies-on-bad-utf8": is_dead_after_bad_utf8,
    "serves-before-initialize": serves_before_initialize,
    "accepts-altered-state": accepts_altered_state,
    "serves-foreign-origin": serves_foreign_origin,
    "hangs-on-half-bodies": hangs_on_half_bodies,
    "serves-other-owner": serves_other_owner,
    "serves-unknown-methods": serves_unknown_methods,
    "ignores-end-of-input": ignores_end_of_input,
    "tool-stops": stops_after_three_calls,
}


def test_probes_cover_what_judge_cannot_see() -> None:
    assert set(PROBES) == {name for name, fault in FAULTS.items() if fault.sight == "probe"}


@pytest.mark.parametrize("name", PROBES)
def test_fault_is_seen_by_probe(name: str) -> None:
    assert PROBES[name](name)


@pytest.mark.parametrize("name", PROBES)
def test_probe_without_fault_sees_nothing(name: str) -> None:
    assert not PROBES[name]("")
