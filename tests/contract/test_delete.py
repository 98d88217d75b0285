"""Deleting: the job is gone with all that belongs to it, a running one once it is seen stopped."""

from collections.abc import Awaitable, Callable

from headway.model.errors import JobNotFound
from headway.model.filters import JobFilter
from headway.model.job import Chunk, Claim, Finish, Release
from headway.model.states import State
from headway.model.submission import Dedupe, Moved, OnConflict
from tests.contract.house import House, ids


async def test_a_deleted_waiting_job_is_gone(house: House) -> None:
    for options in ({}, {"delay": 60}, {"hold": True}):
        job_id = await house.submit(**options)
        assert await house.delete(job_id) is State.CANCELLED
        assert await house.gone(job_id)
    assert await house.claim() == []
    assert await house.store.find(JobFilter()) == []


async def test_a_deleted_running_job_goes_once_it_is_seen_stopped(house: House) -> None:
    claim = await house.running()
    assert await house.delete(claim.id) is State.CANCELLING
    assert (await house.store.renew(house.worker, 30, [], held=house.leases)).cancels == {claim.id}
    await house.give_up(claim)
    assert await house.gone(claim.id)


async def test_a_deleted_running_job_goes_however_it_stops(house: House) -> None:
    ends: list[Callable[[Claim], Awaitable[object]]] = [
        lambda claim: house.complete(claim, result=b"1"),
        house.fail,
        house.lose,
        house.retry_later,
        lambda claim: house.release(Release.give_back(claim)),
        lambda claim: house.release(Release.snooze(claim, 0.5, 5)),
    ]
    for end in ends:
        claim = await house.running()
        await house.delete(claim.id)
        await end(claim)
        assert await house.gone(claim.id)
        assert await house.store.result(claim.id) is None
    assert await house.claim() == []


async def test_a_late_finish_of_a_deleted_job_is_fenced(house: House) -> None:
    claim = await house.running()
    await house.delete(claim.id)
    await house.lose(claim)
    [ended] = await house.store.finish([Finish.succeeded(claim, 0.5, b"1")])
    assert not ended.accepted
    assert await house.gone(claim.id)
    assert await house.store.result(claim.id) is None


async def test_a_deleted_ended_job_takes_everything_along(house: House) -> None:
    claim = await house.running("fetch", dedupe=Dedupe("a"))
    await house.append(claim, [Chunk(seq=0, stream="log", data=b"hello")])
    await house.retry_later(claim)
    claim = await house.claim_one()
    await house.append(claim, [Chunk(seq=0, stream="log", data=b"hello again")])
    await house.complete(claim, result=b"x" * 300_000)

    await house.delete(claim.id)

    assert await house.gone(claim.id)
    assert await house.store.result(claim.id) is None
    for attempt in (0, 1, 2):
        for stream in (None, "log", "result"):
            assert await house.store.chunks(claim.id, attempt, stream=stream) == []
    assert await house.store.attempts(claim.id) == []
    assert await house.store.history(claim.id) == []
    assert not (await house.accept(house.job("fetch", dedupe=Dedupe("a")))).deduplicated


async def test_deleting_releases_those_that_wait_in_line(house: House) -> None:
    first = await house.running("sync")
    second, third = [await house.submit("sync", on_conflict=OnConflict.WAIT) for _ in range(2)]
    await house.delete(second)
    assert await house.state(third) is State.BLOCKED
    await house.delete(first.id)
    await house.give_up(first)
    assert ids(await house.claim(5)) == [third]


async def test_a_deleted_id_may_be_used_again(house: House) -> None:
    job = house.job()
    await house.accept(job)
    await house.delete(job.id)
    await house.accept(job)
    assert await house.state(job.id) is State.SCHEDULED


async def test_an_unknown_job_cannot_be_deleted(house: House) -> None:
    known = await house.submit()
    unknown = house.new_id()
    first, second = await house.store.delete([unknown, known], by=None)
    assert isinstance(first, JobNotFound)
    assert second == Moved(State.SCHEDULED, State.CANCELLED)
    assert isinstance(await house.delete(known), JobNotFound)
