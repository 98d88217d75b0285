"""A store with a clock that stands still, and the legal moves that bring jobs into every state."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Self, TypeVar
from uuid import UUID

from headway.clock import FakeClock
from headway.model.errors import HeadwayError
from headway.model.job import Chunk, Claim, Ended, ErrorInfo, Finish, JobRecord, Release
from headway.model.states import Outcome, State
from headway.model.submission import Accepted, Moved, Submission
from headway.model.worker import WorkerInfo
from headway.store.contract import Store
from headway.store.scripts.cancel import Verdict
from headway.store.scripts.submit import Answer
from headway.store.scripts.work import Claimed, Want

TTL = 30.0
ERROR = ErrorInfo("ValueError", "it broke")

_ids = count(1)


class House:
    """One store under test. Moves are named as people name them; each is one call of the store."""

    def __init__(self, store: Store, clock: FakeClock, open_another: Callable[[], Awaitable[Store]]) -> None:
        self.store = store
        self.clock = clock
        self.worker = worker()
        self.leases: list[UUID] = []
        """Those that its claims were made under."""
        self._open_another = open_another

    async def second(self) -> Self:
        """Another process with the same store, a worker of its own and the same clock."""
        return type(self)(await self._open_another(), self.clock, self._open_another)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def new_id(self) -> UUID:
        """Ids ascend with time, as UUIDv7 does, and within one moment too."""
        milliseconds = int(self.clock.now().timestamp() * 1000)
        return UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62 | next(_ids))

    def job(self, name: str = "mail", **options: Any) -> Submission:
        return Submission(**{"id": self.new_id(), "kind": "call", "name": name, "payload": "{}", **options})

    # Submitting

    async def submit(self, name: str = "mail", **options: Any) -> UUID:
        """Submit one job that must be accepted."""
        return (await self.accept(self.job(name, **options))).job_id

    async def accept(self, job: Submission) -> Accepted:
        [answer] = await self.store.submit([job])
        return accepted(answer)

    async def refuse(self, job: Submission) -> HeadwayError:
        """Submit one job that must be refused."""
        [answer] = await self.store.submit([job])
        assert isinstance(answer, HeadwayError), answer
        return answer

    async def batch(self, *jobs: Submission) -> list[Answer]:
        return await self.store.submit(jobs)

    # Working

    async def ask(self, limit: int = 1, queue: str = "default", ttl: float = TTL) -> Claimed:
        """One claim, as a worker makes it."""
        want = Want(worker_id=self.worker.id, queue=queue, limit=limit, lease_id=self.new_id(), ttl=ttl)
        self.leases.append(want.lease_id)
        return await self.store.claim(want)

    async def claim(self, limit: int = 1, queue: str = "default", ttl: float = TTL) -> list[Claim]:
        """A claim a second later: old enough for the store to look from the beginning again."""
        self.clock.advance(1)
        return (await self.ask(limit, queue, ttl)).claims

    async def claim_one(self, queue: str = "default", ttl: float = TTL) -> Claim:
        [claim] = await self.claim(1, queue, ttl)
        return claim

    async def running(self, name: str = "mail", **options: Any) -> Claim:
        """A new job in a worker's hands."""
        job_id = await self.submit(name, **options)
        claim = await self.claim_one(options.get("queue", "default"))
        assert claim.id == job_id, "another job was due before"
        return claim

    async def complete(self, *claims: Claim, result: bytes | None = None) -> None:
        for ended in await self.store.finish([Finish.succeeded(claim, 0.5, result) for claim in claims]):
            assert ended.accepted

    async def fail(self, *claims: Claim, outcome: Outcome = Outcome.FAILED) -> None:
        for ended in await self.store.finish([Finish.failed(claim, 0.5, ERROR, outcome) for claim in claims]):
            assert ended.accepted

    async def give_up(self, claim: Claim) -> None:
        """The job ends as cancelled by its own wish."""
        [ended] = await self.store.finish([Finish.cancelled(claim, 0.5, "nothing to do")])
        assert ended.accepted

    async def append(self, claim: Claim, chunks: Sequence[Chunk]) -> bool:
        """Whether the job was still held."""
        [held] = await self.store.append([(claim, chunks)])
        return held

    async def release(self, move: Release) -> Ended:
        [ended] = await self.store.release([move])
        return ended

    async def retry_later(self, claim: Claim, wait: float = 0.0) -> Ended:
        """The attempt failed, another is due after `wait`."""
        return await self.release(Release.retry(claim, 0.5, wait, ERROR, Outcome.FAILED))

    async def lose(self, *claims: Claim) -> None:
        """The worker of these claims dies: nobody renews its leases, and the job is rescued."""
        self.clock.advance(TTL + 1)
        rescued = {rescue.job_id for rescue in await self.store.rescue(limit=10_000)}
        assert rescued >= {claim.id for claim in claims}

    async def renew(self, ttl: float = TTL, done: Sequence[UUID] = ()) -> frozenset[UUID]:
        return (await self.store.renew(self.worker, ttl, done, held=self.leases)).leases

    # Asking

    async def cancel(self, job_id: UUID, by: str | None = "ann", reason: str = "not needed") -> State | HeadwayError:
        return found_in(await self.store.cancel([job_id], by=by, reason=reason))

    async def retry(self, job_id: UUID, by: str | None = "ann") -> State | HeadwayError:
        return found_in(await self.store.retry([job_id], by=by))

    async def schedule(self, job_id: UUID, run_at: datetime | None = None) -> State | HeadwayError:
        return found_in(await self.store.schedule([job_id], run_at, by="ann"))

    async def delete(self, job_id: UUID) -> State | HeadwayError:
        return found_in(await self.store.delete([job_id], by="ann"))

    # Looking

    async def get(self, job_id: UUID) -> JobRecord:
        [record] = await self.store.get([job_id])
        assert record is not None, f"job {job_id} is gone"
        return record

    async def gone(self, job_id: UUID) -> bool:
        [record] = await self.store.get([job_id])
        return record is None

    async def state(self, job_id: UUID) -> State:
        return (await self.get(job_id)).state

    async def states(self, *job_ids: UUID) -> list[str]:
        return [(await self.state(job_id)).value for job_id in job_ids]

    async def told(self, job_id: UUID) -> list[tuple[datetime, str]]:
        """The state changes in the job's history, with their times."""
        return [(line.at, line.what) for line in await self.store.history(job_id) if line.what in set(State)]

    def after(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)


