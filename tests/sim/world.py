"""One world, made from one seed: a database, workers and clients around it, and what befalls them.

The store, the workers and the clients are the real ones; time, chance, ids, crashes and users' code are simulated.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

import msgspec

from headway.clock import sleep
from headway.model.limits import Limit, QueueSettings, Rate
from headway.store.sqlite.driver import MEMORY
from headway.store.sqlite.rows import microseconds
from headway.store.sqlite.runner import InlineRunner
from headway.worker.parts import Options, Parts
from headway.worker.worker import Worker
from tests.logs import captured
from tests.sim.calendar import Calendar
from tests.sim.check import Checker, Rules, Violation
from tests.sim.ground import Ground, GroundDriver
from tests.sim.loop import START, VirtualClock, VirtualLoop
from tests.sim.people import Drawn, Errands, Person
from tests.sim.process import Database, Process, Unforeseen, Weather, make_task
from tests.sim.scripted import Player, Script, Stage, result_of

LEASE = 3.0
TROUBLE = 15.0
"""Seconds of faults; after them everything must come to its end."""
LULL = 0.5
"""Seconds after which it is asked whether there is anything left to be harmed."""
POLL, PARKED, LIMITS_AGE = 2.0, 2.0, 4.0
"""Times of the engine, chosen so that worlds are rich rather than long. Limits don't change while a world lasts."""


class Story(msgspec.Struct):
    """What happened in one world."""

    seed: int
    trace: list[tuple[Any, ...]]
    counts: dict[str, int]
    lasted: float
    violation: str | None = None


