"""What every bus promises of doorbells, asked of each of them on a real server."""

import asyncio
import threading
from uuid import UUID, uuid4

import pytest

from headway.bus import make_bus
from headway.bus.contract import MOST_IDS, Doorbell, doorbells
from headway.contracts.buses.town import Ear, Reader, Town, event, fence
from headway.contracts.waiting import until
from headway.model.errors import ConfigurationError


async def test_a_ring_wakes_whoever_listens_in_another_process(town: Town, queue: str) -> None:
    ringer, hearer, ear = await town.bus(), await town.bus(), Ear()
    await hearer.listen(queue, ear)
    doorbell = Doorbell(queue, (uuid4(), uuid4()))

    ringer.ring([doorbell])

    await ear.hears()
    assert ear.doorbells == [doorbell]


async def test_a_process_may_wake_itself(town: Town, queue: str) -> None:
    bus, ear = await town.bus(), Ear()
    await bus.listen(queue, ear)
    bus.ring([Doorbell(queue)])
    await ear.hears()


async def test_a_ring_is_for_its_own_queue_only(town: Town, queue: str) -> None:
    ringer, hearer, ear, other = await town.bus(), await town.bus(), Ear(), Ear()
    await hearer.listen(queue, ear)
    await hearer.listen(f"{queue} other", other)

    ringer.ring([Doorbell(queue)])

    await ear.hears()
    await fence(ringer, hearer)
    assert other.count == 0


async def test_all_ids_of_a_full_doorbell_arrive(town: Town, queue: str) -> None:
    ringer, hearer, ear = await town.bus(), await town.bus(), Ear()
    await hearer.listen(queue, ear)
    ids = [uuid4() for _ in range(MOST_IDS)]

    ringer.ring(list(doorbells(queue, ids)))

    await until(lambda: len(ear.ids) >= MOST_IDS, "all ids")
    assert ear.ids == ids


async def test_many_ids_make_many_doorbells(town: Town, queue: str) -> None:
    assert [len(doorbell.ids) for doorbell in doorbells(queue, [UUID(int=0)] * 1_201)] == [500, 500, 201]
    assert list(doorbells(queue, [])) == []


@pytest.mark.parametrize("name", ["\N{ROCKET}" * 200, '"quoted" \\ back', "a.b.*.#", "ümläut " * 20])
async def test_a_queue_may_have_any_name_that_a_job_takes(town: Town, name: str) -> None:
    ringer, hearer, ear = await town.bus(), await town.bus(), Ear()
    await hearer.listen(name, ear)
    ids = tuple(uuid4() for _ in range(MOST_IDS))

    ringer.ring([Doorbell(name, ids)])

    await until(lambda: len(ear.ids) >= MOST_IDS, "all ids")
    assert {doorbell.queue for doorbell in ear.doorbells} == {name}


async def test_after_its_refusal_a_listener_hears_no_more_until_it_is_ready(town: Town, queue: str) -> None:
    ringer, hearer, ear = await town.bus(), await town.bus(), Ear(answer=False)
    await hearer.listen(queue, ear)
    ringer.ring([Doorbell(queue)])
    await ear.hears()

    for _ in range(5):
        ringer.ring([Doorbell(queue)])
    await fence(ringer, hearer)
    assert ear.count == 1

    ear.answer = True
    hearer.ready(queue)
    await fence(hearer, hearer)
    ringer.ring([Doorbell(queue)])
    await ear.hears(2)


async def test_a_refusal_does_not_swallow_the_doorbell(town: Town, queue: str) -> None:
    ringer, busy, idle = await town.bus(), await town.bus(), await town.bus()
    busy_ear, idle_ear = Ear(answer=False), Ear()
    await busy.listen(queue, busy_ear)
    ids = tuple(uuid4() for _ in range(3))
    ringer.ring([Doorbell(queue, ids)])
    await busy_ear.hears()

    await idle.listen(queue, idle_ear)
    ringer.ring([Doorbell(queue)])

    await idle_ear.hears()
    assert busy_ear.count == 1


