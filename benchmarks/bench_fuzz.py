"""How many cases a second `mcp-trio fuzz` plays against a server, and what a case costs.

- `modern`: over stdio in 2026-07-28, which has no handshake;
- `legacy`: over stdio in the revisions with one;
- `http`: over HTTP, in all revisions.

The server is `examples/greeter.py`, which `mcp-trio run` serves in a process of its own. With a
command after `--` that server is measured instead, as `command`: over stdio, in all revisions that
it speaks, and with all of its tools. So give it files that may be lost.

Cases are drawn and played as the command does it: classic cases first, and in lanes over stdio. A
case is a conversation of about four messages of the server, each of which is judged, and a probe
after it.

For each kind the figures are:

- its own name: cases a second;
- `later`: the same for the second half of the cases, when most findings are known;
- `ms`, `target_ms`: the processor time of the fuzzer and of all server processes for a case, those
  of examinations included. Other programs on the machine hardly change it;
- `starts`: how many processes were started for 100 cases. At a URL these are conversations;
- `findings`.

The goals are cases a second on two cores that nothing else uses.

    python benchmarks/bench_fuzz.py [--cases 2000] [--seed 7] [-- COMMAND...]

The last line is one JSON object with all figures.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mcp_core import ALL  # noqa: E402
from mcp_trio.oracle.fuzz._echo import Echo  # noqa: E402
from mcp_trio.oracle.fuzz._http import UrlTarget  # noqa: E402
from mcp_trio.oracle.fuzz._probe import probe  # noqa: E402
from mcp_trio.oracle.fuzz._revisions import dialect_of  # noqa: E402
from mcp_trio.oracle.fuzz._stdio import CommandTarget  # noqa: E402
from mcp_trio.oracle.fuzz.campaign._campaign import (  # noqa: E402
    DEFAULT_LANES,
    Campaign,
    CampaignOptions,
)
from mcp_trio.oracle.fuzz.classics import classic_cases  # noqa: E402
from mcp_trio.oracle.fuzz.draw._cases import CaseSource  # noqa: E402
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_trio.oracle.fuzz._case import Outcome
    from mcp_trio.oracle.fuzz.play._player import TargetLike

SERVER: Final = (sys.executable, "-m", "mcp_trio", "run", str(HERE.parent / "examples/greeter.py"))
GOALS: Final = {"modern": 300, "legacy": 150, "http": 200, "command": 60}


class TimedCampaign(Campaign):
    """A campaign that notes when half of its cases were played."""

    middle: tuple[int, float] = (0, 0.0)

    def _count(self, outcome: Outcome) -> None:
        super()._count(outcome)
        if self.cases <= (self._options.cases or 0) / 2:
            self.middle = self.cases, self.drawing_seconds

    @property
    def later_rate(self) -> float:
        """Cases a second in the second half."""
        cases, seconds = self.middle
        return (self.cases - cases) / (self.drawing_seconds - seconds)


@contextmanager
def http_server() -> Iterator[str]:
    """Serve the example, and yield its URL."""
    server = subprocess.Popen(
        [*SERVER, "--http", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stderr is not None
        url = ""
        while not url:
            match = re.search(r"http://\S+", server.stderr.readline())
            url = match[0] if match else ""
        # It logs each request, and waits if its stderr is full.
        threading.Thread(target=server.stderr.read, daemon=True).start()
        yield url
    finally:
        server.kill()
        server.wait()


def processor_time(who: int) -> float:
    """Return the processor time of this process, or of all its children that have ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


async def play(
    kind: str, options: argparse.Namespace, server: str | list[str]
) -> tuple[TimedCampaign, float]:
    """Play the cases of one kind. Return the run, and the fuzzer's own processor time."""
    revisions = tuple(
        each
        for each in ALL
        if kind in ("http", "command") or dialect_of(each).stateful == (kind == "legacy")
    )
    async with trio.open_nursery() as nursery:
        target: TargetLike
        if isinstance(server, str):
            target, lanes = UrlTarget(server, nursery), 1
        else:
            target, lanes = CommandTarget(server, nursery, inherit_env=True), DEFAULT_LANES
        offers = await probe(target, revisions)
        choices = CaseChoices(offers, [each["name"] for each in offers.tools], http=kind == "http")
        source = CaseSource(choices, options.seed, classic_cases(choices))
        limits = CampaignOptions(seconds=None, cases=options.cases, lanes=lanes)
        echo = Echo()
        await echo.begin()
        campaign = TimedCampaign(target, source, choices, limits, echo=echo)
        used = time.process_time()
        await campaign.run()
        used = time.process_time() - used
        nursery.cancel_scope.cancel()
    return campaign, used


def measure(kind: str, options: argparse.Namespace, server: str | list[str] = "") -> dict[str, Any]:
    """Return the figures of one kind of run."""
    used = processor_time(resource.RUSAGE_CHILDREN)
    if kind == "http":
        with http_server() as url:
            campaign, own = trio.run(play, kind, options, url)
    else:
        campaign, own = trio.run(play, kind, options, server or list(SERVER))
    used = processor_time(resource.RUSAGE_CHILDREN) - used
    rate, cases = campaign.cases / campaign.drawing_seconds, campaign.cases
    found = {
        kind: round(rate, 1),
        f"later_{kind}": round(campaign.later_rate, 1),
        f"ms_{kind}": round(1000 * own / cases, 2),
        f"target_ms_{kind}": round(1000 * used / cases, 2),
        f"starts_{kind}": round(100 * campaign.starts / cases, 2),
        f"findings_{kind}": len(campaign.findings),
    }
    print(
        f"{kind:<7} {rate:6.0f} cases/s, later {campaign.later_rate:.0f};"
        f" {found[f'ms_{kind}']} ms of our own each, {found[f'target_ms_{kind}']} ms of the server;"
        f" {found[f'starts_{kind}']} starts per 100 cases; {len(campaign.findings)} findings;"
        f" the goal is {GOALS[kind]}"
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if options.command:
        found = measure("command", options, options.command)
    else:
        for kind in ("modern", "legacy", "http"):
            found |= measure(kind, options)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
