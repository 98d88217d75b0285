"""Calls that come at the same time, made as one: a commit costs the same for one job and for many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar
from uuid import UUID

from headway.model.errors import StoreUnavailable

T = TypeVar("T")
R = TypeVar("R")
MOST = 100


class Together(Generic[T, R]):
    """Gathers calls of one event loop while those before are under way. In a batch each job has one place at most, and
    what it weighs stays below `limit`, unless a single call is more. One that fails, fails alone."""

    def __init__(
        self,
        act: Callable[[Sequence[T]], Awaitable[Sequence[R]]],
        job: Callable[[T], UUID],
        *,
        weigh: Callable[[T], int] = lambda _: 1,
        limit: int = MOST,
    ) -> None:
        self._act = act
        self._job = job
        self._weigh = weigh
        self._limit = limit
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._under_way: asyncio.Task[None] | None = None

    async def __call__(self, item: T) -> R:
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._under_way is None:
            self._under_way = asyncio.create_task(self._go())
        return await future

    async def _go(self) -> None:
        try:
            while batch := self._next():
                await self._do(batch)
        finally:
            self._under_way = None
            # There are any only if this task was cancelled.
            for _, future in self._waiting:
                future.cancel()

    def _next(self) -> list[tuple[T, asyncio.Future[R]]]:
        taken: list[tuple[T, asyncio.Future[R]]] = []
        left: list[tuple[T, asyncio.Future[R]]] = []
        seen: set[UUID] = set()
        room = self._limit
        for entry in self._waiting:
            job, weight = self._job(entry[0]), self._weigh(entry[0])
            fits = job not in seen and (not taken or weight <= room)
            (taken if fits else left).append(entry)
            seen.add(job)
            room -= weight if fits else 0
        self._waiting = left
        return taken

    async def _do(self, batch: list[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._act([item for item, _ in batch])
        except Exception as error:
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                for future in _open(batch):
                    future.set_exception(error)
                return
            for entry in batch:
                await self._do([entry])
        except BaseException:
            self._waiting += batch
            raise
        else:
            for (_, future), result in zip(batch, results, strict=True):
                if not future.done():
                    future.set_result(result)


def _open(batch: list[tuple[T, asyncio.Future[R]]]) -> list[asyncio.Future[R]]:
    return [future for _, future in batch if not future.done()]
