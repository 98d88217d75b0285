"""A simulated process: its tasks, its clock and its connection to the one database. It can crash, freeze and go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from datetime import datetime
from random import Random
from types import GeneratorType
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import pytest

from headway.clock import Timer, sleep
from headway.model.errors import KeyBusy, StoreUnavailable
from headway.model.events import Transition
from headway.model.findings import Finding
from headway.store.sql import Lane, SqlStore
from headway.store.sqlite.driver import SqliteDriver
from headway.store.statements import Script
from tests.sim.check import Checker
from tests.sim.loop import VirtualClock

T = TypeVar("T")

_current: ContextVar[Process | None] = ContextVar("simulated_process", default=None)


class Dead(BaseException):
    """The process is gone: whatever its code still does reaches nobody."""


class Unforeseen(Exception):
    """What no contract speaks of: an engine's own error, a bug in a driver."""


class Weather(msgspec.Struct):
    """How often things go wrong, per operation of a store; chosen anew for each world."""

    crash: float = 0.0
    cut: float = 0.0
    """The connection breaks: the driver finds out what became of the commit, and makes good."""
    away: float = 0.0
    """The store can't be reached; the driver gives up, the commit may have happened or not."""
    unforeseen: float = 0.0
    """A worker's call fails in a way that nobody has thought of; the commit may have happened or not."""
    busy: float = 0.0
    slow: float = 0.0
    latency: float = 0.01
    """Seconds that most operations take at most, each way."""
    deaf: float = 0.0
    """The share of wake-ups that are lost."""

    def clear_up(self) -> None:
        """No more faults, but lost wake-ups stay lost: they are no excuse."""
        self.crash = self.cut = self.away = self.unforeseen = self.busy = self.slow = 0.0
        self.latency = 0.01


