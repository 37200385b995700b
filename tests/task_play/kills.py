"""Servers with tasks in one SQLite file or Redis, which are killed at random moments.

`python -m tests.task_play.kills serve PLACE trio` is such a server, on stdin and stdout. A client
keeps some tasks under way, kills the server with SIGKILL and starts the next one at the same place:

    python -m tests.task_play.kills loop PLACE [--kills N] [--seed N] [--driver trio|asyncio]

A place is a file, or the URL of a Redis server (`redis://`), where it uses one deployment's keys.

Every task has to end with one outcome, which never changes, and no response is requested twice.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import trio

from mcp_core.adapters import RedisStore, SqliteTaskStore
from mcp_core.registry import Context, Server, TaskOptions, Tasks
from mcp_core.tasks import TaskLimits
from tests.task_play.lab import Name
from tests.task_play.wires import E, LineClient, lines_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_core.tasks import TaskStore

__all__ = ["IN_FLIGHT", "LIMITS", "KillLoop", "ServerProcess", "served_process"]

# A lease that is over soon, so that the next server takes the tasks over at once.
LIMITS: Final = TaskLimits(lease=0.3, message_interval=0.001, per_principal=10_000, total=10_000)
STEP: Final = 0.01  # seconds between the steps of a task
IN_FLIGHT: Final = 4  # tasks that are under way
_LIFE: Final = 0.6  # seconds of a server, at most: twice the lease, so that it takes tasks over


def store_at(place: str) -> TaskStore:
    if place.startswith("redis://"):
        return RedisStore(place, name="killed").tasks
    return SqliteTaskStore(place)


def make_server(place: str) -> Server:
    tasks = Tasks(store=store_at(place), limits=LIMITS)
    server = Server("killed", tasks=tasks, state_keys={"a": b"k" * 32})

    async def interview(context: Context, name: str) -> str:
        """Ask twice, with pauses. The result names the process that has run to the end."""
        await context.progress(1, 3, "begun")
        await anyio.sleep(STEP)
        names = []
        for number in (1, 2):
            answer = await context.elicit(f"Name {number} of {name}?", Name)
            names.append(answer.data.name if answer.action == "accept" else answer.action)
            await anyio.sleep(STEP)
        return f"{name}: {' and '.join(names)} by {os.getpid()}-{random.random()}"

    @server.tool(task=TaskOptions(rerun=True))
    async def again(context: Context, name: str) -> str:
        """Run again after its process was lost."""
        return await interview(context, name)

    @server.tool(task="optional")
    async def once(context: Context, name: str) -> str:
        """Fail after its process was lost."""
        return await interview(context, name)

    @server.tool(task=TaskOptions(rerun=True))
    async def wait() -> str:
        """Wait until cancelled."""
        try:
            await anyio.sleep_forever()
        finally:
            print("cancelled", file=sys.stderr, flush=True)
        return ""

    return server


class ServerProcess(LineClient):
    """A client of a server process, which the test may kill. `child` is the process."""

    child: trio.Process
    alive = True

    async def kill(self) -> None:
        """Kill the server, in the middle of what it does."""
        self.alive = False
        self.child.kill()
        await self.child.wait()


@asynccontextmanager
async def served_process(
    place: str, driver: str = "trio", version: str = E
) -> AsyncIterator[ServerProcess]:
    """Start a server with its tasks at `place`. It is killed at the end, if it still runs."""
    command = [sys.executable, "-m", "tests.task_play.kills", "serve", place, driver]
    pipes: Any = {"stdin": -1, "stdout": -1, "stderr": -1}
    child = await trio.lowlevel.open_process(command, **pipes)
    stdin, stdout, stderr = child.stdin, child.stdout, child.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None

    async def write(text: str) -> None:
        with suppress(trio.BrokenResourceError):
            await stdin.send_all(text.encode() + b"\n")

    async with stdin, stdout, stderr, anyio.create_task_group() as group:
        client = ServerProcess(version, group, write, lines_of(stdout.receive_some))
        client.child = child
        group.start_soon(client.read)
        try:
            await client.open()
            yield client
        finally:
            with trio.CancelScope(shield=True):
                await client.kill()
            group.cancel_scope.cancel()


class KillLoop:
    """Keeps tasks under way over servers that are killed, and checks what they do.

    Attributes:
        created: the names of the tasks that exist, by id.
        answered: the keys of the responses that a server has confirmed, by task id.
        outcomes: the text of the results, by task id.
    """

    def __init__(self, place: str, seed: int, driver: str = "trio") -> None:
        self.random = random.Random(seed)
        self.created: dict[str, str] = {}
        self.answered: dict[str, set[str]] = {}
        self.outcomes: dict[str, str] = {}
        self._place = place
        self._driver = driver

    async def run(self, kills: int) -> None:
        for _ in range(kills):
            async with served_process(self._place, self._driver) as client:
                if self.random.random() < 0.9:  # or it is killed while it starts
                    await client.request("tools/list")
                with trio.move_on_after(self.random.uniform(0, _LIFE)):
                    await self._drive(client)
                await client.kill()
        async with served_process(self._place, self._driver) as client:
            with trio.fail_after(60):
                while len(self.outcomes) < len(self.created):
                    await self._look(client)
            for task_id in self.created:  # nothing has changed an outcome
                await self._look_at(client, task_id)

    async def _drive(self, client: ServerProcess) -> None:
        while True:
            if len(self.created) - len(self.outcomes) < IN_FLIGHT:
                name = f"task {len(self.created)}"
                task_id = await client.create("again", name=name)
                self.created[task_id] = name
                self.answered[task_id] = set()
            await self._look(client)

    async def _look(self, client: ServerProcess) -> None:
        for task_id in self.created.keys() - self.outcomes.keys():
            await self._look_at(client, task_id)
        await trio.sleep(0.002)

    async def _look_at(self, client: ServerProcess, task_id: str) -> None:
        state = await client.state(task_id)
        match state["status"]:
            case "completed":
                text = state["result"]["content"][0]["text"]
                assert self.outcomes.setdefault(task_id, text) == text
                name = self.created[task_id]
                assert text.startswith(f"{name}: Name 1 of {name}? and Name 2 of {name}? by "), text
            case "input_required":
                for key, request in state["inputRequests"].items():
                    assert key not in self.answered[task_id], "a response was lost"
                    content = {"name": request["params"]["message"]}
                    answers: Any = {key: {"action": "accept", "content": content}}
                    update = {"taskId": task_id, "inputResponses": answers}
                    await client.request("tasks/update", update)
                    self.answered[task_id].add(key)
            case status:
                assert status == "working", state


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill servers that run tasks.")
    commands = parser.add_subparsers(required=True, dest="command")
    serve = commands.add_parser("serve")
    serve.add_argument("place")
    serve.add_argument("driver", choices=["trio", "asyncio"])
    loop = commands.add_parser("loop")
    loop.add_argument("place")
    loop.add_argument("--kills", type=int, default=20)
    loop.add_argument("--seed", type=int, default=random.randrange(2**32))
    loop.add_argument("--driver", choices=["trio", "asyncio"], default="trio")
    given = parser.parse_args()
    if given.command == "serve":
        if given.driver == "trio":
            from mcp_trio import run

            run(make_server(given.place))
        else:
            from mcp_asyncio_shim import run as run_on_asyncio

            run_on_asyncio(make_server(given.place))
        return
    kills = KillLoop(given.place, given.seed, given.driver)
    print(f"seed {given.seed}")
    trio.run(kills.run, given.kills)
    print(f"{given.kills} kills, {len(kills.outcomes)} tasks, each with one outcome")


if __name__ == "__main__":
    main()
