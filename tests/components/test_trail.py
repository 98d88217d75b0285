"""The trail of a job in the logs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from headway.bus.commands import Command
from headway.components.cancel import cancel_jobs, delete_jobs
from headway.components.create import run_schedule
from headway.components.schedule import retry_jobs, schedule_jobs
from headway.components.serving import CommandServer
from headway.model.states import State
from headway.model.submission import OnConflict
from headway.observe import page
from tests.components.office import BODY, Office
from tests.contract.firing import Firing
from tests.logs import Captured


def changes(lines: Captured) -> list[tuple[Any, ...]]:
    found = [line for line in lines if line["event"] == "job.state_changed"]
    return [(line["component"], line["from"], line["to"], line["job_id"]) for line in found]


async def test_one_job_can_be_followed_by_its_correlation_id(office: Office, lines: Captured) -> None:
    server, sent = CommandServer(office.components), list[Command]()

    async def send(command: Command) -> None:
        sent.append(command)

    server.opened(send)
    job_id = office.house.new_id()
    (await server(Command(type="CREATE", payload=BODY, id=job_id, correlation_id="order 7"))).sent()
    await server(sent.pop())
    (await server(Command(type="STATUS", payload={"job_id": str(job_id)}, correlation_id="order 7"))).sent()
    (await server(Command(type="CANCEL", payload={"job_id": str(job_id)}, correlation_id="order 7"))).sent()
    trail = [line for line in lines if line["correlation_id"] == "order 7"]
    assert all(line["job_id"] == str(job_id) and line["level"] == "info" for line in trail)
    assert [
        (line["event"], line["component"], line.get("type"), line.get("from"), line.get("to")) for line in trail
    ] == [
        ("message.received", "create", "CREATE", None, None),
        ("job.state_changed", "create", None, None, "creating"),
        ("message.sent", "create", "SCHEDULE", None, None),
        ("message.sent", "create", "REPLY", None, None),
        ("message.received", "schedule", "SCHEDULE", None, None),
        ("job.state_changed", "schedule", None, "creating", "scheduled"),
        ("message.received", "status", "STATUS", None, None),
        ("message.sent", "status", "REPLY", None, None),
        ("message.received", "cancel", "CANCEL", None, None),
        ("job.state_changed", "cancel", None, "scheduled", "cancelled"),
        ("message.sent", "cancel", "REPLY", None, None),
    ]


async def test_a_submission_in_this_process_is_one_insert_and_two_lines(office: Office, lines: Captured) -> None:
    job = office.house.job(correlation_id="c")
    await office.client.submit(job)
    assert changes(lines) == [
        ("create", None, "creating", str(job.id)),
        ("schedule", "creating", "scheduled", str(job.id)),
    ]
    assert {line["correlation_id"] for line in lines} == {"c"}


async def test_a_job_that_has_no_correlation_id_is_its_own(office: Office, lines: Captured) -> None:
    job = office.house.job()
    await office.client.submit_many([job])
    assert {line["correlation_id"] for line in lines} == {str(job.id)}


async def test_a_job_of_a_schedule_that_somebody_runs_is_told_and_counted(office: Office, lines: Captured) -> None:
    schedule_id, job_id = await Firing(office.house).create(template={"queue": "by hand"}), office.house.new_id()
    with page.counted():
        await run_schedule(office.house.store, schedule_id, job_id, by="ann")
        [submitted] = [one for one in page.own_series() if one.name == "headway_jobs_submitted_total"]
    assert changes(lines) == [("scheduler", None, "scheduled", str(job_id))]
    assert ("call", "by hand") in dict(submitted.values)


async def test_what_changes_nothing_is_not_told_as_a_change(office: Office, lines: Captured) -> None:
    job = office.house.job(on_conflict=OnConflict.SKIP)
    await office.client.submit(job)
    lines.clear()
    await office.client.submit(job)
    await office.client.submit(office.house.job(on_conflict=OnConflict.SKIP))
    await schedule_jobs(office.house.store, [job.id], by=None)
    await retry_jobs(office.house.store, [job.id, office.house.new_id()], by=None)
    assert changes(lines) == []
    for _ in range(2):
        await cancel_jobs(office.house.store, [job.id], by=None)
    assert changes(lines) == [("cancel", "scheduled", "cancelled", str(job.id))]


async def test_every_act_of_the_core_is_told_from_where_to_where(office: Office, lines: Captured) -> None:
    store = office.house.store
    held = await office.in_state(State.CREATING)
    running = await office.in_state(State.RUNNING)
    failed = await office.in_state(State.FAILED)
    doomed = await office.in_state(State.SCHEDULED)
    lines.clear()
    await schedule_jobs(store, [held], by=None)
    await cancel_jobs(store, [running, failed], by=None)
    await retry_jobs(store, [failed], by=None)
    await delete_jobs(store, [doomed], by=None)
    assert changes(lines) == [
        ("schedule", "creating", "scheduled", str(held)),
        ("cancel", "running", "cancelling", str(running)),
        ("schedule", "failed", "scheduled", str(failed)),
        ("cancel", "scheduled", "cancelled", str(doomed)),
    ]


async def test_jobs_that_a_new_one_replaces_are_told_too(office: Office, lines: Captured) -> None:
    waiting = await office.house.submit("same")
    running = (await office.house.claim_one()).id
    assert running == waiting
    second = await office.house.submit("same", delay=60)
    lines.clear()
    job = office.house.job("same", on_conflict=OnConflict.REPLACE)
    await office.client.submit(job)
    assert changes(lines) == [
        ("create", None, "creating", str(job.id)),
        ("schedule", "creating", "blocked", str(job.id)),
        *sorted(
            [
                ("create", "running", "cancelling", str(running)),
                ("create", "scheduled", "cancelled", str(second)),
            ],
            key=lambda change: UUID(change[3]),
        ),
    ]
