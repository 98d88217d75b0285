"""HOW a job is run: one executor per kind, made by an entry point of the group `headway.executors`."""

from __future__ import annotations

from importlib.metadata import entry_points

from headway.executors.contract import Executor, Setup

GROUP = "headway.executors"


def kinds() -> list[str]:
    """The kinds of jobs that this installation can run."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def make_executors(setup: Setup) -> dict[str, Executor]:
    """An executor for every kind that is installed."""
    return {point.name: point.load()(setup) for point in entry_points(group=GROUP)}
