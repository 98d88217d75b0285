"""Many workers hear the same ring: the first takes what there is, the others stay where they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from uuid import UUID

import pytest

from headway.bus.contract import Doorbell
from headway.clock import FakeClock
from headway.store import make_store
from headway.store.contract import Store
from headway.store.scripts.rows import hush
from headway.worker.lane import AT_ONCE, Lane
from headway.worker.wakeups import LONGEST_TURN, SHORTEST_TURN, Wakeups

MAIL = "mail"


class Crew:
    """Workers that hear what the store rings, each with its own luck."""

    def __init__(self, store: Store, clock: FakeClock, *, size: int) -> None:
        self.clock = clock
        self.ids = [UUID(int=number) for number in range(size)]
        self.lanes = [Lane(MAIL, 10) for _ in self.ids]
        self.workers = [
            Wakeups(worker_id, store, clock, _luck((number + 0.5) / size), {MAIL: lane}, {})
            for number, (worker_id, lane) in enumerate(zip(self.ids, self.lanes, strict=True))
        ]
        for worker, lane in zip(self.workers, self.lanes, strict=True):
            worker.count(size)
            lane.idle = True

    def ring(self, channel: str) -> None:
        for worker in self.workers:
            worker._heard(channel)

    @property
    def awake(self) -> list[int]:
        return [number for number, lane in enumerate(self.lanes) if lane.wake.is_set()]


def _luck(number: float) -> Callable[[], float]:
    return lambda: number


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    store = make_store("sqlite://")
    yield store
    await store.close()


def test_a_worker_that_is_alone_answers_at_once(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=1)
    crew.ring(MAIL)
    assert crew.awake == [0]
    assert not crew.lanes[0].answers, "there is nobody to be told"


def test_of_many_one_after_the_other_answers(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=100)
    crew.ring(MAIL)
    assert crew.awake == []
    crew.clock.advance(SHORTEST_TURN)
    assert crew.awake == [0]
    crew.clock.advance(SHORTEST_TURN * 10)
    assert crew.awake == list(range(11))
    assert all(crew.lanes[number].answers for number in crew.awake)


def test_where_claims_take_time_all_but_a_few_answer_as_slowly(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=100)
    for lane in crew.lanes:
        lane.claim_time = 1.0
    crew.ring(MAIL)
    crew.clock.advance(SHORTEST_TURN * AT_ONCE)
    assert crew.awake == list(range(AT_ONCE))
    crew.clock.advance(LONGEST_TURN * 10)
    assert crew.awake == list(range(AT_ONCE + 10))


def test_the_others_stay_where_they_are_once_all_is_taken(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=100)
    crew.ring(MAIL)
    crew.clock.advance(SHORTEST_TURN)
    crew.ring(hush(MAIL, crew.ids[0]))
    crew.clock.advance(10)
    assert crew.awake == [0]
    crew.lanes[0].wake.clear()
    crew.ring(MAIL)
    crew.clock.advance(SHORTEST_TURN)
    assert crew.awake == [0], "the next ring is answered again"


def test_what_is_rung_for_meanwhile_is_left_to_the_one_that_hushed(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=100)
    crew.ring(MAIL)
    crew.ring(hush(MAIL, crew.ids[50]))
    assert crew.awake == [50], "its claim did not see what was rung for, and nobody else will look"
    crew.clock.advance(10)
    assert crew.awake == [50]


def test_one_that_is_just_asking_asks_again(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=100)
    crew.lanes[7].idle = False
    crew.ring(MAIL)
    assert crew.awake == [7]


def test_a_hush_for_another_queue_is_not_for_us(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=2)
    crew.ring(MAIL)
    crew.ring(hush("other", crew.ids[0]))
    crew.clock.advance(10)
    assert crew.awake == [0, 1]


def test_a_lane_that_sits_out_leaves_doorbells_to_others(store: Store) -> None:
    crew = Crew(store, FakeClock(), size=1)
    crew.lanes[0].sits_out = True
    assert not crew.workers[0].rung(Doorbell(queue=MAIL, ids=()))
    assert crew.lanes[0].deaf
    crew.lanes[0].sits_out = False
    assert crew.workers[0].rung(Doorbell(queue=MAIL, ids=()))
    assert crew.awake == [0]
