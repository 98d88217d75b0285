"""What waits to be sent is bounded, keeps its order, and may come from anywhere."""

import asyncio
import threading
import time
from uuid import uuid4

from headway.bus.box import EVENTS_AT_ONCE, MOST_EVENTS, MOST_RINGS, Box, Mail
from headway.bus.contract import Counters, Doorbell
from headway.contracts.buses.town import event


async def test_what_was_put_in_is_taken_in_its_order() -> None:
    box = Box(Counters())
    doorbells = [Doorbell("q", (uuid4(),)) for _ in range(3)]
    box.put(Mail(doorbells=doorbells[:2], calls=["a", "b"]))
    box.put(Mail(doorbells=doorbells[2:], calls=["a"]))
    assert await box.take() == Mail(doorbells, ["a", "b"], [])


async def test_events_are_taken_in_portions_and_rings_at_once() -> None:
    box = Box(Counters())
    events = [event() for _ in range(EVENTS_AT_ONCE + 10)]
    box.put(Mail(events=events))
    box.put(Mail(doorbells=[Doorbell("q")]))
    first, second = await box.take(), await box.take()
    assert (len(first.doorbells), first.events, second.events) == (
        1,
        events[:EVENTS_AT_ONCE],
        events[EVENTS_AT_ONCE:],
    )


async def test_the_oldest_go_first_when_there_are_too_many() -> None:
    box = Box(counters := Counters())
    doorbells = [Doorbell("q", (uuid4(),)) for _ in range(MOST_RINGS + 7)]
    events = [event() for _ in range(MOST_EVENTS + 9)]
    box.put(Mail(doorbells=doorbells, calls=[str(number) for number in range(MOST_RINGS + 2)], events=events))
    mail = await box.take()
    assert mail.doorbells == doorbells[7:]
    assert (mail.calls[0], mail.events[0]) == ("2", events[9])
    assert (counters.dropped_rings, counters.dropped_events) == (9, 9)


async def test_what_could_not_be_sent_is_sent_next_except_events() -> None:
    box = Box(counters := Counters())
    doorbells = [Doorbell("q", (uuid4(),)) for _ in range(3)]
    box.put(Mail(doorbells=doorbells[:2], calls=["a", "b"], events=[event()]))
    mail = await box.take()
    box.put(Mail(doorbells=doorbells[2:], calls=["c"], events=[later := event()]))

    box.put_back(mail)

    assert await box.take() == Mail(doorbells, ["a", "b", "c"], [later])
    assert (counters.dropped_rings, counters.dropped_events) == (0, 1), "an event is told at most once"


async def test_a_loop_that_sleeps_is_woken_from_another_thread() -> None:
    box = Box(Counters())

    def put() -> None:
        time.sleep(0.2)
        box.put(Mail(calls=["me"]))

    thread, started = threading.Thread(target=put), time.monotonic()
    thread.start()
    assert (await asyncio.wait_for(box.take(), 60)).calls == ["me"]
    assert time.monotonic() - started < 30
    thread.join()


async def test_it_is_drained_when_what_was_taken_has_been_dealt_with() -> None:
    box = Box(Counters())
    box.put(Mail(calls=["me"]))
    assert not box.drained.is_set()
    await box.take()
    assert not box.drained.is_set()
    taking = asyncio.create_task(box.take())
    await asyncio.wait_for(box.drained.wait(), 5)
    box.put(Mail(calls=["me"]))
    assert not box.drained.is_set()
    await taking


def test_a_loop_that_is_gone_is_nobodys_trouble() -> None:
    async def make() -> Box:
        return Box(Counters())

    box = asyncio.run(make())
    box.put(Mail(calls=["me"]))
