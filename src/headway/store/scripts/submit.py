"""SUBMIT: jobs into the store, plain ones in bulk, keyed ones after a look at the others of their key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

import msgspec

from headway.model.errors import Conflict, HeadwayError, IdTaken, InvalidJob, KeyBusy
from headway.model.events import Transition
from headway.model.states import State
from headway.model.submission import Accepted, Moved, OnConflict, Submission
from headway.store.scripts import cancel, settle, vault
from headway.store.scripts.news import News
from headway.store.scripts.placing import Placed, due_now, first_line, placed_of, ring_of, row_of
from headway.store.scripts.rows import ids
from headway.store.statements import Row, Script, many, one

Answer = Accepted | HeadwayError
"""What becomes of one submission of a batch; an error concerns its own submitter only."""

FIRED = "scheduler"
"""In whose name the log tells of jobs that a schedule has made."""
PREVIOUS = "previous"
"""The `wait_reason` of a job that waits for the previous one of its key."""
RING_WITHIN = 60.0
"""Jobs due within so many seconds ring, so that a worker learns when to wake by itself; later ones it will see."""
AFTER = "after"
"""The `wait_reason` of a job that waits for its parents."""

_STATES = {state.value: state for state in State}


def plain(batch: Sequence[Submission]) -> Script[list[Answer]]:
    """Jobs that need no look at others, in one statement. An id that exists is a repeat, or taken.

    Staged ones leave a line, as a second statement: later, no column tells that they began as `creating`.
    """
    first = _first_of_each(batch)
    stored = yield from _insert([placed_of(job) for job in first.values()])
    staged = [job for number, job in first.items() if job.staged and number in stored]
    if staged:
        yield many("add_history", [first_line(placed_of(job)) for job in staged])
    missing = [job for number, job in first.items() if number not in stored]
    if missing:
        stored |= {job_id.int: answer for job_id, answer in (yield from _repeats(missing)).items()}
    return [_same_or_taken(job, first[job.id.int], stored[job.id.int]) for job in batch]


def keyed(batch: Sequence[Submission]) -> Script[list[Answer]]:
    """Jobs with a key, a window or parents, decided in the order of the batch."""
    desk = KeyedBatch(batch)
    yield from desk.find_repeats()
    yield from desk.hold_attachments()
    yield from desk.lock_keys()
    yield from desk.take_windows()
    yield from desk.look_around()
    desk.decide()
    yield from desk.store()
    yield from desk.link()
    yield from desk.replace()
    yield from desk.free_windows()
    return desk.answers_in_order()


def whole(batch: Sequence[Submission]) -> Script[list[Answer]]:
    """All or none: the first error is raised, which undoes the transaction."""
    script = plain(batch) if all(job.plain for job in batch) else keyed(batch)
    answers = yield from script
    for answer in answers:
        if isinstance(answer, HeadwayError):
            raise answer
    return answers


class Other(msgspec.Struct):
    """An open job of the same key."""

    id: UUID
    state: State
    waited_for: bool
    """Another open job of the key waits for it: who waits for that one waits for both."""
    answer: Accepted | None


class KeyedBatch:
    """One batch on its way through the steps of `keyed`; `answers` fills up as jobs are decided."""

    def __init__(self, batch: Sequence[Submission]) -> None:
        self.asked = batch
        self.first = _first_of_each(batch)
        self.batch = list(self.first.values())
        self.answers: dict[UUID, Answer] = {}
        self.same: dict[UUID, UUID] = {}
        """Repeats within the batch: the id of the one, the id of the job that stands for it."""
        self.overlapping: set[UUID] = set()
        """Those for which an open job of their key stands."""
        self.others: dict[str, list[Other]] = {}
        self.parents: dict[UUID, State] = {}
        self.placed: dict[UUID, Placed] = {}
        self.edges: list[tuple[UUID, UUID, str]] = []
        self.replaced: dict[UUID, list[UUID]] = {}
        self.moved: dict[UUID, tuple[tuple[UUID, Moved], ...]] = {}
        self.warnings: dict[UUID, str] = {}
        self.takers: set[UUID] = set()
        """Those that took a window; whoever isn't stored in the end gives it back."""

    @property
    def undecided(self) -> list[Submission]:
        return [job for job in self.batch if job.id not in self.answers and job.id not in self.same]

    def find_repeats(self) -> Script[None]:
        self.answers |= yield from _repeats(self.batch)

    def hold_attachments(self) -> Script[None]:
        """What jobs share with others stays until they are stored; those whose share is gone are refused."""
        self.answers |= yield from vault.check_attachments(self.undecided)

    def lock_keys(self) -> Script[None]:
        """Decisions about one key are made one after another. A key in other hands is not waited for: its
        submissions are answered `KeyBusy`, and their submitter tries again while all others go on."""
        wanted = sorted({key for job in self.undecided for key in _keys(job)})
        if not wanted:
            return
        locked = {row["key"] for row in (yield many("try_keys", [(key,) for key in wanted]))}
        for job in self.undecided:
            if not locked.issuperset(_keys(job)):
                self.answers[job.id] = KeyBusy(
                    f"another transaction holds the key of {job.name!r} ({', '.join(_keys(job))}): try again"
                )

    def take_windows(self) -> Script[None]:
        """Dedupe: whoever takes the window's row does the work, the others get its job."""
        due = yield from self._due()
        takers = {job.dedupe.key: job for job in reversed(due) if job.dedupe}
        if not takers:
            return
        rows = [(key, job.id, job.dedupe.window) for key, job in takers.items() if job.dedupe]
        taken = {row["key"] for row in (yield many("take_dedupes", rows))}
        self.takers = {takers[key].id for key in taken}
        earlier = {row["key"]: row for row in (yield many("read_dedupes", [(key,) for key in takers]))}
        for job in due:
            if job.dedupe is None:
                continue
            if job.dedupe.key not in taken:
                self.answers[job.id] = _accepted(earlier[job.dedupe.key], deduplicated=True)
            elif takers[job.dedupe.key] is not job:
                self.same[job.id] = takers[job.dedupe.key].id

    def _due(self) -> Script[list[Submission]]:
        """Those that are due at acceptance. A time that has passed is one too, which the store's clock knows."""
        deduped, now = [job for job in self.undecided if job.dedupe], None
        if any(job.run_at for job in deduped):
            [clock] = yield one("store_time")
            now = clock["now_at"]
        return [job for job in deduped if due_now(job, now)]

    def look_around(self) -> Script[None]:
        """The open jobs of each key, and the parents; locked, so that none of them ends unseen."""
        strict = {job.conflict_key for job in self.undecided if job.on_conflict in _NEEDS_ALL}
        easy = {job.conflict_key for job in self.undecided} - strict
        found: list[Row] = []
        if easy:
            found += yield many("one_open", [(key,) for key in sorted(easy)])
        if strict:
            found += yield many("all_open", [(key,) for key in sorted(strict)])
        asked = {parent for job in self.undecided for parent in job.after}
        lock = sorted(asked | {row["id"] for row in found if row["key"] in strict})
        states = {row["id"]: State(row["state"]) for row in (yield many("lock_jobs", ids(lock)))} if lock else {}
        self.parents = {parent: states[parent] for parent in asked if parent in states}
        # Read behind the locks: a waiter that ended before them has handed on what it waited for, but not to us.
        waited = {row["parent_id"] for row in (yield many("waited_for", ids(lock)))} if strict and lock else set()
        for row in found:
            state = states.get(row["id"], State(row["state"]))
            if not state.terminal:
                other = Other(row["id"], state, row["id"] in waited, _accepted(row, deduplicated=True))
                self.others.setdefault(row["key"], []).append(other)

    def decide(self) -> None:
        for job in self.undecided:
            try:
                self._check_parents(job)
                self._judge(job)
            except HeadwayError as error:
                self.answers[job.id] = error

    def store(self) -> Script[None]:
        """Jobs that have to wait leave a line: later, no column tells in which state they began."""
        stored = (yield from _insert(list(self.placed.values()))) if self.placed else {}
        self.answers |= {job_id: stored[job_id.int] for job_id in self.placed if job_id.int in stored}
        raced = [place.job for place in self.placed.values() if place.job.id.int not in stored]
        if raced:
            # Another process has stored the very same submissions since we looked.
            self.answers |= yield from _repeats(raced)
            self.placed = {job_id: place for job_id, place in self.placed.items() if job_id.int in stored}
            self.edges = [edge for edge in self.edges if edge[1].int in stored]
        yield from vault.attach([(job.id, job.attachments) for job in self._stored() if job.attachments])
        waiting = [place for place in self.placed.values() if place.state is not State.SCHEDULED]
        if waiting:
            yield many("add_history", [first_line(place) for place in waiting])

    def link(self) -> Script[None]:
        """Edges to those waited for. Parents that have ended already resolve at once, by the rules for any end."""
        parents = [(job.id, parent) for job in self._stored() for parent in job.after]
        if parents:
            yield many("insert_parents", parents)
        if not self.edges:
            return
        yield many("insert_edges", self.edges)
        yield many("mark_waiters", ids(sorted({parent for parent, _, _ in self.edges})))
        ended = [parent for parent, state in self.parents.items() if state.terminal]
        if ended:
            cascade = yield from settle.release_children(ended)
            yield from settle.settle(cascade)
            for row in (yield many("existing_jobs", ids(child for _, child, _ in self.edges))):
                self.answers[row["id"]] = _accepted(row)

    def replace(self) -> Script[None]:
        for new, old in self.replaced.items():
            verdicts = yield from cancel.cancel(old, by=None, reason=f"replaced by job {new}")
            moves = zip(old, verdicts, strict=True)
            self.moved[new] = tuple((job_id, moved) for job_id, moved in moves if isinstance(moved, Moved))

    def free_windows(self) -> Script[None]:
        refused = sorted(self.takers - self.placed.keys())
        if refused:
            yield many("free_dedupes", ids(refused))

    def answers_in_order(self) -> list[Answer]:
        pairs = [(job, self.first[job.id.int]) for job in self.asked]
        return [_same_or_taken(job, first, self._answer(first)) for job, first in pairs]

    def _answer(self, job: Submission) -> Answer:
        standing = job.id
        while standing in self.same:
            standing = self.same[standing]
        answer = self.answers[standing]
        if not isinstance(answer, Accepted):
            return answer
        if job.id in self.same or job.id in self.overlapping:
            return msgspec.structs.replace(answer, deduplicated=True, overlapped=job.id in self.overlapping)
        if job.id in self.warnings:
            return msgspec.structs.replace(answer, warnings=(self.warnings[job.id],))
        if job.id in self.moved:
            return msgspec.structs.replace(answer, replaced=self.moved[job.id])
        return answer

    def _check_parents(self, job: Submission) -> None:
        unknown = [parent for parent in job.after if parent not in self.parents and parent not in self.placed]
        if unknown:
            raise InvalidJob(
                f"{job.name!r} can't run after job {unknown[0]}: there is no such job; "
                "submit the jobs to wait for first, or earlier in the same batch",
                field="after",
            )

    def _judge(self, job: Submission) -> None:
        others = self.others.setdefault(job.conflict_key, [])
        waits_for: list[UUID] = []
        match job.on_conflict if others else OnConflict.ALLOW:
            case OnConflict.REJECT:
                raise Conflict(job.conflict_key, others[-1].id)
            case OnConflict.SKIP:
                self._skip(job, others[-1])
                return
            case OnConflict.WAIT:
                waits_for = _line_up(others)
                for other in others:
                    other.waited_for = True
            case OnConflict.REPLACE:
                self.replaced[job.id] = [other.id for other in others]
                waits_for = [other.id for other in others if other.state in _HELD]
            case OnConflict.ALLOW if others:
                self.warnings[job.id] = f"job {others[-1].id} with the same key {job.conflict_key!r} has not ended yet"
            case OnConflict.ALLOW:
                pass
        self._place(job, waits_for, others)

    def _skip(self, job: Submission, other: Other) -> None:
        self.overlapping.add(job.id)
        if other.answer is None:
            self.same[job.id] = other.id
        else:
            self.answers[job.id] = other.answer

    def _place(self, job: Submission, waits_for: list[UUID], others: list[Other]) -> None:
        edges = [(parent, job.id, "wait") for parent in waits_for]
        edges += [(parent, job.id, "after") for parent in job.after]
        placed = placed_of(job, PREVIOUS if waits_for else AFTER if edges else None)
        self.edges += edges
        self.placed[job.id] = placed
        others.append(Other(job.id, placed.state, waited_for=False, answer=None))

    def _stored(self) -> Iterable[Submission]:
        return (placed.job for placed in self.placed.values())


