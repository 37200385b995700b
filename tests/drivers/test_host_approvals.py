"""Servers of a project's file in a host: they begin after their approval, and with their inputs.

The servers are played in memory. What a question shows, and how an answer is stored, is tested with
`Consent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.host import (
    ApprovalRequired,
    ConfigInput,
    ConfigPlace,
    ServerLaunch,
    UnknownName,
)
from mcp_core.runtime.host import MemoryApprovals, ServerQuestion
from tests.drivers.played_host import Host, PlayedServer, PlayedSource, states_of, tool
from tests.harness import either

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.runtime.host import ClientConnection

pytestmark = pytest.mark.usefixtures("each_driver", "hosts_without_threads")

FILE = "/project/.mcp.json"


class ProjectSource(PlayedSource):
    """A server of a project's file, with the command `command` and the inputs `wanted`."""

    file = FILE
    needs_approval = True
    is_trusted = False

    def __init__(self, name: str = "played", server: PlayedServer | None = None) -> None:
        super().__init__(name, server)
        self.command = "/usr/bin/server"
        self.failure: Exception | None = None
        self.wanted: tuple[str, ...] = ()
        self.inputs_given: list[dict[str, str]] = []
        self.launches: list[ServerLaunch | None] = []

    def prepare(self) -> ServerLaunch:
        if self.failure is not None:
            raise self.failure
        return ServerLaunch(transport="stdio", command=self.command, directory="/project")

    def inputs(self) -> Mapping[str, ConfigInput]:
        return {
            id: ConfigInput(id=id, type="promptString", place=ConfigPlace(self.file, 1, 1))
            for id in self.wanted
        }

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        self.inputs_given.append(dict(inputs))
        self.launches.append(launch)
        return super().connect(options, inputs, launch)


# -- Approval ------------------------------------------------------------------------------------


async def test_server_of_a_project_waits_for_its_approval() -> None:
    """Neither time nor `restart` nor `enable` replaces the approval, which the next host reuses."""
    source, stored = ProjectSource(), MemoryApprovals()
    async with Host({}, approvals=stored) as host, host.changes() as changes:
        host.add_source(source)
        await host.wait_settled()
        await either.sleep(3600)
        assert (host.status()["played"].state, source.attempts) == ("unapproved", [])
        with pytest.raises(ApprovalRequired, match="played is not approved: its command"):
            await host.call_tool("played", "look")
        with pytest.raises(UnknownName, match="servers that are not ready: played"):
            await host.call("mcp__played__look")
        host.restart("played")
        host.enable("played")
        await either.sleep(1)
        assert source.attempts == []
        await host.approve_server(await host.server_question("played"))
        await host.wait_settled()
        assert host.status()["played"].state == "ready"
        assert [state for _, state in states_of(changes)] == ["unapproved", "connecting", "ready"]
    async with Host({}, approvals=stored) as again:  # the approval was stored
        again.add_source(source)
        await again.wait_settled()
        assert again.status()["played"].state == "ready"


@pytest.mark.parametrize("answer", [True, False])
async def test_user_is_asked_before_the_server_is_started(answer: bool) -> None:
    """A refusal leaves the server unapproved, and the host doesn't ask again."""
    questions: list[ServerQuestion] = []

    async def ask(question: ServerQuestion) -> bool:
        assert source.attempts == []
        await either.sleep(10)
        questions.append(question)
        return answer

    source = ProjectSource()
    async with Host({}, on_approve_server=ask) as host:
        host.add_source(source)
        before = either.current_time()
        await host.wait_settled()
        assert either.current_time() - before >= 10
        assert host.status()["played"].state == ("ready" if answer else "unapproved")
        assert [(each.server, each.launch.command, each.state) for each in questions] == [
            ("played", "/usr/bin/server", "new")
        ]
        await either.sleep(3600)
        assert len(questions) == 1


async def test_changed_command_is_asked_about_at_the_next_start() -> None:
    """An approval covers one command: a restart after a crash must not run another."""
    source = ProjectSource()
    async with Host({}) as host, host.changes() as changes:
        host.add_source(source)
        await host.wait_settled()
        await host.approve_server(await host.server_question("played"))
        await host.wait_settled()
        source.command = "/tmp/evil"
        await source.server.die()
        await host.wait_settled()
        await either.sleep(100)
        status = host.status()["played"]
        assert (status.state, status.reason) == ("unapproved", "what it runs has changed")
        assert len(source.attempts) == 1
        await host.approve_server(await host.server_question("played"))
        await host.wait_settled()
        assert host.status()["played"].state == "ready"
        assert [state for _, state in states_of(changes)] == [
            *("unapproved", "connecting", "ready", "failed", "connecting", "unapproved"),
            *("connecting", "ready"),
        ]


