"""What only RabbitMQ promises: who hears a doorbell, what piles up, what is mended."""

from __future__ import annotations

import asyncio
import threading
import time
from uuid import UUID, uuid4

import pika
import pika.exceptions
import pytest

from headway.bus import open_bus
from headway.bus.contract import Doorbell
from headway.bus.rabbit import services
from headway.bus.rabbit.services import dispatch_queue
from headway.contracts.buses.town import Caller, Ear, Reader, Town, event
from tests.flow.waiting import until
from tests.rabbit import Rabbit


async def test_a_doorbell_wakes_one_of_those_who_listen(rabbit_town: Town, queue: str) -> None:
    ringer, ears = await rabbit_town.bus(), [Ear() for _ in range(4)]
    for ear in ears:
        await (await rabbit_town.bus()).listen(queue, ear)
    for number in range(1, 41):
        ringer.ring([Doorbell(queue, (uuid4(),))])
        await until(lambda: sum(ear.count for ear in ears) == number, "one of them to hear")  # noqa: B023 - at once
    assert [ear.count for ear in ears] == [10, 10, 10, 10]


async def test_a_process_that_stands_still_hoards_no_doorbells(rabbit_town: Town, queue: str) -> None:
    going_on, stands_still, listens = threading.Event(), threading.Event(), threading.Event()

    def stand_still(_doorbell: Doorbell) -> bool:
        stands_still.set()
        return going_on.wait(100)

    async def other_process() -> None:
        bus = await open_bus(rabbit_town.url)
        await bus.listen(queue, stand_still)
        listens.set()
        await until(going_on.is_set, "the end")
        await bus.close()

    thread = threading.Thread(target=lambda: asyncio.run(other_process()))
    thread.start()
    await asyncio.to_thread(listens.wait)
    ringer, ear = await rabbit_town.bus(), Ear()
    ringer.ring([Doorbell(queue)])
    await asyncio.to_thread(stands_still.wait)
    await (await rabbit_town.bus()).listen(queue, ear)
    ringer.ring([Doorbell(queue)] * 20)
    await ear.hears(19)
    going_on.set()
    await asyncio.to_thread(thread.join)


async def test_a_refused_doorbell_goes_to_another_at_once(rabbit_town: Town, queue: str) -> None:
    ringer, full, free = await rabbit_town.bus(), Ear(answer=False), Ear()
    busy = await rabbit_town.bus()
    await busy.listen(queue, full)
    await (await rabbit_town.bus()).listen(queue, free)
    doorbells = [Doorbell(queue, (uuid4(),)) for _ in range(20)]

    started = time.monotonic()
    ringer.ring(doorbells)
    await free.hears(20)

    assert time.monotonic() - started < 10
    assert full.count == 1
    assert {*free.ids} == {job_id for doorbell in doorbells for job_id in doorbell.ids}


async def test_doorbells_that_all_refuse_wait_until_one_is_ready(rabbit_town: Town, rabbit: Rabbit, queue: str) -> None:
    ringer, ears = await rabbit_town.bus(), [Ear(answer=False) for _ in range(3)]
    buses = [await rabbit_town.bus() for _ in ears]
    for bus, ear in zip(buses, ears, strict=True):
        await bus.listen(queue, ear)
    doorbells = [Doorbell(queue, (uuid4(),)) for _ in range(10)]
    ringer.ring(doorbells)
    for ear in ears:
        await ear.hears()
    await until(lambda: rabbit.depth(dispatch_queue(queue)) == 10, "all to be back in the queue")
    assert [ear.count for ear in ears] == [1, 1, 1]

    ears[1].answer = True
    buses[1].ready(queue)
    await ears[1].hears(11)
    assert {*ears[1].ids} == {doorbell.ids[0] for doorbell in doorbells}
    assert (ears[0].count, ears[2].count) == (1, 1)


async def test_refusing_and_being_ready_in_quick_turns_loses_nothing(rabbit_town: Town, queue: str) -> None:
    ringer, bus = await rabbit_town.bus(), await rabbit_town.bus()
    taken: set[UUID] = set()
    refused: set[UUID] = set()

    def heard(doorbell: Doorbell) -> bool:
        if len(doorbell.ids) and doorbell.ids[0].int % 3 and doorbell.ids[0] not in refused:
            refused.add(doorbell.ids[0])
            asyncio.get_running_loop().call_soon(bus.ready, queue)
            return False
        taken.update(doorbell.ids)
        return True

    await bus.listen(queue, heard)
    ids = {uuid4() for _ in range(200)}
    ringer.ring([Doorbell(queue, (job_id,)) for job_id in ids])
    await until(lambda: taken == ids, "all of them")
    assert len(refused) > 50