_NEEDS_ALL = {OnConflict.WAIT, OnConflict.REPLACE}
_HELD = {State.RUNNING, State.CANCELLING}


def _line_up(others: list[Other]) -> list[UUID]:
    """Whom to wait for: all those that nobody waits for yet. Who is waited for ends before the one that waits."""
    return [other.id for other in others if not other.waited_for]


def _insert(placed: Sequence[Placed]) -> Script[dict[int, Answer]]:
    """Store them; the answers to those that are new, by the numbers of their ids, which are quicker to look up."""
    rows = [row_of(place) for place in placed]
    # Whoever submits tells the log itself; what a schedule makes has nobody else.
    teller = FIRED if placed and placed[0].job.schedule_id else None
    wake = {ring_of(place.job) for place in placed if place.state is State.SCHEDULED and place.job.delay < RING_WITHIN}
    stored: dict[int, Accepted] = {}

    def changes() -> list[Transition]:
        numbered = [(place.job, place.job.id.int) for place in placed]
        return [_new(job, stored[number]) for job, number in numbered if number in stored]

    news = News(changes, teller)
    for job_id, state, run_at, created_at in (yield many("insert_jobs", rows, wake=sorted(wake), news=news)):
        stored[job_id.int] = Accepted(job_id=job_id, state=_STATES[state], run_at=run_at, created_at=created_at)
    return dict(stored)


