"""HTTP servers of the standard library in a thread, for clients of any loop or process."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["fixed_response", "threaded_http_server"]


@contextmanager
def threaded_http_server(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve by `handler` until the block ends. Yield the URL, without a path."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def fixed_response(
    status: int, headers: Mapping[str, str], body: bytes = b""
) -> type[BaseHTTPRequestHandler]:
    """Return a handler that responds to every GET, POST and DELETE in the same way."""

    class FixedResponse(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_DELETE = do_POST  # noqa: N815 - names of the standard library

        def log_message(self, *_: Any) -> None:
            pass

    return FixedResponse
