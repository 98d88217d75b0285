from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from opentelemetry import trace

from headway.clock import FakeClock, SystemClock
from headway.executors.call.children import Children
from headway.executors.call.functions import Function
from headway.executors.contract import (
    Cancelled,
    Completed,
    Context,
    Ending,
    Failed,
    Lost,
    NoCode,
    Snoozed,
    TimedOut,
)
from headway.model.job import Progress
from tests.unit import child_app
from tests.unit.calling import Listener, a_call, a_context, a_function

APP = "tests.unit.child_app:app"


@pytest.fixture
async def children() -> AsyncIterator[Children]:
    pool = Children(APP, SystemClock(), maximum=2, grace=0.2)
    yield pool
    await pool.close()


async def run(pool: Children, function: Function, *args: Any, **about: Any) -> Ending:
    claim = a_call(function, *args)
    return await pool.run(function, claim, a_context(claim, **about))


def start(pool: Children, function: Function, *args: Any, **about: Any) -> tuple[asyncio.Task[Ending], Context]:
    claim = a_call(function, *args)
    context = a_context(claim, **about)
    return asyncio.ensure_future(pool.run(function, claim, context)), context


async def appears(file: Path, task: asyncio.Task[Any]) -> str:
    while not file.exists():
        assert not task.done(), task.result()
        await asyncio.sleep(0.01)
    return file.read_text()


async def test_functions_coroutines_and_methods_run_in_a_child_typed(children: Children) -> None:
    assert await run(children, child_app.add, 1, 2) == Completed(b"3")
    assert await run(children, child_app.move, child_app.Point(1)) == Completed(b'{"x":2}')
    assert await run(children, child_app.count, 5) == Completed(b"15")


async def test_a_job_in_a_child_is_within_the_span_of_its_attempt(children: Children) -> None:
    span = trace.SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(span)):
        assert await run(children, child_app.span_here) == Completed(f'"00-{0xABC:032x}-{0xDEF:016x}-01"'.encode())
    assert await run(children, child_app.span_here) == Completed(None)


async def test_a_child_is_used_again_and_a_job_that_must_be_alone_has_a_fresh_one(children: Children) -> None:
    first, again = await run(children, child_app.pid), await run(children, child_app.pid)
    assert first == again
    alone = await run(children, child_app.pid, alone=True)
    assert alone != first
    assert isinstance(alone, Completed)
    assert not psutil.pid_exists(int(alone.result or b""))
    assert await run(children, child_app.pid) == first