Maker = Callable[[], Store]
H = TypeVar("H", bound=House)


@asynccontextmanager
async def moved_in(kind: type[H], make: Maker, clock: FakeClock) -> AsyncIterator[H]:
    """Whatever a test does with the store, the sweep must find nothing to mend afterwards."""
    async with AsyncExitStack() as stack:

        async def another() -> Store:
            store = make()
            stack.push_async_callback(store.close)
            await store.open()
            return store

        house = kind(await another(), clock, another)
        yield house
        clock.advance(1)
        assert await house.store.sweep(grace=0) == 0, "a promotion was forgotten and the sweep had to mend it"


def worker(name: str = "worker") -> WorkerInfo:
    return WorkerInfo(
        id=UUID(int=0xA << 120 | next(_ids)), name=name, host="here", pid=1, queues=("default",), slots=10
    )


def found_in(verdicts: Sequence[Verdict]) -> State | HeadwayError:
    """The state that one job is in after an act, or why nothing came of it."""
    [verdict] = verdicts
    return verdict.state if isinstance(verdict, Moved) else verdict


def words(verdicts: Sequence[Verdict]) -> list[str]:
    return [f"{it.before} → {it.state}" if isinstance(it, Moved) else type(it).__name__ for it in verdicts]


def accepted(answer: Answer) -> Accepted:
    assert isinstance(answer, Accepted), repr(answer)
    return answer


def ids(claims: Sequence[Claim]) -> list[UUID]:
    return [claim.id for claim in claims]
