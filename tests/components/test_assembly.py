"""Who acts on which message."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from headway.bus.commands import Command
from headway.bus.contract import BusUnavailable
from headway.clock import FakeClock
from headway.components.announced import Announced
from headway.components.assembly import ALL, TYPES, assemble
from headway.components.cancel import CancelJob
from headway.components.create import CreateJob
from headway.components.identity import Names
from headway.components.messages import Component, Message
from headway.components.schedule import ScheduleJob
from headway.components.serving import CommandServer
from headway.components.status import GetJobs
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.model.errors import ConfigurationError, NotServed, StoreUnavailable
from headway.model.states import State
from tests.components.office import BODY, Office
from tests.logs import Captured


class Nowhere:
    """A way to no store: nothing may be done on it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or AssertionError("the store was asked for something")

    async def submit(self, job: Any) -> Any:
        raise self.error

    async def call(self, act: Any) -> Any:
        raise self.error


def each(reach: Any) -> list[Component]:
    clock = FakeClock()
    bodies = Bodies(load_kinds(), Announced(lambda: reach.call(None), clock))
    return [CreateJob(reach, bodies, Names(reach, clock)), ScheduleJob(reach), CancelJob(reach), GetJobs(reach)]


PAYLOADS: dict[str, dict[str, Any]] = {
    "CREATE": BODY,
    "SCHEDULE": {"job_id": str(uuid4())},
    "CANCEL": {"job_id": str(uuid4())},
    "STATUS": {"all": True},
}


async def test_a_component_ignores_messages_of_other_types(lines: Captured) -> None:
    for component in each(Nowhere()):
        for type_ in (*TYPES, "create", "", "DROP"):
            if type_ != component.handles:
                assert await component.handle(Message(type=type_, payload=PAYLOADS.get(type_, {}))) is None
    assert lines == [], "what is ignored is not even logged"


async def test_an_unknown_type_is_answered_with_those_known(office: Office) -> None:
    error = await office.refuse("DROP", {})
    assert (error["type"], error["field"]) == ("unknown_type", "type")
    assert "CREATE, SCHEDULE, CANCEL, STATUS" in error["message"]


@pytest.mark.parametrize("name", ALL)
async def test_each_component_may_run_alone_and_leaves_the_rest_to_others(office: Office, name: str) -> None:
    alone = await office.second(only=[name])
    served = dict(zip(ALL, TYPES, strict=True))[name]
    for type_, payload in PAYLOADS.items():
        message = Message(type=type_, payload=payload)
        if type_ == served:
            assert "ok" in await alone.deliver(message)
        else:
            with pytest.raises(NotServed, match=f"no component for {type_}"):
                await alone.deliver(message)
    assert (await alone.refuse("DROP", {}) if not alone.outbox else {"type": "unknown_type"})["type"] == "unknown_type"
    alone.outbox.clear()
    office.house.clock.advance(6)
    await office.house.store.sweep()


async def test_four_processes_with_one_component_each_bring_a_job_through(office: Office) -> None:
    staff = {TYPES[number]: await office.second(only=[name]) for number, name in enumerate(ALL)}
    created = (await staff["CREATE"].tell("CREATE", BODY))["job"]["id"]
    [message] = staff["CREATE"].outbox
    assert (await staff["SCHEDULE"].deliver(message))["job"]["state"] == "scheduled"
    assert (await staff["CANCEL"].tell("CANCEL", {"job_id": created}))["job"]["state"] == "cancelled"
    assert (await staff["STATUS"].tell("STATUS", {"job_id": created}))["job"]["outcome"] == "cancelled"


def test_a_component_that_is_not_there_is_named() -> None:
    for only, says in (
        (["create", "destroy"], "no component 'destroy': use some of create, "),
        ([], "no component is"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            assemble(Nowhere(), load_kinds(), FakeClock(), only)


@pytest.mark.parametrize("type_", TYPES)
async def test_a_store_that_is_away_is_no_answer(type_: str) -> None:
    """The bus keeps the message and brings it again."""
    [component] = [component for component in each(Nowhere(StoreUnavailable("away"))) if component.handles == type_]
    with pytest.raises(StoreUnavailable):
        await component.handle(Message(type=type_, payload=PAYLOADS[type_]))


# Commands of a bus


async def test_commands_of_a_bus_act_as_its_principal_and_what_they_send_goes_back_to_it(office: Office) -> None:
    server, sent = CommandServer(office.components), asyncio.Queue[Command]()
    server.opened(sent.put)
    job_id = office.house.new_id()
    answer = await server(Command(type="CREATE", payload=BODY, id=job_id, correlation_id="c"))
    assert answer.reply["ok"]
    follow_up = sent.get_nowait()
    assert (follow_up.type, follow_up.payload, follow_up.correlation_id) == ("SCHEDULE", {"job_id": str(job_id)}, "c")
    assert (await server(follow_up)).reply["ok"]
    assert (await office.record(str(job_id))).created_by == "bus"
    assert await office.house.state(job_id) is State.SCHEDULED


async def test_a_schedule_that_can_not_be_sent_is_left_to_the_sweep(office: Office, lines: Captured) -> None:
    async def away(command: Command) -> None:
        raise BusUnavailable("the broker is away")

    server, job_id = CommandServer(office.components), office.house.new_id()
    server.opened(away)
    answer = await server(Command(type="CREATE", payload=BODY, id=job_id))
    assert answer.reply["ok"], "the job is stored, whatever the broker does"
    [line] = [line for line in lines if line["event"] == "message.unsent"]
    assert (line["level"], line["type"], line["job_id"]) == ("warning", "SCHEDULE", str(job_id))
    office.house.clock.advance(6)
    assert await office.house.store.sweep() == 1
