"""Lists: whichever way jobs are found, they are the same jobs in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from random import Random
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from headway.model.filters import JobFilter
from headway.model.job import JobRecord
from headway.model.states import Label, State
from headway.model.submission import Edit
from headway.store.scripts import lists
from tests.contract.house import House

SCHEDULE = UUID("018f0000-0000-7000-8000-000000000000")


async def a_mixed_lot(house: House) -> list[UUID]:
    """Jobs of many sorts, in all states, an hour between some of them; two have ids of another time."""
    made = [
        await house.submit(name, kind=kind, queue="default")
        for name, kind in product(("mail.send", "mail.sort", "report"), ("call", "http"))
    ]
    await house.complete(*await house.claim(limit=4))
    house.clock.advance(3600)
    made.append(await house.submit("mail.send", queue="aside", delay=7200.0))
    made.append(await house.submit("report", schedule_id=SCHEDULE))
    made.append(await house.submit("stray", id=uuid7()))
    made.append(await house.submit("stray", kind="http", id=UUID(int=uuid7().int - (10**9 << 80))))
    await house.fail(*await house.claim(limit=3))
    house.clock.advance(3600)
    made += [await house.submit("mail.send") for _ in range(4)]
    await house.cancel(made[-1])
    await house.claim(limit=1)
    made.append(await house.submit("report", hold=True))
    await house.cancel(made[-1])
    made.append(await house.submit("mail.send", kind="http", hold=True))
    return made


def filters(house: House) -> Iterator[dict[str, Any]]:
    """Each condition alone, and some with each other."""
    alone: list[dict[str, Any]] = [
        *({"states": (word,)} for word in (*State, *Label)),
        *({"states": words} for words in (("failed", "cancelled"), ("completed", "failed"), ("running", "scheduled"))),
        *({"kind": kind} for kind in ("call", "http", "script")),
        *({"queue": queue} for queue in ("default", "aside", "none")),
        *({"name": name} for name in ("mail.send", "stray", "none")),
        *({"name_prefix": prefix} for prefix in ("mail.", "str", "none")),
        *({"schedule_id": schedule_id} for schedule_id in (SCHEDULE, uuid7())),
        *({"error": text} for text in ("", "nowhere")),
    ]
    now = house.now
    frames: list[dict[str, Any]] = [
        {"time": time, "since": since, "until": until}
        for time in ("created", "run", "started", "finished")
        for since, until in (
            (now - timedelta(minutes=90), None),
            (None, now - timedelta(minutes=30)),
            (now - timedelta(minutes=90), now - timedelta(minutes=30)),
            (now + timedelta(days=1), None),
        )
    ]
    yield {}
    yield from (*alone, *frames)
    pairs = [(one, other) for one in alone for other in (*alone, *frames) if not one.keys() & other.keys()]
    yield from (one | other for one, other in Random(1).sample(pairs, 40))


def matches(job: JobRecord, wanted: dict[str, Any]) -> bool:
    """The rule, in plain words."""
    return all(
        {
            "states": lambda: any(_in(job, word) for word in wanted["states"]),
            "name_prefix": lambda: job.name.startswith(wanted["name_prefix"]),
            "error": lambda: job.error is not None and wanted["error"] in job.error.message,
            "time": lambda: _within(getattr(job, f"{wanted['time']}_at"), wanted["since"], wanted["until"]),
            "since": lambda: True,
            "until": lambda: True,
        }.get(field, lambda field=field: getattr(job, field) == wanted[field])()
        for field in wanted
    )


def _in(job: JobRecord, word: str) -> bool:
    if word == Label.SUBMITTED:
        return job.state in {State.CREATING, State.SCHEDULED}
    return word in (job.state, job.label)


def _within(moment: datetime | None, since: datetime | None, until: datetime | None) -> bool:
    return moment is not None and (since is None or since <= moment) and (until is None or moment < until)


@pytest.mark.parametrize(("glance", "depth"), [(600, 3000), (1, 3)])
async def test_all_ways_lead_to_the_same_jobs(
    house: House, monkeypatch: pytest.MonkeyPatch, glance: int, depth: int
) -> None:
    """A store in which a few jobs count as many, so that every way is gone."""
    monkeypatch.setattr(lists, "GLANCE", glance)
    monkeypatch.setattr(lists, "DEPTH", depth)
    monkeypatch.setattr(lists, "DEPTH_OF_ERRORS", depth)
    made = await a_mixed_lot(house)
    jobs = sorted(filter(None, await house.store.get(made)), key=lambda job: job.id, reverse=True)
    for wanted in filters(house):
        expected = [job.id for job in jobs if matches(job, wanted)]
        found = [job.id for job in await house.store.find(JobFilter(**wanted, limit=1000))]
        assert found == expected, wanted
        assert [job.id for job in await house.store.find(JobFilter(**wanted, limit=2))] == expected[:2], wanted


@pytest.mark.parametrize("wanted", [{}, {"name": "mail.send"}, {"states": ("failed", "cancelled")}, {"kind": "http"}])
async def test_pages_follow_each_other_on_every_way(
    house: House, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any]
) -> None:
    monkeypatch.setattr(lists, "GLANCE", 1)
    monkeypatch.setattr(lists, "DEPTH", 4)
    await a_mixed_lot(house)
    everything = [job.id for job in await house.store.find(JobFilter(**wanted, limit=1000))]
    paged: list[UUID] = []
    while page := await house.store.find(JobFilter(**wanted, limit=2, cursor=paged[-1] if paged else None)):
        paged += [job.id for job in page]
    assert paged == everything
    assert len(paged) > 2


async def test_a_job_is_found_in_the_queue_it_was_moved_to(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "GLANCE", 1)
    monkeypatch.setattr(lists, "DEPTH", 2)
    moved = await house.submit(delay=60.0)
    for _ in range(5):
        await house.submit()
    await house.store.edit(moved, Edit(queue="aside"), by="ann")
    assert [job.id for job in await house.store.find(JobFilter(queue="aside"))] == [moved]
    assert moved not in [job.id for job in await house.store.find(JobFilter(queue="default"))]