def _new(job: Submission, answer: Accepted) -> Transition:
    return Transition(
        job_id=job.id,
        kind=job.kind,
        name=job.name,
        queue=job.queue,
        state=answer.state,
        correlation_id=job.correlation_id,
    )


def _first_of_each(batch: Sequence[Submission]) -> dict[int, Submission]:
    """The batch without repeats of an id within it, by the numbers of the ids."""
    first: dict[int, Submission] = {}
    for job in batch:
        first.setdefault(job.id.int, job)
    return first


def _same_or_taken(job: Submission, first: Submission, answer: Answer) -> Answer:
    """A second submission with the id of a first gets its answer, if it is the same."""
    return answer if job is first or job.digest() == first.digest() else IdTaken(job.id)


def _repeats(batch: Sequence[Submission]) -> Script[dict[UUID, Answer]]:
    found = {row["id"]: row for row in (yield many("existing_jobs", [(job.id,) for job in batch]))}
    return {
        job.id: _accepted(found[job.id], repeated=True) if found[job.id]["digest"] == job.digest() else IdTaken(job.id)
        for job in batch
        if job.id in found
    }


def _accepted(row: Row, *, deduplicated: bool = False, repeated: bool = False) -> Accepted:
    return Accepted(
        job_id=row["id"],
        state=_STATES[row["state"]],
        run_at=row["run_at"],
        created_at=row["created_at"],
        deduplicated=deduplicated,
        repeated=repeated,
    )


def _keys(job: Submission) -> list[str]:
    keys = [] if job.on_conflict is OnConflict.ALLOW else [cancel.key_lock(job.conflict_key)]
    return keys + ([f"window {job.dedupe.key}"] if job.dedupe else [])
