"""A server that is correct, and wrong in one way if it is told to be.

    python tests/fuzz_targets/broken_server.py [--fault NAME]             over stdio
    python tests/fuzz_targets/broken_server.py [--fault NAME] --http      prints its URL
    python tests/fuzz_targets/broken_server.py --list                     the faults

It needs the standard library only, and shares no code with the packages of this project: a judge or
a fuzzer that is tested with it cannot repeat its errors. It serves all revisions: 2024-11-05 to
2025-11-25 after `initialize`, and 2026-07-28 to requests that have its `_meta`.
"""

from __future__ import annotations

import argparse
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

# It is started by its path.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz_targets.batches import MAX_MESSAGE, dump, serve_batch
from tests.fuzz_targets.engine import Conversation, Server, decode, error_response, kind_of
from tests.fuzz_targets.faults import FAULTS

if TYPE_CHECKING:
    from tests.fuzz_targets.catalog import Json


class Output:
    """The standard output, as the sink of all requests."""

    ends_with_request = False

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def send(self, message: Json) -> None:
        self.finish([message])

    def finish(self, messages: list[Json]) -> None:
        data = b"".join(dump(message) + b"\n" for message in messages)
        with self._lock, suppress(BrokenPipeError):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def is_gone(self) -> bool:
        return False


def serve_stdio(server: Server) -> None:
    """Serve the conversation of the standard streams until their end."""
    output = Output()
    conversation = Conversation(server, sink=output, lists_tasks=True)
    source = sys.stdin.buffer
    while line := source.readline(MAX_MESSAGE + 1):
        if len(line) > MAX_MESSAGE:
            while line and not line.endswith(b"\n"):
                line = source.readline(MAX_MESSAGE)
            revision = conversation.revision or ("2026-07-28" if conversation.is_modern else "")
            output.finish([error_response(revision, None, -32600, "The message is too long")])
        elif not line.isspace():
            _receive_line(conversation, line, output)
    conversation.close()
    if server.fault == "ignores-end-of-input":
        threading.Event().wait()


def _receive_line(conversation: Conversation, line: bytes, output: Output) -> None:
    revision = conversation.revision or ("2026-07-28" if conversation.is_modern else "")
    if conversation.server.fault == "dies-on-bad-utf8":
        line.decode()
    try:
        message = decode(line)
    except ValueError:
        output.finish([error_response(revision, None, -32700, "The message is not JSON")])
        return
    if isinstance(message, list) and revision == "2025-03-26":
        if conversation.server.fault != "silent-on-batches":
            serve_batch(conversation, message, output)
        return
    kind = kind_of(message) if isinstance(message, dict) else "invalid"
    if kind == "notification":
        conversation.receive_notification(message, output)
    elif kind == "response":
        conversation.receive_response(message)
    elif kind == "invalid":
        # What may be a response gets none.
        if not isinstance(message, dict) or "method" in message or "id" not in message:
            id = message.get("id") if isinstance(message, dict) else None
            output.finish([error_response(revision, id, -32600, "Invalid request")])
    else:
        arguments = (message, conversation.revision_of(message), output)
        if conversation.is_slow(message):
            threading.Thread(target=conversation.serve, args=arguments, daemon=True).start()
        else:
            conversation.serve(*arguments)


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fault", choices=sorted(FAULTS), default="", metavar="NAME")
    parser.add_argument("--http", nargs="?", type=int, const=0, metavar="PORT")
    parser.add_argument("--list", action="store_true", help="print the faults")
    options = parser.parse_args()
    if options.list:
        for name, fault in FAULTS.items():
            print(f"{name}: {fault.sentence} {' '.join(fault.rows)}")
        return
    server = Server(options.fault)
    if options.http is None:
        serve_stdio(server)
        return
    # In a process that speaks over stdio, to import it takes as long as all else.
    from tests.fuzz_targets.broken_http import HttpServer

    with HttpServer(server, options.http) as listener:
        print(f"http://127.0.0.1:{listener.server_port}/mcp", flush=True)
        with suppress(KeyboardInterrupt):
            listener.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