async def test_a_refusal_is_for_one_queue_only(town: Town, queue: str) -> None:
    bus, full, free = await town.bus(), Ear(answer=False), Ear()
    await bus.listen(queue, full)
    await bus.listen(f"{queue} free", free)
    bus.ring([Doorbell(queue), Doorbell(f"{queue} free")])
    await full.hears()
    await free.hears()
    bus.ring([Doorbell(f"{queue} free")])
    await free.hears(2)


async def test_who_listens_no_more_hears_nothing(town: Town, queue: str) -> None:
    bus, ear, again = await town.bus(), Ear(), Ear()
    await bus.listen(queue, ear)
    await bus.unlisten(queue)
    bus.ring([Doorbell(queue)])
    await fence(bus, bus)
    assert ear.count == 0

    await bus.listen(queue, again)
    bus.ring([Doorbell(queue)])
    await again.hears()


async def test_a_queue_has_one_listener_on_a_bus(town: Town, queue: str) -> None:
    bus = await town.bus()
    await bus.listen(queue, Ear())
    with pytest.raises(ConfigurationError, match="listens to the queue"):
        await bus.listen(queue, Ear())


async def test_a_listener_that_fails_is_counted_and_hears_the_next_ring(town: Town, queue: str) -> None:
    bus, ear = await town.bus(), Ear()

    def fail_once(doorbell: Doorbell) -> bool:
        ear(doorbell)
        if ear.count == 1:
            raise RuntimeError("a bug in a listener")
        return True

    await bus.listen(queue, fail_once)
    bus.ring([Doorbell(queue)])
    await ear.hears()
    bus.ring([Doorbell(queue)])
    await ear.hears(2)
    assert bus.counters.failed == 1


async def test_a_ring_may_come_from_any_thread(town: Town, queue: str) -> None:
    bus, ear, all_heard = await town.bus(), Ear(), asyncio.Event()

    def heard(doorbell: Doorbell) -> bool:
        ear(doorbell)
        if ear.count == 100:
            all_heard.set()
        return True

    await bus.listen(queue, heard)
    thread = threading.Thread(target=lambda: list(map(bus.ring, [[Doorbell(queue)]] * 100)))
    thread.start()
    # Without a look in between: only the ring itself may wake this loop.
    await asyncio.wait_for(all_heard.wait(), 5)
    thread.join()


async def test_what_was_rung_before_the_close_is_heard(town: Town, queue: str) -> None:
    hearer, ringer, ear, reader = await town.bus(), await town.bus(), Ear(), Reader()
    await hearer.listen(queue, ear)
    await hearer.subscribe("job.*", reader)
    events = [event() for _ in range(5_000)]
    ringer.ring([Doorbell(queue)])
    ringer.emit(events)
    await ringer.close()
    await ear.hears()
    await until(lambda: reader.events == events, "all events")


async def test_a_bus_that_is_not_open_takes_everything_and_sends_nothing(town: Town, queue: str) -> None:
    for bus in (make_bus(town.url), await town.bus()):
        await bus.close()
        bus.ring([Doorbell(queue)])
        bus.call("nobody")
        bus.emit([event()])


async def test_what_is_rung_and_heard_is_counted(town: Town, queue: str) -> None:
    ringer, hearer, ear = await town.bus(), await town.bus(), Ear()
    await hearer.listen(queue, ear)
    ringer.ring([Doorbell(queue), Doorbell(queue, (uuid4(),)), Doorbell(queue)])
    await ear.hears(3)
    assert (ringer.counters.rung, hearer.counters.heard) == (3, 3)
    ear.answer = False
    ringer.ring([Doorbell(queue)])
    await ear.hears(4)
    assert (hearer.counters.heard, hearer.counters.refused) == (3, 1)
