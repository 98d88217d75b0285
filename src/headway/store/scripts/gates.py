"""Limits that hold for the whole cluster. A *gate* is one limit's state: the slots taken at it and its rate's clock.

A queue's own gate only narrows the claim. A key's gate blocks the jobs that meet it closed: due ones that are submitted
meanwhile are blocked from the start, others leave the hot index when a claim meets them, and all come back in order
when a slot is freed or the rate allows more.

Whether a gate is closed is written down for those who submit, who take no lock to read it. So a gate may open in the
very moment in which they rely on it. The truth is the jobs that are blocked at it: claims that find nothing else to do
(`stranded_gates`) and the duty to reopen gates (`waiting_gates`) go by them.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from math import floor
from uuid import UUID

import msgspec

from headway.model.limits import Limit, QueueSettings, Rate
from headway.model.states import State
from headway.store.scripts.news import STORE, changes_of, tell
from headway.store.scripts.rows import ids
from headway.store.scripts.walk import START, Walk
from headway.store.statements import Row, Script, many, one

_SEPARATOR = "\t"
_LAST_RANK = 100
CALL_STEP = 500
"""How many jobs are called back at one gate at a time."""
BACKLOG_STEP = 200
"""How many further jobs of a full key one claim moves out of the hot index: whoever comes meanwhile waits for it."""
FEW_OTHERS = 200
"""While fewer jobs than this are open whose keys aren't full, in whatever queue and due whenever, they are found by
their keys, instead of by a walk past all of those that are."""
BACKLOG_PAUSE = 0.012
"""Seconds between such steps. They are in nobody's way, and on SQLite others want to write too."""


class Limits(msgspec.Struct, frozen=True):
    """All limits in force, as a worker's store last read them."""

    queues: dict[str, QueueSettings] = {}
    keys: dict[str, Limit] = {}

    def touch(self, queue: str) -> bool:
        """Whether a claim from this queue has to look at gates at all."""
        settings = self.queues.get(queue)
        own = settings and (settings.max_running or settings.rate or settings.key_max_running or settings.key_rate)
        return bool(own or self.keys)

    def of_queue(self, queue: str) -> Limit:
        settings = self.queues.get(queue)
        return Limit(max_running=settings.max_running, rate=settings.rate) if settings else Limit()

    def gates_of(self, queue: str, key: str) -> dict[str, Limit]:
        """The gates that a job of this queue and key must pass, besides the queue's own."""
        found: dict[str, Limit] = {}
        settings = self.queues.get(queue)
        if settings and (settings.key_max_running or settings.key_rate):
            found[f"{queue_gate(queue)}{_SEPARATOR}{key}"] = Limit(
                max_running=settings.key_max_running, rate=settings.key_rate
            )
        if key in self.keys:
            found[f"key:{key}"] = self.keys[key]
        return found

    def keys_of(self, queue: str, gates: Sequence[str]) -> dict[str, str]:
        """The keys of jobs of this queue that would have to pass one of these gates, each with that gate."""
        keys = {gate: _key_of(gate) for gate in gates}
        return {key: gate for gate, key in keys.items() if key is not None and gate in self.gates_of(queue, key)}

    def of_gate(self, gate: str) -> Limit:
        """The limit behind a key's gate, by the gate's name."""
        if gate.startswith("key:"):
            return self.keys.get(gate.removeprefix("key:"), Limit())
        queue, _, key = gate.removeprefix("queue:").partition(_SEPARATOR)
        return self.gates_of(queue, key).get(gate, Limit())


class Gate:
    """Room at one gate, while a claim decides whom to let through."""

    def __init__(self, limit: Limit, row: Row) -> None:
        self._rate = limit.rate
        self._free = None if limit.max_running is None else max(0, limit.max_running - row["running"])
        self.ahead = max(row["ahead"] or 0.0, 0.0)
        self.counts_running = limit.max_running is not None
        self.read_at: datetime = row["now_at"]
        self.settled_at: datetime = row["settled_at"]

    @property
    def room(self) -> int:
        """How many more may start now."""
        rooms = [self._free] if self._free is not None else []
        if self._rate:
            interval = self._rate.period / self._rate.count
            rooms.append(max(0, floor((self._rate.period - self.ahead) / interval + 1e-9)))
        return min(rooms, default=1 << 30)

    @property
    def opens_in(self) -> float | None:
        """Seconds until the rate allows the next start; None when only a freed slot can."""
        if self._rate and self._free != 0:
            return max(0.0, self.ahead - self._rate.period + self._rate.period / self._rate.count)
        return None

    def let_through(self) -> None:
        if self._free is not None:
            self._free -= 1
        if self._rate:
            self.ahead += self._rate.period / self._rate.count