async def test_with_nobody_there_doorbells_pile_up_within_bounds(rabbit_town: Town, rabbit: Rabbit, queue: str) -> None:
    bus, ear = await rabbit_town.bus(), Ear()
    await bus.listen(queue, Ear())
    await bus.unlisten(queue)
    last = uuid4()
    for number in range(1, 21):
        bus.ring([Doorbell(queue, (uuid4(),)) for _ in range(500)])
        await until(lambda: bus.counters.rung == number * 500, "them to be sent")  # noqa: B023 - at once
    bus.ring([Doorbell(queue, (last,))])
    await until(lambda: bus.counters.rung == 10_001, "all to be sent")
    await until(lambda: rabbit.depth(dispatch_queue(queue)) == 1_000, "the queue to be full")

    await bus.listen(queue, ear)
    await ear.hears(1_000)
    assert ear.ids[-1] == last, "the oldest are to go"


async def test_a_queue_that_somebody_deletes_is_made_again(rabbit_town: Town, rabbit: Rabbit, queue: str) -> None:
    bus, ear = await rabbit_town.bus(), Ear()
    await bus.listen(queue, ear)
    for times in (1, 2, 3):
        await asyncio.to_thread(rabbit.delete, dispatch_queue(queue))
        await ear.hears(2 * times - 1)
        assert ear.doorbells[-1] == Doorbell(queue), "what was rung meanwhile is unknown"
        bus.ring([Doorbell(queue, (uuid4(),))])
        await ear.hears(2 * times)
    assert bus.counters.reconnects == 0


async def test_a_queue_deleted_behind_a_refusal_is_made_again_too(
    rabbit_town: Town, rabbit: Rabbit, queue: str
) -> None:
    bus, ear = await rabbit_town.bus(), Ear(answer=False)
    await bus.listen(queue, ear)
    bus.ring([Doorbell(queue)])
    await ear.hears()
    await until(lambda: rabbit.depth(dispatch_queue(queue)) == 1, "it to be back in the queue")
    await asyncio.to_thread(rabbit.delete, dispatch_queue(queue))
    ear.answer = True
    bus.ready(queue)
    await ear.hears(2)
    bus.ring([Doorbell(queue, (uuid4(),))])
    await ear.hears(3)


async def test_a_queue_that_somebody_made_otherwise_is_used_as_it_is(
    rabbit_town: Town, rabbit: Rabbit, queue: str
) -> None:
    with rabbit.connect() as connection:
        connection.channel().queue_declare(dispatch_queue(queue), durable=True, arguments={"x-max-length": 5})
    bus, ear, other = await rabbit_town.bus(), Ear(), Ear()
    await bus.listen(f"{queue} other", other)
    await bus.listen(queue, ear)
    await ear.hears(0)
    bus.ring([Doorbell(queue), Doorbell(f"{queue} other")])
    await ear.hears()
    await other.hears()
    await asyncio.to_thread(rabbit.delete, dispatch_queue(queue))


@pytest.mark.parametrize("exchange", ["headway.events", "headway.wake"])
async def test_an_exchange_that_somebody_deletes_is_made_again(
    rabbit_town: Town, rabbit: Rabbit, exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "LOOK_AFTER", 0.2)
    bus, reader, called = await rabbit_town.bus(), Reader(), Caller()
    await bus.subscribe("job.*", reader)
    await bus.on_call("me", called)
    with rabbit.connect() as connection:
        connection.channel().exchange_delete(exchange)

    async def flows() -> bool:
        bus.emit([event()])
        bus.call("me")
        await asyncio.sleep(0.05)
        return bool(reader.events and called.count)

    await until(flows, "events and calls to flow again", patience=45)


async def test_nothing_of_a_process_is_left_behind(
    rabbit_town: Town, foreign: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    bus, name = await rabbit_town.bus(), str(uuid4())
    stop = await bus.on_call(name, Caller())
    await bus.on_call(f"{name} too", Caller())
    foreign.confirm_delivery()
    foreign.basic_publish("headway.wake", name, b"{}", mandatory=True)

    stop()
    await until(lambda: _leads_nowhere(foreign, name), "the queue of a call that was ended to go")
    foreign.basic_publish("headway.wake", f"{name} too", b"{}", mandatory=True)
    await bus.close()
    await until(lambda: _leads_nowhere(foreign, f"{name} too"), "the queues of a closed bus to go")


def _leads_nowhere(channel: pika.adapters.blocking_connection.BlockingChannel, key: str) -> bool:
    try:
        channel.basic_publish("headway.wake", key, b"{}", mandatory=True)
    except pika.exceptions.UnroutableError:
        return True
    return False
