"""Rings for due jobs: once per window, again only for those that stay unclaimed, by one process for all."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import pytest

from headway.bus.contract import Doorbell
from headway.duties.dispatch import CROWDED, PAGE, SHARE, TERM, WINDOW, Dispatcher
from headway.store.scripts.cancel import worker_channel
from tests.bus.deaf import DeafBus
from tests.contract.house import House


class Notebook(DeafBus):
    """A bus on which nobody listens but the test."""

    def __init__(self) -> None:
        super().__init__()
        self.bells: list[Doorbell] = []
        self.calls: list[str] = []

    def ring(self, doorbells: Sequence[Doorbell]) -> None:
        self.bells += doorbells

    def call(self, channel: str) -> None:
        self.calls.append(channel)

    def rung(self) -> list[UUID]:
        """The jobs rung for since the last question."""
        ids = [job_id for bell in self.bells for job_id in bell.ids]
        self.bells = []
        return ids


def dispatcher(house: House, bus: Notebook) -> Dispatcher:
    return Dispatcher(house.worker.id, house.store, bus, house.clock)


async def test_a_due_job_is_rung_for_once_per_window(house: House) -> None:
    bus = Notebook()
    ringer = dispatcher(house, bus)
    job = await house.submit(queue="mail")
    await ringer.dispatch()
    assert bus.bells == [Doorbell("mail", (job,))]
    bus.rung()
    for _ in range(4):
        house.clock.advance(WINDOW / 5)
        await ringer.dispatch()
    assert bus.rung() == []
    house.clock.advance(WINDOW / 5)
    await ringer.dispatch()
    assert bus.rung() == [job]


async def test_a_claimed_job_is_not_rung_for_again(house: House) -> None:
    bus = Notebook()
    ringer = dispatcher(house, bus)
    await house.submit()
    await ringer.dispatch()
    await house.claim()
    house.clock.advance(WINDOW)
    bus.rung()
    await ringer.dispatch()
    assert bus.rung() == []


async def test_it_knows_when_to_ring_next(house: House) -> None:
    bus = Notebook()
    ringer = dispatcher(house, bus)
    await house.submit(delay=1)
    assert 0.99 < await ringer.dispatch() <= 1.0
    house.clock.advance(1)
    await ringer.dispatch()
    assert len(bus.rung()) == 1


async def test_a_long_line_is_rung_for_in_several_doorbells_and_not_looked_at_all_the_time(house: House) -> None:
    bus = Notebook()
    ringer = dispatcher(house, bus)
    await house.batch(*(house.job() for _ in range(PAGE + 200)))
    assert await ringer.dispatch() == pytest.approx(CROWDED)
    assert [len(bell.ids) for bell in bus.bells] == [SHARE] * (PAGE // SHARE)
    bus.rung()
    urgent = await house.submit(priority=1)
    assert await ringer.dispatch() == pytest.approx(CROWDED)
    assert bus.rung() == []
    house.clock.advance(CROWDED)
    await ringer.dispatch()
    assert bus.rung() == [urgent]


async def test_a_long_line_holds_up_no_other_queue(house: House) -> None:
    bus = Notebook()
    ringer = dispatcher(house, bus)
    await house.batch(*(house.job(queue="abandoned") for _ in range(PAGE)))
    for _ in range(3):
        await ringer.dispatch()
        bus.rung()
        job = await house.submit(queue="served")
        await ringer.dispatch()
        assert bus.rung() == [job], "without the clock having moved"
    house.clock.advance(WINDOW)
    await ringer.dispatch()
    assert len(bus.rung()) == PAGE + 3


async def test_one_process_rings_for_all_and_another_takes_over(shared: House) -> None:
    other = await shared.second()
    first, second = Notebook(), Notebook()
    one, two = dispatcher(shared, first), dispatcher(other, second)
    await shared.submit()
    await one._turn()
    await two._turn()
    assert (len(first.rung()), len(second.rung())) == (1, 0)
    shared.clock.advance(TERM)
    await two._turn()
    assert len(second.rung()) == 1
    await one._turn()
    assert first.rung() == []


async def test_a_call_for_a_worker_is_handed_on(house: House) -> None:
    bus = Notebook()
    ringer = dispatcher(house, bus)
    channel = worker_channel(house.worker.id)
    ringer._heard(channel)
    assert bus.calls == [channel]
