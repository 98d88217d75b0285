"""What a worker does without the libraries of an extra, and without jobs that need them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headway.clock import SystemClock
from headway.executors import make_executors
from headway.executors.contract import MissingExtra, Setup
from headway.executors.http import make

MADE = """
import sys
from headway.clock import SystemClock
from headway.executors import make_executors
from headway.executors.contract import Setup

print(*make_executors(Setup(clock=SystemClock())))
print(*sorted({"aiohttp", "asyncssh", "cryptography"} & sys.modules.keys()))
"""


@pytest.mark.parametrize(("library", "kinds"), [("aiohttp", {"http", "fetch"}), ("asyncssh", {"script", "probe"})])
def test_jobs_whose_library_is_missing_are_left_to_other_workers(
    monkeypatch: pytest.MonkeyPatch, library: str, kinds: set[str]
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    made = make_executors(Setup(clock=SystemClock()))
    assert "call" in made
    assert not kinds & made.keys()


def test_what_is_missing_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingExtra, match=r"pip install 'headway\[server\]'"):
        make(Setup(clock=SystemClock()))


def test_a_worker_loads_no_library_before_the_first_job_that_needs_it() -> None:
    done = subprocess.run([sys.executable, "-c", MADE], capture_output=True, text=True, check=True)
    kinds, loaded = done.stdout.split("\n")[:2]
    assert {"http", "fetch", "script", "probe"} <= set(kinds.split())
    assert loaded == ""
