"""What only LISTEN and NOTIFY have to beware of."""

import asyncpg
import msgspec
import pytest

from headway.bus import open_bus
from headway.bus.contract import BusUnavailable, Doorbell
from headway.bus.notify import CALLS, EVENTS, RINGS
from headway.contracts.buses.town import Ear, event
from headway.model.events import Event
from headway.observe.packing import LONGEST, packed
from tests.flow.waiting import until
from tests.pgbouncer import PgBouncer
from tests.servers import PostgresServer


async def test_a_pooler_through_which_nothing_is_heard_is_refused(private_postgres: PostgresServer) -> None:
    with PgBouncer(private_postgres) as pooler:
        with pytest.raises(BusUnavailable, match="not of a pooler"):
            await open_bus(pooler.url(private_postgres.admin_url))
        await (await open_bus(private_postgres.admin_url)).close()


@pytest.mark.parametrize("channel", [RINGS, CALLS, EVENTS])
@pytest.mark.parametrize("message", ["", "x", "{}", "[1]", '[{"queue": 1}]'])
async def test_what_nobody_can_read_is_counted(postgres_bus_url: str, channel: str, message: str) -> None:
    bus, ear = await open_bus(postgres_bus_url), Ear()
    await bus.listen("queue", ear)
    await bus.on_call("me", lambda: None)
    await bus.subscribe("job.*", lambda _: None)
    foreign = await asyncpg.connect(postgres_bus_url)
    await foreign.execute("select pg_notify($1, $2)", channel, message)
    await foreign.close()
    await until(lambda: bus.counters.malformed == 1, "it to be counted")
    bus.ring([Doorbell("queue")])
    await ear.hears()
    await bus.close()


async def test_a_process_hears_only_what_somebody_in_it_wants(postgres_bus_url: str) -> None:
    bus = await open_bus(postgres_bus_url)
    stop = await bus.subscribe("job.*", lambda _: None)
    await bus.listen("queue", Ear())
    assert await _listening(bus) == {EVENTS, RINGS}
    stop()
    await bus.unlisten("queue")
    assert await _listening(bus) == set()
    await bus.close()


def test_what_is_packed_fits_and_is_complete() -> None:
    events = [event(name="\N{ROCKET}" * number) for number in range(200)]
    messages = list(packed(events))
    assert max(len(message.encode()) for message in messages) <= LONGEST
    assert len(messages) < 40
    assert list(packed(["x" * LONGEST, "short"])) == ['["short"]']
    assert [seen for message in messages for seen in msgspec.json.decode(message, type=list[Event])] == events


async def _listening(bus: object) -> set[str]:
    connection: asyncpg.Connection = bus._connection  # type: ignore[attr-defined]
    return {row[0] for row in await connection.fetch("select pg_listening_channels()")}
