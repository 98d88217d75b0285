"""Separate processes on PostgreSQL and RabbitMQ, driven by a program that knows nothing of Headway."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from tests.bus.client import QUEUE, Client
from tests.flow.processes import Process, Project
from tests.flow.waiting import block_until
from tests.rabbit import Rabbit

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
        project.app(WORK)
        self.rabbit = rabbit
        self.client = client
        self.scheduler = self._start(project, "scheduler", "--store", project.url)
        self.worker = self._start(project, "worker", "--app", "jobs:app", "--queue", "sums")
        self.scheduler.wait_for("scheduler.started")
        self.worker.wait_for("worker.started")

    def _start(self, project: Project, *arguments: str) -> Process:
        return project.processes.headway(*arguments, "--log-json", HEADWAY_BUS=self.rabbit.url)

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
    assert time.monotonic() - began < 4, "the worker's next renewal comes after ten seconds"


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
    office.scheduler = office._start(postgres_project, "scheduler", "--store", postgres_project.url)
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
