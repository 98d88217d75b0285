"""Schedules kept: made, listed, changed, paused, run by hand, removed."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from headway.model.errors import (
    HeadwayError,
    InvalidSchedule,
    KeyBusy,
    NameTaken,
    ScheduleNotFound,
    VersionConflict,
)
from headway.model.schedule import Overlap, to_body
from headway.model.when import Cron, Every
from headway.store.driver import Lane
from headway.store.scripts.schedules import Unreadable
from headway.store.statements import Script, one
from tests.contract.firing import DAY, HOUR, MINUTE, SECOND, Firing, minutes, refused
from tests.contract.house import House


@pytest.fixture
def firing(house: House) -> Firing:
    return Firing(house)


# Made.


async def test_a_new_schedule_is_stored_with_all_it_says(firing: Firing) -> None:
    body: dict[str, Any] = {
        "description": "each morning",
        "schedule": "0 6 * * MON-FRI",
        "timezone": "Europe/Berlin",
        "gap": "skip",
        "fold": "both",
        "misfire": "run_all",
        "misfire_limit": 7,
        "overlap": "wait",
        "jitter": 30.0,
        "start": "2030-02-01T00:00:00Z",
        "end": "2031-02-01T00:00:00Z",
        "tags": ["a", "b"],
    }
    schedule_id = await firing.create(**body, template={"queue": "reports", "priority": 5, "tags": ("x",)})
    found = await firing.get(schedule_id)
    told = msgspec.json.decode(msgspec.json.encode(to_body(found.schedule)))
    assert {name: told[name] for name in body} == body
    assert (found.template.queue, found.template.priority, found.template.tags) == ("reports", 5, ("x",))
    assert found.next_at is not None
    assert found.next_at.isoformat() == "2030-02-01T05:00:00+00:00"
    assert (found.last_at, found.version, found.source) == (None, 1, None)
    assert (found.updated_by, found.updated_at, found.schedule.created_at) == ("ann", firing.now, firing.now)


async def test_time_counts_from_the_store_and_not_from_the_client(firing: Firing) -> None:
    draft = firing.draft(schedule={"every": 60})
    an_hour_behind = msgspec.structs.replace(draft.schedule, created_at=firing.now - HOUR)
    made = await firing.house.store.create_schedule(msgspec.structs.replace(draft, schedule=an_hour_behind), by=None)
    assert made.schedule.created_at == firing.now
    assert made.next_at == firing.now + MINUTE


async def test_a_name_is_given_once(firing: Firing) -> None:
    await firing.create(name="one")
    error = await refused(firing.create(name="one"), NameTaken)
    assert "there is a schedule 'one' already" in str(error)
    assert await firing.names() == ["one"]


async def test_making_the_same_schedule_again_is_no_second_act(firing: Firing) -> None:
    draft = firing.draft()
    first = await firing.house.store.create_schedule(draft, by="ann")
    firing.house.clock.advance(5)
    assert await firing.house.store.create_schedule(draft, by="ann") == first


async def test_a_schedule_that_would_never_fire_is_refused(firing: Firing) -> None:
    error = await refused(firing.create(schedule={"at": firing.now - MINUTE}), InvalidSchedule)
    assert "would never fire" in str(error)
    assert await firing.names() == []


async def test_two_processes_make_a_schedule_of_one_name_and_one_is_refused(shared: House) -> None:
    one, other = Firing(shared), Firing(await shared.second())
    for number in range(10):
        made = await asyncio.gather(*(each.create(name=f"s{number}") for each in (one, other)), return_exceptions=True)
        wrong = [result for result in made if isinstance(result, BaseException)]
        assert len(wrong) == 1
        assert isinstance(wrong[0], NameTaken | KeyBusy)
    assert len(await one.names()) == 10


# Listed.


async def test_schedules_are_listed_by_name_page_by_page(firing: Firing) -> None:
    for name in ("c", "a", "e", "b", "d"):
        await firing.create(name=name)
    assert await firing.names(limit=2) == ["a", "b"]
    assert await firing.names(limit=2, cursor="b") == ["c", "d"]
    assert await firing.names(limit=2, cursor="d") == ["e"]


async def test_schedules_are_found_by_what_they_are(firing: Firing) -> None:
    await firing.create(name="mail.daily", tags=["mail", "daily"])
    await firing.create(name="mail.hourly", tags=["mail"], paused=True)
    await firing.create(name="100%_sure")
    await firing.declare(firing.declared(name="declared"), source="shop")
    assert await firing.names(name="mail.daily") == ["mail.daily"]
    assert await firing.names(name_prefix="mail.") == ["mail.daily", "mail.hourly"]
    assert await firing.names(name_prefix="100%_") == ["100%_sure"]
    assert await firing.names(tag="mail") == ["mail.daily", "mail.hourly"]
    assert await firing.names(tag="daily") == ["mail.daily"]
    assert await firing.names(paused=True) == ["mail.hourly"]
    assert await firing.names(paused=False, tag="mail") == ["mail.daily"]
    assert await firing.names(source="shop") == ["declared"]
    assert await firing.names(name="unknown") == []


async def test_unknown_ids_are_found_to_be_nothing(firing: Firing) -> None:
    known = await firing.create()
    found = await firing.house.store.schedules([firing.house.new_id(), known])
    assert [record is None for record in found] == [True, False]


# Changed.


async def test_a_change_counts_from_now_on_and_grows_the_version(firing: Firing) -> None:
    schedule_id = await firing.create()
    firing.house.clock.advance(10)
    changed = await firing.change(schedule_id, 1, schedule={"every": 300}, overlap="replace", description="new")
    assert changed.schedule.when == Every(300.0)
    assert (changed.schedule.overlap, changed.schedule.description) == (Overlap.REPLACE, "new")
    assert (changed.version, changed.updated_by, changed.updated_at) == (2, "bob", firing.now)
    assert changed.next_at == changed.schedule.created_at + 5 * MINUTE


async def test_a_change_of_what_was_changed_meanwhile_is_refused(firing: Firing) -> None:
    schedule_id = await firing.create()
    await firing.change(schedule_id, 1, description="first")
    error = await refused(firing.change(schedule_id, 1, description="second"), VersionConflict)
    assert "is at version 2 now" in str(error)
    assert (await firing.get(schedule_id)).schedule.description == "first"
    assert (await firing.change(schedule_id, None, description="second")).version == 3


async def test_of_two_changes_at_once_one_is_refused(shared: House) -> None:
    one, other = Firing(shared), Firing(await shared.second())
    schedule_id = await one.create()
    for version in range(1, 11):
        acts = (each.change(schedule_id, version, description=f"{version} {each}") for each in (one, other))
        done = await asyncio.gather(*acts, return_exceptions=True)
        assert sum(isinstance(result, VersionConflict) for result in done) == 1
    assert (await one.get(schedule_id)).version == 11


async def test_a_schedule_can_be_renamed_but_not_to_the_name_of_another(firing: Firing) -> None:
    one, other = await firing.create(name="one"), await firing.create(name="other")
    await refused(firing.change(one, name="other"), NameTaken)
    assert (await firing.change(one, name="first")).schedule.name == "first"
    assert (await firing.change(other, name="one")).schedule.name == "one"
    assert await firing.names() == ["first", "one"]


async def test_a_change_to_times_that_are_over_is_refused(firing: Firing) -> None:
    schedule_id = await firing.create()
    firing.house.clock.advance(3600)
    error = await refused(firing.change(schedule_id, schedule={"at": firing.now - MINUTE}), InvalidSchedule)
    assert "would never fire again" in str(error)
    await refused(firing.change(schedule_id, end=firing.now - MINUTE), InvalidSchedule)


async def test_an_ended_schedule_may_still_be_described_and_goes_on_with_a_later_end(firing: Firing) -> None:
    schedule_id = await firing.create(end=firing.now + 1.5 * MINUTE)
    firing.house.clock.advance(120)
    await firing.tick()
    ended = await firing.change(schedule_id, description="over")
    assert (ended.next_at, ended.schedule.description) == (None, "over")
    assert (await firing.change(schedule_id, end=firing.now + DAY)).next_at == firing.now + MINUTE


async def test_what_is_due_stays_due_when_other_fields_are_changed(firing: Firing) -> None:
    schedule_id = await firing.create(misfire="run_all")
    firing.house.clock.advance(185)
    await firing.change(schedule_id, description="new")
    assert (await firing.tick()).jobs == 3
    assert await firing.nominal() == minutes(1, 2, 3)


async def test_what_was_due_before_a_change_of_the_timetable_is_told_as_skipped(firing: Firing) -> None:
    schedule_id = await firing.create()
    firing.house.clock.advance(185)
    await firing.change(schedule_id, schedule="30 * * * *")
    assert (await firing.tick()).jobs == 0
    assert await firing.told(schedule_id) == [(60, 180, 3, "changed")]
    assert (await firing.get(schedule_id)).schedule.when == Cron("30 * * * *")


async def test_an_unknown_schedule_can_not_be_changed(firing: Firing) -> None:
    unknown = firing.house.new_id()
    store = firing.house.store
    for act in (
        store.change_schedule(firing.draft(), None, by=None),
        store.pause_schedule(unknown, by=None, reason=None),
        store.resume_schedule(unknown, by=None),
        store.run_schedule(unknown, firing.house.new_id(), by=None),
        store.delete_schedule(unknown),
    ):
        assert "see `headway schedules list`" in str(await refused(act, ScheduleNotFound))


# Paused.


async def test_a_paused_schedule_does_not_fire_and_says_why(firing: Firing) -> None:
    schedule_id = await firing.create()
    paused = await firing.house.store.pause_schedule(schedule_id, by="ann", reason="holidays")
    assert (paused.schedule.paused, paused.schedule.pause_reason, paused.updated_by) == (True, "holidays", "ann")
    firing.house.clock.advance(600)
    fired = await firing.tick()
    assert (fired.jobs, fired.wait) == (0, None)


async def test_a_resumed_schedule_goes_on_from_now_and_tells_what_it_missed(firing: Firing) -> None:
    schedule_id = await firing.create(misfire="run_all")
    await firing.house.store.pause_schedule(schedule_id, by="ann", reason="holidays")
    firing.house.clock.advance(610)
    resumed = await firing.house.store.resume_schedule(schedule_id, by="ann")
    assert (resumed.schedule.paused, resumed.schedule.pause_reason) == (False, None)
    assert resumed.next_at == firing.now + 50 * SECOND
    assert (await firing.tick()).jobs == 0
    assert await firing.told(schedule_id) == [(60, 600, 10, "paused")]
    [line] = await firing.lines(schedule_id)
    assert line.detail == "holidays"
    firing.house.clock.advance(50)
    assert (await firing.tick()).jobs == 1
    assert await firing.nominal() == minutes(11)


async def test_what_nobody_has_fired_before_a_pause_is_not_fired_after_it(firing: Firing) -> None:
    schedule_id = await firing.create(misfire="run_all")
    firing.house.clock.advance(130)
    await firing.house.store.pause_schedule(schedule_id, by="ann", reason=None)
    assert await firing.told(schedule_id) == [(60, 120, 2, "paused")]
    firing.house.clock.advance(60)
    await firing.house.store.resume_schedule(schedule_id, by="ann")
    assert (await firing.tick()).jobs == 0
    assert await firing.told(schedule_id) == [(60, 180, 3, "paused")]


async def test_a_schedule_made_paused_waits_for_its_resumption(firing: Firing) -> None:
    schedule_id = await firing.create(paused=True)
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 0
    await firing.house.store.resume_schedule(schedule_id, by=None)
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 1


async def test_pausing_twice_keeps_the_last_reason(firing: Firing) -> None:
    schedule_id = await firing.create()
    for reason in ("first", "second"):
        await firing.house.store.pause_schedule(schedule_id, by=None, reason=reason)
    assert (await firing.get(schedule_id)).schedule.pause_reason == "second"


# Run by hand.


async def test_a_run_by_hand_is_a_job_beside_the_timetable(firing: Firing) -> None:
    schedule_id = await firing.create(template={"queue": "reports"})
    job = await firing.house.get(await firing.run(schedule_id))
    assert (job.schedule_id, job.nominal_at, job.created_by, job.queue) == (schedule_id, None, "ann", "reports")
    assert job.run_at == firing.now
    assert await firing.lines(schedule_id) == []
    assert (await firing.get(schedule_id)).next_at == firing.now + MINUTE


async def test_a_paused_schedule_can_be_run_by_hand(firing: Firing) -> None:
    schedule_id = await firing.create(paused=True)
    assert not (await firing.house.get(await firing.run(schedule_id))).state.terminal


async def test_a_run_by_hand_respects_the_overlap(firing: Firing) -> None:
    schedule_id = await firing.create(overlap="skip")
    first = await firing.run(schedule_id)
    assert await firing.run(schedule_id) == first
    assert len(await firing.jobs()) == 1


async def test_a_repeated_run_by_hand_is_the_same_job(firing: Firing) -> None:
    schedule_id, job_id = await firing.create(), firing.house.new_id()
    for _ in range(2):
        answer = await firing.house.store.run_schedule(schedule_id, job_id, by="ann")
        assert not isinstance(answer, HeadwayError)
        assert answer.job_id == job_id
    assert len(await firing.jobs()) == 1


# Removed.


async def test_a_deleted_schedule_is_gone_with_its_ledger_and_its_jobs_stay(firing: Firing) -> None:
    schedule_id, other = await firing.create(), await firing.create(name="other")
    firing.house.clock.advance(60)
    await firing.tick()
    await firing.house.store.delete_schedule(schedule_id)
    assert await firing.names() == ["other"]
    assert await firing.lines(schedule_id) == []
    assert len(await firing.lines(other)) == 1
    assert len(await firing.jobs()) == 2
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 1
    await firing.create()


# Unreadable.


async def test_a_schedule_that_can_not_be_read_is_shown_as_such_and_can_be_replaced_or_deleted(firing: Firing) -> None:
    broken, lost = await firing.create(name="broken"), await firing.create(name="lost")
    await firing.create(name="fine")
    for schedule_id in (broken, lost):
        await spoil(firing, schedule_id)
    [found] = await firing.house.store.schedules([broken])
    assert isinstance(found, Unreadable)
    assert (found.name, "Mars" in found.problem) == ("broken", True)
    assert await firing.names() == ["broken", "fine", "lost"]
    draft = firing.draft(name="broken")
    mended = msgspec.structs.replace(draft, schedule=msgspec.structs.replace(draft.schedule, id=broken))
    assert (await firing.house.store.change_schedule(mended, None, by="ann")).next_at is not None
    await firing.house.store.delete_schedule(lost)
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 2


async def spoil(firing: Firing, schedule_id: Any) -> None:
    """As newer code might have written it: with a zone that this one does not know."""
    record = msgspec.to_builtins((await firing.get(schedule_id)).schedule)
    record["when"]["timezone"] = "Mars/Olympus"

    def script() -> Script[None]:
        [row] = yield one("lock_schedule", id=schedule_id, name=None)
        yield one(
            "update_schedule",
            **{name: row[name] for name in ("id", "name", "template", "next_at", "last_at", "due_at", "declared")},
            record=msgspec.json.encode(record).decode(),
            by=None,
        )

    await firing.house.store._driver.run(script, Lane.KEYED)
