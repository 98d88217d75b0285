"""The flow suite again, with a broker that is never there: whatever is right then needs no bus, only time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOWHERE = "amqp://guest:guest@127.0.0.1:1/"
SUITE = (
    "test_library",
    "test_running",
    "test_conflicts",
    "test_queues",
    "test_worker",
    "test_faults",
    "test_scheduling",
    "test_scheduler_faults",
    "test_transactional",
)


@pytest.mark.prove
def test_the_flow_suite_passes_with_a_deaf_bus() -> None:
    tests = Path(__file__).parents[1] / "flow"
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            "not prove and not prompt",
            *(str(tests / f"{name}.py") for name in SUITE),
        ],
        env={**os.environ, "HEADWAY_BUS": NOWHERE},
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"\nwith a deaf bus: {run.stdout.strip().splitlines()[-1]}")
    assert run.returncode == 0, run.stdout[-5000:]
    assert re.search(r"\b\d{2,} passed", run.stdout)
