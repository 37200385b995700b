"""The fuzzer finds nothing in right programs: ours, examples, the SDKs', and odd ones.

`MCP_TRIO_RIGHT_CASES` says how many conversations the slow tests play in all. They run in memory on
a clock that jumps, so a finding is no accident of a busy machine, and comes again.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

import mcp_trio
from tests.examples.programs import load
from tests.oracle_score.campaign import run_campaign
from tests.oracle_score.odd_habits import CLIENT_HABITS, SERVER_HABITS, OddHabit, odd_place
from tests.oracle_score.score import SEED
from tests.oracle_score.servers import SERVERS, RightServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle_score.operators import MutantPlace

    Json = dict[str, Any]

CASES: Final = int(os.environ.get("MCP_TRIO_RIGHT_CASES", "10000"))
LIVE_CASES: Final = 400  # against a program, whose clock is the real one
FEW: Final = 25


async def serve_example(name: str, stream: trio.abc.Stream) -> None:
    """Serve a new server of an example."""
    await mcp_trio.serve_stream(load(f"{name}.py").server, stream, grace=0.1)


async def serve_files(folder: Path, stream: trio.abc.Stream) -> None:
    """Serve the example about files, which are below a folder."""
    await mcp_trio.serve_stream(load("files.py").make_server([folder]), stream, grace=0.1)


EXAMPLES: Final = {
    name: RightServer(partial(serve_example, name), tuple(tools.split()))
    for name, tools in {
        "greeter": "greet",
        "booking": "book",
        "shop": "search_products show_product add_product set_price restock remove_product"
        " import_products list_orders create_order add_to_order confirm_order cancel_order",
        "report": "report",
        "research": "research",
        "knowledge": "search revise",
        "weather": "forecast watch",
        "watched": "boil",
        "roles": "add report",
    }.items()
}
PROGRAMS: Final = {
    **{name: each for name, each in SERVERS.items() if not each.needs},
    **EXAMPLES,
    "files": RightServer(
        partial(serve_files, Path(__file__).parent), ("list_allowed", "list_directory", "read_file")
    ),
}
# Over HTTP a mutant has another kind of operator. The SDK's server has faults that are known by its
# own words, which the habits would change.
ODD: Final = [name for name in PROGRAMS if name not in ("http", "sdk")]
# A run doesn't fail for advice. A client that reads all pages follows as many as a case has, and a
# tool of these servers works as long as its arguments say.
ADVICE: Final = {
    **{name: "endless" for name, each in PROGRAMS.items() if each.is_client},
    **dict.fromkeys(("teahouse", "report", "sdk"), "RPC-35"),
}
SEEDS: Final = range(3)  # of each odd program's habits
SHARE: Final = -(-CASES // (len(PROGRAMS) + len(SEEDS) * len(ODD)))


def habits_of(name: str) -> tuple[type[OddHabit], ...]:
    return CLIENT_HABITS if PROGRAMS[name].is_client else SERVER_HABITS


def assert_right(name: str, place: MutantPlace | None, cases: int) -> None:
    """Play cases with a program, and find nothing: also nothing that no further play confirms."""
    result = run_campaign(PROGRAMS[name], place, cases=cases, seed=SEED)
    assert result.failure == ""
    assert (result.found, result.sentence) == ("", "")
    assert (result.other, result.advice in ("", ADVICE.get(name))) == ("", True)
    unconfirmed = [each for each in result.notes if each.startswith("unconfirmed")]
    # The SDK's functions run in threads that the clock can overtake.
    assert unconfirmed == [] or name == "sdk"
    assert result.cases == cases, result.notes


def marked(name: str) -> object:
    """Return a program's name as a parameter. The SDK takes seconds to import."""
    return pytest.param(name, marks=pytest.mark.interop if name.startswith("sdk") else ())


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [marked(each) for each in PROGRAMS])
def test_right_program_has_no_finding(name: str) -> None:
    assert_right(name, None, SHARE)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [marked(each) for each in ODD])
def test_right_program_with_odd_habits_has_no_finding(name: str, seed: int) -> None:
    counts: Counter[str] = Counter()
    assert_right(name, odd_place(f"{name} {seed}", name, habits_of(name), counts), SHARE)
    assert counts


@pytest.mark.slow
@pytest.mark.node
@pytest.mark.timeout(900)
def test_right_server_of_the_typescript_sdk_has_no_finding() -> None:
    """It is a process, whose clock is the real one."""
    server = SERVERS["typescript"]
    if not server.is_available:
        pytest.skip(f"needs node, and {server.needs}")
    result = run_campaign(server, None, cases=LIVE_CASES, seed=SEED)
    assert (result.failure, result.found, result.sentence) == ("", "", "")
    assert result.cases == LIVE_CASES, result.notes


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "habit"),
    [
        *(("workshop", each) for each in SERVER_HABITS),
        *(("client", each) for each in CLIENT_HABITS if each.__name__ != "Late"),
    ],
)
def test_odd_habit_is_shown_and_is_no_finding(name: str, habit: type[OddHabit]) -> None:
    counts: Counter[str] = Counter()
    assert_right(name, odd_place(habit.__name__, name, (habit,), counts), FEW)
    assert counts[habit.__name__]


@pytest.mark.long
@pytest.mark.parametrize("name", ["greeter", "knowledge"])
def test_example_has_no_finding(name: str) -> None:
    assert_right(name, None, FEW)


class Repeats(OddHabit):
    """Sends each response twice, which is wrong."""

    def to_client(self, message: Json) -> Iterator[Json]:
        yield message
        if self.method_of(message):
            self.note()
            yield message


@pytest.mark.long
@pytest.mark.parametrize(("name", "cases"), [("workshop", FEW), ("client", 4 * FEW)])
def test_habit_that_is_wrong_is_a_finding(name: str, cases: int) -> None:
    counts: Counter[str] = Counter()
    place = odd_place("wrong", name, (Repeats,), counts)
    result = run_campaign(PROGRAMS[name], place, cases=cases, seed=SEED)
    assert result.found == "RPC-7"
    assert counts["Repeats"]
