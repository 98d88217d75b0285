"""The audit log: what is written stays, in order, and who changes it is found out."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from headway.access.chain import broken
from headway.client import while_busy
from headway.clock import SystemClock
from headway.model.access import AuditFilter, Entry
from tests.contract.house import House


def entry(house: House, action: str = "job.cancel", **fields: Any) -> Entry:
    told = {"actor": "user:ann", "object": "job:1", "address": "192.0.2.1", **fields}
    return Entry(id=house.new_id(), action=action, **told)


async def test_lines_tell_who_what_when_and_from_where(house: House) -> None:
    house.clock.advance(7)
    assert await house.store.record([entry(house, detail={"reason": "über"}, count=3)]) == 1
    [line] = await house.store.audit(AuditFilter())
    assert (line.actor, line.action, line.object, line.address) == ("user:ann", "job.cancel", "job:1", "192.0.2.1")
    assert (line.seq, line.made_at, line.count) == (1, house.now, 3)
    assert msgspec.json.decode(line.detail) == {"reason": "über"}


async def test_a_line_is_written_once(house: House) -> None:
    first, second = entry(house), entry(house)
    assert await house.store.record([first]) == 1
    assert await house.store.record([first, second]) == 1
    assert await house.store.record([first, second]) == 0
    assert len(await house.store.audit(AuditFilter())) == 2


async def test_lines_are_found_by_what_they_tell(house: House) -> None:
    await house.store.record([entry(house, "user.create", actor="user:bob"), entry(house, "user.change")])
    house.clock.advance(60)
    await house.store.record([entry(house, "userland"), entry(house, object="job:2")])
    assert await _actions(house, actor="user:bob") == ["user.create"]
    assert await _actions(house, action="user.") == ["user.change", "user.create"]
    assert await _actions(house, action="user.change") == ["user.change"]
    assert await _actions(house, object="job:2") == ["job.cancel"]
    assert await _actions(house, since=house.now) == ["job.cancel", "userland"]
    assert await _actions(house, until=house.now) == ["user.change", "user.create"]
    assert await _actions(house, limit=2) == ["job.cancel", "userland"]
    assert await _actions(house, limit=2, before=3) == ["user.change", "user.create"]


async def test_processes_write_one_chain(shared: House) -> None:
    other = await shared.second()

    async def write(house: House) -> None:
        line = entry(house)
        await while_busy(lambda: house.store.record([line]), SystemClock())

    await asyncio.gather(*(write(house) for house in [shared, other] for _ in range(10)))
    lines = await shared.store.audit_after(0)
    assert [line.seq for line in lines] == list(range(1, 21))
    assert await broken(shared.store) is None


async def test_old_lines_go_and_the_chain_stays_whole(house: House) -> None:
    await house.store.record([entry(house) for _ in range(5)])
    house.clock.advance(100)
    await house.store.record([entry(house)])
    assert await house.store.prune_audit(50, limit=3) == 3
    assert await house.store.prune_audit(50, limit=3) == 2
    assert await house.store.prune_audit(50, limit=3) == 0
    assert [line.seq for line in await house.store.audit(AuditFilter())] == [6]
    assert await broken(house.store) is None
    house.clock.advance(100)
    assert await house.store.prune_audit(50) == 1
    await house.store.record([entry(house)])
    assert [line.seq for line in await house.store.audit(AuditFilter())] == [7]
    assert await broken(house.store) is None


TAMPERED = {
    "a changed line": ("update {audit} set actor = 'user:eve' where seq = 2", 2),
    "a line that is gone": ("delete from {audit} where seq = 2", 3),
    "the first lines gone": ("delete from {audit} where seq <= 2", 3),
    "the last line gone": ("delete from {audit} where seq = 4", 4),
    "everything gone": ("delete from {audit}", 4),
}


@pytest.mark.parametrize("change", TAMPERED)
async def test_who_tampers_with_the_log_is_found_out(house: House, change: str) -> None:
    await house.store.record([entry(house) for _ in range(4)])
    statement, at = TAMPERED[change]
    await tamper(house, statement)
    assert await broken(house.store) == at


async def _actions(house: House, **wanted: Any) -> list[str]:
    return [line.action for line in await house.store.audit(AuditFilter(**wanted))]


async def tamper(house: House, statement: str) -> None:
    """As somebody with the rights of an administrator of the database."""
    driver: Any = house.store._driver
    if hasattr(driver, "_dialer"):
        connection = await driver._dialer.dial()
        await connection.execute(statement.format(audit="headway.audit"))
        await connection.close()
    else:
        await driver._runner.write(lambda session: session.connection.execute(statement.format(audit="headway_audit")))