class Process:
    """What dies together. Everything from outside (time, answers, wake-ups) comes through here."""

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, tell: Callable[..., None]) -> None:
        self.name = name
        self.loop = loop
        self.dead = False
        self.paused_until = 0.0
        self.identity: UUID | None = None
        self.clock = ProcessClock(self)
        self.tell = tell
        self.on_crash: Callable[[], object] = lambda: None
        self._tasks: dict[asyncio.Task[Any], None] = {}
        """In the order in which they began: that of a set would be another one each time."""
        self._over: list[asyncio.Task[Any]] = []

    def spawn(self, act: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        """Run `act` in this process; the tasks that it starts belong to it too."""
        context = copy_context()
        context.run(_current.set, self)
        return self.loop.create_task(act, context=context)

    def adopt(self, task: asyncio.Task[Any]) -> None:
        self._tasks[task] = None
        task.add_done_callback(self._over.append)
        if self.dead:
            task.cancel()

    def crash(self, why: str) -> None:
        """As kill -9: no `finally` of its code gets anything done."""
        if not self.dead:
            self.tell(self.name, "crash", why)
            self.end()
            self.on_crash()

    def end(self) -> None:
        self.dead = True
        for task in self._tasks:
            task.cancel()

    def pause(self, seconds: float) -> None:
        """As SIGSTOP: the world goes on without it."""
        self.tell(self.name, "pause", seconds)
        self.paused_until = self.loop.time() + seconds

    def broken_tasks(self) -> list[str]:
        """Tasks that ended by an error that nobody expected, since this was last asked."""
        over, self._over = self._over, []
        for task in over:
            del self._tasks[task]
        errors = [(task, task.exception()) for task in over if not task.cancelled()]
        for _, error in errors:
            if isinstance(error, pytest.fail.Exception):
                # The test's time is up, in the middle of this task: that says nothing of the world.
                raise error
        return [f"{_name(task)}: {error!r}" for task, error in errors if error is not None and not _expected(error)]

    def lingering(self) -> list[str]:
        return [_name(task) for task in self._tasks if not task.done()]


class ProcessClock:
    """Time as the process sees it: while it is frozen no timer rings, after its death never."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._time = VirtualClock(process.loop)

    def now(self) -> datetime:
        return self._time.now()

    def monotonic(self) -> float:
        return self._time.monotonic()

    def call_later(self, delay: float, act: Callable[[], object]) -> Timer:
        timer = _Timer(self._process, act)
        timer.wind(delay)
        return timer


class _Timer:
    def __init__(self, process: Process, act: Callable[[], object]) -> None:
        self._process = process
        self._act = act
        self._handle: asyncio.TimerHandle | None = None

    def wind(self, delay: float) -> None:
        self._handle = self._process.loop.call_later(max(delay, 0.0), self._ring)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def _ring(self) -> None:
        frozen = self._process.paused_until - self._process.loop.time()
        if self._process.dead:
            return
        if frozen > 0:
            self.wind(frozen)
        else:
            self._act()


class Connection:
    """A driver: scripts of one process on their way to the shared database and back, and what befalls them."""

    def __init__(self, process: Process, database: Database) -> None:
        self._process = process
        self._database = database
        self._lines = {lane: asyncio.Lock() for lane in Lane}

    async def open(self, patience: float | None = None) -> None: ...
    async def migrate(self) -> list[str]:
        return []

    async def close(self) -> None: ...
    async def vacuum(self) -> None: ...
    async def examine(self) -> list[Finding]:
        return []

    async def listen(self, on_wake: Callable[[str], None]) -> Callable[[], None]:
        listener = (self._process, on_wake)
        self._database.listeners.append(listener)
        return lambda: self._database.listeners.remove(listener)

    async def watch(self, heard: Callable[[Sequence[Transition]], None]) -> Callable[[], None]:
        return lambda: None

    async def tell(self, changes: Sequence[Transition]) -> None: ...

    @property
    def deaf(self) -> bool:
        return True

    async def run(
        self,
        script: Callable[[], Script[T]],
        lane: Lane,
        *,
        again: Callable[[], Script[T]] | None = None,
        single: bool = False,
    ) -> T:
        """One at a time in each lane, as a connection would."""
        unknown = set[bytes]()
        """Leases that were changed, with no answer yet."""
        async with self._lines[lane]:
            while True:
                await self._travel()
                fault = self._database.fault(lane, worker=self._process.identity is not None)
                self._meet(fault, "before", unknown)
                if fault == "cut before":
                    script = again or script
                    continue
                result = await self._database.commit(self._process, script, lane)
                unknown.update(self._database.checker.last_leases)
                self._meet(fault, "after", unknown)
                await self._travel()
                if fault != "cut after":
                    return result
                script = again or script

    def _meet(self, fault: str | None, when: str, unknown: set[bytes]) -> None:
        if fault is None or not fault.endswith(when):
            return
        self._process.tell(self._process.name, "fault", fault)
        if fault.startswith("crash"):
            self._process.crash(fault)
            raise Dead
        if fault.startswith(("away", "unforeseen")):
            self._database.checker.unanswered(unknown)
            raise (StoreUnavailable if fault.startswith("away") else Unforeseen)(f"simulated: {fault}")
        if fault.startswith("busy"):
            raise KeyBusy("simulated")

    async def _travel(self) -> None:
        delay = self._database.latency()
        if delay or self._process.paused_until > self._process.loop.time():
            await sleep(self._process.clock, delay)
        if self._process.dead:
            raise Dead


class Database:
    """The one database: it outlives every process. Each commit is told to the checker."""

    def __init__(self, driver: SqliteDriver, weather: Weather, chance: Random, checker: Checker) -> None:
        self._driver = driver
        self.weather = weather
        self._chance = chance
        self.checker = checker
        self.listeners: list[tuple[Process, Callable[[str], None]]] = []

    def connect(self, process: Process) -> SqlStore:
        return SqlStore(Connection(process, self), process.clock)

    async def open(self) -> None:
        await self._driver.open()
        await self._driver.listen(self._ring)

    async def close(self) -> None:
        await self._driver.close()

    async def commit(self, process: Process, script: Callable[[], Script[T]], lane: Lane) -> T:
        """Run the script; what it changed counts once it is committed."""
        running = script()
        name, arguments = _called(running)
        self.checker.begin(process.name, process.identity, name, arguments)
        try:
            result = await self._driver.run(lambda: running, lane)
        except BaseException:
            self.checker.roll_back()
            raise
        self.checker.commit(result)
        return result

    def latency(self) -> float:
        """Mostly short, sometimes none at all, now and then longer than a lease."""
        draw = self._chance.random()
        if draw < self.weather.slow:
            return self._chance.uniform(0.5, 6.0)
        return 0.0 if draw > 0.7 else draw * self.weather.latency

    def fault(self, lane: Lane, *, worker: bool) -> str | None:
        weather, draw = self.weather, self._chance.random()
        if draw > 0.25:
            return None
        rates = {"crash": weather.crash, "cut": weather.cut, "away": weather.away, "unforeseen": weather.unforeseen}
        for kind, rate in rates.items():
            if kind == "unforeseen" and not worker:
                continue
            if draw < rate:
                return f"{kind} {'before' if draw < rate / 2 else 'after'}"
            draw -= rate
        return "busy before" if draw < weather.busy and lane in {Lane.WRITE, Lane.KEYED} else None

    def _ring(self, queue: str) -> None:
        """A wake-up for all who listen: hints that may come late, or not at all."""
        for process, on_wake in self.listeners:
            if not process.dead and self._chance.random() >= self.weather.deaf:
                process.clock.call_later(self._chance.random() * 0.01, lambda hear=on_wake: hear(queue))  # type: ignore[misc]


def make_task(loop: asyncio.AbstractEventLoop, act: Any, context: Context | None = None) -> asyncio.Task[Any]:
    """A task factory: a task belongs to the process that it is started from."""
    task = asyncio.Task(act, loop=loop, context=context)
    process = context.get(_current) if context is not None else _current.get()
    if process is not None:
        process.adopt(task)
    return task


def _called(script: object) -> tuple[str, dict[str, Any]]:
    """The name of a script that has not begun yet, and what it was given."""
    assert isinstance(script, GeneratorType)
    assert script.gi_frame is not None
    return script.__name__, script.gi_frame.f_locals


def _expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_expected(inner) for inner in error.exceptions)
    return isinstance(error, Dead)


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", str(task))
