"""Stage 1 of 3: bytes in and out of one machine.

Use it for what one end does with what it receives: a fault in a message, a chunk that ends in the
middle, a peer that doesn't read. The test is the other end. It writes and reads what a peer would,
and shares no code with the end under test.

| module | the end under test | the test is |
|---|---|---|
| `connection` | a `Connection` of either role | its driver |
| `router` | an HTTP `Router` | its driver, and the clients |
| `websocket_router` | a `Router` with a WebSocket | its driver, and the client |
| `lines` | a served `Server`, or a client, on either driver | the peer, in lines of JSON |
| `client` | a client on either driver | its server, step by step |
| `asgi` | an ASGI application, on either driver | the ASGI server |
| `http1_client`, `http2_client` | an HTTP server on a stream | the client, in bytes or frames |
| `http1_server`, `http2_server` | an HTTP client | the server, in requests or frames |
| `websocket_client` | a WebSocket server on a stream | the client, in frames |
| `http_session` | a server over HTTP, with its listener | the client, on one connection |

A server behind lines of JSON, on trio and on asyncio:

    pytestmark = pytest.mark.usefixtures("each_driver")

    async def test_ping_is_answered() -> None:
        async with served(Server("s")) as wire:
            assert await wire.ask(1, "ping") == result(1)

If both ends are ours, see `tests.harness.messages`; with processes, sockets or files,
`tests.harness.world`.
"""
