"""SUBMIT: brings calls from any thread and any event loop to the store, and gathers submits into batches.

A store lives on one event loop, its *home*: a background thread's loop, started when first needed, or the loop of a
worker in the same process. Callers on other loops and in plain threads reach it from there.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from headway.clock import Clock, sleep
from headway.components.create import create_jobs
from headway.model.errors import ForeignLoop, HeadwayError, InvalidJob, KeyBusy, NotStorable
from headway.model.submission import Accepted, Submission
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.store.scripts.cancel import Verdict
from headway.store.scripts.submit import Answer

T = TypeVar("T")

BATCH = 1000
BUSY_PATIENCE = 2.0
"""Seconds for which a submission waits for a key that another transaction holds."""
BUSY_WAIT = 0.01
BUSY_LONGEST = 0.1


class Home:
    """A store and the loop it lives on."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.store = store
        self.loop = loop
        self.pid = os.getpid()


class Client:
    """All calls to one store, from wherever they come. Opens nothing before the first call; after a fork the child
    starts afresh."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores = stores
        self._clock = clock
        self._home: Home | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._batchers: WeakKeyDictionary[asyncio.AbstractEventLoop, Batcher] = WeakKeyDictionary()
        self._latest: tuple[asyncio.AbstractEventLoop, Batcher] | None = None
        """Mostly they all come from one loop: the one that asked last is found without a search."""

    @property
    def settled(self) -> bool:
        """Whether it lives somewhere: on somebody's loop, or on a thread of its own."""
        return self._home is not None and self._home.pid == os.getpid()

    def adopt(self, store: Store) -> None:
        """Live on the running loop with this store, instead of a thread of our own."""
        if self._home is None:
            self._home = Home(store, asyncio.get_running_loop())

    def leave(self, store: Store) -> None:
        """The store adopted is about to close. A thread of our own stays, although it may share that very store."""
        home = self._home
        if home is not None and home.store is store and not isinstance(home, ThreadHome):
            self._home = None

    async def call(self, act: Callable[[Store], Awaitable[T]]) -> T:
        """`act` on the store, from any loop."""
        home = self._home
        if home is None or home.pid != os.getpid():
            # In a thread: a server that can't be reached must not hold up the caller's loop.
            home = await asyncio.to_thread(self._at_home)
        if self._stores.any_loop or home.loop is asyncio.get_running_loop():
            return await act(home.store)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_run(act, home.store), home.loop))

    async def submit(self, job: Submission) -> Accepted:
        """Store one job; calls made at the same time share a commit."""
        answer = await self._batcher().add(job)
        if isinstance(answer, Accepted):
            return answer
        raise answer

    async def submit_many(self, jobs: Sequence[Submission], *, partial: bool = False) -> list[Answer]:
        """Store jobs in one transaction, all or none: the first error is raised and nothing is stored. `partial`: those
        that can be; the errors of the others are their answers."""
        if not jobs:
            return []
        if not partial:
            return await self.call_patiently(lambda store: create_jobs(store, jobs, partial=False))
        answers = await self.call(lambda store: create_jobs(store, jobs))
        return [
            await self.try_again(job) if isinstance(answer, KeyBusy) else answer
            for job, answer in zip(jobs, answers, strict=True)
        ]

    def block(self, call: Coroutine[Any, Any, T], *, name: str) -> T:
        """Wait for a call from a plain thread. On a running loop this would stop the world: refused."""
        try:
            refuse_on_loop(name)
            loop = self._at_home().loop
        except BaseException:
            call.close()
            raise
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    def close(self) -> None:
        """Let go of the store and the thread; the next call opens them again."""
        with self._lock:
            home, self._home, self._latest = self._home, None, None
        if home is not None and home.pid == os.getpid() and isinstance(home, ThreadHome):
            home.stop()

    def _batcher(self) -> Batcher:
        loop, latest = asyncio.get_running_loop(), self._latest
        if latest is not None and latest[0] is loop:
            return latest[1]
        batcher = self._batchers.get(loop)
        if batcher is None:
            batcher = self._batchers[loop] = Batcher(self, self._clock)
        self._latest = loop, batcher
        return batcher

    async def try_again(self, job: Submission) -> Answer:
        """One whose key was in other hands."""
        return await self._batcher().add(job)

    async def call_patiently(self, act: Callable[[Store], Awaitable[T]]) -> T:
        """`act` on the store, from any loop; what is in other hands is waited for."""
        return await while_busy(lambda: self.call(act), self._clock)

    async def move(
        self, job_ids: Sequence[UUID], act: Callable[[Store, list[UUID]], Awaitable[list[Verdict]]]
    ) -> list[Verdict]:
        """What becomes of each job; for those that are in other hands `act` is asked for again, for a while."""
        verdicts: dict[UUID, Verdict] = {}

        async def ask() -> None:
            left = [job_id for job_id in job_ids if isinstance(verdicts.get(job_id), KeyBusy | None)]
            verdicts.update(zip(left, await self.call(lambda store: act(store, left)), strict=True))
            for verdict in verdicts.values():
                if isinstance(verdict, KeyBusy):
                    raise verdict

        await while_busy(ask, self._clock)
        return [verdicts[job_id] for job_id in job_ids]

    def _at_home(self) -> Home:
        home = self._home
        if home is not None and home.pid == os.getpid():
            return home
        with self._forked_lock():
            if self._home is None or self._home.pid != os.getpid():
                self._home = ThreadHome(self._stores)
            return self._home

    def _forked_lock(self) -> threading.Lock:
        """A lock taken by another thread at the moment of a fork would never be released in the child."""
        if self._pid != os.getpid():
            self._pid, self._lock, self._batchers = os.getpid(), threading.Lock(), WeakKeyDictionary()
            self._latest = None
        return self._lock


