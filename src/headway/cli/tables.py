"""Tables and lines for people, readable at 100 columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import datetime

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headway.model.job import JobRecord
from headway.model.states import State
from headway.model.words import duration

WIDE = 130
"""From so many columns on, a list has room for a remark on each job."""
_UNSEEN = 1000
NORMAL = 100
"""Below this, ids are shown by a beginning that is as good as unique."""
_FIXED = 10 + 14 + 5 + 5 * 2
"""Columns of a state, a time and a number of tries, and what parts them."""
_REMARK = 32
_COLOURS = {
    "running": "cyan",
    "cancelling": "yellow",
    "completed": "green",
    "failed": "red",
    "cancelled": "bright_black",
    "retrying": "yellow",
    "parked": "magenta",
    "blocked": "yellow",
}


def console(*, err: bool = False) -> Console:
    """As wide as the terminal; where nobody looks at it live, wide enough that nothing is cut off."""
    made = Console(stderr=err, highlight=False, markup=False, emoji=False)
    if not (sys.stderr if err else sys.stdout).isatty() and "COLUMNS" not in os.environ:
        made.width = _UNSEEN
    return made


def plain_table(*columns: str) -> Table:
    """A table without frame, so that it can be cut and searched."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="ellipsis", no_wrap=True)
    return table


def jobs_table(jobs: Sequence[JobRecord], now: datetime, width: int) -> Table:
    """One line per job."""
    wide, id_length = width >= WIDE, 36 if width >= NORMAL else 23
    table = plain_table("id", "state", "name", "queue", "when", "tries", *(["remark"] if wide else []))
    table.columns[5].justify = "right"
    _share_out(table, width - id_length - _FIXED, jobs, wide=wide)
    for job in jobs:
        cells: list[str | Text] = [str(job.id)[:id_length], state(job.label), job.name, job.queue, when(job, now)]
        table.add_row(*cells, tries(job), *([remark(job)] if wide else []))
    return table


def _share_out(table: Table, left: int, jobs: Sequence[JobRecord], *, wide: bool) -> None:
    """What is left beside ids, states and times. Where names and queues don't fit, the queues keep a quarter."""
    longest_name = max((len(job.name) for job in jobs), default=0)
    longest_queue = max((len(job.queue) for job in jobs), default=0)
    room = left - (_REMARK if wide else 0)
    queue = max(min(longest_queue, max(room // 4, room - longest_name)), 5)
    name = max(min(longest_name, room - queue), 4)
    table.columns[2].max_width, table.columns[3].max_width = name, queue
    if wide:
        table.columns[6].max_width = left - queue - name - 2


def state(word: str) -> Text:
    return Text(word, style=_COLOURS.get(word, ""))


def when(job: JobRecord, now: datetime) -> str:
    """The time that matters most in the job's state."""
    if job.finished_at is not None and job.state.terminal:
        return f"{_since(job.finished_at, now)} ago"
    match job.state:
        case State.RUNNING | State.CANCELLING:
            return f"for {_since(job.started_at or job.claimed_at or now, now)}"
        case State.SCHEDULED if job.run_at > now:
            return f"in {_since(now, job.run_at)}"
        case State.SCHEDULED:
            return f"due {_since(job.run_at, now)} ago"
        case _:
            return f"since {_since(job.created_at, now)}"


def tries(job: JobRecord) -> str:
    most = job.retry.max_attempts if job.retry else None
    return f"{job.attempt}/{most}" if most else str(job.attempt)


def remark(job: JobRecord) -> str:
    """What else one would ask first."""
    if job.state is State.RUNNING and job.progress is not None:
        return progress(job)
    if job.state is State.BLOCKED:
        return f"waits: {job.wait_reason}"
    if job.error is not None:
        return f"{job.error.type}: {job.error.message.splitlines()[0] if job.error.message else ''}"
    return ", ".join(job.tags)


def progress(job: JobRecord) -> str:
    """`40 of 100, adding up`."""
    if job.progress is None:
        return ""
    total = f" of {job.progress.total:g}" if job.progress.total is not None else ""
    return f"{job.progress.done:g}{total}{f', {job.progress.text}' if job.progress.text else ''}"


def _since(start: datetime, end: datetime) -> str:
    """With one unit: a list is for a glance."""
    return " ".join(duration((end - start).total_seconds()).split()[:2])