async def test_a_child_is_replaced_after_its_share_of_jobs() -> None:
    pool = Children(APP, SystemClock(), recycle=2)
    pids = [await run(pool, child_app.pid) for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    await pool.close()


async def test_no_more_children_than_allowed_run_at_once(children: Children) -> None:
    pids = await asyncio.gather(*(run(children, child_app.pid) for _ in range(6)))
    assert len(set(map(repr, pids))) <= 2


async def test_what_a_job_prints_logs_and_reports_is_heard_before_its_end(children: Children) -> None:
    listener = Listener()
    assert await run(children, child_app.talk, listener=listener) == Completed(None)
    lines = listener.output.decode().splitlines()
    assert lines[0] == "hello"
    assert lines[1].endswith("WARNING shop: careful")
    assert lines[2:] == ["from below", "dear stderr", "no newline"]
    assert listener.progress == [Progress(1, 2, "half")]


async def test_ends_are_told_as_they_are(children: Children) -> None:
    assert await run(children, child_app.end, "snooze") == Snoozed(7)
    assert await run(children, child_app.end, "cancel") == Cancelled("no need")
    fail = await run(children, child_app.end, "fail")
    assert isinstance(fail, Failed)
    assert fail.permanent
    error = await run(children, child_app.end, "error")
    assert isinstance(error, Failed)
    assert not error.permanent
    assert error.failure.type == "ValueError"
    assert "raise ValueError(how)" in str(error.error.traceback)
    assert "headway" not in str(error.error.traceback)
    exit_ = await run(children, child_app.end, "exit")
    assert isinstance(exit_, Failed)
    assert exit_.error.type == "SystemExit"


@pytest.mark.parametrize(
    ("how", "says"),
    [("kill", "killed by SIGKILL (9)"), ("crash", "killed by SIGSEGV (11)"), ("exit", "exit code 7")],
)
async def test_the_death_of_a_child_loses_the_job_and_says_how(children: Children, how: str, says: str) -> None:
    listener = Listener()
    ending = await run(children, child_app.die, how, listener=listener)
    assert isinstance(ending, Lost)
    assert says in ending.error.message
    assert listener.output.startswith(b"last words\n")
    assert await run(children, child_app.add, 1, 2) == Completed(b"3")


async def test_a_job_that_ignores_everything_is_killed_with_what_it_started(children: Children, tmp_path: Path) -> None:
    task, context = start(children, child_app.hang, str(tmp_path / "pids"))
    pids = [int(pid) for pid in (await appears(tmp_path / "pids", task)).split()]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert context.cancelled
    assert not psutil.pid_exists(pids[0])
    assert await gone(pids[1])


async def gone(pid: int) -> bool:
    """Killed together with the child, but reaped by the system in its own time."""
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        await asyncio.sleep(0.01)
    return True


@pytest.mark.parametrize("function", [child_app.tidy, child_app.tidy_coroutine])
async def test_a_job_may_tidy_up_before_it_is_killed(function: Function, tmp_path: Path) -> None:
    pool = Children(APP, SystemClock(), grace=60)
    task, _ = start(pool, function, str(tmp_path / "file"))
    await appears(tmp_path / "file", task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tmp_path / "file.tidied").exists()
    await pool.close()


async def test_a_timeout_is_hard_and_counts_from_the_begin_of_the_job(tmp_path: Path) -> None:
    clock = FakeClock()
    pool = Children(APP, clock, grace=1.0)
    task, _ = start(pool, child_app.hang, str(tmp_path / "pids"), timeout=5.0)
    assert clock.next_timer is None
    pid, _ = (await appears(tmp_path / "pids", task)).split()
    clock.advance(4.9)
    assert psutil.pid_exists(int(pid))
    clock.advance(0.2)
    clock.advance(1.0)
    ending = await task
    assert isinstance(ending, TimedOut)
    assert "5 s" in ending.error.message
    assert not psutil.pid_exists(int(pid))
    await pool.close()


async def test_a_memory_limit_fails_the_job_and_spares_the_child(children: Children) -> None:
    pid = await run(children, child_app.pid)
    assert await run(children, child_app.eat, 1_000_000) == Completed(b"1000000")
    ending = await run(children, child_app.eat, 500_000_000)
    assert isinstance(ending, Failed)
    assert ending.error.type == "MemoryError"
    assert await run(children, child_app.pid) == pid


async def test_an_app_that_can_not_be_imported_is_no_code() -> None:
    for reference, says in [
        ("tests.unit.missing:app", "No module named 'tests.unit.missing'"),
        ("tests.unit.child_app:nothing", "has no attribute 'nothing'"),
        ("tests.unit.child_app:Point", "is no Headway app"),
    ]:
        pool = Children(reference, SystemClock())
        ending = await run(pool, child_app.add, 1, 2)
        assert isinstance(ending, NoCode)
        assert says in ending.what
        await pool.close()


async def test_a_function_that_the_child_does_not_find_is_no_code(children: Children) -> None:
    ending = await run(children, a_function(unregistered))
    assert isinstance(ending, NoCode)
    assert "unregistered" in ending.what


def unregistered() -> None: ...


async def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(file)])
    while not file.exists():
        assert parent.poll() is None
        await asyncio.sleep(0.01)
    child, below = (int(pid) for pid in file.read_text().split())
    assert psutil.pid_exists(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert await gone(child)
    # What the job itself has started is orphaned if the system was quicker than the child's own watch.
    with contextlib.suppress(ProcessLookupError):
        os.kill(below, signal.SIGKILL)


PARENT = f"""
import asyncio, sys
from headway.clock import SystemClock
from headway.executors.call.children import Children
from tests.unit import child_app
from tests.unit.calling import a_call, a_context

async def main():
    claim = a_call(child_app.hang, sys.argv[1])
    await Children({APP!r}, SystemClock()).run(child_app.hang, claim, a_context(claim))

asyncio.run(main())
"""
