"""The table of habits against the newest SDKs: a row that they no longer show is out of date.

`MCP_TRIO_NEWEST_SDKS` names a directory. Its `node_modules` has `@modelcontextprotocol/sdk` 1.x and
`@modelcontextprotocol/server`, its environments `python-1` and `python-2` have `mcp` 1.x and 2.x.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
import trio

from mcp_trio.oracle.fuzz._probe import probe
from mcp_trio.oracle.fuzz._revisions import dialect_of
from mcp_trio.oracle.fuzz._stdio import CommandTarget
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.oracle.fuzz.habits._sdk_marks import PYTHON_1, PYTHON_2, TYPESCRIPT
from mcp_trio.oracle.fuzz.habits._table import HABITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_trio.oracle.fuzz._case import Case
    from mcp_trio.oracle.fuzz.habits._table import Habit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HERE: Final = Path(__file__).parent
VARIABLE: Final = "MCP_TRIO_NEWEST_SDKS"
PYTHON: Final = str(HERE / "sdk_small_server.py")
NODE: Final = str(HERE / "ts_small_server.mjs")
SERVERS: Final = {
    "sdk": (TYPESCRIPT, ["node", NODE, "sdk", "{}/node_modules"]),
    "server": (TYPESCRIPT, ["node", NODE, "server", "{}/node_modules"]),
    "python-1": (PYTHON_1, ["{}/python-1/bin/python", PYTHON]),
    "python-2": (PYTHON_2, ["{}/python-2/bin/python", PYTHON]),
}

# The judge has to know what exists before it judges the error for what doesn't.
LISTS: Final[Case] = [
    ("page", method, "all")
    for method in ("prompts/list", "resources/list", "resources/templates/list")
]


@pytest.fixture
def directory() -> str:
    found = os.environ.get(VARIABLE)
    if not found:
        pytest.skip(f"needs {VARIABLE}, naming a directory with the newest SDKs")
    return found


def habits_of(sdk: str, *, modern: bool) -> list[Habit]:
    """Return the habits of an SDK: one that lasts is about revisions without a handshake."""
    return [each for each in HABITS if sdk in each.sdks and (modern or not each.lasts)]


async def shown_by(command: Sequence[str], sdk: str) -> tuple[set[str], set[str]]:
    """Return the habits of an SDK that its server shows in a run with the table's probes.

    And all that it should show.
    """
    async with trio.open_nursery() as nursery:
        target = CommandTarget(command, nursery)
        offers = await probe(target)
        revision = next(each for each in offers.revisions if dialect_of(each).stateful)
        opening = ("open", revision, "whole", "all")
        modern = next((each for each in offers.revisions if not dialect_of(each).stateful), "")
        cases: list[Case] = []
        for habit in habits_of(sdk, modern=bool(modern)):
            if habit.probe[0] == "batch":
                batched = next(each for each in offers.revisions if dialect_of(each).batches)
                cases.append([("open", batched, "whole", "all"), *LISTS, habit.probe])
            elif habit.probe[0] == "open":
                cases.append([("open", revision, *habit.probe[2:])])
            elif habit.lasts:
                # Any other request before its message would have decided for a revision.
                listed = [("open", modern, "whole", "all"), ("page", "tools/list", "first")]
                changed = [listed[0], habit.probe, listed[1], ("wait",)]
                cases = [listed[:1], changed[:2], listed, changed, *cases]
            else:
                cases.append([opening, *LISTS, habit.probe])
        campaign = Campaign(target, None, CaseChoices(offers, []), CampaignOptions(seconds=None))
        await campaign.run(cases)
        assert campaign.findings == []
        nursery.cancel_scope.cancel()
    expected = {each.name for each in habits_of(sdk, modern=bool(modern))}
    return {each.habit.name for each in campaign.habits}, expected


@pytest.mark.parametrize("name", SERVERS)
async def test_newest_sdk_has_its_habits(directory: str, name: str) -> None:
    """If it has mended one: correct the versions of the row, or remove it with the last SDK."""
    sdk, words = SERVERS[name]
    shown, expected = await shown_by([each.format(directory) for each in words], sdk)
    assert shown == expected
