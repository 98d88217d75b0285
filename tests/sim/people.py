"""Those who submit jobs and change them: clients with a script drawn from the seed, who repeat what got no answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import TypeVar
from uuid import UUID

import msgspec

from headway.client import Client
from headway.clock import sleep
from headway.model.errors import HeadwayError, StoreUnavailable
from headway.model.retry import Retry
from headway.model.submission import Dedupe, Moved, OnConflict, OnParentFailure, Submission
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.store.scripts.cancel import Verdict
from tests.sim.check import Checker
from tests.sim.loop import START
from tests.sim.process import Database, Process
from tests.sim.scripted import Kind, Script

T = TypeVar("T")

_KINDS: dict[Kind, int] = {
    "succeed": 10,
    "flaky": 4,
    "fail": 2,
    "doom": 1,
    "raise": 1,
    "snooze": 1,
    "own_wish": 1,
    "outside": 2,
    "later": 1,
    "lose": 2,
    "no_code": 1,
    "time_out": 1,
}


_MOODS: tuple[tuple[OnConflict, ...], ...] = (
    tuple(OnConflict),
    (OnConflict.WAIT,),
    (OnConflict.WAIT, OnConflict.ALLOW),
    (OnConflict.WAIT, OnConflict.REPLACE, OnConflict.SKIP, OnConflict.REJECT),
)


class Drawn:
    """Draws jobs: what they do, when, under which key, behind whom. Each world has its own mood."""

    def __init__(self, chance: Random, new_id: Callable[[], UUID], lease: float, now: Callable[[], float]) -> None:
        self._chance = chance
        self._new_id = new_id
        self._lease = lease
        self._now = now
        self._policies = chance.choice(_MOODS)
        self._keys = chance.choice(("a", "abc"))
        self._keyed = chance.choice((0.3, 0.5, 0.9))
        self._after = chance.choice((0.1, 0.4))

    def job(self, known: list[UUID]) -> Submission:
        chance = self._chance
        retry = Retry(max_attempts=chance.randint(1, 4), wait=chance.choice((0.0, 0.2, 1.0)), max_wait=2.0)
        job = Submission(
            id=self._new_id(),
            kind="sim",
            name=f"job{chance.randint(1, 3)}",
            payload=msgspec.json.encode(self._script()).decode(),
            queue="default" if chance.random() < 0.75 else "other",
            priority=chance.randint(-1, 1),
            retry=retry,
        )
        return msgspec.structs.replace(job, **self._time(), **self._ties(known))

    def _script(self) -> Script:
        chance = self._chance
        return Script(
            do=chance.choices(list(_KINDS), list(_KINDS.values()))[0],
            run=self._lease * chance.uniform(1.2, 2.5) if chance.random() < 0.12 else chance.choice((0.0, 0.05, 0.5)),
            times=chance.randint(1, 3),
            stubborn=chance.choice((0.3, 3.0)) if chance.random() < 0.2 else 0.0,
            news=chance.random() < 0.2,
        )

    def _time(self) -> dict[str, object]:
        draw = self._chance.random()
        if draw < 0.08:
            return {"delay": self._chance.uniform(0.1, 5.0)}
        if draw < 0.16:
            return {"run_at": START + timedelta(seconds=round(self._now() + self._chance.uniform(-1.0, 5.0), 3))}
        if draw < 0.20:
            return {"hold": True}
        return {"expires_in": self._chance.uniform(0.5, 6.0)} if draw < 0.25 else {}

    def _ties(self, known: list[UUID]) -> dict[str, object]:
        chance, ties = self._chance, dict[str, object]()
        if chance.random() < self._keyed:
            ties |= {"key": chance.choice(self._keys), "on_conflict": chance.choice(self._policies)}
        if known and chance.random() < self._after:
            ties["after"] = tuple({chance.choice(known[-6:]): None for _ in range(chance.randint(1, 3))})
            ties["on_parent_failure"] = chance.choice(list(OnParentFailure))
        if chance.random() < 0.08:
            ties["dedupe"] = Dedupe(chance.choice("xy"), window=5.0)
        return ties


class Errands(msgspec.Struct):
    """What is left to be done by one client and those that take its place after a crash."""

    acts: int
    unanswered: dict[UUID, Submission] = {}


class Person:
    """A client's life. What it does not know the outcome of it does again, with the same id."""

    def __init__(self, process: Process, database: Database, checker: Checker, drawn: Drawn, chance: Random) -> None:
        self._process = process
        self._checker = checker
        self._drawn = drawn
        self._chance = chance
        self._client = Client(Stores("sqlite://", process.clock), process.clock)
        self._client.adopt(database.connect(process))

    async def live(self, errands: Errands) -> None:
        forgetful = self._chance.random() < 0.5
        for job in list(errands.unanswered.values()):
            if forgetful:
                del errands.unanswered[job.id]
            else:
                await self._submit(job, errands)
        while errands.acts > 0:
            errands.acts -= 1
            await sleep(self._process.clock, self._chance.expovariate(1.5))
            await self._act(errands)

    async def release_all(self) -> None:
        """Whatever a person must let go, goes."""
        held = [job.row.id for job in self._checker.ledger.jobs.values() if job.row.waiting == 2]
        if held:
            await self._insist("schedule", held, lambda store: store.schedule(held, None, by="sim"))

    async def _act(self, errands: Errands) -> None:
        known = list(self._checker.acknowledged)
        known.sort()
        draw = self._chance.random()
        if not known or draw < 0.65:
            jobs = [self._drawn.job(known) for _ in range(self._chance.choice((1, 1, 2, 4)))]
            if self._chance.random() < 0.15:
                await self._submit_many(jobs, errands)
            else:
                await asyncio.gather(*(self._submit(job, errands) for job in jobs))
            return
        ids = [self._chance.choice(known[-8:]) for _ in range(self._chance.choice((1, 1, 2)))]
        ids = list(dict.fromkeys(ids))
        if draw < 0.80:
            self._checker.cancel_asked.update(ids)
            await self._insist("cancel", ids, lambda store: store.cancel(ids, by="sim", reason="as drawn"))
        elif draw < 0.90:
            self._checker.retry_asked.update(ids)
            await self._insist("retry", ids, lambda store: store.retry(ids, by="sim"))
        elif draw < 0.95:
            self._checker.delete_asked.update(ids)
            await self._insist("delete", ids, lambda store: store.delete(ids, by="sim"))
        else:
            await self._insist("schedule", ids, lambda store: store.schedule(ids, None, by="sim"))

    async def _submit(self, job: Submission, errands: Errands) -> None:
        self._note([job], errands)
        while True:
            try:
                answer = await self._client.submit(job)
            except StoreUnavailable:
                await sleep(self._process.clock, 0.3)
            except HeadwayError as error:
                return self._answered(job, error, errands)
            else:
                return self._answered(job, answer, errands)

    async def _submit_many(self, jobs: list[Submission], errands: Errands) -> None:
        self._note(jobs, errands)
        while True:
            try:
                answers = await self._client.submit_many(jobs)
            except StoreUnavailable:
                await sleep(self._process.clock, 0.3)
            except HeadwayError as error:
                for job in jobs:
                    self._answered(job, error, errands)
                return
            else:
                for job, answer in zip(jobs, answers, strict=True):
                    self._answered(job, answer, errands)
                return

    def _note(self, jobs: list[Submission], errands: Errands) -> None:
        self._checker.submissions |= {job.id: job for job in jobs}
        errands.unanswered |= {job.id: job for job in jobs}

    def _answered(self, job: Submission, answer: object, errands: Errands) -> None:
        errands.unanswered.pop(job.id, None)
        self._checker.answered(job, answer)  # type: ignore[arg-type]

    async def _insist(self, what: str, ids: list[UUID], act: Callable[[Store], Awaitable[list[Verdict]]]) -> None:
        while True:
            try:
                verdicts = await self._client.call(act)
            except StoreUnavailable:
                await sleep(self._process.clock, 0.3)
            else:
                words = [v.state.value if isinstance(v, Moved) else type(v).__name__ for v in verdicts]
                return self._checker.tell(self._process.name, f"{what} answered", words)
