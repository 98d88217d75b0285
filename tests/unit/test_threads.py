from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headway.clock import FakeClock, SystemClock
from headway.executors.call.threads import Stopped, Threads
from headway.executors.contract import Context
from headway.model.job import Claim
from tests.unit.calling import a_claim, a_context

variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Busy:
    """A function that says when it has begun and runs until it is interrupted or released."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.release = threading.Event()
        self.ended = threading.Event()

    def __call__(self) -> str:
        try:
            self.loop.call_soon_threadsafe(self.begun.set)
            # A wait without a limit is one C call, which no exception can enter.
            while not self.release.wait(0.001):
                pass
            return "released"
        finally:
            self.ended.set()


@pytest.fixture
def threads() -> Iterator[Threads]:
    pool = Threads(SystemClock(), maximum=4)
    yield pool
    pool.close()


def run(pool: Threads, call: Callable[[], Any], context: Context | None = None) -> asyncio.Task[Any]:
    claim = a_claim()
    return asyncio.ensure_future(pool.run(call, claim, context or a_context(claim)))


async def test_a_call_gives_its_value_or_its_exception(threads: Threads) -> None:
    assert await run(threads, lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        await run(threads, lambda: 1 // 0)
    with pytest.raises(SystemExit):
        await threads.run(lambda: sys.exit(3), a_claim(), a_context(a_claim()))


async def test_context_variables_are_copied_into_the_thread(threads: Threads) -> None:
    variable.set("set")

    def change() -> str:
        seen = variable.get()
        variable.set("changed")
        return seen

    assert await run(threads, change) == "set"
    assert variable.get() == "set"


async def test_threads_are_daemons_with_names_made_as_needed_up_to_the_maximum() -> None:
    pool = Threads(SystemClock(), maximum=2)
    busy = [Busy(), Busy(), Busy()]
    assert await run(pool, threading.current_thread) is await run(pool, threading.current_thread)
    tasks = [run(pool, call) for call in busy]
    await busy[0].begun.wait()
    await busy[1].begun.wait()
    assert not busy[2].begun.is_set()
    for call in busy:
        call.release.set()
    assert await asyncio.gather(*tasks) == ["released"] * 3
    thread = await run(pool, threading.current_thread)
    assert thread.daemon
    assert thread.name.startswith("headway-")
    pool.close()
    thread.join(10)
    assert not thread.is_alive()


async def test_a_cancelled_call_is_told_interrupted_and_seen_ended(threads: Threads) -> None:
    busy, context = Busy(), a_context(a_claim())
    task = run(threads, busy, context)
    await busy.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert busy.ended.is_set()
    assert context.cancelled


async def test_except_exception_does_not_swallow_the_interruption(threads: Threads) -> None:
    busy = Busy()

    def stubborn() -> None:
        while True:
            try:
                busy()
            except Exception:
                continue

    task = run(threads, stubborn)
    await busy.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_call_that_ends_well_although_it_was_told_to_stop_has_ended_well(threads: Threads) -> None:
    busy = Busy()

    def cleanly() -> str:
        try:
            return busy()
        except Stopped:
            return "saved my work"

    task = run(threads, cleanly)
    await busy.begun.wait()
    task.cancel()
    assert await task == "saved my work"


async def test_a_call_that_waits_for_a_thread_never_begins_once_cancelled() -> None:
    pool = Threads(SystemClock(), maximum=1)
    first, second = Busy(), Busy()
    running, waiting = run(pool, first), run(pool, second)
    await first.begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.release.set()
    assert await running == "released"
    assert await run(pool, lambda: "next") == "next"
    assert not second.begun.is_set()
    pool.close()


async def test_a_stuck_thread_is_reported_once_and_never_said_to_have_stopped() -> None:
    clock, reported = FakeClock(), list[Claim]()
    pool = Threads(clock, maximum=1, stuck_after=5.0, on_stuck=reported.append)
    claim, begun, release = a_claim(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def stuck() -> str:
        while True:
            try:
                loop.call_soon_threadsafe(begun.set)
                release.wait()
                return "at last"
            except Stopped:
                continue

    task = asyncio.ensure_future(pool.run(stuck, claim, a_context(claim)))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    clock.advance(4.9)
    assert reported == []
    clock.advance(0.2)
    assert reported == [claim]
    task.cancel()
    done, _ = await asyncio.wait((task,), timeout=0.05)
    assert not done
    release.set()
    assert await task == "at last"
    clock.advance(100)
    assert reported == [claim]
    pool.close()


@pytest.fixture
def fast_switching() -> Iterator[None]:
    """Threads take turns often, so that races happen."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("fast_switching")
async def test_an_interruption_never_hits_the_next_call_in_the_thread() -> None:
    """Cancels race with the ends of calls, many times over; the calls beside them must not notice."""
    pool = Threads(SystemClock(), maximum=1)
    stopped = 0
    for round_ in range(3000):
        victim = Brief(round_ % 100 * 10 if round_ % 100 else 10**9)
        running, next_ = run(pool, victim), run(pool, Brief(100))
        await victim.begun.wait()
        running.cancel()
        await asyncio.wait((running,))
        stopped += running.cancelled()
        assert await next_ == 100
    assert stopped >= 30
    pool.close()


class Brief:
    """A function that says when it has begun and ends soon after."""

    def __init__(self, spins: int) -> None:
        self.spins = spins
        self.loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()

    def __call__(self) -> int:
        self.loop.call_soon_threadsafe(self.begun.set)
        for _ in range(self.spins):
            pass
        return self.spins