@pytest.mark.parametrize("state", ["connecting", "ready"])
async def test_server_whose_approval_was_removed_is_ended(state: str) -> None:
    """Another program removes it, and the configuration is read again. Asking takes a minute."""

    async def on_input(_: object) -> str:
        if state == "connecting":
            await either.sleep(60)
        return "v"

    source, stored = ProjectSource(), MemoryApprovals()
    source.wanted = ("i",)
    async with Host({}, approvals=stored, on_input=on_input) as host:
        host.add_source(source)
        await host.wait_settled()
        await host.approve_server(await host.server_question("played"))
        await either.sleep(10)
        assert host.status()["played"].state == state
        stored.change(lambda approvals: approvals.with_server(FILE, "played", None))
        await host.replace_sources([source])
        await either.sleep(3600)
        status = host.status()["played"]
        assert (status.state, status.reason) == ("unapproved", "its approval was removed")
        assert len(source.attempts) == len(source.closed) == (state == "ready")


async def test_approval_of_what_was_shown_does_not_cover_what_is_found_later() -> None:
    """The command changes while the user reads the question, and must not run."""
    source = ProjectSource()
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        shown = await host.server_question("played")
        assert (shown.server, shown.file, shown.state) == ("played", FILE, "new")
        source.command = "/tmp/evil"
        await host.approve_server(shown)
        await host.wait_settled()
        status = host.status()["played"]
        assert (status.state, status.reason) == ("unapproved", "what it runs has changed")
        assert source.attempts == []
        assert (await host.server_question("played")).state == "changed"


async def test_server_is_started_with_the_launch_that_was_compared() -> None:
    async def on_input(_: object) -> str:
        source.command = "/tmp/evil"  # found by every later `prepare`
        assert (await host.server_question("played")).launch.command == "/tmp/evil"
        return "v"

    source = ProjectSource()
    source.wanted = ("i",)
    host = Host({}, on_approve_server=lambda _: True, on_input=on_input)
    async with host:
        host.add_source(source)
        await host.wait_settled()
        assert [launch.command for launch in source.launches if launch] == ["/usr/bin/server"]


async def test_unapproved_server_that_cannot_be_started_has_failed() -> None:
    """There is nothing to ask about until its program exists."""
    source = ProjectSource()
    source.failure = FileNotFoundError("there is no program server")
    async with Host({}) as host:
        host.add_source(source)
        await host.wait_settled()
        status = host.status()["played"]
        assert (status.state, status.reason) == ("failed", "there is no program server")
        with pytest.raises(FileNotFoundError):
            await host.server_question("played")
        source.failure = None
        host.restart("played")
        await host.wait_settled()
        assert host.status()["played"].state == "unapproved"


async def test_question_about_a_removed_server_is_cancelled() -> None:
    """The callback is cancelled, so a dialogue can close its window."""
    cancelled = either.Event()

    async def ask(_: object) -> bool:
        try:
            await either.sleep_forever()
        finally:
            cancelled.set()
        raise AssertionError

    source = ProjectSource()
    async with Host({}, on_approve_server=ask) as host:
        host.add_source(source)
        await either.wait_all_tasks_blocked()
        await host.remove("played")
        await either.wait_all_tasks_blocked()
        assert cancelled.is_set()
        assert source.attempts == []


async def test_annotations_of_a_project_server_do_not_count() -> None:
    async with Host({}, on_approve_server=lambda _: True) as host:
        host.add_source(ProjectSource(server=PlayedServer(tool("look"))))
        await host.wait_settled()
        with pytest.raises(Exception, match="look of played is not approved"):
            await host.call("mcp__played__look")


# -- Inputs --------------------------------------------------------------------------------------


async def test_input_is_asked_for_once_for_all_servers_of_a_file() -> None:
    """Two servers share a file and its inputs; a restart asks for nothing again."""
    asked: list[str] = []

    async def ask(question: ConfigInput) -> str | None:
        asked.append(question.id)
        await either.sleep(5)
        return None if question.id == "none" else f"the {question.id}"

    sources = [ProjectSource(name) for name in ("a", "b", "c")]
    for each in sources:
        each.needs_approval = False
        each.wanted = ("token", "none")
    sources[2].file = "/other/.mcp.json"
    async with Host({}, on_input=ask) as host:
        for each in sources:
            host.add_source(each)
        await host.wait_settled()
        assert [each.inputs_given for each in sources] == [[{"token": "the token"}]] * 3
        assert asked.count("token") == 2  # once for each file
        await sources[0].server.die()
        await either.sleep(20)
        assert sources[0].inputs_given[1:] == [{"token": "the token"}]
        assert asked.count("token") == 2


@pytest.mark.parametrize("is_async", [True, False])
async def test_input_that_cannot_be_asked_for_is_a_verdict(is_async: bool) -> None:
    """A retry would raise again, so the server fails for good, with the exception as reason."""

    async def ask(_: ConfigInput) -> str:
        raise RuntimeError("there is no terminal")

    def ask_plainly(_: ConfigInput) -> str:
        raise RuntimeError("there is no terminal")

    function: Callable[[ConfigInput], object] = ask if is_async else ask_plainly
    source = ProjectSource()
    source.needs_approval = False
    source.wanted = ("token",)
    async with Host({}, on_input=function) as host:
        host.add_source(source)
        await host.wait_settled()
        status = host.status()["played"]
        assert (status.state, status.reason) == ("failed", "RuntimeError: there is no terminal")
