"""A store over SQL: each method runs one script through a driver. SQLite and PostgreSQL differ in driver and dialect
only, so they can't differ in meaning."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from headway.clock import Clock, sleep
from headway.model.events import Transition
from headway.model.history import Row as HistoryRow
from headway.model.job import Artifact, Chunk, Claim, Ended, Finish, JobRecord, Release, Report
from headway.model.limits import Limit, QueueSettings, Retention
from headway.model.submission import Edit, Submission
from headway.model.worker import FunctionInfo, WorkerInfo
from headway.observe.logs import get_logger
from headway.store.accessing import SqlAccess
from headway.store.alerting import SqlAlerts
from headway.store.contract import Heard
from headway.store.driver import Driver, Lane
from headway.store.keeping import SqlVault
from headway.store.looking import SqlViews
from headway.store.scheduling import SqlSchedules
from headway.store.scripts import cancel, change, figures, gates, output, settings, submit, tend, views, work
from headway.store.scripts.cancel import Verdict
from headway.store.scripts.news import WATCH_EVERY, WATCH_TERM, WATCHED
from headway.store.scripts.walk import NO_ID, WALK_AGAIN, Walk
from headway.store.statements import Script, many, one

__all__ = ["Driver", "Lane", "SqlStore"]

log = get_logger("headway.store")

LIMITS_AGE = 1.0
"""Seconds after which a changed limit is in force everywhere."""
THOROUGH = 20
"""Where something hung on a job's end, so many further batches of ends are looked at job by job from the start."""


