"""HOW a job is run: one executor per kind, made by an entry point of the group `headway.executors`."""

from __future__ import annotations

from importlib.metadata import entry_points

from headway.executors.contract import Executor, MissingExtra, Setup
from headway.observe.logs import get_logger

GROUP = "headway.executors"

log = get_logger("headway.worker")


def kinds() -> list[str]:
    """The kinds of jobs that this installation can run."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def make_executors(setup: Setup) -> dict[str, Executor]:
    """An executor for every kind that is installed; one whose libraries are missing is left to other workers."""
    made: dict[str, Executor] = {}
    for point in entry_points(group=GROUP):
        try:
            made[point.name] = point.load()(setup)
        except MissingExtra as missing:
            log.info("worker.kind_left_out", kind=point.name, why=str(missing))
    return made
