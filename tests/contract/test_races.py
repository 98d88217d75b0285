"""Two processes that do things to one job at the same moment: whoever comes first, the outcome is a true one."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from headway.model.errors import HeadwayError, KeyBusy
from headway.model.job import Release
from headway.model.states import State
from headway.model.submission import OnConflict
from tests.contract.house import House, ids

ROUNDS = 12
T = TypeVar("T")


async def insist(act: Callable[[], Awaitable[T]]) -> T:
    """As workers and clients do: a row may be in other hands for longer than the store waits."""
    while True:
        try:
            verdict = await act()
        except KeyBusy:
            continue
        if not isinstance(verdict, KeyBusy):
            return verdict


async def test_a_cancel_is_not_lost_when_the_job_goes_back_to_wait(shared: House) -> None:
    other = await shared.second()
    for _ in range(ROUNDS):
        claim = await shared.running()
        await asyncio.gather(insist(partial(shared.retry_later, claim)), insist(partial(other.cancel, claim.id)))
        assert await shared.state(claim.id) is State.CANCELLED


async def test_a_cancel_is_not_lost_when_the_job_is_claimed(shared: House) -> None:
    other = await shared.second()
    for _ in range(ROUNDS):
        job_id = await shared.submit()
        claims, _ = await asyncio.gather(shared.claim(), insist(partial(other.cancel, job_id)))
        assert await shared.state(job_id) is (State.CANCELLING if claims else State.CANCELLED)
        for claim in claims:
            await shared.give_up(claim)


async def test_a_cancel_and_a_success_end_in_what_came_first(shared: House) -> None:
    other = await shared.second()
    for _ in range(ROUNDS):
        claim = await shared.running()
        _, verdict = await asyncio.gather(
            insist(partial(shared.complete, claim)), insist(partial(other.cancel, claim.id))
        )
        assert verdict in {State.COMPLETED, State.CANCELLING}
        assert await shared.state(claim.id) is State.COMPLETED


async def test_a_delete_is_not_lost_when_the_job_ends(shared: House) -> None:
    other = await shared.second()
    for _ in range(ROUNDS):
        claim = await shared.running()
        await asyncio.gather(insist(partial(shared.complete, claim)), insist(partial(other.delete, claim.id)))
        assert await shared.gone(claim.id)


async def test_a_job_is_either_finished_or_rescued(shared: House) -> None:
    other = await shared.second()
    for _ in range(ROUNDS):
        claim = await shared.running()
        shared.clock.advance(31)
        moves = [Release.give_back(claim)]
        [ended], rescued = await asyncio.gather(shared.store.release(moves), other.store.rescue())
        assert ended.accepted != (claim.id in [rescue.job_id for rescue in rescued])
        [again] = await shared.claim()
        await shared.complete(again)


async def test_two_rescuers_never_take_back_the_same_job(shared: House) -> None:
    other = await shared.second()
    jobs = [await shared.submit() for _ in range(20)]
    for _ in jobs:
        await shared.claim_one()
    shared.clock.advance(60)
    rescued = await asyncio.gather(shared.store.rescue(), other.store.rescue())
    taken = [rescue.job_id for rescues in rescued for rescue in rescues]
    assert sorted(taken) == sorted(jobs)
    assert {(await shared.get(job_id)).losses for job_id in jobs} == {1}


async def test_a_held_child_goes_on_whether_its_parent_or_its_release_comes_first(shared: House) -> None:
    other = await shared.second()
    for _ in range(ROUNDS):
        parent = await shared.running()
        child = await shared.submit("child", queue="children", after=(parent.id,), hold=True)
        await asyncio.gather(shared.complete(parent), other.schedule(child))
        assert await shared.state(child) is State.SCHEDULED


async def test_a_retry_and_a_submission_of_one_key_never_both_run(shared: House) -> None:
    other = await shared.second()
    for number in range(ROUNDS):
        failed = await shared.running(f"sync {number}", on_conflict=OnConflict.WAIT)
        await shared.fail(failed)
        job = other.job(f"sync {number}", on_conflict=OnConflict.WAIT)
        verdict, [answer] = await asyncio.gather(shared.retry(failed.id), other.store.submit([job]))
        accepted = [act for act in (verdict, answer) if not isinstance(act, HeadwayError)]
        assert accepted, "one of the two must get through"
        claims = await shared.claim(5)
        assert len(claims) == 1
        await shared.complete(*claims)
        for claim in await shared.claim(5):
            await shared.complete(claim)


async def test_a_line_of_waiting_jobs_made_by_two_processes_runs_one_by_one(shared: House) -> None:
    other = await shared.second()

    async def line_up(house: House) -> None:
        for _ in range(5):
            job = house.job("sync", on_conflict=OnConflict.WAIT)
            while isinstance((await house.store.submit([job]))[0], HeadwayError):
                pass

    await asyncio.gather(line_up(shared), line_up(other))
    for _ in range(10):
        claims = await shared.claim(5)
        assert len(claims) == 1
        await shared.complete(*claims)
    assert ids(await shared.claim(5)) == []
