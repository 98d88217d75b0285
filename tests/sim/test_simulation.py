"""The whole engine in simulated worlds, thousands of them, each made from a number that makes it again.

HEADWAY_SIM_SEED=123 .venv/bin/pytest tests/sim -k replay -s        prints the story of one world
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from unittest.mock import patch

import pytest

from headway.store.sql import SqlStore
from headway.store.sqlite.rows import microseconds
from tests.sim.bugs import BUGS, RARE_BUGS, Plant
from tests.sim.loop import START
from tests.sim.world import Story, run

SEEDS = 2_000
BLOCK = 250
"""Worlds in one test: several run at a time."""
MANY_SEEDS = 100_000
LONGEST_PROOF = 30 * 60.0
BATCH = 20
PROCESSES = 2
BUG_SEEDS = 400
"""Within how many worlds a planted bug must be found."""
RARE_BUG_SEEDS = 10_000

Result = tuple[Counter[str], list[tuple[int, str]]]
"""What happened in some worlds, and the seeds that went wrong."""


def play(seeds: Sequence[int]) -> Result:
    """Run these worlds in this process; every hundredth twice, to see that it is the same both times."""
    counts, failed = Counter[str](), list[tuple[int, str]]()
    for seed in seeds:
        story = run(seed)
        counts.update(story.counts, worlds=1, **{"virtual seconds": round(story.lasted), "events": len(story.trace)})
        if story.violation:
            failed.append((seed, story.violation))
        elif seed % 100 == 0 and run(seed).trace != story.trace:
            failed.append((seed, "not deterministic: the second run told another story"))
    return counts, failed


def play_all(seeds: range, patience: float = float("inf")) -> Result:
    """Run worlds in several processes, until all are done or time is up."""
    started = time.monotonic()
    total, failed = Counter[str](), list[tuple[int, str]]()
    batches = (seeds[start : start + BATCH] for start in range(0, len(seeds), BATCH))
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        while time.monotonic() - started < patience and (some := list(islice(batches, 4 * PROCESSES))):
            for counts, wrong in pool.map(play, some):
                total.update(counts)
                failed += wrong
    return total, failed


def told(failed: Sequence[tuple[int, str]]) -> str:
    """What went wrong, with the command that shows it again."""
    return "\n".join(
        f"{violation}\n    HEADWAY_SIM_SEED={seed} .venv/bin/pytest tests/sim -k replay -s"
        for seed, violation in failed[:10]
    )


def find(name: str, plant: Plant, seeds: int) -> None:
    """A world in which the planted bug is noticed."""
    with plant():
        found = next((story for story in map(run, range(seeds)) if story.violation), None)
    assert found, f"{name}: not noticed in {seeds} worlds"
    print(f"\n{name}: world {found.seed}: {found.violation}")


def lines(story: Story) -> Iterator[str]:
    for at, *event in story.trace:
        yield f"{(at - microseconds(START)) / 1e6:12.6f}  {'  '.join(str(word) for word in event)}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_every_world_keeps_every_promise(first: int) -> None:
    counts, failed = play(range(first, first + BLOCK))
    print(f"\n{dict(sorted(counts.items()))}")
    assert not failed, told(failed)
    assert counts["worlds"] == BLOCK
    # A simulation in which nothing happens proves nothing.
    happened = ("claims", "rescues", "fenced", "fault", "crash", "pause", "person's retries", "ended succeeded")
    for what in (
        *happened,
        "times fired",
        "times skipped: overlap",
        "scheduler restarts",
        "errors nobody has foreseen",
    ):
        assert counts[what] > BLOCK / 20, f"{what} hardly happened: {counts[what]}"


def test_replay_of_one_world() -> None:
    seed = int(os.environ.get("HEADWAY_SIM_SEED", "0"))
    story = run(seed)
    if "HEADWAY_SIM_SEED" in os.environ:
        print("\n" + "\n".join(lines(story)))
    assert not story.violation, f"seed {seed}: {story.violation}"
    assert run(seed).trace == story.trace


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str) -> None:
    find(bug, BUGS[bug], BUG_SEEDS)


def test_a_test_whose_time_is_up_has_found_nothing() -> None:
    """The alarm rings in whatever task happens to run."""

    async def interrupted(self: SqlStore, queues: Sequence[str]) -> dict[str, float]:
        pytest.fail("Timeout")

    with patch.object(SqlStore, "peek", interrupted), pytest.raises(pytest.fail.Exception, match="Timeout"):
        run(0)


@pytest.mark.prove
@pytest.mark.parametrize("bug", RARE_BUGS)
def test_a_rare_bug_is_found(bug: str) -> None:
    find(bug, RARE_BUGS[bug], RARE_BUG_SEEDS)


@pytest.mark.prove
def test_many_worlds_keep_every_promise() -> None:
    started = time.monotonic()
    counts, failed = play_all(range(1_000_000, 1_000_000 + MANY_SEEDS), patience=LONGEST_PROOF)
    print(f"\n{counts['worlds']:,} worlds in {time.monotonic() - started:,.0f} s")
    for what, count in sorted(counts.items()):
        print(f"{count:>14,}  {what}")
    assert not failed, told(failed)
