"""The simulation repeats itself in other processes."""

from __future__ import annotations

import os
import subprocess
import sys


def test_seed_gives_the_same_digest_in_each_process() -> None:
    """Also with other hash seeds: no order of a set may decide what happens."""
    program = (
        "from tests.simulation.plan import plan_of\n"
        "from tests.simulation.world import play\n"
        "print([play(plan_of(seed)).digest for seed in range(6)])"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "2")
    }
    assert len(digests) == 1