async def while_busy(act: Callable[[], Awaitable[T]], clock: Clock, patience: float = BUSY_PATIENCE) -> T:
    """Ask again until all keys are free, for a while."""
    started, wait = clock.monotonic(), BUSY_WAIT
    while True:
        try:
            return await act()
        except KeyBusy:
            if clock.monotonic() - started > patience:
                raise
        await sleep(clock, wait)
        wait = min(wait * 2, BUSY_LONGEST)


def refuse_on_loop(name: str) -> None:
    """Raise ForeignLoop on a running loop, which a blocking call would stop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    instead = _INSTEAD.get(name, f"await a{name}()")
    raise ForeignLoop(f"{name}() would block the running event loop: use `{instead}` there")


_INSTEAD = {"wait": "await job.finished()` or `await app.await_ended(job_id)"}
"""For a loop, where that is not the same name with an `a`."""


class ThreadHome(Home):
    """A home on a background thread."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="headway-client", daemon=True)
        self._thread.start()
        try:
            store = asyncio.run_coroutine_threadsafe(stores.acquire(), loop).result()
        except BaseException:
            self._end(loop)
            raise
        super().__init__(store, loop)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stores.release(self.store), self.loop).result()
        self._end(self.loop)

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()


class Batcher:
    """Submits of one event loop, gathered while the previous batch is being committed. Plain and keyed ones go
    separate ways, so that a key in other hands holds up nobody else."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._plain = _Gathering(client, clock)
        self._keyed = _Gathering(client, clock)

    def add(self, job: Submission) -> asyncio.Future[Answer]:
        return (self._plain if job.plain else self._keyed).add(job)


class _Entry:
    """One submission on its way."""

    __slots__ = ("busy_since", "future", "job", "wait")

    def __init__(self, job: Submission) -> None:
        self.job = job
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.busy_since: float | None = None
        """Since when its key has been in other hands."""
        self.wait = BUSY_WAIT


_Batch = list[_Entry]


class _Gathering:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waiting: _Batch = []
        self._flusher: asyncio.Task[None] | None = None

    def add(self, job: Submission) -> asyncio.Future[Answer]:
        entry = _Entry(job)
        self._put(entry)
        return entry.future

    def _put(self, entry: _Entry) -> None:
        self._waiting.append(entry)
        if self._flusher is None:
            self._flusher = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                await self._submit(batch)
        finally:
            self._flusher = None

    async def _submit(self, batch: _Batch) -> None:
        """A batch that the store refuses as a whole is split: a row that fails, fails only its own caller."""
        jobs = [entry.job for entry in batch]
        try:
            answers = await self._client.call(lambda store: create_jobs(store, jobs))
        except Exception as error:
            if isinstance(error, HeadwayError) and not isinstance(error, KeyBusy | NotStorable):
                return _fail(batch, error)
            if len(batch) == 1:
                return _fail(batch, _refusal(jobs[0], error))
            middle = len(batch) // 2
            await self._submit(batch[:middle])
            await self._submit(batch[middle:])
        except BaseException as error:
            _fail(batch, error)
            raise
        else:
            for entry, answer in zip(batch, answers, strict=True):
                if not (isinstance(answer, KeyBusy) and self._again(entry)) and not entry.future.done():
                    entry.future.set_result(answer)

    def _again(self, entry: _Entry) -> bool:
        """Whether it is to be tried again: with others, so that many of one key in this process ask for it once."""
        now = self._clock.monotonic()
        if entry.busy_since is None:
            entry.busy_since = now
        if now - entry.busy_since > BUSY_PATIENCE:
            return False
        self._clock.call_later(entry.wait, lambda: self._put(entry))
        entry.wait = min(entry.wait * 2, BUSY_LONGEST)
        return True


def _refusal(job: Submission, error: Exception) -> Exception:
    """The error of one job. Only what its content can bring about is blamed on it."""
    if isinstance(error, NotStorable | TypeError | ValueError):
        return InvalidJob(f"job {job.name!r} can't be stored: {error}")
    return error


def _fail(batch: _Batch, error: BaseException) -> None:
    for entry in batch:
        if not entry.future.done():
            entry.future.set_exception(error)


async def _run(act: Callable[[Store], Awaitable[T]], store: Store) -> T:
    return await act(store)
