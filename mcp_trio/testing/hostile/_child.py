"""Attacks of a server that a client starts as a child process."""

from __future__ import annotations

import sys
import zlib
from typing import Final

from ._attack import Attack, find
from ._messages import MESSAGE_ATTACKS, hostile_message

__all__ = ["CHILD_ATTACKS", "hostile_command"]

_FAIL: Final = "Fail the call with an error that names the cause, and end the process."
_BOUND: Final = "Fail the call within its timeout, with bounded memory, and end the process."
_GO_ON: Final = "Ignore it, and take the response."
_END: Final = "End the process all the same, with SIGKILL at last."

# A server of 2025-11-25 in little code, so that it starts quickly. It never writes more than 8 MiB,
# and ends after 30 seconds in any case.
_SCRIPT: Final = r"""
import json, os, signal, sys, threading, time

plan, payload = sys.argv[1], bytes.fromhex(sys.argv[2])
threading.Thread(target=lambda: (time.sleep(30), os._exit(9)), daemon=True).start()
left = [8 * 1024 * 1024]

def write(data, to=1):
    while data:
        if left[0] <= 0:
            time.sleep(30)
        done = os.write(to, data[:65536])
        left[0] -= done
        data = data[done:]

def repeat(data, to=1):
    while True:
        write(data * max(1, 16384 // len(data)), to)

def dump(message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"

def result(id):
    return dump({"id": id, "result": {"content": [{"type": "text", "text": "done"}]}})

def attack(id):
    print("attack:", plan, file=sys.stderr, flush=True)
    head = b'"jsonrpc":"2.0","id":%d' % id
    long = b'"result":{"content":[{"type":"text","text":"' + b"x" * 300_000
    if plan == "message":
        import zlib
        write(zlib.decompress(payload) + b"\n")
    elif plan == "silent":
        return
    elif plan == "exits":
        write(b"KeyError: 3\n")
        sys.exit(3)
    elif plan == "crashes":
        os.abort()
    elif plan == "closes-stdout":
        os.close(1)
        time.sleep(30)
    elif plan == "closes-stdin":
        os.close(0)
        time.sleep(30)
    elif plan == "closes-all":
        for each in range(3):
            os.close(each)
        time.sleep(30)
    elif plan == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif plan == "half-response":
        write(result(id)[:20])
        sys.exit(0)
    elif plan == "long-response":
        write(b"{" + head + b"," + long + b'"}]}}\n')
    elif plan == "long-response-id-last":
        write(b"{" + long + b'"}]},' + head + b"}\n")
    elif plan == "unended-response":
        write(b"{" + long)
    elif plan == "nan-response":
        write(b"{" + head + b',"result":{"content":[],"structuredContent":{"a":NaN}}}\n')
    elif plan == "invalid-utf8-response":
        write(b"{" + head + b',"result":{"content":[{"type":"text","text":"\xff"}]}}\n')
    elif plan == "text-id":
        write(result(str(id)))
    elif plan == "slow-response":
        for byte in result(id) + b" " * 2000:
            write(bytes([byte]))
            time.sleep(0.02)
    elif plan == "endless-line":
        repeat(b"x")
    elif plan == "endless-lines":
        repeat(b"hello\n")
    elif plan == "endless-empty-lines":
        repeat(b"\n")
    elif plan == "endless-notifications":
        repeat(dump({"method": "notifications/tools/list_changed"}))
    elif plan == "endless-requests":
        for number in range(10**9):
            write(dump({"id": number, "method": "ping"}))
    elif plan == "stderr-flood":
        repeat(b"flood\n", 2)
    elif plan == "stderr-line":
        repeat(b"x", 2)
    elif plan == "stderr-binary":
        write(bytes(range(256)) * 100, 2)
        write(result(id))
    elif plan == "junk-before":
        write(b"Loading...\n\x1b[31mWarning\x1b[0m\n\xff\xfe\n" + result(id))
    elif plan == "junk-after":
        write(result(id) + b"Done.\n\x00\xff")
    elif plan == "junk-on-the-line":
        write(b"progress 50%" + result(id))
    elif plan == "twice":
        write(result(id) * 5)
    elif plan == "other-id":
        write(result("another"))
    elif plan == "null-id":
        write(result(None))
    elif plan == "crlf":
        write(result(id).replace(b"\n", b"\r\n"))
    else:
        write(result(id))

if plan == "ignores-sigterm":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if plan == "forks":
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(20)
        os._exit(0)
if plan == "exits-at-once":
    sys.exit(1)
if plan == "junk-at-start":
    write(b"Welcome!\n" * 3 + b"\xff\n")
if plan == "endless-start":
    repeat(b"Welcome!\n")

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        write(dump({"id": id, "result": {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "hostile", "version": "1"},
        }}))
    elif method == "tools/call":
        attack(id)
    elif method == "tools/list":
        tool = {"name": "attack", "inputSchema": {"type": "object"}}
        write(dump({"id": id, "result": {"tools": [tool]}}))
    elif method == "ping":
        write(dump({"id": id, "result": {}}))
    elif method and id is not None:
        write(dump({"id": id, "error": {"code": -32601, "message": "Method not found"}}))
if plan == "ignores-eof":
    time.sleep(30)
if plan == "ignores-sigterm":
    time.sleep(30)
"""

