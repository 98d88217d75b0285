"""A broker that is lost, away, refusing or silent: every bus with a broker outlives it."""

import asyncio
import random
import time

import pytest

from headway.bus import make_bus, notify, open_bus
from headway.bus.box import MOST_RINGS
from headway.bus.contract import BusUnavailable, Doorbell
from headway.contracts.buses.town import Caller, Ear, Reader, Town, event, fence
from headway.model.errors import ConfigurationError
from tests.bus.cutter import Cutter
from tests.flow.waiting import until


async def test_after_a_lost_connection_everybody_looks_at_everything(
    far_town: Town, cutter: Cutter, queue: str
) -> None:
    bus, ear, other, called = await far_town.bus(), Ear(), Ear(), Caller()
    await bus.listen(queue, ear)
    await bus.listen(f"{queue} other", other)
    await bus.on_call("me", called)

    await cutter.cut()

    await ear.hears()
    await other.hears()
    await called.hears()
    assert ear.doorbells == [Doorbell(queue)]
    assert other.doorbells == [Doorbell(f"{queue} other")]
    assert bus.counters.reconnects == 1


async def test_after_a_lost_connection_everything_flows_again(far_town: Town, cutter: Cutter, queue: str) -> None:
    sender, hearer = await far_town.bus(), await far_town.bus()
    ear, called, reader = Ear(), Caller(), Reader()
    await hearer.listen(queue, ear)
    await hearer.on_call(queue, called)
    await hearer.subscribe("job.failed", reader)
    for lost in (1, 2, 3):
        await cutter.cut()
        await ear.hears(2 * lost - 1)
        await called.hears(2 * lost - 1)
        await until(lambda: sender.counters.reconnects == hearer.counters.reconnects == lost, "both to be back")  # noqa: B023 - at once
        sender.ring([Doorbell(queue)])
        sender.call(queue)
        await ear.hears(2 * lost)
        await called.hears(2 * lost)
    await fence(sender, hearer)


async def test_events_go_on_after_a_lost_connection(far_town: Town, cutter: Cutter) -> None:
    bus, reader, missed = await far_town.bus(), Reader(), Caller()
    await bus.subscribe("job.*", reader, missed)
    assert missed.count == 0
    await cutter.cut()
    await until(lambda: bus.counters.reconnects, "the reconnect")
    await missed.hears()
    bus.emit([told := event()])
    await reader.reads()
    assert reader.events == [told]


async def test_who_can_not_act_is_not_told_by_a_reconnect_either(far_town: Town, cutter: Cutter, queue: str) -> None:
    bus, full, free = await far_town.bus(), Ear(answer=False), Ear()
    await bus.listen(queue, full)
    await bus.listen(f"{queue} free", free)
    bus.ring([Doorbell(queue)])
    await full.hears()

    await cutter.cut()

    await free.hears()
    await fence(bus, bus)
    assert full.count == 1
    full.answer = True
    bus.ready(queue)
    await fence(bus, bus)
    bus.ring([Doorbell(queue)])
    await full.hears(2)


async def test_what_is_rung_while_the_broker_is_away_is_heard_when_it_is_back(
    far_town: Town, far_url: str, cutter: Cutter, queue: str
) -> None:
    ringer, hearer, ear = await far_town.bus(), await far_town.bus(far_url), Ear()
    await hearer.listen(queue, ear)
    await cutter.close()
    await until(lambda: not ringer.connected, "the loss to be noticed")
    ringer.ring([Doorbell(queue)])

    await cutter.open()

    await ear.hears()
    assert ringer.counters.dropped_rings == 0


async def test_with_the_broker_away_rings_are_kept_within_bounds_and_counted(
    far_town: Town, cutter: Cutter, queue: str
) -> None:
    bus = await far_town.bus()
    await cutter.close()
    await until(lambda: not bus.connected, "the loss to be noticed")
    started = time.monotonic()
    for _ in range(10):
        bus.ring([Doorbell(queue)] * 1_000)
    assert time.monotonic() - started < 10
    assert bus.counters.dropped_rings == 10_000 - MOST_RINGS
    started = time.monotonic()
    await bus.close()
    assert time.monotonic() - started < 20


