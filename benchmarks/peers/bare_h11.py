"""An HTTP server without MCP: `python benchmarks/peers/bare_h11.py http --port P --answer FILE`.

It reads each complete request with h11, in one trio task for each connection, and sends the same
response to all: the one in FILE, sent through h11 with the same head and the same pieces. For
`bench_http.py` that is a response of our own server. Both therefore send the same bytes, and the
additional time of our server is MCP: decoding JSON, checking, finding the tool and calling it. It
has no deadlines and no limits. Invalid HTTP closes the connection.
"""

from __future__ import annotations

import sys
from pathlib import Path

import h11
import trio

Answer = tuple[h11.Response, list[h11.Data]]


def parse(answer: bytes) -> Answer:
    """Return the head and the pieces of a recorded response."""
    client = h11.Connection(h11.CLIENT)
    client.send(
        h11.Request(method="POST", target="/", headers=[("Host", "bare"), ("Content-Length", "0")])
    )
    client.send(h11.EndOfMessage())
    client.receive_data(answer)
    response = client.next_event()
    assert isinstance(response, h11.Response)
    # The raw names: h11 would convert them to lower case.
    head = h11.Response(
        status_code=response.status_code,
        reason=response.reason,
        headers=list(response.headers.raw_items()),
    )
    pieces = []
    while isinstance(piece := client.next_event(), h11.Data):
        pieces.append(h11.Data(data=bytes(piece.data)))
    assert isinstance(piece, h11.EndOfMessage)
    return head, pieces


async def serve(stream: trio.SocketStream, head: h11.Response, pieces: list[h11.Data]) -> None:
    """Send the response to every request."""
    connection = h11.Connection(h11.SERVER)
    end = h11.EndOfMessage()
    async with stream:
        while True:
            event = connection.next_event()
            kind = type(event)
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65_536))
            elif kind is h11.EndOfMessage:
                events = [head, *pieces, end]
                await stream.send_all(b"".join([connection.send(event) or b"" for event in events]))
                connection.start_next_cycle()
            elif kind is h11.ConnectionClosed:
                return


async def main(port: int, answer: bytes) -> None:
    head, pieces = parse(answer)

    async def connected(stream: trio.SocketStream) -> None:
        try:
            await serve(stream, head, pieces)
        except (h11.RemoteProtocolError, trio.BrokenResourceError):
            pass  # the client is gone, or does not speak HTTP

    await trio.serve_tcp(connected, port, host="127.0.0.1")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http", "--port", port, "--answer", file]:
            trio.run(main, int(port), Path(file).read_bytes())
        case _:
            sys.exit("usage: bare_h11.py http --port P --answer FILE")
