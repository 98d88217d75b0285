"""What a worker has done, counted batch by batch: for the page of metrics, and for the history of its queues."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from headway.model.history import Figures, Spread
from headway.model.job import Ended, Release
from headway.model.states import State
from headway.observe import series
from headway.observe.metrics import process_name
from headway.worker.attempt import Attempt
from headway.worker.judge import Move
from headway.worker.lane import Lane

Entry = tuple[Attempt, Move]
_Group = tuple[str, str, Ended]


class Tally:
    """Filled on the worker's loop, emptied by its keeper."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures: dict[str, Figures] = {}

    def claimed(self, queue: str, waited: Sequence[float]) -> None:
        """A claim brought jobs that had waited so long; or none."""
        series.claims.add((queue,))
        if not waited:
            return
        spread = Spread.of(waited)
        series.jobs_claimed.add((queue,), len(waited))
        series.batch_size.observe((len(waited),), ("claim",))
        series.job_wait.count(spread.counts, spread.total, (queue,))
        with self._lock:
            self._of(queue).wait.add(spread)

    def finished(self, entries: Sequence[Entry], answers: Sequence[Ended]) -> None:
        """A batch of ends is recorded; refused ones don't count."""
        series.batch_size.observe((len(entries),), ("finish",))
        for (queue, kind, end), alike in groupby(zip(entries, answers, strict=True), key=_group):
            ran = [move.ran for (_, move), _ in alike]
            if end.outcome is None:
                series.writes_fenced.add((), len(ran))
            else:
                series.jobs_finished.add((kind, queue, end.outcome), len(ran))
                self._ended(queue, kind, _PLACES.get(end.outcome, "failed"), ran)

    def released(self, entries: Sequence[Entry], answers: Sequence[Ended]) -> None:
        """A batch of jobs is back in the queue; or cancelled, where somebody had asked for that meanwhile."""
        series.batch_size.observe((len(entries),), ("release",))
        for (attempt, move), end in zip(entries, answers, strict=True):
            queue, kind = attempt.claim.queue, attempt.claim.kind
            if end.state is None:
                series.writes_fenced.add()
            elif end.state is State.CANCELLED:
                series.jobs_finished.add((kind, queue, str(end.outcome)))
                self._ended(queue, kind, "cancelled", [move.ran])
            elif isinstance(move, Release):
                series.jobs_released.add((kind, queue, move.reason))
                self._ended(queue, kind, "retried" if move.reason in _TRIED else None, [move.ran])

    def take(self) -> dict[str, Figures]:
        """What has gathered since the last time."""
        with self._lock:
            taken, self._figures = self._figures, {}
        return taken

    def put_back(self, taken: dict[str, Figures]) -> None:
        """It could not be stored."""
        with self._lock:
            for queue, figures in taken.items():
                self._of(queue).add(figures)

    def _ended(self, queue: str, kind: str, place: str | None, ran: Sequence[float | None]) -> None:
        spread = Spread.of(seconds for seconds in ran if seconds is not None)
        series.job_run.count(spread.counts, spread.total, (kind, queue))
        with self._lock:
            figures = self._of(queue)
            figures.run.add(spread)
            if place:
                setattr(figures, place, getattr(figures, place) + len(ran))

    def _of(self, queue: str) -> Figures:
        return self._figures.setdefault(queue, Figures())


def _group(ended: tuple[Entry, Ended]) -> _Group:
    """What jobs that are counted together have in common: nearly always all of a batch."""
    claim = ended[0][0].claim
    return claim.queue, claim.kind, ended[1]


_PLACES = {"succeeded": "completed", "cancelled": "cancelled"}
_TRIED = ("retry", "lost")


def watch_heartbeat(silent: Callable[[], float]) -> Callable[[], None]:
    """Tell how long ago the last sign of life was."""
    return series.heartbeat_age.watch(lambda: [((process_name(),), silent())])


def watch_lanes(lanes: Callable[[], Iterable[Lane]]) -> list[Callable[[], None]]:
    """Tell how full the lanes are, whenever somebody asks; what is returned ends it."""
    return [
        series.worker_slots.watch(lambda: [((lane.queue,), lane.slots) for lane in list(lanes()) if lane.open]),
        series.worker_slots_used.watch(lambda: [((lane.queue,), len(lane.running)) for lane in list(lanes())]),
        series.worker_jobs_held.watch(
            lambda: [((lane.queue,), len(lane.waiting) + len(lane.running)) for lane in list(lanes())]
        ),
    ]
