"""What every bus promises of calls and events, asked of each of them on a real server."""

import time
from uuid import uuid4

import pytest

from headway.bus.box import MOST_EVENTS
from headway.bus.contract import Doorbell
from headway.contracts.buses.town import Caller, Reader, Town, event, fence
from headway.contracts.waiting import until
from headway.model.errors import ConfigurationError
from headway.model.events import Event
from headway.model.states import State

# Calls


async def test_a_call_wakes_the_one_whose_channel_it_is(town: Town) -> None:
    caller, one, other = await town.bus(), await town.bus(), await town.bus()
    mine, others = Caller(), Caller()
    await one.on_call(name := f"worker {uuid4()}", mine)
    await other.on_call(f"worker {uuid4()}", others)

    caller.call(name)

    await mine.hears()
    await fence(caller, other)
    assert (mine.count, others.count) == (1, 0)


async def test_who_answers_no_more_is_not_called(town: Town) -> None:
    bus, called = await town.bus(), Caller()
    stop = await bus.on_call(name := str(uuid4()), called)
    # Not even by a call that is on its way.
    bus.call(name)
    stop()
    bus.call(name)
    await fence(bus, bus)
    assert called.count == 0


# Events


async def test_an_event_arrives_whole(town: Town) -> None:
    teller, hearer, reader = await town.bus(), await town.bus(), Reader()
    await hearer.subscribe("job.*", reader)
    told = [event(State.FAILED, name='"Ümläut"', attempt=3), event(State.RUNNING), event()]
    teller.emit(told)
    await reader.reads(3)
    assert reader.events == told


async def test_subscribers_hear_what_they_asked_for(town: Town) -> None:
    bus, failed, completed = await town.bus(), Reader(), Reader()
    await bus.subscribe("job.failed", failed)
    await bus.subscribe("job.completed", completed)
    told = [event(state) for state in State]
    bus.emit([*told, event(State.COMPLETED)])
    await failed.reads()
    await completed.reads(2)
    await fence(bus, bus)
    assert [seen.state for seen in failed.events] == [State.FAILED]
    assert [seen.state for seen in completed.events] == [State.COMPLETED] * 2


async def test_a_subscription_that_nothing_could_fit_is_refused(town: Town) -> None:
    bus = await town.bus()
    with pytest.raises(ConfigurationError, match=r"job\.complete'.*job\.completed"):
        await bus.subscribe("job.complete", Reader())


async def test_a_subscription_ends(town: Town) -> None:
    bus, ended, going_on = await town.bus(), Reader(), Reader()
    stop = await bus.subscribe("job.*", ended)
    await bus.subscribe("job.*", going_on)
    stop()
    await fence(bus, bus)
    bus.emit([event()])
    await going_on.reads()
    assert ended.events == []


async def test_a_subscriber_that_fails_keeps_nothing_from_the_others(town: Town) -> None:
    bus, reader = await town.bus(), Reader()

    def fail(_event: object) -> None:
        raise RuntimeError("a bug in a subscriber")

    await bus.subscribe("job.*", fail)
    await bus.subscribe("job.*", reader)
    bus.emit([event(), event()])
    await reader.reads(2)
    await until(lambda: bus.counters.failed == 2, "both failures")


async def test_too_many_events_at_once_are_dropped_and_hold_up_nobody(town: Town) -> None:
    teller, hearer, reader = await town.bus(), await town.bus(), Reader()
    await hearer.subscribe("job.completed", reader)
    flood = [event() for _ in range(3 * MOST_EVENTS)]
    started = time.monotonic()
    teller.emit(flood)
    took = time.monotonic() - started

    assert took < 5
    await reader.reads(MOST_EVENTS, patience=90)
    assert teller.counters.dropped_events + hearer.counters.dropped_events == 2 * MOST_EVENTS
    teller.emit([last := event()])
    await until(lambda: reader.events[-1] == last, "what came after the flood")


async def test_a_ring_does_not_wait_behind_the_events(town: Town, queue: str) -> None:
    teller, hearer, reader = await town.bus(), await town.bus(), Reader()
    read_before: list[int] = []

    def heard(_doorbell: Doorbell) -> bool:
        read_before.append(len(reader.events))
        return True

    def read(event: Event) -> None:
        reader(event)
        if len(reader.events) == 1:
            teller.ring([Doorbell(queue)])

    await hearer.listen(queue, heard)
    await hearer.subscribe("job.*", read)
    teller.emit([event() for _ in range(MOST_EVENTS)])
    await reader.reads(MOST_EVENTS, patience=90)
    assert len(read_before) == 1
    assert read_before[0] < MOST_EVENTS / 2
