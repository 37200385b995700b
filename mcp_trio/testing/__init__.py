"""What helps to test servers and clients, ours and yours. Like `trio.testing` it is imported by name only, and never by a program.

*The other end.* `play_client(server)` runs a server and hands the test the wire that its client would have; `play_server()` gives a
client and the wire of its server. What is on the wire is a `ScriptedPeer`, which says and expects messages by hand. Around a stream
of your own you make one yourself; `memory_pair` has two ends to give, and so has `trio.testing.lockstep_stream_pair` for those who want
a writer to wait until it was read. To test what tools return, none of this is needed:
`mcp_trio.connect(server)` runs a server in memory.

*Time.* Nothing here or in `mcp_trio` asks another clock than trio's. So with `trio.testing.MockClock(autojump_threshold=0)`, or its
fixture `autojump_clock` of pytest-trio, a minute without an answer goes by at once: whenever every task waits, the clock jumps to
the next deadline. With memory on both sides that is right, for then nobody else can be at work. A child process or a socket is such a
somebody: while it works all our tasks wait, and the clock would jump to their deadlines before it could answer. Test those in real time.

*Leaks.* `mcp_trio.testing.pytest_plugin` has a fixture that fails a test which leaves something behind. Only it needs pytest.
"""

from __future__ import annotations

from mcp_trio import memory_pair

from ._peer import ScriptedPeer
from ._play import play_client, play_server

__all__ = ["ScriptedPeer", "memory_pair", "play_client", "play_server"]
