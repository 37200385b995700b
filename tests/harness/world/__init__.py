"""Stage 3 of 3: processes, sockets, stores and time.

Use it only for what memory can't show: a program's exit status, a socket that is reset, a file that
another process writes. Such a test is slow and sees the machine's load, so ask first whether
`tests.harness.wire` can say the same.

| module | what it has |
|---|---|
| `waiting` | waits for what must happen: `until`, `patience`, and `PATIENCE`, the longest wait |
| `virtual_time`, `loop` | a clock for asyncio that jumps, as trio's `MockClock`; `run` for a test |
| `thread_clock` | mock clocks that wait for threads; `tests/conftest.py` installs it |
| `command` | the command `mcp-trio` as a process, and servers for it |
| `pipes` | small programs, and what they write |
| `stuck_files` | pipes and terminals that take nothing |
| `children` | child processes that run the code under test |
| `http_process` | an HTTP server in a process of its own |
| `threaded_http` | HTTP servers of the standard library, in a thread |
| `asgi_servers` | hypercorn and uvicorn in this process |
| `oauth` | an MCP server that requires a token, with its authorization server |

The command, which the conftest of its tests runs in forks:

    def test_call_prints_only_text() -> None:
        assert output_of("call", "greet", "name=World", *GREETER) == "Hello, World!\\n"

A test that starts a program is marked `process`, or its file is listed in `tests/conftest.py`. It
waits for an event, or with `until`; it never sleeps.
"""