class Passed(msgspec.Struct):
    """Whom a claim may take, and when to ask again if it is fewer than were asked for."""

    job_ids: list[UUID]
    slots: list[tuple[str, UUID]]
    retry_in: float | None = None


def queue_gate(queue: str) -> str:
    return f"queue:{queue}"


def choose(queue: str, limit: int, limits: Limits, walk: Walk) -> Script[Passed]:
    """Up to `limit` due jobs of the queue that may start now; those that meet a full gate are blocked at it."""
    own = (yield from _open_gates({queue_gate(queue): limits.of_queue(queue)}))[queue_gate(queue)]
    limit = min(limit, own.room)
    if limit == 0:
        return Passed([], [], own.opens_in)
    closed = limits.keys_of(queue, [row["name"] for row in (yield one("closed_gates"))])
    since = walk.since(closed.keys())
    candidates = yield from _candidates(queue, limit, closed.keys(), since)
    to_the_end = len(candidates) < limit
    end = (_LAST_RANK, own.read_at) if to_the_end else (candidates[-1]["rank"], candidates[-1]["run_at"])
    aside = yield from _backlog(queue, closed, end)
    more = len(aside) == BACKLOG_STEP
    rules = {row["id"]: limits.gates_of(queue, row["key"]) for row in candidates}
    wanted = {name: rule for some in rules.values() for name, rule in some.items()}
    gates = yield from _open_gates(wanted | {gate: limits.of_gate(gate) for gate in aside.values()})
    gates[queue_gate(queue)] = own
    passed, met = _let_through({job_id: list(names) for job_id, names in rules.items()}, queue_gate(queue), gates)
    yield many("move_gates", [(name, gate.ahead) for name, gate in gates.items()])
    yield from _block(met | aside)
    called = yield from _call_at({gate: gates[gate] for gate in aside.values() if gates[gate].room})
    if not more:
        walk.forget()
    elif to_the_end:
        walk.move(own.settled_at, closed.keys())
    if met or called or not to_the_end or (yield from _call_stranded(limits)):
        passed.retry_in = 0.0
    elif more:
        passed.retry_in = BACKLOG_PAUSE
    return passed


def _let_through(gates_of: dict[UUID, list[str]], own: str, gates: dict[str, Gate]) -> tuple[Passed, dict[UUID, str]]:
    """The jobs, in their order, that pass all of their keys' gates; and the others, each with the full one that it
    meets. There are no more of them than the queue's `own` has room for."""
    passed, met = Passed([], []), {}
    for job_id, names in gates_of.items():
        full = next((name for name in names if gates[name].room == 0), None)
        if full:
            met[job_id] = full
            continue
        passed.job_ids.append(job_id)
        for name in (*names, own):
            gates[name].let_through()
            if gates[name].counts_running:
                passed.slots.append((name, job_id))
    return passed, met


def _candidates(queue: str, limit: int, closed: Set[str], since: datetime) -> Script[list[Row]]:
    """A walk from `since` is short; one from the start may lead past any number of jobs of full keys."""
    few = FEW_OTHERS if since == START and 0 < len(closed) <= FEW_OTHERS else 0
    rows = yield one("due_candidates", queue=queue, limit=limit, closed=list(closed), since=since, few=few)
    return sorted(rows, key=lambda row: (row["rank"], row["run_at"], row["id"]))[:limit]


def leave(job_ids: Sequence[UUID]) -> Script[None]:
    """These jobs ended: their slots are free, and the next in line may be claimed."""
    freed = [row["gate"] for row in (yield many("free_slots", ids(job_ids)))]
    yield from promote({gate: freed.count(gate) for gate in freed if _key_of(gate) is not None})
    queues = sorted({gate.removeprefix("queue:") for gate in freed if _key_of(gate) is None})
    if queues:
        yield one("wake", wake=queues)