_ROWS: Final = (
    ("exits-at-once", "End before the first message.", _FAIL),
    ("junk-at-start", "Print lines that are no messages before the first one.", _GO_ON),
    ("endless-start", "Print lines that are no messages without end.", _BOUND),
    ("silent", "Never respond to the call.", _FAIL),
    ("exits", "Print a line, and end with the status 3.", _FAIL),
    ("crashes", "End by a signal in place of a response.", _FAIL),
    ("stops", "Stop the process by SIGSTOP.", _FAIL + " " + _END),
    ("closes-stdout", "Close stdout, and live on.", _FAIL),
    ("closes-stdin", "Close stdin, and live on.", _FAIL),
    ("closes-all", "Close all three streams, and live on.", _FAIL),
    ("half-response", "Write half of the response, and end.", _FAIL),
    ("long-response", "Write a response of 300 KB.", "Take it, or fail the call by a limit."),
    (
        "long-response-id-last",
        "Write a response of 300 KB whose id comes last.",
        "Take it, or fail the call by a limit.",
    ),
    ("unended-response", "Write 300 KB of a response, and no line break.", _BOUND),
    ("nan-response", "Write a response with NaN in it.", _FAIL),
    ("invalid-utf8-response", "Write a response that is not UTF-8.", _FAIL),
    ("text-id", "Respond with the id as text.", "Take the response, or fail the call."),
    ("slow-response", "Write the response one byte at a time.", _FAIL),
    ("endless-line", "Write a line without end.", _BOUND),
    ("endless-lines", "Write lines that are no messages without end.", _BOUND),
    ("endless-empty-lines", "Write empty lines without end.", _BOUND),
    ("endless-notifications", "Write notifications without end.", _BOUND),
    ("endless-requests", "Write requests without end.", _BOUND),
    ("stderr-flood", "Write lines to stderr without end.", _BOUND),
    ("stderr-line", "Write one line to stderr without end.", _BOUND),
    ("stderr-binary", "Write bytes that are no text to stderr, and respond.", _GO_ON),
    ("junk-before", "Print lines that are no messages before the response.", _GO_ON),
    ("junk-after", "Print what is no message after the response.", _GO_ON),
    ("junk-on-the-line", "Print text on the line of the response.", _FAIL),
    ("twice", "Write the response five times.", "Take the first one."),
    ("other-id", "Respond with another id.", _FAIL),
    ("null-id", "Respond with the id null.", _FAIL),
    ("crlf", "End the line of the response with CR LF.", "Take the response."),
    ("ignores-eof", "Live on when stdin is closed.", _END),
    ("ignores-sigterm", "Live on when stdin is closed, and ignore SIGTERM.", _END),
    ("forks", "Leave a grandchild that holds the pipes and ignores SIGTERM.", _END),
)
_BY_NAME: Final = {name: Attack(name, does, expects) for name, does, expects in _ROWS} | {
    f"line-{each.name}": Attack(
        f"line-{each.name}",
        f"Write this in place of a response: {each.does}",
        _FAIL,
    )
    for each in MESSAGE_ATTACKS
}
# Attacks of a server on the client that started it, for `hostile_command`.
CHILD_ATTACKS: Final = tuple(_BY_NAME.values())


def hostile_command(attack: Attack | str) -> list[str]:
    """Return the command of a stdio server that attacks the client that starts it.

    It serves a handshake honestly, with one tool named `attack`, and attacks when that is called;
    what its sentence says of the start or the end of the process happens there. It writes 8 MiB at
    most, and ends after 30 seconds at the latest. The name of the attack goes to its stderr when it
    begins. POSIX only.

    Args:
        attack: one of `CHILD_ATTACKS`, or its name.

    Raises:
        ValueError: there is no such attack.
    """
    name = find(attack, _BY_NAME)
    plan, payload = name, b""
    if name.startswith("line-"):
        plan = "message"
        # An argument has at most 128 KiB.
        payload = zlib.compress(hostile_message(name.removeprefix("line-")))
    return [sys.executable, "-I", "-S", "-c", _SCRIPT, plan, payload.hex()]
