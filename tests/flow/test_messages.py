"""Separate processes on PostgreSQL and RabbitMQ, driven by a program that knows nothing of Headway."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from headway import every
from tests.api.conftest import TOKEN
from tests.api.test_processes import client as asking
from tests.bus.client import QUEUE, Client
from tests.bus.cutter import Cutter
from tests.flow.processes import Process, Project
from tests.flow.waiting import block_until, until
from tests.rabbit import Rabbit, RabbitServer

WORK = """
@app.job(name="double", queue="sums")
async def double(n: int) -> int:
    return 2 * n

@app.job(name="hang", queue="sums")
async def hang() -> None:
    note("begun")
    await asyncio.sleep(60)
"""


class Office:
    """A scheduler, a worker and a client, each a process of its own."""

    def __init__(self, project: Project, rabbit: Rabbit, client: Client) -> None:
        self.app = project.app(WORK)
        self.rabbit = rabbit
        self.client = client
        self._processes = project.processes
        self.scheduler = self.start("scheduler", "--store", project.url)
        self.worker = self.start("worker", "--app", "jobs:app", "--queue", "sums")
        self.scheduler.wait_for("scheduler.started")
        self.worker.wait_for("worker.started")

    def start(self, *arguments: str, **variables: str) -> Process:
        return self._processes.headway(*arguments, "--log-json", HEADWAY_BUS=self.rabbit.url, **variables)

    def ask(self, type_: str, payload: dict[str, Any], **more: Any) -> Any:
        identity = {"id": str(more.pop("id"))} if "id" in more else {}
        return self.client.ask({"type": type_, "payload": payload, **identity}, **more)

    def job(self, job_id: str) -> Any:
        return self.ask("STATUS", {"job_id": job_id})["job"]

    def comes_to(self, job_id: str, *states: str) -> Any:
        return block_until(lambda: (job := self.job(job_id))["state"] in states and job, f"the job to be {states}")


@pytest.fixture
def office(postgres_project: Project, rabbit: Rabbit) -> Iterator[Office]:
    rabbit.delete(QUEUE)
    with Client(rabbit) as client:
        yield Office(postgres_project, rabbit, client)


def test_a_job_s_whole_life_by_messages_is_told_in_the_logs_of_all_processes(office: Office) -> None:
    order = f"order {uuid7()}"
    reply = office.ask("CREATE", {"kind": "call", "function": "double", "args": [21]}, correlation_id=order)
    assert (reply["ok"], reply["job"]["state"], reply["job"]["queue"]) == (True, "creating", "sums")
    job_id = reply["job"]["id"]
    done = office.comes_to(job_id, "completed")
    assert (done["outcome"], done["created_by"]) == ("succeeded", "bus")
    office.worker.wait_for("job.state_changed", 2)
    told = [
        (line.get("component"), line["event"], line.get("type") or f"{line.get('from')} to {line.get('to')}")
        for process in (office.scheduler, office.worker)
        for line in process.lines()
        if line.get("correlation_id") == order
    ]
    assert ("create", "message.received", "CREATE") in told
    assert ("create", "message.sent", "SCHEDULE") in told
    assert ("schedule", "job.state_changed", "creating to scheduled") in told
    assert ("worker", "job.state_changed", "scheduled to running") in told
    assert ("worker", "job.state_changed", "running to completed") in told


def test_a_job_on_hold_waits_for_its_schedule(office: Office) -> None:
    job = office.ask("CREATE", {"kind": "call", "function": "double", "args": [1], "hold": True})["job"]
    time.sleep(0.5)
    assert office.job(job["id"])["state"] == "creating"
    assert office.ask("SCHEDULE", {"job_id": job["id"]})["ok"] is True
    office.comes_to(job["id"], "completed")


def test_a_running_job_is_cancelled(office: Office) -> None:
    job = office.ask("CREATE", {"kind": "call", "function": "hang"})["job"]
    office.comes_to(job["id"], "running")
    began = time.monotonic()
    assert office.ask("CANCEL", {"job_id": job["id"]})["job"]["state"] in {"cancelling", "cancelled"}
    office.comes_to(job["id"], "cancelled")
    assert time.monotonic() - began < 9, "the worker's next renewal comes after ten seconds"


def test_a_repeat_is_the_same_job_and_another_body_a_conflict(office: Office) -> None:
    body = {"kind": "call", "function": "double", "args": [1]}
    job_id = uuid7()
    first, again = (office.ask("CREATE", body, id=job_id)["job"]["id"] for _ in range(2))
    assert first == again == str(job_id)
    other = office.ask("CREATE", {**body, "args": [2]}, id=job_id)
    assert (other["ok"], other["error"]["type"]) == (False, "conflict")


def test_what_is_wrong_is_answered_and_holds_up_nobody(office: Office) -> None:
    for body in (b"no json", b'{"payload": {}}', b'{"type": "DANCE", "payload": {}}', b"[1]"):
        reply = office.client.ask(body)
        assert reply["ok"] is False, body
        assert reply["error"]["message"]
    wrong = office.ask("CREATE", {"kind": "call", "function": "double", "args": ["two"]})
    assert (wrong["error"]["type"], wrong["error"]["field"]) == ("invalid_job", "args[0]")
    assert office.ask("STATUS", {"all": True, "state": "nowhere"})["error"]["field"] == "state"
    assert office.ask("STATUS", {"all": True, "state": ["completed", "Failed"], "limit": 5})["ok"] is True


def test_a_scheduler_that_is_killed_leaves_its_commands_to_the_next(office: Office, postgres_project: Project) -> None:
    office.scheduler.kill()
    body = {"type": "CREATE", "payload": {"kind": "call", "function": "double", "args": [4]}, "id": str(uuid7())}
    office.client.tell(body)
    office.scheduler = office.start("scheduler", "--store", postgres_project.url)
    block_until(
        lambda: office.ask("STATUS", {"job_id": body["id"]})["ok"] and office.comes_to(str(body["id"]), "completed"),
        "the command to be acted on",
    )


def test_events_are_there_for_whoever_wants_them(office: Office) -> None:
    with office.rabbit.connect() as connection:
        channel = connection.channel()
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(mine, "headway.events", "job.completed")
        job = office.ask("CREATE", {"kind": "call", "function": "double", "args": [3]})["job"]
        office.comes_to(job["id"], "completed")
        _, _, body = next(channel.consume(mine, inactivity_timeout=10))
        event = json.loads(body)
        assert (event["job_id"], event["state"], event["name"]) == (job["id"], "completed", "double")


def test_what_components_do_is_told_by_events_too(office: Office) -> None:
    with office.rabbit.connect() as connection:
        channel = connection.channel()
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(mine, "headway.events", "job.*")
        told: dict[str, list[str]] = {}

        def hears(job_id: str, *events: str) -> bool:
            method, _, body = channel.basic_get(mine, auto_ack=True)
            while method is not None:
                event = json.loads(body)
                told.setdefault(event["job_id"], []).append(event["event"])
                method, _, body = channel.basic_get(mine, auto_ack=True)
            return told.get(job_id) == list(events)

        def is_told() -> Any:
            # The scheduler may not be on duty yet: then nobody passes on what the store tells.
            job = office.ask("CREATE", {"kind": "call", "function": "double", "args": [3], "hold": True})["job"]["id"]
            time.sleep(0.2)
            return hears(job, "job.creating") and job

        job = block_until(is_told, "news of a job on hold")
        office.ask("CANCEL", {"job_id": job})
        block_until(lambda: hears(job, "job.creating", "job.cancelled"), f"the cancel to be told, {told}")


def test_the_life_of_a_job_that_a_schedule_has_fired_is_told_by_events(office: Office) -> None:
    with office.rabbit.connect() as connection:
        channel = connection.channel()
        mine = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(mine, "headway.events", "job.*")
        office.app.schedule("doubling", every(1.0), {"kind": "call", "function": "double", "args": [4]})
        told: dict[str, set[str]] = {}

        def whole_life() -> Any:
            method, _, body = channel.basic_get(mine, auto_ack=True)
            while method is not None:
                event = json.loads(body)
                told.setdefault(event["job_id"], set()).add(event["event"])
                method, _, body = channel.basic_get(mine, auto_ack=True)
            fired = [str(line.job_id) for line in office.app.occurrences("doubling") if line.job_id]
            # The first may have been fired before anybody passed on what the store tells.
            return any(told.get(job, set()) >= {"job.scheduled", "job.running", "job.completed"} for job in fired)

        block_until(whole_life, "the whole life of a job that was fired", patience=60)
        office.app.unschedule("doubling")


def test_a_process_with_some_components_leaves_the_other_commands_to_others(
    postgres_project: Project, rabbit: Rabbit
) -> None:
    rabbit.delete(QUEUE)
    postgres_project.app(WORK)
    start = postgres_project.processes.headway
    common = ("scheduler", "--store", postgres_project.url, "--bus", rabbit.url, "--log-json", "--components")
    creating, others = start(*common, "create"), start(*common, "schedule,status,cancel")
    for process in (creating, others):
        process.wait_for("scheduler.started")
    with Client(rabbit) as client:
        body = {"kind": "call", "function": "double", "args": [1]}
        reply = client.ask({"type": "CREATE", "payload": body})
        job_id = reply["job"]["id"]

        def scheduled() -> bool:
            return bool(client.ask({"type": "STATUS", "payload": {"job_id": job_id}})["job"]["state"] == "scheduled")

        block_until(scheduled, "the job to be scheduled")
    processes = (creating, others)
    acted = {(line["component"], each) for each in processes for line in each.lines("message.received")}
    assert acted == {("create", creating), ("schedule", others), ("status", others)}


WORKED = "/api/v1/events?state=running&state=completed"


def told(lines: Iterator[str], job_id: str | None = None) -> Iterator[str]:
    """What a live page hears: of one job, or that it is to look again."""
    for name in lines:
        if name.startswith("event: "):
            data = json.loads(next(lines).removeprefix("data: "))
            if data.get("job_id") == job_id:
                yield name.removeprefix("event: ")


def test_a_live_page_hears_what_workers_do_and_to_look_again_when_the_broker_was_away(
    postgres_project: Project, private_rabbit: RabbitServer
) -> None:
    with Client(private_rabbit) as client:
        office = Office(postgres_project, private_rabbit, client)
    service = office.start("api", "--store", postgres_project.url, HEADWAY_ADMIN_TOKEN=TOKEN)
    with asking(service) as page, page.stream("GET", WORKED) as stream:
        lines = stream.iter_lines()
        assert next(told(lines)) == "missed", "what came before the broker was reached"
        for blow in (private_rabbit.kill, None):
            job = office.app.function("double").submit(1)
            assert list(islice(told(lines, str(job.id)), 2)) == ["job.running", "job.completed"]
            if blow is not None:
                blow()
                private_rabbit.start()
                assert next(told(lines)) == "missed"
    assert service.stop() == 0


async def test_a_scheduler_killed_between_commit_and_acknowledgement_leaves_one_job_for_each_command(
    postgres_project: Project, rabbit: Rabbit
) -> None:
    rabbit.delete(QUEUE)
    app, start = postgres_project.app(WORK), postgres_project.processes.headway
    common = ("scheduler", "--store", postgres_project.url, "--log-json")

    async def stored() -> int:
        counts = await app.client.call(lambda store: store.counts())
        return sum(sum(states.values()) for states in counts.values())

    async def all_stored() -> bool:
        return await stored() == 10

    async with Cutter(rabbit.url) as cutter:
        first = start(*common, HEADWAY_BUS=cutter.url)
        with Client(rabbit) as client:
            job: dict[str, Any] = {"type": "CREATE", "payload": {"kind": "call", "function": "double", "args": [1]}}
            await asyncio.to_thread(client.ask, {"type": "STATUS", "payload": {"all": True}})
            cutter.mute = True
            for number in range(5):
                for identity in ({"id": str(uuid7())}, {}):
                    name = f"{number} {bool(identity)}"
                    client.tell(job | identity, message_id=name, correlation_id=name, reply_to=client.reply_to)
            await until(all_stored, "all to be stored")
            first.kill()
            second = start(*common, HEADWAY_BUS=rabbit.url)
            names = [f"{number} {chosen}" for number in range(5) for chosen in (True, False)]
            replies = [await asyncio.to_thread(client.reply, name) for name in names]
    assert all(reply["ok"] for reply in replies)
    assert len({reply["job"]["id"] for reply in replies}) == await stored() == 10
    assert not client.replies["0 True"], "the first never came to answer"
    assert second.stop() == 0


async def test_what_was_created_is_done_though_the_broker_forgets_its_schedule(
    postgres_project: Project, private_rabbit: RabbitServer
) -> None:
    """Nobody serves SCHEDULE: it stands in the broker when that loses everything. The sweep needs no message."""
    app, start = postgres_project.app(WORK), postgres_project.processes.headway
    common = ("--log-json", "--bus", private_rabbit.url)
    worker = start("worker", "--app", "jobs:app", "--queue", "sums", *common)
    await asyncio.to_thread(worker.wait_for, "worker.started")
    start("scheduler", "--store", postgres_project.url, "--components", "create,status", *common)
    with Client(private_rabbit) as client:
        body = {"type": "CREATE", "payload": {"kind": "call", "function": "double", "args": [1]}}
        replies = [await asyncio.to_thread(client.ask, body) for _ in range(20)]
    assert {reply["job"]["state"] for reply in replies} == {"creating"}
    await asyncio.to_thread(private_rabbit.wipe)
    for reply in replies:
        assert (await (await app.aget(UUID(reply["job"]["id"]))).finished(60)).result == 2
