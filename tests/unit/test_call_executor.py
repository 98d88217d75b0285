from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from headway.clock import FakeClock
from headway.executors.call import CallExecutor, CallSettings, make
from headway.executors.call.functions import Function, Method, Options, Registry
from headway.executors.call.provider import Services
from headway.executors.contract import (
    Answer,
    Cancelled,
    Completed,
    Failed,
    NoCode,
    Setup,
    Snoozed,
    TimedOut,
    current,
    current_or_none,
)
from headway.model.errors import Cancel, Fail, Snooze
from headway.model.job import Claim
from tests.unit import child_app
from tests.unit.calling import Listener, a_call, a_claim, a_context

PLAIN = functools.partial(asyncio.sleep, 0)


class House:
    """An executor whose functions a test adds as it goes."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.services = Services()
        self.clock = FakeClock()
        self.stuck: list[Claim] = []
        self.executor = CallExecutor(
            self.registry,
            self.services,
            clock=self.clock,
            app_reference="tests.unit.child_app:app",
            settings=CallSettings(on_stuck=self.stuck.append, threads=2),
        )

    def add(self, target: Any, **options: Any) -> Function:
        return self.registry.add(Function.of(target, options=Options.of(**options)))

    async def run(self, target: Any, *args: Any, **about: Any) -> Answer:
        function = target if isinstance(target, Function) else self.add(target)
        claim = a_call(function, *args)
        return await self.executor.submit(claim, a_context(claim, **about))


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    await house.executor.start()
    yield house
    await house.executor.close()


def raising(error: BaseException, *, coroutine: bool) -> Any:
    async def raise_async() -> None:
        await PLAIN()
        raise error

    def raise_plain() -> None:
        raise error

    target = raise_async if coroutine else raise_plain
    target.__qualname__ = f"raise {type(error).__name__}"
    return target


async def failure(house: House, error: BaseException, *, coroutine: bool = True) -> Failed:
    answer = await house.run(raising(error, coroutine=coroutine))
    assert isinstance(answer, Failed)
    return answer


async def double(n: int) -> int:
    await PLAIN()
    return 2 * n


def double_in_thread(n: int) -> list[Any]:
    return [2 * n, threading.current_thread().name, str(current().job_id)]


async def test_a_coroutine_runs_on_the_loop_and_a_function_in_a_thread(house: House) -> None:
    assert await house.run(double, 21) == Completed(b"42")
    answer = await house.run(double_in_thread, 21)
    assert isinstance(answer, Completed)
    assert (answer.result or b"").startswith(b'[42,"headway-1","')


async def test_the_entry_point_makes_an_executor_of_what_a_worker_hands_over() -> None:
    registry = Registry()
    function = registry.add(Function.of(double))
    executor = make(Setup(clock=FakeClock(), registry=registry))
    claim = a_call(function, 1)
    assert await executor.submit(claim, a_context(claim)) == Completed(b"2")
    assert executor.kind == "call"
    assert executor.defaults.timeout is None
    assert executor.defaults.retry.max_attempts == 1
    await executor.close()


async def test_an_unknown_function_is_no_code(house: House) -> None:
    claim = a_claim('{"function": "shop.missing", "kwargs": {}}')
    answer = await house.executor.submit(claim, a_context(claim))
    assert answer == NoCode("no function 'shop.missing' is registered here")


@pytest.mark.parametrize("payload", ["", "{}", "[1]", '{"function": "F", "kwargs": {"n": "many"}}'])
async def test_a_corrupt_payload_fails_for_good(house: House, payload: str) -> None:
    function = house.add(double)
    claim = a_claim(payload.replace("F", function.name))
    answer = await house.executor.submit(claim, a_context(claim))
    assert isinstance(answer, Failed)
    assert answer.permanent
    assert "payload" in answer.error.message or "'n' must be int" in answer.error.message


@pytest.mark.parametrize("coroutine", [True, False])
async def test_what_a_job_raises_says_how_it_goes_on(house: House, coroutine: bool) -> None:
    assert await house.run(raising(Snooze(timedelta(minutes=1)), coroutine=coroutine)) == Snoozed(60)
    with pytest.raises(ValueError, match="Snooze takes seconds or a timedelta, not 'a while'"):
        Snooze("a while")  # type: ignore[arg-type]  # what is wrong about it
    assert await house.run(raising(Cancel("nothing to do"), coroutine=coroutine)) == Cancelled("nothing to do")
    answer = await failure(house, Fail("no such customer"), coroutine=coroutine)
    assert answer.permanent
    assert answer.error.message == "no such customer"


@pytest.mark.parametrize("coroutine", [True, False])
@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
async def test_any_exception_is_a_failure_of_the_job_and_not_of_the_worker(
    house: House, error: BaseException, coroutine: bool
) -> None:
    answer = await failure(house, error, coroutine=coroutine)
    assert not answer.permanent
    assert answer.error.type == type(error).__name__
    assert answer.failure.bases[-1] == "object"


async def test_a_traceback_begins_at_the_users_code_and_is_capped(house: House) -> None:
    def deeper(n: int) -> None:
        if n:
            deeper(n - 1)
        raise ValueError("\ud800" + "x" * 100_000)

    def dig() -> None:
        deeper(3)

    answer = await house.run(dig)
    assert isinstance(answer, Failed)
    trace = answer.error.traceback or ""
    assert trace.splitlines()[1].endswith("in dig")
    assert len(trace) < 17_000
    assert len(answer.error.message) < 5_000
    trace.encode()
    answer.failure.message.encode()


async def test_an_exception_that_can_not_even_be_shown_is_still_a_failure(house: House) -> None:
    class Broken(Exception):
        status = "no number"

        def __str__(self) -> str:
            raise RuntimeError

    answer = await failure(house, Broken())
    assert "can't be shown" in answer.error.message
    assert answer.failure.status is None


async def test_a_result_that_can_not_be_stored_fails_for_good(house: House) -> None:
    async def give() -> object:
        return object()

    answer = await house.run(give)
    assert isinstance(answer, Failed)
    assert answer.permanent
    assert "give returned object" in answer.error.message


async def test_a_timeout_stops_a_coroutine_at_its_await_and_a_thread_where_it_is(house: House) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    def spin() -> None:
        loop.call_soon_threadsafe(begun.set)
        while True:
            pass

    for target in (wait, spin):
        begun.clear()
        task = asyncio.ensure_future(house.run(target, timeout=5))
        await begun.wait()
        house.clock.advance(5)
        answer = await task
        assert isinstance(answer, TimedOut)
        assert "5 s" in answer.error.message
        assert task.cancelling() == 0


async def test_a_timeout_error_of_the_job_itself_is_a_failure(house: House) -> None:
    function = house.add(raising(TimeoutError("the far end"), coroutine=True))
    answer = await house.run(function, timeout=5)
    assert isinstance(answer, Failed)
    assert house.clock.next_timer is None


async def test_waiting_for_a_thread_does_not_use_up_the_time_of_a_job(house: House) -> None:
    release = threading.Event()

    def hold() -> None:
        release.wait()

    holder = house.add(hold)
    held = [asyncio.ensure_future(house.run(holder)) for _ in range(2)]
    await asyncio.sleep(0)
    quick = asyncio.ensure_future(house.run(house.add(one), timeout=1))
    await asyncio.sleep(0)
    house.clock.advance(100)
    release.set()
    assert await quick == Completed(b"1")
    await asyncio.gather(*held)


def one() -> int:
    return 1


async def test_a_stop_from_outside_is_raised_once_the_coroutine_has_ended(house: House) -> None:
    story: list[str] = []
    begun = asyncio.Event()

    async def careful(how: str) -> str:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await PLAIN()
            story.append("tidied")
            if how == "complain":
                raise ValueError("interrupted")
            if how == "finish":
                return "done"  # noqa: B012 - a job may swallow its cancellation
        return ""

    function = house.add(careful)
    for how in ("stop", "complain"):
        begun.clear()
        task = asyncio.ensure_future(house.run(function, how))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    begun.clear()
    task = asyncio.ensure_future(house.run(function, "finish"))
    await begun.wait()
    task.cancel()
    assert await task == Completed(b'"done"')
    assert story == ["tidied"] * 3


async def test_a_stuck_thread_is_reported_to_the_worker(house: House) -> None:
    begun, release = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def stuck() -> None:
        while not release.is_set():
            try:
                loop.call_soon_threadsafe(begun.set)
                release.wait()
            except BaseException:
                continue

    task = asyncio.ensure_future(house.run(stuck))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    house.clock.advance(5)
    assert len(house.stuck) == 1
    release.set()
    assert await task == Completed(None)


async def test_the_current_job_is_known_inside_and_forgotten_after(house: House) -> None:
    async def inside() -> bool:
        return current_or_none() is not None

    assert await house.run(inside) == Completed(b"true")
    assert current_or_none() is None


@pytest.mark.parametrize("coroutine", [True, False])
async def test_what_a_job_logs_is_its_output(house: House, coroutine: bool) -> None:
    async def speak_async() -> None:
        logging.getLogger("shop").warning("careful, %s", "you")
        logging.getLogger("headway.worker").warning("not the job's word")

    def speak() -> None:
        logging.getLogger("shop").warning("careful, %s", "you")

    listener = Listener()
    await house.run(speak_async if coroutine else speak, listener=listener)
    logging.getLogger("shop").warning("outside")
    assert listener.output.decode().endswith("WARNING shop: careful, you\n")
    assert b"outside" not in listener.output
    assert b"not the job's word" not in listener.output


class Ledger:
    def __init__(self, entries: Entries) -> None:
        self.entries = entries

    async def add(self, text: str) -> int:
        self.entries.append(text)
        if text == "wrong":
            raise ValueError(text)
        return len(self.entries)

    def add_in_thread(self, text: str) -> int:
        self.entries.append(text)
        return len(self.entries)


class Entries(list[str]):
    pass


async def test_methods_run_on_an_instance_made_for_the_job_and_closed_after_it(house: House) -> None:
    story: list[str] = []

    def entries() -> Iterator[Entries]:
        try:
            yield Entries()
        except ValueError:
            story.append("rolled back")  # and swallowed: the job has failed all the same
        else:
            story.append("committed")

    house.services.provide(Entries, entries)
    add = house.add(Method(Ledger, Ledger.add))
    assert await house.run(add, "a") == Completed(b"1")
    assert await house.run(house.add(Method(Ledger, Ledger.add_in_thread)), "b") == Completed(b"1")
    assert isinstance(await house.run(add, "wrong"), Failed)
    assert story == ["committed", "committed", "rolled back"]


async def test_a_service_that_can_not_be_made_fails_the_job(house: House) -> None:
    class Needy:
        def __init__(self, host: str) -> None: ...

        async def act(self) -> None: ...

    answer = await house.run(house.add(Method(Needy, Needy.act)))
    assert isinstance(answer, Failed)
    assert "Needy can't be made" in answer.error.message


async def test_a_coroutine_hidden_by_a_decorator_is_awaited(house: House) -> None:
    def hides(target: Any) -> Any:
        @functools.wraps(target)
        def call(*args: Any) -> Any:
            return target(*args)

        return call

    assert await house.run(hides(double), 4) == Completed(b"8")


async def test_process_functions_and_suspects_run_in_a_child() -> None:
    executor = CallExecutor(child_app.app.registry, app_reference="tests.unit.child_app:app")
    claim = a_call(child_app.pid)
    first = await executor.submit(claim, a_context(claim))
    alone = await executor.submit(claim, a_context(claim, alone=True))
    assert isinstance(first, Completed)
    assert isinstance(alone, Completed)
    assert len({first.result, alone.result, str(os.getpid()).encode()}) == 3
    await executor.close()


async def test_without_a_way_to_import_the_app_process_functions_are_no_code_and_suspects_run_here() -> None:
    registry = Registry()
    executor = CallExecutor(registry)
    process = registry.add(Function.of(one, options=Options.of(process=True)))
    claim = a_call(process)
    assert isinstance(await executor.submit(claim, a_context(claim)), NoCode)
    suspect = registry.add(Function.of(double))
    claim = a_call(suspect, 2)
    assert await executor.submit(claim, a_context(claim, alone=True)) == Completed(b"4")
    await executor.close()


async def test_a_suspect_that_the_child_does_not_find_runs_here(house: House) -> None:
    here = house.add(double)
    assert await house.run(here, 3, alone=True) == Completed(b"6")
