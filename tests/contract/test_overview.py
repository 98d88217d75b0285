"""Queues and workers at a glance, changes of a queue's settings, ids by their beginning, what is left undone."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from pathlib import Path

import msgspec
import pytest

from headway.model.errors import InvalidJob
from headway.model.job import Release
from headway.model.limits import QueueSettings, Rate, Retention
from headway.model.overview import Pause, QueueStats
from headway.store import migrations
from headway.store.postgres.driver import PostgresDriver
from headway.store.scripts import overview, why
from headway.store.sql import Lane
from headway.store.sqlite.driver import split
from headway.store.statements import Script, Statement, load, one
from tests.contract.house import TTL, House, worker
from tests.contract.test_why import serve


async def queues(house: House) -> dict[str, QueueStats]:
    return {queue.name: queue for queue in await house.store.queue_stats()}


async def test_an_empty_store_has_no_queues_and_no_workers(house: House) -> None:
    assert await house.store.queue_stats() == []
    assert await house.store.worker_stats() == []


async def test_jobs_are_counted_by_what_they_wait_for(house: House) -> None:
    await house.running(queue="mail")
    await house.cancel((await house.running(queue="mail")).id)
    await house.complete(await house.running(queue="mail"))
    parked = await house.running(queue="mail")
    await house.release(Release.parked(parked, 100))
    held = await house.submit(queue="mail", hold=True)
    await house.submit(queue="mail", after=(held,))
    await house.submit(queue="mail", delay=100)
    await house.submit(queue="mail")
    house.clock.advance(3)
    await house.submit(queue="mail", priority=5)
    await house.submit(queue="sms")
    mail, sms = await house.store.queue_stats()
    assert (mail.name, sms.name) == ("mail", "sms")
    assert (mail.waiting, mail.due, mail.oldest_due) == (4, 2, 3.0)
    assert (mail.running, mail.cancelling, mail.blocked, mail.on_hold, mail.open) == (1, 1, 1, 1, 8)
    assert (sms.waiting, sms.due, sms.running, sms.oldest_due, sms.open) == (1, 1, 0, 0.0, 1)


async def test_jobs_that_have_ended_leave_no_queue_behind(house: House) -> None:
    await house.complete(await house.running(queue="once"))
    assert await house.store.queue_stats() == []


async def test_a_queue_is_shown_with_its_settings_and_workers(house: House) -> None:
    await house.store.change_queue("slow", {"max_running": 3, "paused": True}, by="ann")
    await serve(house, queues=("mail", "slow"))
    found = await queues(house)
    assert set(found) == {"mail", "slow"}
    assert found["slow"].settings == QueueSettings(name="slow", max_running=3, paused=True)
    assert found["slow"].pause == Pause(house.now, "ann")
    assert (found["mail"].workers, found["mail"].pause) == (("worker",), None)
    house.clock.advance(61)
    assert (await queues(house))["slow"].workers == ()


async def test_workers_are_shown_with_what_they_hold(shared: House) -> None:
    house, other = shared, await shared.second()
    await serve(house, slots=4)
    other.worker = worker("other")
    await serve(other, queues=("mail",))
    await house.running()
    done = await house.running()
    await house.complete(done)
    await other.running(queue="mail")
    house.clock.advance(20)
    await serve(house)
    stats = {stat.info.name: stat for stat in await house.store.worker_stats()}
    assert {name: (stat.held, stat.silent) for name, stat in stats.items()} == {
        "worker": (1, 0.0),
        "other": (1, 23.0),
    }
    assert stats["worker"].info.slots == 4
    assert stats["worker"].serves("default")
    assert not stats["worker"].serves("mail")


async def test_a_job_claimed_again_is_counted_once(house: House) -> None:
    """The lease of its first attempt, which lists it too, is still there."""
    await house.retry_later(await house.running())
    await house.claim_one()
    [queue] = await house.store.queue_stats()
    assert (queue.waiting, queue.running) == (0, 1)


# Settings


async def test_a_change_of_one_setting_keeps_the_others(house: House) -> None:
    first = await house.store.change_queue("mail", {"max_running": 3, "rate": Rate(10, 1.0)}, by=None)
    assert first == QueueSettings(name="mail", max_running=3, rate=Rate(10, 1.0))
    await house.store.change_queue("mail", {"keep_failed": 60.0}, by=None)
    changed = await house.store.change_queue("mail", {"max_running": None}, by=None)
    assert changed == QueueSettings(name="mail", rate=Rate(10, 1.0), keep_failed=60.0)
    assert (await house.store.limits()).queues == {"mail": changed}


async def test_a_wrong_setting_changes_nothing(house: House) -> None:
    with pytest.raises(InvalidJob, match="max_running must be 1 or more"):
        await house.store.change_queue("mail", {"max_running": 0}, by=None)
    assert (await house.store.limits()).queues == {}


async def test_changes_at_the_same_time_do_not_undo_each_other(shared: House) -> None:
    other = await shared.second()
    await asyncio.gather(
        *(
            house.store.change_queue("mail", changes, by=None)
            for house, changes in (
                (shared, {"max_running": 3}),
                (other, {"key_max_running": 2}),
                (shared, {"paused": True}),
                (other, {"keep_failed": 5.0}),
            )
        )
    )
    expected = QueueSettings(name="mail", max_running=3, key_max_running=2, paused=True, keep_failed=5.0)
    assert (await shared.store.limits()).queues == {"mail": expected}


# Ids


async def test_jobs_are_found_by_the_beginning_of_their_id(house: House) -> None:
    jobs = [await house.submit() for _ in range(3)]
    house.clock.advance(1e6)
    later = await house.submit()
    store = house.store
    assert await store.ids_starting(str(later)) == [later]
    assert await store.ids_starting(later.hex) == [later]
    common = str(jobs[0])[:13]
    assert await store.ids_starting(common.upper()) == jobs
    assert await store.ids_starting(common, limit=2) == jobs[:2]
    assert await store.ids_starting("f" * 8) == []
    assert len(await store.ids_starting("0")) == 4


# What is left undone


async def test_nothing_is_left_undone_in_a_house_kept_in_order(house: House) -> None:
    await house.cancel((await house.running()).id)
    upkeep = await house.store.upkeep(Retention())
    assert (upkeep.lapsed, upkeep.lapsed_for, upkeep.stuck, upkeep.overdue) == (0, 0.0, (), 0)


async def test_lapsed_leases_and_cancels_not_carried_out_are_told(house: House) -> None:
    claims = [await house.running(), await house.running("slow")]
    await house.cancel(claims[1].id)
    house.clock.advance(TTL + 60)
    upkeep = await house.store.upkeep(Retention())
    assert (upkeep.lapsed, upkeep.lapsed_for) == (2, 61.0)
    [stuck] = upkeep.stuck
    assert (stuck.job_id, stuck.name, stuck.seconds) == (claims[1].id, "slow", TTL + 60)
    assert (await house.store.upkeep(Retention(), cancel_patience=100)).stuck == ()
    await house.store.rescue()
    assert (await house.store.upkeep(Retention())).lapsed == 0


async def test_jobs_that_nobody_prunes_are_told(house: House) -> None:
    first = await house.running()
    await house.complete(first)
    created = (await house.get(first.id)).created_at
    await house.complete(await house.running(queue="kept"))
    await house.store.change_queue("kept", {"keep_completed": 1e9}, by=None)
    house.clock.advance(100)
    upkeep = await house.store.upkeep(Retention(completed=50, failed=50))
    assert (upkeep.overdue, upkeep.oldest_created) == (1, created)
    assert (await house.store.upkeep(Retention())).overdue == 0


async def test_a_store_examines_itself_and_finds_nothing_wrong(house: House) -> None:
    # The tests before have left dead rows in the same tables.
    await house.store.vacuum()
    findings = await house.store.examine()
    assert findings
    assert {finding.level for finding in findings} == {"ok"}, msgspec.to_builtins(findings)


# What it costs


async def test_ended_jobs_are_not_looked_at_on_postgres(on_postgres: House) -> None:
    house, driver = on_postgres, on_postgres.store._driver
    assert isinstance(driver, PostgresDriver)
    for _ in range(3):
        await house.store.submit([house.job() for _ in range(1000)])
        claims = await house.claim(1000)
        await house.complete(*claims)
        await house.renew(done=[claims[0].lease_id])
    await house.running()
    await house.submit(hold=True)
    last = await house.submit()
    seen = "select seq_tup_read, idx_tup_fetch from pg_stat_xact_user_tables where relname = 'job'"
    driver._statements["seen"] = Statement("seen", seen, (), ())

    def look(script: Script[object]) -> Script[int]:
        yield from script
        [row] = yield one("seen")
        return int(row["seq_tup_read"] + row["idx_tup_fetch"])

    assert await driver.run(lambda: look(overview.queue_stats()), Lane.READ) < 100
    assert await driver.run(lambda: look(overview.worker_stats()), Lane.READ) < 100
    assert await driver.run(lambda: look(why.why(last)), Lane.READ) < 100


@pytest.mark.parametrize("name", ["count_waiting", "count_held_back", "count_held", "why_ahead", "why_line"])
def test_ended_jobs_are_not_looked_at_on_sqlite(name: str, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "plan.db")
    for step in migrations.load("headway.store.sqlite.migrations"):
        for statement in split(step.sql):
            connection.execute(statement)
    text = load("headway.store.sqlite.sql", "?")[name].text
    places = max((int(number) for number in re.findall(r"\?(\d+)", text)), default=0)
    plan = [row[3] for row in connection.execute(f"explain query plan {text}", [None] * places)]
    connection.close()
    jobs = [step for step in plan if re.search(r"\b(headway_job|[jn])\b", step)]
    assert jobs
    for step in jobs:
        assert re.search(r"headway_job_(ready|held_back|open_key)|sqlite_autoindex_headway_job_1 \(id=\?\)", step), plan
