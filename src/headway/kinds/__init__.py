"""WHAT can be asked for: one kind of job each, found by an entry point of the group `headway.kinds`.

An executor says how a kind is run (`headway.executors`), a kind says how one is asked for: which fields its body has,
and which submission they make. A plug-in that brings an executor only is asked for by free fields (`free.py`).
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from headway import executors
from headway.kinds.contract import Kind
from headway.kinds.free import FreeKind

GROUP = "headway.kinds"


@cache
def load_kinds() -> dict[str, Kind]:
    """Every kind of job that this installation knows, by name."""
    free: dict[str, Kind] = {name: FreeKind(name) for name in executors.kinds()}
    return free | {point.name: point.load()() for point in entry_points(group=GROUP)}
