"""Moves along the arrows of the state table, each made by a legal call of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID

from headway.contracts.stores.house import ERROR, House
from headway.model.job import Claim, Finish, Release
from headway.model.limits import Limit
from headway.model.states import TERMINAL, TRANSITIONS, State
from headway.model.submission import OnConflict

STARTS = (State.CREATING, State.SCHEDULED, State.BLOCKED)
"""The states in which a job can be stored."""

Path = tuple[State, ...]
Move = Callable[[], Awaitable[Any]]

_numbers = count(1)


def paths(start: State, length: int) -> Iterator[Path]:
    """Every legal path of this many states."""
    if length == 1:
        yield (start,)
        return
    for following in sorted(TRANSITIONS[start]):
        for rest in paths(following, length - 1):
            yield (start, *rest)


class Walker:
    """Leads one job along a path; remembers when it came into which state."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.number = next(_numbers)
        self.queue = self.key = f"walk-{self.number}"
        self.job_id: UUID
        self.claim: Claim
        self.state: State
        self.seen: list[tuple[datetime, str]] = []
        self._unblock: Move | None = None

    async def walk(self, path: Path) -> None:
        await self.start(path[0], *path[1:2])
        for state in path[1:]:
            await self.go(state)

    async def start(self, state: State, following: State | None = None) -> None:
        """Store the job; one on hold that is to be blocked next has something to wait for."""
        options: dict[str, Any] = {"queue": self.queue, "key": self.key, "on_conflict": OnConflict.WAIT}
        if state is State.CREATING:
            options["hold"] = True
        if State.BLOCKED in {state, following} and state is not State.SCHEDULED:
            options["after"] = (await self._parent(),)
        self.job_id = await self.house.submit("walk", **options)
        await self._arrive(state)

    async def go(self, state: State) -> None:
        """Make one step."""
        self.house.clock.advance(1)
        if self.state in TERMINAL:
            await self._retry(state)
        else:
            steps: dict[tuple[State, State], Move] = {
                (State.CREATING, State.SCHEDULED): self._schedule,
                (State.CREATING, State.BLOCKED): self._schedule,
                (State.SCHEDULED, State.RUNNING): self._run,
                (State.SCHEDULED, State.BLOCKED): self._meet_limit,
                (State.BLOCKED, State.SCHEDULED): self._end_of_wait,
                (State.RUNNING, State.COMPLETED): self._complete,
                (State.RUNNING, State.FAILED): self._fail,
                (State.RUNNING, State.CANCELLED): self._give_up,
                (State.RUNNING, State.SCHEDULED): self._go_back,
                (State.CANCELLING, State.CANCELLED): self._fail,
                (State.CANCELLING, State.COMPLETED): self._complete,
            }
            await steps.get((self.state, state), self._cancel)()
        await self._arrive(state)

    async def _arrive(self, state: State) -> None:
        assert await self.house.state(self.job_id) is state
        self.state = state
        self.seen.append((self.house.now, state.value))
        if state not in {State.CREATING, State.BLOCKED} and self._unblock:
            # Whom it waited for mustn't stand in its way later.
            unblock, self._unblock = self._unblock, None
            self.house.clock.advance(1)
            await unblock()

    async def _parent(self) -> UUID:
        queue = f"{self.queue}-parents"
        parent = await self.house.submit("parent", queue=queue)

        async def end() -> None:
            for claim in await self.house.claim(queue=queue):
                await self.house.complete(claim)

        self._unblock = end
        return parent

    async def _occupy(self) -> None:
        """Another job of the same key runs."""
        await self.house.submit("other", queue=self.queue, key=self.key, priority=100)
        other = await self.house.claim_one(self.queue)

        async def end() -> None:
            await self.house.complete(other)

        self._unblock = end

    async def _schedule(self) -> None:
        await self.house.schedule(self.job_id)

    async def _run(self) -> None:
        self.claim = await self.house.claim_one(self.queue)
        assert self.claim.id == self.job_id

    async def _meet_limit(self) -> None:
        await self.house.store.set_key_limit(self.key, Limit(max_running=1))
        await self._occupy()
        assert await self.house.claim(queue=self.queue) == []

    async def _end_of_wait(self) -> None:
        assert self._unblock is not None
        unblock, self._unblock = self._unblock, None
        await unblock()
        # Only the lifting of a limit leaves no trace in the job.
        await self.house.store.set_key_limit(self.key, None)

    async def _cancel(self) -> None:
        await self.house.cancel(self.job_id)
        await self.house.store.set_key_limit(self.key, None)

    async def _complete(self) -> None:
        await self.house.complete(self.claim)

    async def _fail(self) -> None:
        await self.house.fail(self.claim)

    async def _give_up(self) -> None:
        await self.house.give_up(self.claim)

    async def _go_back(self) -> None:
        match self.number % 4:
            case 0:
                await self.house.retry_later(self.claim)
            case 1:
                await self.house.release(Release.snooze(self.claim, 0.5, 0.0))
            case 2:
                await self.house.release(Release.give_back(self.claim))
            case _:
                await self.house.lose(self.claim)

    async def _retry(self, state: State) -> None:
        if state is State.BLOCKED:
            await self._occupy()
        await self.house.retry(self.job_id)


def every_move(walker: Walker) -> dict[str, Move]:
    """All that can be asked of a store about one job; workers' writes carry the last token that one was given."""
    house, job_id = walker.house, walker.job_id
    asked: dict[str, Move] = {
        "claim": lambda: house.claim(queue=walker.queue),
        "cancel": lambda: house.cancel(job_id),
        "retry": lambda: house.retry(job_id),
        "schedule": lambda: house.schedule(job_id),
        "rescue": house.store.rescue,
        "rescue later": lambda: _later(house, 3600, house.store.rescue),
        "expire": house.store.expire,
        "reopen gates": house.store.reopen_gates,
    }
    return asked | (_written(house, walker.claim) if hasattr(walker, "claim") else {})


def _written(house: House, claim: Claim) -> dict[str, Move]:
    return {
        "complete": lambda: house.store.finish([Finish.succeeded(claim, 0.5, None)]),
        "fail": lambda: house.store.finish([Finish.failed(claim, 0.5, ERROR)]),
        "give up": lambda: house.store.finish([Finish.cancelled(claim, 0.5, "no")]),
        "retry later": lambda: house.retry_later(claim),
        "snooze": lambda: house.release(Release.snooze(claim, 0.5, 5)),
        "give back": lambda: house.release(Release.give_back(claim)),
        "park": lambda: house.release(Release.parked(claim, 15)),
        "lose": lambda: house.release(Release.lost(claim, 0.5, ERROR)),
    }


async def _later(house: House, seconds: float, move: Move) -> None:
    house.clock.advance(seconds)
    await move()
