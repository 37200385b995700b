"""Tools to test MCP servers and clients. Like `trio.testing`, import it by name, in tests only.

*Scripted peers.* `play_client(server)` runs a server and yields a `ScriptedPeer` that acts as its
client; `play_server()` yields a client and a `ScriptedPeer` that acts as its server. A
`ScriptedPeer` sends and expects messages one by one. Make one yourself around a stream of your own:
`memory_pair` returns two joined ends, and so does `trio.testing.lockstep_stream_pair`, in which a
write waits until it was read. To test what tools return, you need none of this:
`mcp_trio.connect(server)` runs a server in memory.

*Findings.* `find_faults` plays a case of `mcp-trio fuzz` against a server, and `find_client_faults`
one of `mcp-trio fuzz --client` on a client. The tests that the fuzzer writes call them.
`mcp_trio.testing.invariants` declares checks of your own for the fuzzer, and
`mcp_trio.testing.strategies` draws messages for tests with hypothesis.

*Time.* All timeouts of `mcp_trio` use trio's clock. With
`trio.testing.MockClock(autojump_threshold=0)`, or the fixture `autojump_clock` of pytest-trio, a
timeout of a minute passes at once: when every task waits, the clock jumps to the next deadline.
Use that only with both sides in memory. While a child process or a socket's peer works, all our
tasks wait, and the clock would jump to their deadlines before it could respond. Test those in real
time.

*Judged conversations.* `connect_judged(target)` is `mcp_trio.connect` for a server that is yours or
of others; the test fails if a message breaks a rule of the specification, or if there is no message
to judge. `judge_trace` does that with a recorded conversation. `mcp_trio.testing.oracle` is a
pytest plugin with fixtures for both.

*Recorded conversations.* `replayed(path)` is a server that answers as a recorded one did: to test
a client or an agent without its server, `async with connect(replayed("search.mcp.jsonl")) as ...`,
on trio and on asyncio. A request that wasn't recorded fails the test with `NotRecorded`.

*Stores.* `check_session_store` tries a store of your own for several workers, `serve_http(store=)`.

*Leaks.* `mcp_trio.testing.pytest_plugin` has the fixture `no_leaks`, which fails a test that leaves
tasks, descriptors, processes, threads or connections behind. Only the two plugins need pytest.
"""

from __future__ import annotations

from mcp_core.trace import NotRecorded, ReplayedServer
from mcp_trio.streams._memory import memory_pair

from ._faults import find_client_faults, find_faults
from ._judging import FoundFaults, NothingJudged, connect_judged, judge_trace
from ._peer import ScriptedPeer
from ._play import play_client, play_server
from ._replayed import replayed
from ._session_store import check_session_store

__all__ = [
    "FoundFaults",
    "NotRecorded",
    "NothingJudged",
    "ReplayedServer",
    "ScriptedPeer",
    "check_session_store",
    "connect_judged",
    "find_client_faults",
    "find_faults",
    "judge_trace",
    "memory_pair",
    "play_client",
    "play_server",
    "replayed",
]