async def test_one_can_begin_to_listen_while_the_broker_is_away(far_town: Town, cutter: Cutter, queue: str) -> None:
    bus, ear, called, reader = await far_town.bus(), Ear(), Caller(), Reader()
    await cutter.close()
    await until(lambda: not bus.connected, "the loss to be noticed")
    await bus.listen(queue, ear)
    await bus.on_call(queue, called)
    stop = await bus.subscribe("job.*", reader)
    await cutter.open()
    await until(lambda: bus.counters.reconnects, "the reconnect")
    await fence(bus, bus)
    bus.ring([Doorbell(queue)])
    bus.call(queue)
    bus.emit([event()])
    await ear.hears()
    await called.hears()
    await reader.reads()
    stop()
    await bus.unlisten(queue)


async def test_a_broker_that_falls_silent_is_noticed(
    cutter: Cutter, far_town: Town, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "HEARTBEAT", 0.5)
    monkeypatch.setattr(notify, "COMMAND_PATIENCE", 1.0)
    url = f"{cutter.url}?heartbeat=1" if cutter.url.startswith("amqp") else cutter.url
    bus, ear = await far_town.bus(url), Ear()
    await bus.listen(queue, ear)
    cutter.silent = True
    await until(lambda: not bus.connected, "the silence to be noticed")
    cutter.silent = False
    await cutter.cut()
    await ear.hears(patience=45)


async def test_a_broker_that_is_not_there_is_named_without_its_password(cutter: Cutter) -> None:
    await cutter.close()
    url = cutter.url.replace("guest:guest@", "guest:hush@").replace("postgres@", "postgres:hush@")
    with pytest.raises(BusUnavailable) as raised:
        await open_bus(f"{url}?x=hush", patience=0.2)
    assert "127.0.0.1" in str(raised.value)
    assert "check that" in str(raised.value)
    assert "hush" not in str(raised.value)


async def test_a_bus_waits_a_while_for_a_broker_that_is_about_to_come(cutter: Cutter, far_town: Town) -> None:
    await cutter.close()
    opening = asyncio.create_task(far_town.bus())
    await asyncio.sleep(0.3)
    await cutter.open()
    bus = await opening
    await fence(bus, bus)


async def test_what_waiting_does_not_help_is_said_at_once(far_url: str) -> None:
    wrong = far_url.replace("guest:guest", "guest:wrong") if "amqp" in far_url else f"{far_url}_nowhere"
    started = time.monotonic()
    with pytest.raises(BusUnavailable):
        await open_bus(wrong, patience=30)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "url",
    [
        "kafka://user:hush@host/",
        "amqp",
        "",
        "amqp://",
        "amqp://host:port/",
        "postgresql://u:hush@h/d?pooler=transaction",
    ],
)
def test_what_is_no_bus_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        make_bus(url)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("seed", range(12))
async def test_a_bus_can_be_closed_at_any_moment(cutter: Cutter, queue: str, seed: int) -> None:
    """A driver that is told to stop while its connection breaks may not hear it: the close would wait for ever."""
    chance = random.Random(seed)
    bus = await open_bus(cutter.url)
    for number in range(3):
        await bus.listen(f"{queue} {number}", lambda _: chance.random() < 0.7)
    await bus.on_call("me", lambda: None)
    (await bus.subscribe("job.*", lambda _: None))()
    for _ in range(chance.randrange(4)):
        for number in range(3):
            bus.ring([Doorbell(f"{queue} {number}")] * 10)
            bus.ready(f"{queue} {number}")
        bus.emit([event() for _ in range(50)])
        await asyncio.sleep(chance.random() * 0.02)
        await cutter.cut()
    await asyncio.sleep(chance.random() * 0.05)
    await asyncio.wait_for(bus.close(), 5)
    await cutter.close()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "nothing of it to be left")
