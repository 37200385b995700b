"""Every example runs as its reader would run it: as a program, from another directory."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

import mcp_trio
from mcp_core import ALL, DIALECTS
from mcp_core.auth import HttpResponse
from mcp_core.types import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    SamplingCapability,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from tests.examples.pages import EXAMPLES, ROOT
from tests.examples.programs import command, load
from tests.fakes.authorization_server import AuthorizationServer
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core.auth import HttpRequest
    from mcp_core.types import CallToolResult

BOTH_ERAS = ["2025-11-25", "2026-07-28"]


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def test_every_example_has_a_test() -> None:
    source = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in source] == []


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("name", ["greeter.py", "blocking_loop.py"])
async def test_greeter_examples_work_in_every_revision(
    name: str, version: str, tmp_path: Path
) -> None:
    async with mcp_trio.connect_stdio(command(name), cwd=tmp_path, versions=[version]) as client:
        assert client.peer.dialect is DIALECTS[version]
        await client.ping()
        (tool,) = await client.list_tools()
        assert (tool.name, tool.description) == ("greet", "Say hello to someone by name.")
        assert text_of(await client.call_tool("greet", {"name": "World"})) == "Hello, World!"
        with pytest.raises(mcp_trio.PeerError, match="Unknown tool"):
            await client.call_tool("grow")


@pytest.mark.parametrize("words", [("run", "greeter.py"), ("run", "weather.py:server")])
async def test_example_is_served_by_command(words: tuple[str, str]) -> None:
    argv = [sys.executable, "-m", "mcp_trio", *words]
    async with mcp_trio.connect_stdio(argv, cwd=EXAMPLES, env={"PYTHONPATH": str(ROOT)}) as client:
        assert client.peer.info is not None
        assert words[1].startswith(client.peer.info.name)


@pytest.mark.parametrize("version", ["2026-07-28", "2025-06-18"])
async def test_weather_example_serves_all_features(version: str) -> None:
    """The readers' first server runs as a child process: tools, resources, prompts, completion."""
    steps: list[tuple[float, float | None, str | None]] = []
    async with mcp_trio.connect(command("weather.py"), versions=[version]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo", "days": 2, "unit": "F"})
        assert result.structured_content == {
            "city": "Oslo",
            "unit": "F",
            "days": [
                {"sky": "cloudy", "high": 42.8, "low": 32.0},
                {"sky": "rain", "high": 46.4, "low": 35.6},
            ],
        }
        assert (await client.call_tool("forecast", {"city": "Ulm"})).is_error
        assert (await client.call_tool("forecast", {"city": "Oslo", "days": 9})).is_error

        seen = await client.call_tool(
            "watch", {"city": "Lima", "hours": 2}, progress=lambda *step: steps.append(step)
        )
        assert text_of(seen) == "cloudy, rain"
        assert steps == [(hour, 2, "watching the sky over Lima") for hour in range(2)]

        assert [found.uri for found in await client.list_resources()] == ["weather://cities"]
        assert [found.name for found in await client.list_resource_templates()] == ["today"]
        (contents,) = (await client.read_resource("weather://Lima/today")).contents
        assert contents.text == "Lima: cloudy, 13.0 to 19.0 °C"
        with pytest.raises(mcp_trio.PeerError, match="no weather for Ulm"):
            await client.read_resource("weather://Ulm/today")

        (message,) = (await client.get_prompt("pack", {"city": "Lima", "days": "5"})).messages
        assert isinstance(message.content, TextContent)
        assert message.content.text.startswith("I travel to Lima for 5 days.")
        for ref in "pack", "weather://{city}/today":
            assert (await client.complete(ref, "city", "o")).values == ["Oslo"]


def test_client_example_prints_tools_and_result(tmp_path: Path) -> None:
    result = subprocess.run(
        command("client.py"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.stderr == ""
    assert result.stdout == "greet: Say hello to someone by name.\nHello, World!\n"


def test_unix_socket_example_serves_two_clients(tmp_path: Path) -> None:
    result = subprocess.run(
        command("unix_socket.py"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.stderr == ""
    assert result.stdout == "Ada is guest number 1\nBob is guest number 2\n"


@pytest.fixture
def threads(tmp_path: Path) -> Iterator[int]:
    """Run `threads.py` and yield its port. The program never ends by itself."""
    with subprocess.Popen(command("threads.py"), cwd=tmp_path, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.parametrize("version", ALL)
async def test_threads_example_serves_concurrent_clients(version: str, threads: int) -> None:
    """A client that sends garbage and does not read must not disturb calls of another one."""

    async def wake() -> None:
        assert (await client.call_tool("nap", {"seconds": 0.1})).text == "slept well"
        woken.append("nap")

    with trio.fail_after(PATIENCE):
        garbage = await trio.open_tcp_stream("127.0.0.1", threads)
        await garbage.send_all(b"no JSON\n" * 1_000)
        stream = await trio.open_tcp_stream("127.0.0.1", threads)
        async with garbage, mcp_trio.connect_stream(stream, versions=[version]) as client:
            assert client.peer.dialect is DIALECTS[version]
            woken: list[str] = []
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(wake)
                await client.ping()
                assert not woken
            reported: list[float] = []
            result = await client.call_tool(
                "count", {"to": 5_000}, progress=lambda done, *_: reported.append(done)
            )
            assert result.text == "counted to 5000"
            assert reported == [number + 1 for number in range(5_000)]
            with pytest.raises(mcp_trio.CallTimeout):
                await client.call_tool("nap", {"seconds": 0.3}, timeout=0.01)
            assert (await client.call_tool("count", {"to": 0})).text == "counted to 0"
        async with mcp_trio.connect_stream(
            await trio.open_tcp_stream("127.0.0.1", threads)
        ) as another:
            assert [tool.name for tool in await another.list_tools()] == ["count", "nap"]


QUESTIONS = """\
Seats on flight KL 1234
  count: How many?
  where: On which side?
2 seats by the aisle on KL 1234; 3 left
"""
ANSWERS = "Oolong is half oxidised.\nSencha is not oxidised: it is steamed.\n"
ROLES = """\
Ann: add report
There are 2 entries.
tea 3.50, milk 1.20
Bob: report
tea 3.50, milk 1.20
"""
MOUNTED = """\
notes_read notes_write units_fahrenheit
Buy oolong.
203.0
notes_read notes_write
"""
FILES = """\
link todo.txt
todo.txt: Buy a pen for the notes.
../diary/todo.txt: refused
link: refused
/etc/passwd: refused
"""
KNOWLEDGE = """\
Refunds kb://articles/refunds
Orders kb://articles/orders
# Refunds

A refund takes five days. Ask for the number of the order.

orders
Revised.
2 messages
"""
DEGREES = "40 °C\n60 °C\n80 °C\n100 °C\n"


@pytest.mark.parametrize("version", BOTH_ERAS)
@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("booking.py", QUESTIONS),
        ("research.py", ANSWERS),
        ("watched.py", DEGREES),
        ("mounted.py", MOUNTED),
        ("files.py", FILES),
        ("knowledge.py", KNOWLEDGE),
        ("roles.py", ROLES),
    ],
)
def test_example_with_own_client_prints_output(
    name: str, output: str, version: str, tmp_path: Path
) -> None:
    result = subprocess.run(
        [*command(name), version],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        timeout=PATIENCE,
        check=False,
    )
    assert (result.stdout, result.stderr) == (output, "")


@pytest.mark.parametrize("version", BOTH_ERAS)
async def test_report_example_runs_as_task(
    version: str, autojump_clock: trio.testing.MockClock
) -> None:
    server = load("report.py").server
    async with mcp_trio.connect(server, versions=[version]) as client:
        task = await client.start_tool("report", {"topic": "owls", "archives": 3})
        states = [state async for state in task.states()]
        assert ("working", "Reading about owls") in states
        assert text_of(await task.result()) == "3 archives have something about owls."
        assert text_of(await client.call_tool("report", {"topic": "owls"})).startswith("2 archives")


def answer_always(answer: Any) -> Callable[[ElicitParams], Any]:
    return lambda params: answer


@pytest.mark.parametrize("version", BOTH_ERAS)
async def test_booking_example_declined_or_invalid_books_nothing(version: str) -> None:
    """One flight with five seats meets five answers, then a client that can't be asked."""
    booking = load("booking.py")
    for answer, text in [
        (None, "Nothing was booked."),
        (ElicitResult(action="decline"), "Nothing was booked."),
        ({"count": 6, "where": "window"}, "only 5 seats left on KL 1234"),
        ({"count": 5}, "5 seats by the aisle on KL 1234; 0 left"),
        ({"count": 1}, "there are no seats on KL 1234"),
    ]:
        async with mcp_trio.connect(
            booking.server, versions=[version], on_elicit=answer_always(answer)
        ) as client:
            assert text_of(await client.call_tool("book", {"flight": "KL 1234"})) == text
    async with mcp_trio.connect(load("booking.py").server, versions=[version]) as client:
        with pytest.raises(mcp_trio.PeerError, match="needs a client that declares"):
            await client.call_tool("book", {"flight": "KL 1234"})


@pytest.mark.parametrize("version", BOTH_ERAS)
async def test_research_example_stops_after_maximum_rounds(version: str) -> None:
    """The model calls an unknown tool forever; without a limit the user would pay forever."""
    rounds = 0

    def model(params: CreateMessageParams) -> CreateMessageResult:
        nonlocal rounds
        rounds += 1
        results = params.messages[-1].content
        if isinstance(results, list):
            assert isinstance(results[0], ToolResultContent)
            assert results[0].is_error
        use = ToolUseContent(f"use-{rounds}", "burn", {"tea": ["all"]})
        return CreateMessageResult(role="assistant", content=use, model="m", stop_reason="toolUse")

    research = load("research.py").server
    able = SamplingCapability(tools={})
    async with mcp_trio.connect(
        research, versions=[version], on_sample=model, sampling=able
    ) as client:
        result = await client.call_tool("research", {"question": "Why?"})
    assert (result.is_error, result.text) == (True, "the model has found no answer in 5 rounds")
    assert rounds == 5


@pytest.mark.parametrize("version", BOTH_ERAS)
async def test_watched_example_change_invalidates_cached_value(
    version: str, autojump_clock: object
) -> None:
    """The client caches what it reads, so only the notification makes it read 40 degrees."""
    kettle = load("watched.py").server
    async with (
        mcp_trio.connect(kettle, versions=[version]) as client,
        client.listen(uris=[URI]) as changes,
    ):
        assert await degrees(client) == "20"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "boil")
            async for change in changes:
                assert change.uri == URI
                break
            assert await degrees(client) == "40"
        await trio.testing.wait_all_tasks_blocked()
        assert await degrees(client) == "100"


URI = "kettle://temperature"


async def degrees(client: mcp_trio.Client) -> str | None:
    return (await client.read_resource(URI)).contents[0].text


CALLS: list[tuple[str, dict[str, Any], bool, str]] = [
    ("price", {"tea": "sencha", "cups": 2}, False, "9.0"),
    ("price", {"tea": "coffee"}, True, "no coffee today; on the menu: assam, rooibos, sencha"),
    ("brew", {"tea": "assam", "minutes": 1}, False, "A pot of assam, steeped for 1 minutes."),
]


async def test_teahouse_example_serves_all_features() -> None:
    async with mcp_trio.connect([sys.executable, "-m", "mcp_trio.examples.teahouse"]) as client:
        for name, arguments, is_error, text in CALLS:
            result = await client.call_tool(name, arguments)
            assert (result.is_error, text_of(result)) == (is_error, text)
        (menu,) = (await client.read_resource("tea://menu")).contents
        assert menu.text == "assam: 4.00\nrooibos: 3.50\nsencha: 4.50"
        (card,) = (await client.read_resource("tea://menu/sencha")).contents
        assert card.text == "Sencha: 4.50 euros a cup"
        with pytest.raises(mcp_trio.PeerError):
            await client.read_resource("tea://menu/coffee")


@pytest.mark.parametrize("version", BOTH_ERAS)
async def test_protected_example_requires_token_and_scope(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The authorization server is played; a token for reading notes can't add one."""
    protected = load("protected.py")
    issuer = AuthorizationServer(protected.ISSUER)

    async def fetch(request: HttpRequest, **how: Any) -> HttpResponse:
        response = issuer.answer(
            request.method, request.url.removeprefix(protected.ISSUER), {}, b""
        )
        return HttpResponse(response.status, response.headers, response.body)

    monkeypatch.setattr("mcp_trio.auth._fetch.fetch", fetch)
    async with trio.open_nursery() as nursery:
        serve: Any = partial(mcp_trio.serve_http, protected.server, auth=protected.resource_server)
        address = await nursery.start(serve)
        with pytest.raises(mcp_trio.ConnectFailed) as refused:
            async with mcp_trio.connect(address.url, versions=[version]):
                pass
        assert isinstance(refused.value.__cause__, mcp_trio.AuthRequired)
        headers = {"authorization": f"Bearer {issuer.token(protected.URL)}"}
        async with mcp_trio.connect_http(
            address.url, versions=[version], headers=headers
        ) as client:
            assert text_of(await client.call_tool("add_note", {"text": "milk"})) == "kept"
            assert "milk" in text_of(await client.call_tool("read_notes"))
        headers = {"authorization": f"Bearer {issuer.token(protected.URL, 'notes:read')}"}
        async with mcp_trio.connect_http(
            address.url, versions=[version], headers=headers
        ) as client:
            assert "milk" in text_of(await client.call_tool("read_notes"))
            with pytest.raises(mcp_trio.McpTrioError):
                await client.call_tool("add_note", {"text": "eggs"})
        nursery.cancel_scope.cancel()
