"""How many cases a second `mcp-trio fuzz` plays against a server of this library.

- `modern`: over stdio in 2026-07-28, which has no handshake;
- `legacy`: over stdio in the revisions with one;
- `http`: over HTTP, in all revisions.

The server is `examples/greeter.py`, which `mcp-trio run` serves in a process of its own. A case is
a conversation of about four messages of the server, each of which is judged, and a probe after it.
`ms_*` is the processor time of the fuzzer itself for a case, which other programs on the machine
do not change. The goals are cases a second on two cores that nothing else uses.

    python benchmarks/bench_fuzz.py [--cases 2000]

The last line is one JSON object with all figures.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio

HERE: Final = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from mcp_core import ALL  # noqa: E402
from mcp_trio.oracle.fuzz._http import UrlTarget  # noqa: E402
from mcp_trio.oracle.fuzz._probe import probe  # noqa: E402
from mcp_trio.oracle.fuzz._session import dialect_of  # noqa: E402
from mcp_trio.oracle.fuzz._stdio import CommandTarget  # noqa: E402
from mcp_trio.oracle.fuzz._steps import CaseChoices, CaseSource  # noqa: E402
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions  # noqa: E402

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._play import TargetLike

SERVER: Final = (sys.executable, "-m", "mcp_trio", "run", str(HERE.parent / "examples/greeter.py"))
GOALS: Final = {"modern": 300, "legacy": 150, "http": 200}


async def measure(kind: str, cases: int, url: str) -> dict[str, Any]:
    """Return the figures of one kind of run."""
    revisions = tuple(
        each for each in ALL if kind == "http" or dialect_of(each).stateful == (kind == "legacy")
    )
    async with trio.open_nursery() as nursery:
        target: TargetLike
        target = UrlTarget(url, nursery) if kind == "http" else CommandTarget(SERVER, nursery)
        offers = await probe(target, revisions)
        choices = CaseChoices(offers, [each["name"] for each in offers.tools], http=kind == "http")
        source = CaseSource(choices, 7)
        campaign = Campaign(target, source, choices, CampaignOptions(seconds=None, cases=cases))
        began, used = time.perf_counter(), time.process_time()
        await campaign.run()
        seconds, used = time.perf_counter() - began, time.process_time() - used
        nursery.cancel_scope.cancel()
    rate = campaign.cases / seconds
    print(
        f"{kind:<7} {rate:6.0f} cases/s  {1000 * used / campaign.cases:.2f} ms of our own each;"
        f" {len(campaign.findings)} findings; the goal is {GOALS[kind]}"
    )
    return {
        kind: round(rate, 1),
        f"ms_{kind}": round(1000 * used / campaign.cases, 2),
        f"findings_{kind}": len(campaign.findings),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2_000)
    cases = parser.parse_args().cases
    found: dict[str, Any] = {}
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
        for kind in GOALS:
            found |= trio.run(measure, kind, cases, url)
    finally:
        server.kill()
        server.wait()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