class World:
    """Everything in one loop, in one thread."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.loop = VirtualLoop()
        self.loop.set_task_factory(make_task)
        self.clock = VirtualClock(self.loop)
        self.weather = Weather()
        self.rules = _rules(self.chance)
        self.checker = Checker(lambda: microseconds(self.clock.now()), self.rules)
        self.runner = InlineRunner()
        driver = GroundDriver(MEMORY, clock=self.clock, runner=self.runner)
        self.database = Database(driver, self.weather, self.chance, self.checker)
        self.calendar = Calendar(seed, self.database, self.checker)
        self.drawn = Drawn(self.chance, self.new_id, LEASE, self.loop.time)
        self.stage = Stage({})
        # The few jobs of a world begin too slowly for workers to claim ahead, unless they look further ahead.
        self.prefetch = self.chance.choice((0.05, 2.0))
        self.processes: list[Process] = []
        self.workers: dict[str, Process] = {}
        self.busy: set[str] = set()
        """People who are not done yet, alive or about to come back."""
        self.stops: dict[str, asyncio.Event] = {}
        self.closing = False

    def new_id(self) -> UUID:
        """As UUIDv7: the time, then chance."""
        milliseconds = microseconds(self.clock.now()) // 1000
        return UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62 | self.chance.getrandbits(62))

    def run(self) -> Story:
        checker = self.checker
        with _quiet(checker), _paced(self.prefetch):
            try:
                self.loop.run_until_complete(self._tell_the_story())
            except Violation:
                pass
            except Exception as error:
                checker.violation = checker.violation or f"broken: {error!r}"
            lasted = self.loop.time()
            self._tear_down()
        return Story(self.seed, checker.trace, checker.counts, lasted, checker.violation)

    # The story

    async def _tell_the_story(self) -> None:
        await self.database.open()
        self.checker.watch(self._ground())
        await self._set_limits()
        await self.calendar.open(self._process("planner"))
        _grow_worse(self.weather, self.chance)
        for number in range(self.chance.randint(2, 4)):
            self._start_worker(f"worker{number}")
        for number in range(self.chance.randint(1, 3)):
            self._start_person(f"person{number}", Errands(self.chance.randint(4, 9), {}))
        for number in range(self.calendar.schedulers):
            self._start_scheduler(f"scheduler{number}")
        editor = self._process("editor")
        editor.spawn(self.calendar.edit(editor))
        await self._trouble()
        self.weather.clear_up()
        self.checker.tell("world", "faults end")
        editor.end()
        await self._in_order(self.calendar.close(self._process("closer")))
        await self._quiet_down()
        await self._stop_all()
        await self._look_at_the_end()

    async def _trouble(self) -> None:
        """Crashes, freezes and orderly stops, until it is enough, or nothing is left that they could harm."""
        pace = self.chance.choice((0.0, 0.2, 0.6, 1.5))
        blow = self._next_blow(pace)
        while self.loop.time() < TROUBLE and (self.busy or self.calendar.schedules or self._any_open()):
            wait = blow - self.loop.time()
            await sleep(self.clock, min(wait, LULL))
            self._check_processes()
            if wait <= LULL:
                self._befall_one()
                blow = self._next_blow(pace)

    def _next_blow(self, pace: float) -> float:
        return self.loop.time() + (self.chance.expovariate(pace) if pace else TROUBLE)

    def _befall_one(self) -> None:
        alive = [process for process in self.processes if not process.dead]
        if alive:
            self._befall(self.chance.choice(alive))

    def _befall(self, process: Process) -> None:
        draw = self.chance.random()
        self.checker.count("crashes, freezes, stops")
        if draw < 0.4:
            process.crash("killed")
        elif draw < 0.8:
            process.pause(self.chance.uniform(0.3, 2.5) * LEASE)
        elif process.name in self.stops:
            self.checker.tell(process.name, "stop asked")
            self.stops[process.name].set()

    async def _quiet_down(self) -> None:
        """I11: what can run ends in time."""
        await self._until("the people are done", 60.0, lambda: not self.busy)
        scripts = [msgspec.json.decode(job.payload, type=Script) for job in self.checker.submissions.values()]
        longest = 4 * LEASE + 10.0 + sum(script.longest for script in scripts)
        releasing = self._process("keeper of holds").spawn(self._release_holds())
        await self._until("every job has ended", longest, lambda: not self._any_open())
        releasing.cancel()

    async def _in_order(self, act: Coroutine[Any, Any, None]) -> None:
        """Somebody sees to something while the world goes on; what goes wrong meanwhile is noticed."""
        task = self.processes[-1].spawn(act)
        await self._until("the schedules are up to date", 60.0, task.done)

    async def _release_holds(self) -> None:
        """A person lets go what waits for a person."""
        process = self.processes[-1]
        person = Person(process, self.database, self.checker, self.drawn, self.chance)
        while True:
            await person.release_all()
            await sleep(self.clock, 2.0)

    async def _until(self, what: str, patience: float, holds: Callable[[], bool]) -> None:
        ends = self.loop.time() + patience
        while not holds():
            self._check_processes()
            if self.loop.time() > ends:
                self.checker.fail("I11", f"not so after {patience:.0f} s without faults: {what}; open: {self._open()}")
            await sleep(self.clock, 0.25)

    async def _stop_all(self) -> None:
        self.closing = True
        for stop in self.stops.values():
            stop.set()
        await self._until("the workers have stopped", 60.0, lambda: all(p.dead for p in self.workers.values()))

    async def _look_at_the_end(self) -> None:
        """Nothing is left over, and what was promised is there."""
        checker = self.checker
        for job_id in sorted(checker.acknowledged):
            if job_id not in checker.ledger.jobs and job_id not in checker.ledger.gone:
                checker.fail("I1", f"{job_id} was acknowledged and is lost")
        person = self._process("inspector")
        if await self.database.connect(person).sweep(grace=0.0):
            checker.fail("sweep", "the last sweep had to mend something")
        for table, where in (
            ("edge", "1"),
            ("slot", "1"),
            ("job", "waiting > 0 or state not in ('completed', 'failed', 'cancelled')"),
            ("job", "doomed"),
        ):
            [(left,)] = self._ground().execute(f"select count(*) from headway_{table} where {where}")
            if left:
                checker.fail("rest", f"{left} rows of {table} are left over")
        self._check_results()
        await self.calendar.check(person)
        self._check_processes()

    def _check_results(self) -> None:
        """A result is that of the attempt whose end was accepted."""
        rows = self._ground().execute(
            "select j.id, j.finished_token, r.data from headway_job j left join headway_result r on r.job_id = j.id"
            " where j.state = 'completed'"
        )
        for job_id, token, data in rows.fetchall():
            if data != result_of(UUID(bytes=job_id), token):
                self.checker.fail("I2", f"{UUID(bytes=job_id)} ended by {token} has the result {data!r}")

    def _check_processes(self) -> None:
        if self.checker.violation:
            raise Violation
        for process in self.processes:
            for broken in process.broken_tasks():
                self.checker.fail("task", f"{process.name}: {broken}")

    # Who lives in it

    def _process(self, name: str) -> Process:
        process = Process(name, self.loop, self.checker.tell)
        self.processes.append(process)
        return process

    def _start_worker(self, role: str) -> None:
        if self.closing:
            return
        process = self.workers[role] = self._process(f"{role}.{len(self.processes)}")
        self.stops[process.name] = asyncio.Event()
        process.on_crash = lambda: self._restart_worker(role)
        process.spawn(self._work(process, role))

    def _restart_worker(self, role: str) -> None:
        if self.closing:
            return
        self.checker.count("worker restarts")
        self.loop.call_later(self.chance.uniform(0.0, 1.5) * LEASE, self._start_worker, role)

    async def _work(self, process: Process, role: str) -> None:
        parts = Parts(
            store=self.database.connect(process),
            executors={"sim": Player(process, self.stage, self.checker)},
            stores=None,
            clock=process.clock,
            random=self.chance.random,
            new_id=self.new_id,
        )
        queues = {"default": self.chance.randint(1, 4), "other": self.chance.randint(1, 2)}
        worker = Worker(parts, Options(queues=queues, lease=LEASE, name=process.name, poll=POLL))
        process.identity = worker.id
        await worker.start()
        await self.stops[process.name].wait()
        await worker.stop(grace=self.chance.choice((0.0, 0.5, 5.0)))
        self.checker.left(worker.id, running=worker.running)
        self.checker.tell(process.name, "stopped")
        process.end()
        self._restart_worker(role)

    def _start_scheduler(self, role: str) -> None:
        if self.closing:
            return
        process = self.workers[role] = self._process(f"{role}.{len(self.processes)}")
        self.stops[process.name] = asyncio.Event()
        process.on_crash = lambda: self._restart_scheduler(role)
        process.spawn(self._fire(process, role))

    def _restart_scheduler(self, role: str) -> None:
        if not self.closing:
            self.checker.count("scheduler restarts")
            self.loop.call_later(self.calendar.chance.uniform(0.0, 1.5) * LEASE, self._start_scheduler, role)

    async def _fire(self, process: Process, role: str) -> None:
        await self.calendar.fire(process, self.stops[process.name].wait)
        self.checker.tell(process.name, "stopped")
        process.end()
        self._restart_scheduler(role)

    def _start_person(self, role: str, errands: Errands) -> None:
        process = self._process(f"{role}.{len(self.processes)}")
        person = Person(process, self.database, self.checker, self.drawn, self.chance)
        process.on_crash = lambda: self.loop.call_later(self.chance.random(), self._start_person, role, errands)
        self.busy.add(role)
        process.spawn(self._live(role, person, errands))

    async def _live(self, role: str, person: Person, errands: Errands) -> None:
        await person.live(errands)
        self.busy.discard(role)

    def _any_open(self) -> bool:
        return any(job.open for job in self.checker.ledger.jobs.values())

    def _open(self) -> list[str]:
        return [f"{str(job.row.id)[-6:]} {job.row.state}" for job in self.checker.ledger.jobs.values() if job.open]

    async def _set_limits(self) -> None:
        store = self.database.connect(self._process("administrator"))
        for settings in self.rules.queues.values():
            await store.set_queue(settings)
        for key, limit in self.rules.keys.items():
            await store.set_key_limit(key, limit)

    def _ground(self) -> Ground:
        ground = self.runner._open().connection
        assert isinstance(ground, Ground)
        return ground

    def _tear_down(self) -> None:
        for process in self.processes:
            process.end()
        self.loop.run_until_complete(self._last_turns())
        self.loop.close()

    async def _last_turns(self) -> None:
        """What was cancelled gets its chance to see it, so that nothing is left for the garbage collector to report."""
        for _ in range(20):
            if not any(process.lingering() for process in self.processes):
                break
            for process in self.processes:
                process.end()
            await asyncio.sleep(0)
        for process in self.processes:
            process.broken_tasks()
        await self.database.close()


def _grow_worse(weather: Weather, chance: Random) -> None:
    """Each world has its own mix: some have none of a kind of fault, some much."""
    weather.crash = chance.choice((0.0, 0.0, 0.002, 0.01))
    weather.cut = chance.choice((0.0, 0.01, 0.05))
    weather.away = chance.choice((0.0, 0.0, 0.02, 0.05))
    weather.unforeseen = chance.choice((0.0, 0.0, 0.01, 0.03))
    weather.busy = chance.choice((0.0, 0.02))
    weather.slow = chance.choice((0.0, 0.0, 0.005, 0.02))
    weather.deaf = chance.choice((0.0, 0.3, 1.0))
    weather.latency = chance.choice((0.01, 0.01, 0.3))


def _rules(chance: Random) -> Rules:
    rules = Rules({}, {})
    if chance.random() < 0.35:
        rules.queues["default"] = QueueSettings(
            name="default",
            max_running=chance.choice((None, 1, 2)),
            key_max_running=chance.choice((None, 1)),
            rate=chance.choice((None, None, Rate(5, 1.0))),
            key_rate=chance.choice((None, None, Rate(2, 1.0))),
        )
    if chance.random() < 0.25:
        rules.keys["a"] = Limit(max_running=chance.choice((1, 2)), rate=chance.choice((None, Rate(1, 1.0))))
    return rules


@contextmanager
def _quiet(checker: Checker) -> Iterator[None]:
    """Of the engine's log only errors count, and each of them is a failure of the world, unless it tells of a fault
    that was simulated."""

    def note(line: Mapping[str, Any]) -> None:
        told = f"log: {line['event']} {line.get('error') or line.get('exception')}"
        if Unforeseen.__name__ in told:
            checker.count("errors nobody has foreseen")
            return
        checker.violation = checker.violation or told
        checker.tell("LOG", told)

    with captured(logging.ERROR, note):
        yield


@contextmanager
def _paced(prefetch: float) -> Iterator[None]:
    with (
        patch("headway.worker.lane.PREFETCH_SECONDS", prefetch),
        patch("headway.worker.judge.PARKED_WAIT", PARKED),
        patch("headway.store.sql.LIMITS_AGE", LIMITS_AGE),
    ):
        yield


@contextmanager
def _uncollected() -> Iterator[None]:
    """What a world leaves behind is collected at its end, and not looked at again and again while it lasts."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(0)
        if enabled:
            gc.enable()


def run(seed: int) -> Story:
    """The story of this seed."""
    with _uncollected():
        return World(seed).run()


__all__ = ["START", "Story", "World", "run"]
