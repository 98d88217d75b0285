"""Schedules that code declares: kept up to date, with what operators changed left as they left it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headway.model.errors import InvalidSchedule, KeyBusy
from headway.model.schedule import Misfire, Origin
from headway.model.when import Cron, Every
from headway.store.scripts.declare import newer
from tests.contract.firing import HOUR, MINUTE, Firing, refused
from tests.contract.house import House


@pytest.fixture
def firing(house: House) -> Firing:
    return Firing(house)


async def test_what_the_code_declares_is_made_once(firing: Firing) -> None:
    for _ in range(3):
        assert await firing.declare(firing.declared(description="v1"), version="1") == []
    found = await firing.named()
    assert (found.source, found.schedule.origin, found.updated_by) == ("shop", Origin.CODE, "shop")
    assert (found.version, found.schedule.description) == (1, "v1")
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 1


async def test_what_the_code_says_anew_is_taken_over(firing: Firing) -> None:
    await firing.declare(firing.declared("1"), version="1")
    await firing.declare(firing.declared("2", schedule={"every": 30}, misfire="skip"), version="2")
    found = await firing.named()
    assert (found.schedule.when, found.schedule.misfire) == (Every(30.0), Misfire.SKIP)
    assert (found.schedule.code_version, found.version) == ("2", 2)


async def test_a_new_template_is_taken_over_although_the_schedule_says_the_same(firing: Firing) -> None:
    await firing.declare(firing.declared())
    draft = firing.declared()
    await firing.declare(type(draft)(schedule=draft.schedule, template=firing.house.job("report", queue="slow")))
    assert (await firing.named()).template.queue == "slow"


async def test_what_operators_changed_stays_and_the_rest_follows_the_code(firing: Firing) -> None:
    await firing.declare(firing.declared("1", description="old", jitter=5))
    schedule_id = (await firing.named()).schedule.id
    await firing.change(schedule_id, schedule="30 * * * *", jitter=10)
    await firing.declare(firing.declared("2", description="new", timezone="Europe/Berlin", jitter=7, tags=["x"]))
    found = (await firing.named()).schedule
    assert found.when == Cron("30 * * * *"), "a timetable is one thing: not half theirs, half ours"
    assert (found.jitter, found.description, found.tags) == (10, "new", ("x",))


async def test_an_edit_survives_any_number_of_starts_and_ends_when_it_is_taken_back(firing: Firing) -> None:
    await firing.declare(firing.declared(jitter=5))
    schedule_id = (await firing.named()).schedule.id
    await firing.change(schedule_id, jitter=10)
    for _ in range(3):
        await firing.declare(firing.declared(jitter=5))
    assert (await firing.named()).schedule.jitter == 10
    await firing.change(schedule_id, jitter=5)
    await firing.declare(firing.declared(jitter=6))
    assert (await firing.named()).schedule.jitter == 6


async def test_an_operators_job_is_kept_with_its_template(firing: Firing) -> None:
    await firing.declare(firing.declared())
    found = await firing.named()
    await firing.change(found.schedule.id, job={"kind": "call", "function": "other"})
    await firing.declare(firing.declared("2", description="new"))
    again = await firing.named()
    assert (again.schedule.job["function"], again.schedule.description) == ("other", "new")
    assert again.template == found.template


async def test_an_operators_pause_is_kept(firing: Firing) -> None:
    await firing.declare(firing.declared("1"))
    await firing.house.store.pause_schedule((await firing.named()).schedule.id, by="ann", reason="too loud")
    await firing.declare(firing.declared("2", description="new"))
    found = (await firing.named()).schedule
    assert (found.paused, found.pause_reason, found.description) == (True, "too loud", "new")


async def test_older_code_changes_nothing_that_newer_code_has_said(firing: Firing) -> None:
    await firing.declare(firing.declared("1.10", description="new"), firing.declared("1.10", name="added"))
    notes = await firing.declare(firing.declared("1.9", description="old"), version="1.9")
    assert notes == ["schedule 'report' was declared by newer code (1.10) and is left as it is"]
    assert (await firing.named()).schedule.description == "new"
    assert not (await firing.named("added")).schedule.paused, "older code doesn't know it yet"


@pytest.mark.parametrize(
    ("stored", "ours", "later"),
    [
        ("2", "1", True),
        ("1.10", "1.9", True),
        ("1.9", "1.10", False),
        ("1", "1", False),
        ("2026-05-01", "2026-04-30", True),
        ("v2", "v1", True),
        (None, "1", False),
        ("1", None, False),
    ],
)
def test_versions_are_compared_part_by_part(stored: str | None, ours: str | None, later: bool) -> None:
    assert newer(stored, ours) is later


async def test_what_has_vanished_from_the_code_is_paused_with_the_reason_and_never_deleted(firing: Firing) -> None:
    await firing.declare(firing.declared("1"), firing.declared("1", name="other"), version="1")
    await firing.declare(firing.declared("2"), version="2")
    gone = await firing.named("other")
    assert (gone.schedule.paused, gone.schedule.pause_reason) == (True, "no longer declared in the code of shop")
    assert gone.updated_by == "shop"
    firing.house.clock.advance(60)
    assert (await firing.tick()).jobs == 1


async def test_what_returns_to_the_code_goes_on(firing: Firing) -> None:
    await firing.declare(firing.declared())
    await firing.declare()
    firing.house.clock.advance(300)
    await firing.declare(firing.declared())
    found = await firing.named()
    assert (found.schedule.paused, found.schedule.pause_reason) == (False, None)
    assert found.next_at == firing.now + MINUTE
    assert await firing.told(found.schedule.id) == [(60, 300, 5, "paused")]


async def test_what_an_operator_had_paused_stays_so_when_it_vanishes_and_returns(firing: Firing) -> None:
    await firing.declare(firing.declared())
    await firing.house.store.pause_schedule((await firing.named()).schedule.id, by="ann", reason="too loud")
    await firing.declare()
    await firing.declare(firing.declared())
    assert (await firing.named()).schedule.pause_reason == "too loud"


async def test_the_schedules_of_people_and_of_other_apps_are_left_alone(firing: Firing) -> None:
    await firing.create(name="hers")
    await firing.declare(firing.declared(name="theirs"), source="mail")
    notes = await firing.declare(firing.declared(name="hers"), firing.declared(name="theirs"), source="shop")
    assert notes == [
        "schedule 'hers' belongs to a person and is left as it is: delete it to let this app keep it",
        "schedule 'theirs' belongs to mail and is left as it is: delete it to let this app keep it",
    ]
    await firing.declare(source="shop")
    assert not (await firing.named("hers")).schedule.paused
    assert not (await firing.named("theirs")).schedule.paused


async def test_what_code_and_operators_say_may_not_fit_together(firing: Firing) -> None:
    await firing.declare(firing.declared("1"), firing.declared("1", name="other"))
    await firing.change((await firing.named()).id, end=firing.now + HOUR)
    later = firing.now + 2 * HOUR
    [note] = await firing.declare(firing.declared("2", start=later), firing.declared("2", name="other", start=later))
    assert "doesn't fit what operators changed: end must be" in note
    assert (await firing.named()).schedule.start is None
    assert (await firing.named("other")).schedule.start == later


async def test_a_declared_time_that_is_over_is_told_and_not_stored(firing: Firing) -> None:
    [note] = await firing.declare(firing.declared(schedule={"at": firing.now - MINUTE}), firing.declared(name="other"))
    assert note.startswith("schedule 'report' is not stored: ")
    assert await firing.names() == ["other"]


async def test_the_name_that_the_code_gives_is_not_an_operators_to_change(firing: Firing) -> None:
    await firing.declare(firing.declared())
    error = await refused(firing.change((await firing.named()).schedule.id, name="mine"), InvalidSchedule)
    assert "given by the code of shop" in str(error)


async def test_many_processes_that_start_at_once_declare_the_same(shared: House) -> None:
    crew = [Firing(shared), Firing(await shared.second()), Firing(await shared.second())]

    async def start(each: Firing, number: int) -> None:
        drafts = [each.declared(str(number), name=f"s{n}", description=str(number)) for n in range(10)]
        while True:
            try:
                await each.declare(*drafts, version=str(number))
            except KeyBusy:
                await asyncio.sleep(0.005)
            else:
                return

    for number in range(5):
        await asyncio.gather(*(start(each, number) for each in crew))
        found: list[Any] = [await crew[0].named(f"s{n}") for n in range(10)]
        assert {(one.schedule.description, one.version) for one in found} == {(str(number), number + 1)}
