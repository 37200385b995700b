"""Stage 2 of 3: two machines back to back.

Use it for what both ends agree on: each revision's requests, cancellation, input requests, and the
order in which messages cross. Messages go from one machine to the other without a stream, a task
or a clock, so a test decides which message arrives when.

| module | the two machines |
|---|---|
| `pair` | a client's and a server's `Connection` |
| `scripted_client` | a `Server` with its handlers, and a client whose messages the test writes |
| `scripted_server` | a client of each driver, and a server with a table of responses |

A request and its result, in all revisions:

    @pytest.mark.parametrize("version", VERSIONS)
    def test_result_arrives(version: str) -> None:
        pair = ConnectionPair(version).open()
        received = pair.request("tools/call", t.CallToolParams(name="t"))
        assert pair.result(received, t.CallToolResult(content=[])).content == []

A pair of other machines that only one file needs stays in that file, under a name that says what
it pairs, such as `HttpPair` in `tests/core/http/test_two_http_machines.py`.
"""
