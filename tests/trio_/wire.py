"""The other end of a conversation, in lines of JSON: what the tests of the drivers speak, so that the machine is not trusted.

`Wire` is a `ScriptedPeer` with shorter words for what these tests say and hear most. `served` runs a server on one end of a
memory pair and gives the other one. What else is waited for may take `PATIENCE` seconds.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio
import trio.testing

from mcp_trio import serve_stream
from mcp_trio.testing import ScriptedPeer, memory_pair
from tests.core.helpers import D, E, Message, modern, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.registry import Server

PATIENCE: Final = 30.0
ERAS: Final = (D, E)


class Wire(ScriptedPeer):
    """Somebody who talks to one of our drivers over `stream`. `version` is the revision in which it asks."""

    def __init__(self, stream: trio.abc.Stream, version: str = D) -> None:
        super().__init__(stream, version)

    tell = ScriptedPeer.send

    async def shake_hands(self) -> None:
        """Open the conversation, if the revision wants that."""
        await self.open_as_client(info={"name": "client", "version": "1"})

    async def hear(self) -> Message:
        """The next message."""
        message: Message = json.loads(await self.hear_line())
        return message

    async def hear_line(self) -> bytes:
        """The next line without its end.

        Raises:
            EOFError: there is none.
        """
        line = await self.receive_line()
        if line is None:
            raise EOFError
        return line

    async def hear_all(self) -> list[Message]:
        """Every message until the end of the stream; then who closed it has come to rest."""
        heard = [message async for message in self]
        await trio.testing.wait_all_tasks_blocked()
        return heard

    async def hears_nothing(self) -> bool:
        """Whether all is quiet, now and once every task waits for something."""
        try:
            await self.expect_silence()
        except AssertionError:
            return False
        return True

    def asking(self, id: Any, method: str, params: Any = None, **meta: Any) -> Message:
        """A request in this wire's revision; `meta` are members of its `_meta`."""
        if self.version == E:
            return modern(id, method, params, **meta)
        if meta:
            params = {**(params or {}), "_meta": meta}
        return request(id, method, params)

    def calling(self, id: Any, name: str, arguments: Any = None, **meta: Any) -> Message:
        """A tool call."""
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return self.asking(id, "tools/call", params, **meta)

    async def ask(self, id: Any, method: str, params: Any = None, **meta: Any) -> Message:
        """Ask and hear the answer, which has to be the next message."""
        await self.tell(self.asking(id, method, params, **meta))
        return await self.hear()

    async def call(self, id: Any, name: str, arguments: Any = None) -> Message:
        """Call a tool and hear the answer, which has to be the next message."""
        await self.tell(self.calling(id, name, arguments))
        return await self.hear()

    async def ping(self, id: Any = "ping") -> Message:
        """Whatever the revision answers at once."""
        return await self.ask(id, "server/discover" if self.version == E else "ping")

    async def is_alive(self) -> bool:
        """Whether a ping is answered, by the very next message."""
        answer = await self.ping("alive?")
        return answer["id"] == "alive?" and "result" in answer


def text_of(answer: Message) -> str:
    """The text of a tool's result."""
    text = answer["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


@asynccontextmanager
async def served(
    server: Server, version: str = D, *, grace: float = 5.0, opened: bool = True
) -> AsyncIterator[Wire]:
    """A wire to `server`, its conversation opened. At the end the client hangs up, and the server has to end too."""
    ours, theirs = memory_pair()
    wire = Wire(ours, version)
    ended = trio.Event()

    async def serve() -> None:
        await serve_stream(server, theirs, grace=grace)
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        if opened:
            await wire.shake_hands()
        yield wire
        with trio.fail_after(PATIENCE):
            await ours.aclose()
            await ended.wait()
