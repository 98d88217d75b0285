"""Lines on their way into the audit log."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from headway.access.trail import FLUSH_EVERY, Trail, entry
from headway.model.access import AuditFilter, Caller
from headway.model.errors import StoreUnavailable
from tests.access.conftest import Desk

ANN, BOB = Caller("user:ann", "192.0.2.1"), Caller("user:bob", "192.0.2.2")


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0.01)


async def test_a_line_that_is_written_is_there(desk: Desk) -> None:
    await Trail(desk.reach, desk.clock).write(entry(ANN, "jobs.cancel", "jobs/1", reason="test"))
    [line] = await desk.store.audit(AuditFilter())
    assert (line.actor, line.action, line.object, line.address) == ("user:ann", "jobs.cancel", "jobs/1", "192.0.2.1")


async def test_lines_of_one_caller_are_gathered_into_one(desk: Desk) -> None:
    trail = Trail(desk.reach, desk.clock)
    for number in range(1000):
        trail.note(ANN, "jobs.create", f"jobs/{number}")
    trail.note(BOB, "jobs.create", "jobs/x")
    await trail.close()
    bob, ann = await desk.store.audit(AuditFilter())
    assert (ann.actor, ann.object, ann.count) == ("user:ann", "jobs/0", 1000)
    assert msgspec.json.decode(ann.detail) == {"last": "jobs/999"}
    assert (bob.actor, bob.object, bob.count) == ("user:bob", "jobs/x", 1)


async def test_gathered_lines_are_written_within_a_second(desk: Desk) -> None:
    trail = Trail(desk.reach, desk.clock)
    trail.note(ANN, "jobs.create", "jobs/1")
    await settle()
    assert await desk.store.audit(AuditFilter()) == []
    desk.clock.advance(FLUSH_EVERY)
    for _ in range(500):
        if await desk.store.audit(AuditFilter()):
            break
        await asyncio.sleep(0.01)
    assert len(await desk.store.audit(AuditFilter())) == 1
    await trail.close()


async def test_lines_that_can_not_be_written_now_are_written_later(desk: Desk) -> None:
    away = True

    async def reach(act: Any) -> Any:
        if away:
            raise StoreUnavailable("not now")
        return await act(desk.store)

    trail = Trail(reach, desk.clock)
    trail.note(ANN, "jobs.create", "jobs/1")
    await trail.close()
    away = False
    trail.note(ANN, "jobs.create", "jobs/2")
    await trail.close()
    [line] = await desk.store.audit(AuditFilter())
    assert (line.object, line.count) == ("jobs/1", 2)


async def test_lines_on_their_way_are_not_lost_when_the_process_ends(desk: Desk) -> None:
    under_way, go_on = asyncio.Event(), asyncio.Event()

    async def reach(act: Any) -> Any:
        under_way.set()
        await go_on.wait()
        return await act(desk.store)

    trail = Trail(reach, desk.clock)
    trail.note(ANN, "jobs.create", "jobs/1")
    await settle()
    desk.clock.advance(FLUSH_EVERY)
    await under_way.wait()
    trail.note(ANN, "jobs.create", "jobs/2")
    closing = asyncio.create_task(trail.close())
    await settle()
    go_on.set()
    await closing
    assert [line.object for line in await desk.store.audit_after(0)] == ["jobs/1", "jobs/2"]
