"""Tools to test MCP servers and clients. Like `trio.testing`, import it by name, in tests only.

*Scripted peers.* `play_client(server)` runs a server and yields a `ScriptedPeer` that acts as its
client; `play_server()` yields a client and a `ScriptedPeer` that acts as its server. A
`ScriptedPeer` sends and expects messages one by one. Make one yourself around a stream of your own:
`memory_pair` returns two joined ends, and so does `trio.testing.lockstep_stream_pair`, in which a
write waits until it was read. To test what tools return, you need none of this:
`mcp_trio.connect(server)` runs a server in memory.

*Time.* All timeouts of `mcp_trio` use trio's clock. With
`trio.testing.MockClock(autojump_threshold=0)`, or the fixture `autojump_clock` of pytest-trio, a
timeout of a minute passes at once: when every task waits, the clock jumps to the next deadline.
Use that only with both sides in memory. While a child process or a socket's peer works, all our
tasks wait, and the clock would jump to their deadlines before it could respond. Test those in real
time.

*Leaks.* `mcp_trio.testing.pytest_plugin` has the fixture `no_leaks`, which fails a test that leaves
tasks, descriptors, processes, threads or connections behind. It is the only part that needs pytest.
"""

from __future__ import annotations

from mcp_trio.streams._memory import memory_pair

from ._peer import ScriptedPeer
from ._play import play_client, play_server

__all__ = ["ScriptedPeer", "memory_pair", "play_client", "play_server"]
