"""The probe against servers in memory: revisions, lists, and what is silent or strange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ALL, ConnectFailed
from mcp_trio.oracle.fuzz._probe import probe
from tests.trio_.oracle.fuzz.memory_target import INFO, META, NEW, OLD, MemorySession, MemoryTarget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OLDEST = ALL[-1]
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


class ListingServer:
    """A server's messages. It speaks some revisions, and has lists.

    Args:
        spoken: its revisions. It selects the first that has a handshake for another one.
        capabilities: what it declares in each revision.
        lists: the pages of lists by method, in each revision. Later pages are like the last one.
        silent: methods to which it doesn't respond.
        info: its name and version.

    Attributes:
        asked: start and method of each message, with the cursor of a list's page.
    """

    def __init__(
        self,
        *spoken: str,
        capabilities: Any = None,
        lists: Mapping[str, list[Any]] | None = None,
        silent: Iterable[str] = (),
        info: Any = INFO,
    ) -> None:
        self.spoken = spoken
        self.capabilities = {} if capabilities is None else capabilities
        self.lists = lists or {}
        self.silent = silent
        self.info = info
        self.asked: list[tuple[int, str, Any]] = []

    def __call__(self, message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        """Yield its messages after one of the client."""
        method, params = message["method"], message.get("params", {})
        assert params.get("cursor", "") is not None, "the first page is asked for without one"
        self.asked.append((start, method, params.get("cursor")))
        if "id" not in message or method in self.silent:
            return
        result = self._result(
            method, params, sum(each[:2] == (start, method) for each in self.asked)
        )
        yield {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _result(self, method: str, params: Any, number: int) -> Any:
        if method == "initialize":
            named = params["protocolVersion"]
            old = next((each for each in self.spoken if each != NEW), OLDEST)
            version = named if named in self.spoken else old
            return {
                "protocolVersion": version,
                "capabilities": self.capabilities,
                "serverInfo": self.info,
            }
        if method == "server/discover":
            return {
                "resultType": "complete",
                "supportedVersions": list(self.spoken),
                "capabilities": self.capabilities,
                "_meta": {META + "serverInfo": self.info},
            }
        pages = self.lists.get(method, [[]])
        page = pages[min(number, len(pages)) - 1]
        more = {} if number == len(pages) else {"nextCursor": f"c{number}"}
        return {LISTS[method]: page, "resultType": "complete", **more}

    def methods(self, start: int) -> list[str]:
        """Return the methods that came after a start."""
        return [method for each, method, _ in self.asked if each == start]


@pytest.mark.parametrize(
    ("revisions", "openings"),
    [
        (ALL, ["initialize", "server/discover", *["initialize"] * 3]),
        ((NEW,), ["server/discover"]),
        ((OLD, OLDEST), ["initialize", "initialize"]),
        ((NEW, OLDEST), ["initialize", "server/discover"]),
    ],
)
async def test_each_revision_is_tried_once_with_a_handshake_first(
    revisions: tuple[str, ...], openings: list[str], autojump_clock: Any
) -> None:
    """A server of a revision with a handshake may ignore what comes before it."""
    server = ListingServer(*ALL)
    target = MemoryTarget(server)
    offers = await probe(target, revisions)
    assert [server.methods(start)[0] for start in range(target.starts)] == openings
    assert (offers.revisions, offers.rejected) == (list(revisions), [])
    assert set(offers.capabilities) == set(revisions)
    assert not target.open_sessions
    for start, opening in enumerate(openings):
        note = "notifications/initialized"
        assert (note in server.methods(start)) is (opening == "initialize")


async def test_revisions_that_are_not_spoken_are_rejected(autojump_clock: Any) -> None:
    offers = await probe(MemoryTarget(ListingServer(OLDEST, "x")))
    assert offers.revisions == [OLDEST]
    assert sorted(offers.rejected) == sorted(ALL[:-1])
    assert offers.answers == dict.fromkeys(ALL[1:], OLDEST)


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (INFO, "small 1"),
        ({"name": "n"}, "n"),
        ({"version": "2"}, "? 2"),
        (None, ""),
        ("small", ""),
    ],
)
@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_name_is_what_the_server_says(
    revision: str, info: Any, name: str, autojump_clock: Any
) -> None:
    assert (await probe(MemoryTarget(ListingServer(revision, info=info)))).name == name


@pytest.mark.parametrize("strange", [5, None, [], "x"])
async def test_values_of_a_wrong_type_are_ignored(strange: Any, autojump_clock: Any) -> None:
    class Strange(ListingServer):
        def _result(self, method: str, params: Any, number: int) -> Any:
            name = "_meta" if method == "server/discover" else "protocolVersion"
            return super()._result(method, params, number) | {name: strange}

    offers = await probe(MemoryTarget(Strange(NEW, OLD)), (NEW, OLD))
    assert (offers.name, offers.revisions, offers.rejected) == ("", [NEW], [OLD])
    assert offers.answers == ({OLD: "x"} if strange == "x" else {})


async def test_first_reason_is_shown_if_nothing_is_spoken(autojump_clock: Any) -> None:
    with pytest.raises(ConnectFailed, match=f": it does not speak {OLD}"):
        await probe(MemoryTarget(ListingServer("x", capabilities={})), (OLD, ALL[2]))


@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_reason_names_the_revision_and_what_to_try(
    revision: str, autojump_clock: Any
) -> None:
    with pytest.raises(ConnectFailed) as failed:
        await probe(MemoryTarget(ListingServer("x", capabilities={})), (revision,))
    assert str(failed.value).startswith(
        f"no conversation with memory: it does not speak {revision}"
    )
    assert "`mcp-trio inspect --trace` shows the messages" in str(failed.value)


async def test_revision_with_all_its_lists_takes_a_minute_at_most(autojump_clock: Any) -> None:
    """Four lists without a response would take 40 s."""
    capabilities: Any = {"tools": {}, "prompts": {}, "resources": {}}
    server = ListingServer(OLD, capabilities=capabilities, silent=LISTS)
    began = trio.current_time()
    offers = await probe(MemoryTarget(server, times={"initialize": 25.0}), (OLD,))
    assert trio.current_time() - began == pytest.approx(60)
    assert offers.revisions == [OLD]


class SlowlyClosed(MemorySession):
    """A session that takes a second to close."""

    async def aclose(self) -> None:
        """Wait, and end the conversation."""
        await trio.sleep(1.0)
        await super().aclose()


async def test_session_of_each_revision_is_open_in_it_and_closed_in_any_case(
    autojump_clock: Any,
) -> None:
    """Lists are requested in it, and over HTTP its headers name the revision."""
    sessions: list[MemorySession] = []

    class Target(MemoryTarget):
        async def open(self, *, keep: bool = False) -> MemorySession:
            sessions.append(await super().open(keep=keep))
            return sessions[-1]

    target = Target(ListingServer(NEW, OLD))
    target.session_class = SlowlyClosed
    await probe(target, (NEW, OLD))
    assert [(each.revision, each.is_open) for each in sessions] == [(OLD, True), (NEW, True)]
    target.answers = ListingServer(silent=("initialize",))
    with trio.move_on_after(5.0) as scope:
        await probe(target, (OLD,))
    assert scope.cancelled_caught
    assert not target.open_sessions


@pytest.mark.parametrize("strange", [5, None, [], "tools"])
@pytest.mark.parametrize("revision", [OLD, NEW])
async def test_capabilities_that_are_none_count_as_empty(
    revision: str, strange: Any, autojump_clock: Any
) -> None:
    server = ListingServer(revision, capabilities=strange)
    server.capabilities = strange
    offers = await probe(MemoryTarget(server), (revision,))
    assert offers.capabilities == {revision: {}}


async def test_server_without_a_response_is_waited_for_its_time_and_then_for_seconds(
    autojump_clock: Any,
) -> None:
    began = trio.current_time()
    server = ListingServer(silent=("initialize", "server/discover"))
    with pytest.raises(ConnectFailed, match=f"did not respond to {OLD} within 30 s") as failed:
        await probe(MemoryTarget(server), timeout=30)
    assert "no conversation with memory: " in str(failed.value)
    assert trio.current_time() - began == pytest.approx(30 + 4 * 5)


async def test_server_that_responds_has_its_time_for_each_revision(autojump_clock: Any) -> None:
    """Only silence makes it shorter."""
    target = MemoryTarget(ListingServer(OLD, NEW), times={"server/discover": 8.0})
    offers = await probe(target, (NEW, OLD), timeout=30)
    assert offers.revisions == [NEW, OLD]


def named(*names: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


async def test_lists_are_read_if_the_server_has_them(autojump_clock: Any) -> None:
    """The tools are read in a revision whose headers repeat arguments too, and merged."""
    tasks = {"taskSupport": "optional"}
    lists = {
        "tools/list": [named("a", "b", execution=tasks)],
        "prompts/list": [named("p")],
        "resources/list": [[{"uri": "r:"}]],
        "resources/templates/list": [[{"uriTemplate": "t:{x}"}]],
    }
    capabilities: Any = {"tools": {}, "prompts": {}, "resources": {}}
    server = ListingServer(NEW, OLD, capabilities=capabilities, lists=lists)
    learned: list[Any] = []
    target = MemoryTarget(server)
    target.learn_tools = learned.extend  # type: ignore[assignment]
    original = server.__call__

    def answers(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        if start == 1:
            server.lists = {"tools/list": [named("b", "c")]}
        yield from original(message, start)

    target.answers = answers
    offers = await probe(target, (NEW, OLD))
    assert server.methods(0)[2:] == list(lists)
    assert server.methods(1)[1:] == ["tools/list"]
    assert offers.tools == [
        {"name": "b", "execution": tasks},
        {"name": "c"},
        {"name": "a", "execution": tasks},
    ]
    assert learned == offers.tools
    assert (offers.prompts, offers.resources) == (named("p"), [{"uri": "r:"}])
    assert offers.templates == [{"uriTemplate": "t:{x}"}]


async def test_task_support_of_the_newer_list_is_kept(autojump_clock: Any) -> None:
    forms = [{"taskSupport": "required"}, {"taskSupport": "optional"}]
    server = ListingServer(NEW, OLD, capabilities={"tools": {}})

    def answers(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        server.lists = {"tools/list": [named("a", execution=forms[start])]}
        yield from server(message, start)

    offers = await probe(MemoryTarget(answers), (NEW, OLD))
    assert offers.tools == named("a", execution=forms[1])


async def test_tools_without_task_support_are_merged_by_their_names(autojump_clock: Any) -> None:
    """A tool that only the older list has is kept, and comes last."""
    tasks = {"taskSupport": "optional"}
    pages = [[*named("a", "b"), *named("c", execution=tasks)], named("c", "a")]
    server = ListingServer(NEW, OLD, capabilities={"tools": {}})

    def answers(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
        server.lists = {"tools/list": [pages[start]]}
        yield from server(message, start)

    offers = await probe(MemoryTarget(answers), (NEW, OLD))
    assert offers.tools == [{"name": "c", "execution": tasks}, {"name": "a"}, {"name": "b"}]


async def test_tools_of_older_revisions_are_read_once(autojump_clock: Any) -> None:
    lists = {"tools/list": [named("a")]}
    server = ListingServer(OLD, OLDEST, capabilities={"tools": {}}, lists=lists)
    await probe(MemoryTarget(server), (OLD, OLDEST))
    assert [start for start, method, _ in server.asked if method == "tools/list"] == [0]


async def test_list_without_its_capability_is_not_read(autojump_clock: Any) -> None:
    server = ListingServer(OLD, capabilities={"logging": {}})
    await probe(MemoryTarget(server), (OLD,))
    assert server.methods(0) == ["initialize", "notifications/initialized"]


@pytest.mark.parametrize(
    ("pages", "cursors", "names"),
    [
        ([named("a"), named("b")], [None, "c1"], ["a", "b"]),
        ([named("a")] * 50, [None, *(f"c{number}" for number in range(1, 20))], ["a"] * 20),
        ([named(*range(499)), named(1, 2), []], [None, "c1"], [*range(499), 1]),
        ([named(*range(500)), named(1), []], [None], [*range(500)]),
        ([[5, None, {"name": "a"}, []]], [None], ["a"]),
        ([5], [None], []),
        ([None], [None], []),
        ([{"a": 1}], [None], []),
    ],
)
async def test_pages_of_a_list_are_read_up_to_a_limit(
    pages: list[Any], cursors: list[Any], names: list[Any], autojump_clock: Any
) -> None:
    """Twenty pages, or five hundred entries. What isn't an object is left out."""
    lists = {"prompts/list": pages}
    server = ListingServer(OLD, capabilities={"prompts": {}}, lists=lists)
    offers = await probe(MemoryTarget(server), (OLD,))
    assert [each["name"] for each in offers.prompts] == names
    assert [cursor for _, method, cursor in server.asked if method == "prompts/list"] == cursors


async def test_page_whose_cursor_is_its_own_is_the_last(autojump_clock: Any) -> None:
    class Circling(ListingServer):
        def _result(self, method: str, params: Any, number: int) -> Any:
            return super()._result(method, params, number) | {"nextCursor": "same"}

    server = Circling(OLD, capabilities={"prompts": {}}, lists={"prompts/list": [named("a")]})
    offers = await probe(MemoryTarget(server), (OLD,))
    assert offers.prompts == named("a", "a")


async def test_list_without_a_response_is_waited_for_ten_seconds(autojump_clock: Any) -> None:
    server = ListingServer(OLD, capabilities={"prompts": {}}, silent=("prompts/list",))
    began = trio.current_time()
    offers = await probe(MemoryTarget(server), (OLD,))
    assert trio.current_time() - began == pytest.approx(10)
    assert (offers.revisions, offers.prompts) == ([OLD], [])
