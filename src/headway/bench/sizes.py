"""How much is measured."""

from __future__ import annotations

import msgspec

SLOTS = 1000
"""Slots of the workers that drain. They hold up to 2,000 jobs, in claims as large as those of the bare pipeline. That
holds up to five batches on PostgreSQL (two just being claimed and completed, one that runs, two between them), and on
SQLite, where nothing goes on side by side, one."""
BATCH = 500
"""Jobs per claim and per completion of the bare pipeline."""
CALLERS = 100
MANY = 1000
CLAIM_ROWS = 200
PER_SECOND = 100


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of jobs, rows and seconds."""

    repeat: int
    """Runs of short measurements, of which the median counts."""
    single: int
    concurrent: int
    many: int
    drain: int
    in_a_row: int
    """Jobs of the long drain, whose last tenth is compared with its first; 0 leaves it out."""
    latency: int
    beside: int
    behind: int
    claims: int
    idle: float
    """Seconds for which an idle worker is watched."""
    schedules: int
    """Schedules stored beside those that are due."""
    minutely: int
    """Schedules that are due at the same moment."""
    waiting: int
    """Callbacks to a slow endpoint at once."""
    callbacks: int
    """Short ones."""
    dispatch: int
    """Jobs of a drain that is rung for."""
    scripts: int
    """Short scripts on a server."""


NORMAL = Sizes(
    repeat=3,
    single=2_000,
    concurrent=50_000,
    many=100_000,
    drain=100_000,
    in_a_row=0,
    latency=600,
    beside=1_000_000,
    behind=100_000,
    claims=40,
    idle=20.0,
    schedules=1_000_000,
    minutely=10_000,
    waiting=1_000,
    callbacks=10_000,
    dispatch=20_000,
    scripts=2_000,
)
QUICK = Sizes(
    repeat=1,
    single=400,
    concurrent=10_000,
    many=20_000,
    drain=20_000,
    in_a_row=0,
    latency=200,
    beside=100_000,
    behind=10_000,
    claims=20,
    idle=12.0,
    schedules=100_000,
    minutely=10_000,
    waiting=1_000,
    callbacks=3_000,
    dispatch=10_000,
    scripts=1_000,
)
FULL = msgspec.structs.replace(NORMAL, repeat=5, drain=200_000, in_a_row=1_000_000)
TINY = Sizes(
    repeat=1,
    single=20,
    concurrent=500,
    many=1_000,
    drain=1_000,
    in_a_row=0,
    latency=20,
    beside=1_000,
    behind=1_000,
    claims=6,
    idle=0.5,
    schedules=1_000,
    minutely=200,
    waiting=20,
    callbacks=50,
    dispatch=200,
    scripts=10,
)
"""So small that the figures mean nothing: to see that everything works."""