def promote(rooms: dict[str, int]) -> Script[int]:
    """The first in line at each gate, as many as there is room for, may be claimed again.

    Under the gate's lock: a claim that still counts a slot that this transaction has freed blocks jobs at the gate
    either before, and they are seen here, or after, and it sees the room.
    """
    promoted: list[Row] = []
    if rooms:
        yield many("lock_gates", [(gate,) for gate in sorted(rooms)])
    for gate in sorted(gate for gate, room in rooms.items() if room):
        promoted += yield one("promote_at_gate", gate=gate, room=rooms[gate])
    if rooms:
        yield many("open_if_empty", [(gate,) for gate in sorted(rooms)])
    if promoted:
        yield many("add_history", [(row["id"], State.SCHEDULED.value, None, None) for row in promoted])
        yield from tell(changes_of(promoted, State.BLOCKED), STORE)
        yield one("wake", wake=sorted({row["queue"] for row in promoted}))
    return len(promoted)


def reopen(limits: Limits) -> Script[float | None]:
    """The time's turn at gates where jobs wait: let in whom their rates (or changed limits) allow; seconds to the next
    turn."""
    gates, promoted = yield from _call((yield one("waiting_gates")), limits)
    if promoted >= CALL_STEP:
        return 0.0
    return min((gate.opens_in for gate in gates.values() if gate.opens_in is not None), default=None)


def _call_stranded(limits: Limits) -> Script[int]:
    """Jobs that came to wait in the moment their gate opened: nobody is left before them whose end would call them."""
    _, promoted = yield from _call((yield one("stranded_gates")), limits)
    return promoted


def _call(found: Sequence[Row], limits: Limits) -> Script[tuple[dict[str, Gate], int]]:
    """Whom these gates have room for, up to a step at each; and leave each closed if somebody still waits there."""
    gates = yield from _open_gates({row["name"]: limits.of_gate(row["name"]) for row in found})
    wrongly_open = [(row["name"],) for row in found if not row["closed"]]
    if wrongly_open:
        yield many("close_gates", wrongly_open)
    empty = {row["name"] for row in found if not row["held"]}
    promoted = yield from _call_at({name: gate for name, gate in gates.items() if gate.room or name in empty})
    return gates, promoted


def _call_at(gates: dict[str, Gate]) -> Script[int]:
    return (yield from promote({name: min(gate.room, CALL_STEP) for name, gate in gates.items()}))


def _open_gates(limits: dict[str, Limit]) -> Script[dict[str, Gate]]:
    if not limits:
        return {}
    names = sorted(limits)
    yield many("make_gates", [(name, _key_of(name)) for name in names])
    yield many("lock_gates", [(name,) for name in names])
    rows = yield many("read_gates", [(name,) for name in names])
    return {row["name"]: Gate(limits[row["name"]], row) for row in rows}


def _backlog(queue: str, closed: dict[str, str], end: tuple[int, datetime]) -> Script[dict[UUID, str]]:
    """The first jobs of full keys that a claim has walked past until its `end`, each with the very gate that is closed:
    at another of the key's gates nobody would call it."""
    if not closed:
        return {}
    rank, run_at = end
    rows = yield one(
        "backlog_of_keys", queue=queue, keys=list(closed), limit=BACKLOG_STEP, to_rank=rank, to_run_at=run_at
    )
    return {row["id"]: closed[row["key"]] for row in rows}


def _block(gate_of: dict[UUID, str]) -> Script[None]:
    """Out of the hot index with these jobs: each waits at its gate."""
    if gate_of:
        blocked = yield many("block_at_gates", list(gate_of.items()))
        yield many("add_history", [(row["id"], "blocked", None, f"limit {gate_of[row['id']]}") for row in blocked])
        yield many("close_gates", [(gate,) for gate in sorted(set(gate_of.values()))])
        yield from tell(changes_of(blocked, State.SCHEDULED), STORE)


def _key_of(gate: str) -> str | None:
    if gate.startswith("key:"):
        return gate.removeprefix("key:")
    _, separator, key = gate.partition(_SEPARATOR)
    return key if separator else None


def parse_gate(gate: str) -> tuple[str | None, str | None]:
    """The queue and the key that a gate's name stands for; a limit of a key alone has no queue."""
    queue = None if gate.startswith("key:") else gate.removeprefix("queue:").partition(_SEPARATOR)[0]
    return queue, _key_of(gate)


def parse_rate(text: str | None) -> Rate | None:
    return Rate.parse(text) if text else None
