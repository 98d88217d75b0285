"""What messages change stands in the audit log, in the name of the bus."""

from __future__ import annotations

from headway.access.trail import Trail
from headway.bus.commands import Command
from headway.components.serving import CommandServer
from headway.model.access import AuditFilter
from tests.components.office import Office


async def test_commands_are_audited_as_the_bus(office: Office) -> None:
    trail = Trail(lambda act: act(office.house.store), office.house.clock)
    server, job_id = CommandServer(office.components, trail), office.house.new_id()

    async def send(_: Command) -> None: ...

    server.opened(send)
    body = {"kind": "call", "function": "nobody.knows"}
    for command in (
        Command(type="CREATE", id=job_id, payload=body),
        Command(type="STATUS", payload={"job_id": str(job_id)}),
        Command(type="CANCEL", payload={"job_id": str(job_id)}),
        Command(type="CANCEL", payload={"job_id": "nonsense"}),
    ):
        await server(command)
    await trail.close()
    cancelled, created = await office.house.store.audit(AuditFilter())
    assert (created.actor, created.action, created.object) == ("bus", "jobs.create", f"jobs/{job_id}")
    assert (cancelled.actor, cancelled.action, cancelled.count) == ("bus", "jobs.cancel", 1)
    assert created.address == "amqp"
