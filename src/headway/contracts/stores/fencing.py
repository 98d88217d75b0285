"""Only the holder of the current token may write; a token only grows."""

from collections.abc import Awaitable, Callable

import pytest

from headway.contracts.stores.house import ERROR, House
from headway.model.job import Chunk, Claim, Finish, Release, Report
from headway.model.states import Outcome, State

Leave = Callable[[House, Claim], Awaitable[object]]


async def snoozed(house: House, claim: Claim) -> None:
    await house.release(Release.snooze(claim, 0.5, 0.0))


async def given_back(house: House, claim: Claim) -> None:
    await house.release(Release.give_back(claim))


async def parked(house: House, claim: Claim) -> None:
    await house.release(Release.parked(claim, 0.0))


async def retried_by_itself(house: House, claim: Claim) -> None:
    await house.retry_later(claim)


async def retried_by_a_person(house: House, claim: Claim) -> None:
    await house.fail(claim)
    await house.retry(claim.id)


async def rescued(house: House, claim: Claim) -> None:
    await house.lose(claim)


WAYS_BACK = [snoozed, given_back, parked, retried_by_itself, retried_by_a_person, rescued]


@pytest.mark.parametrize("leave", WAYS_BACK)
async def test_a_token_only_grows_however_the_job_came_back(house: House, leave: Leave) -> None:
    claim = await house.running()
    await leave(house, claim)
    waiting = (await house.get(claim.id)).token
    again = await house.claim_one()
    assert claim.token < waiting < again.token


@pytest.mark.parametrize("leave", WAYS_BACK)
async def test_a_lapsed_worker_cannot_finish_the_next_attempt(house: House, leave: Leave) -> None:
    claim = await house.running()
    await leave(house, claim)
    again = await house.claim_one()

    await house.store.finish([Finish.succeeded(claim, 0.5, b'"late"')])

    job = await house.get(claim.id)
    assert (job.state, job.token) == (State.RUNNING, again.token)
    assert await house.store.result(claim.id) is None


async def test_every_write_of_a_rescued_worker_is_refused(house: House) -> None:
    claim = await house.running()
    await house.lose(claim)

    [finished] = await house.store.finish([Finish.succeeded(claim, 0.5, b'"late"')])
    [failed] = await house.store.finish([Finish.failed(claim, 0.5, ERROR)])
    released = await house.retry_later(claim)
    given_back = await house.release(Release.give_back(claim))
    held = await house.store.report([Report(job_id=claim.id, token=claim.token, ran=0.5, progress='{"done": 1}')])
    appended = await house.append(claim, [Chunk(seq=0, stream="log", data=b"late")])

    assert not any(ended.accepted for ended in (finished, failed, released, given_back))
    assert held == set()
    assert appended is False
    job = await house.get(claim.id)
    assert (job.state, job.progress, job.failures, job.losses) == (State.SCHEDULED, None, 0, 1)
    assert await house.store.result(claim.id) is None
    assert await house.store.chunks(claim.id, 1) == []


async def test_writes_of_an_earlier_attempt_are_refused_while_the_next_one_runs(house: House) -> None:
    claim = await house.running()
    await house.lose(claim)
    again = await house.claim_one()

    [ended] = await house.store.finish([Finish.failed(claim, 0.5, ERROR)])
    released = await house.retry_later(claim)

    assert not ended.accepted
    assert not released.accepted
    assert await house.state(claim.id) is State.RUNNING
    await house.complete(again)


async def test_a_late_write_fails_alone_among_others(house: House) -> None:
    late = await house.running()
    await house.lose(late)
    again = await house.claim_one()
    others = [await house.running() for _ in range(3)]

    ended = await house.store.finish([Finish.succeeded(claim, 0.5, None) for claim in (late, *others)])

    assert [end.accepted for end in ended] == [False, True, True, True]
    await house.complete(again)


async def test_a_finish_may_be_repeated_after_an_unknown_commit(house: House) -> None:
    claim = await house.running()
    await house.complete(claim, result=b"1")
    [ended] = await house.store.finish([Finish.succeeded(claim, 0.5, b"1")])
    assert (ended.state, ended.outcome) == (State.COMPLETED, Outcome.SUCCEEDED)


async def test_a_release_may_be_repeated_after_an_unknown_commit(house: House) -> None:
    claim = await house.running()
    first = await house.retry_later(claim)
    second = await house.retry_later(claim)
    assert first.state is second.state is State.SCHEDULED
    assert (await house.get(claim.id)).failures == 1
    assert len(await house.store.attempts(claim.id)) == 1


async def test_a_job_ends_once(house: House) -> None:
    claim = await house.running()
    await house.complete(claim)
    await house.store.finish([Finish.failed(claim, 0.5, ERROR)])
    await house.retry_later(claim)
    assert await house.state(claim.id) is State.COMPLETED


async def test_a_worker_that_gave_a_job_back_has_no_further_say_in_it(house: House) -> None:
    claim = await house.running()
    await house.release(Release.give_back(claim))
    await house.store.finish([Finish.succeeded(claim, 0.5, b"1")])
    held = await house.store.report([Report(job_id=claim.id, token=claim.token, ran=0.5)])
    assert await house.state(claim.id) is State.SCHEDULED
    assert held == set()
    assert await house.store.result(claim.id) is None


async def test_a_cancelled_waiting_job_cannot_be_finished_by_its_former_holder(house: House) -> None:
    claim = await house.running()
    await house.release(Release.give_back(claim))
    await house.cancel(claim.id)
    await house.store.finish([Finish.succeeded(claim, 0.5, None)])
    assert await house.state(claim.id) is State.CANCELLED