class SqlStore(SqlViews, SqlSchedules, SqlAccess, SqlVault, SqlAlerts):
    """All methods of the `Store` contract, by scripts."""

    def __init__(self, driver: Driver, clock: Clock) -> None:
        super().__init__(driver)
        self._clock = clock
        self._rescans: set[str] = set()
        """Queues whose next claim looks from the start."""
        self._walks: dict[str, Walk] = {}
        self._thorough = 0
        self._limits: gates.Limits | None = None
        self._limits_read_at = 0.0

    async def open(self, patience: float | None = None) -> None:
        await self._driver.open(patience)

    async def migrate(self) -> list[str]:
        return await self._driver.migrate()

    async def close(self) -> None:
        await self._driver.close()

    async def listen(self, on_wake: Callable[[str], None]) -> Callable[[], None]:
        return await self._driver.listen(on_wake)

    # Jobs

    async def submit(self, batch: Sequence[Submission], *, partial: bool = True) -> list[submit.Answer]:
        if not partial:
            return await self._driver.run(lambda: submit.whole(batch), Lane.KEYED)
        if all(job.plain for job in batch):
            one_statement = not any(job.staged for job in batch)
            return await self._driver.run(lambda: submit.plain(batch), Lane.WRITE, single=one_statement)
        return await self._driver.run(lambda: submit.keyed(batch), Lane.KEYED)

    async def cancel(self, job_ids: Sequence[UUID], *, by: str | None, reason: str) -> list[Verdict]:
        return await self._driver.run(lambda: cancel.cancel(job_ids, by=by, reason=reason), Lane.KEYED)

    async def retry(self, job_ids: Sequence[UUID], *, by: str | None) -> list[Verdict]:
        return await self._driver.run(lambda: cancel.retry(job_ids, by=by), Lane.KEYED)

    async def schedule(self, job_ids: Sequence[UUID], run_at: datetime | None, *, by: str | None) -> list[Verdict]:
        return await self._driver.run(lambda: cancel.schedule(job_ids, run_at, by=by), Lane.KEYED)

    async def edit(
        self, job_id: UUID, edit: Edit, *, by: str | None, expected: Callable[[JobRecord], bool] | None = None
    ) -> JobRecord:
        return await self._driver.run(lambda: change.edit(job_id, edit, by=by, expected=expected), Lane.KEYED)

    async def delete(self, job_ids: Sequence[UUID], *, by: str | None) -> list[Verdict]:
        return await self._driver.run(lambda: cancel.delete(job_ids, by=by), Lane.KEYED)

    # Work

    async def claim(self, want: work.Want) -> work.Claimed:
        limits = await self._current_limits()
        if limits.touch(want.queue):
            walk = self._walk(want.queue)
            return await self._driver.run(
                lambda: work.claim_limited(want, limits, walk), Lane.CLAIM, again=lambda: work.claim_again(want)
            )
        rescan = want.queue in self._rescans
        claimed = await self._driver.run(
            lambda: work.claim(want, rescan=rescan), Lane.CLAIM, again=lambda: work.claim_again(want), single=True
        )
        if claimed.retry_in is None:
            self._rescans.discard(want.queue)
        else:
            self._rescans.add(want.queue)
        return claimed

    async def peek(self, queues: Sequence[str]) -> dict[str, float]:
        def script() -> Script[dict[str, float]]:
            rows = yield many("peek", [(queue,) for queue in queues])
            return {row["queue"]: row["delay"] for row in rows}

        return await self._driver.run(script, Lane.CLAIM, single=True)

    async def renew(
        self, worker: WorkerInfo, ttl: float, done: Sequence[UUID], *, held: Sequence[UUID]
    ) -> work.Renewal:
        return await self._driver.run(lambda: work.renew(worker, ttl, done, held), Lane.WRITE)

    async def report(self, news: Sequence[Report]) -> set[UUID]:
        return await self._driver.run(lambda: work.report(news), Lane.WRITE, single=True)

    async def note(self, lines: Sequence[tuple[Claim, str, str]]) -> list[bool]:
        return await self._driver.run(lambda: work.note(lines), Lane.WRITE)

    async def append(self, parcels: Sequence[tuple[Claim, Sequence[Chunk]]]) -> list[bool]:
        return await self._driver.run(lambda: work.append(parcels), Lane.WRITE, single=True)

    async def trim(self, claim: Claim, first: int, last: int) -> None:
        await self._driver.run(lambda: output.trim(claim, first, last), Lane.WRITE, single=True)

    async def put_artifacts(self, claim: Claim, artifacts: Sequence[Artifact]) -> bool:
        return await self._driver.run(lambda: output.put_artifacts(claim, artifacts), Lane.WRITE, single=True)

    async def finish(self, moves: Sequence[Finish]) -> list[Ended]:
        """Nearly all jobs end well and without ties: one statement by itself records a batch of them."""
        if self._thorough:
            self._thorough -= 1
        elif all(move.plain for move in moves):
            if await self._driver.run(lambda: work.complete(moves), Lane.WRITE, single=True):
                return work.completed(moves)
            self._thorough = THOROUGH
        return await self._driver.run(lambda: work.finish(moves), Lane.WRITE)

    async def release(self, moves: Sequence[Release]) -> list[Ended]:
        return await self._driver.run(lambda: work.release(moves), Lane.WRITE)

    async def leave(self, worker_id: UUID) -> None:
        await self._one("drop_worker", Lane.WRITE, worker_id=worker_id)

    # Watching

    async def watch(self, heard: Heard, *, everything: bool = True) -> Callable[[], None]:
        def pass_on(changes: Sequence[Transition]) -> None:
            at = self._clock.now()
            heard([change.event(at) for change in changes])

        stop = await self._driver.watch(pass_on)
        try:
            await self._be_watched(everything=everything)
        except BaseException:
            stop()
            raise
        watching = asyncio.create_task(self._stay_watched(pass_on, everything=everything))

        def end() -> None:
            watching.cancel()
            stop()

        return end

    async def tell(self, changes: Sequence[Transition]) -> None:
        await self._driver.tell(changes)

    async def _be_watched(self, *, everything: bool) -> None:
        """On the lane on which news is heard: a connection that is lost is made again by this."""

        def script() -> Script[None]:
            yield one("keep_watch", holder=NO_ID, ttl=WATCH_TERM)
            if everything:
                yield one("wake", wake=[WATCHED])

        await self._driver.run(script, Lane.CLAIM)

    async def _stay_watched(self, heard: Callable[[Sequence[Transition]], None], *, everything: bool) -> None:
        while True:
            await sleep(self._clock, WATCH_EVERY)
            try:
                await self._be_watched(everything=everything)
            except Exception as error:
                log.warning("store.watch_delayed", error=repr(error))
            if self._driver.deaf:
                heard([])

    # Tending

    async def look(self) -> tend.Due:
        return await self._driver.run(tend.look, Lane.WRITE, single=True)

    async def rescue(self, limit: int = 100) -> list[tend.Rescued]:
        return await self._driver.run(lambda: tend.rescue(limit), Lane.WRITE)

    async def take_up(self, grace: float = tend.STRAY_AFTER, limit: int = 500) -> list[UUID]:
        return await self._driver.run(lambda: tend.take_up(grace, limit), Lane.WRITE)

    async def expire(self, limit: int = 500) -> list[UUID]:
        return await self._driver.run(lambda: tend.expire(limit), Lane.WRITE)

    async def reopen_gates(self) -> float | None:
        limits = await self._current_limits()
        return await self._driver.run(lambda: gates.reopen(limits), Lane.WRITE)

    async def sweep(self, grace: float = 5.0, limit: int = 500) -> int:
        return await self._driver.run(lambda: tend.sweep(grace, limit), Lane.WRITE)

    async def prune(self, retention: Retention, after_id: UUID | None, limit: int = 1000) -> tend.Step:
        return await self._driver.run(lambda: tend.prune(retention, after_id, limit), Lane.WRITE)

    async def bury(self, age: float) -> Sequence[str]:
        return await self._driver.run(lambda: tend.bury(age), Lane.WRITE)

    async def take_duty(self, name: str, holder: UUID, ttl: float) -> bool:
        return await self._driver.run(lambda: tend.take_duty(name, holder, ttl), Lane.WRITE, single=True)

    async def add_figures(self, line_id: UUID, rows: Sequence[HistoryRow]) -> None:
        await self._driver.run(lambda: figures.add(line_id, rows), Lane.WRITE, single=True)

    async def gather_figures(self) -> None:
        line_id = uuid7()
        await self._driver.run(lambda: figures.gather(line_id), Lane.WRITE)

    async def vacuum(self) -> None:
        await self._driver.vacuum()

    # Settings

    async def limits(self) -> gates.Limits:
        return await self._driver.run(settings.limits, Lane.READ)

    async def set_queue(self, queue: QueueSettings, *, by: str | None = None) -> None:
        self._limits = None
        await self._driver.run(lambda: settings.put_queue(queue, by), Lane.KEYED)

    async def change_queue(self, name: str, changes: Mapping[str, Any], *, by: str | None) -> QueueSettings:
        self._limits = None
        return await self._driver.run(lambda: settings.change_queue(name, changes, by), Lane.KEYED)

    async def set_key_limit(self, key: str, limit: Limit | None) -> None:
        self._limits = None
        await self._driver.run(lambda: settings.put_key_limit(key, limit), Lane.KEYED)

    async def announce(self, functions: Sequence[FunctionInfo]) -> None:
        # Not on the lane of keys: a worker that starts needs no other connection for it than those it has.
        await self._driver.run(lambda: views.announce(functions), Lane.WRITE)

    async def _one(self, name: str, lane: Lane, **parameters: object) -> None:
        def script() -> Script[None]:
            yield one(name, **parameters)

        await self._driver.run(script, lane, single=True)

    async def _current_limits(self) -> gates.Limits:
        """Limits as of at most `LIMITS_AGE` ago: a claim mustn't cost a second query for what rarely changes."""
        now = self._clock.monotonic()
        if self._limits is None or now - self._limits_read_at > LIMITS_AGE:
            self._limits = await self._driver.run(settings.limits, Lane.CLAIM)
            self._limits_read_at = now
        return self._limits

    def _walk(self, queue: str) -> Walk:
        """How far claims under limits have looked through the queue, not longer than `WALK_AGAIN` ago."""
        now = self._clock.monotonic()
        walk = self._walks.get(queue)
        if walk is None or now - walk.made_at > WALK_AGAIN:
            walk = self._walks[queue] = Walk(now)
        return walk
