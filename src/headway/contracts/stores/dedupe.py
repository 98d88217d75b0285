"""De-duplication: within a window, one job does the work for all."""

from typing import Any

import pytest

from headway.contracts.stores.house import House, accepted
from headway.model.job import UNPROVEN_LOSSES
from headway.model.limits import Retention
from headway.model.states import State
from headway.model.submission import Accepted, Dedupe, OnConflict

HOUR = 3600.0


async def fetch(house: House, name: str = "fetch", **options: Any) -> Accepted:
    return await house.accept(house.job(name, dedupe=Dedupe("https://example.org", HOUR), **options))


async def test_within_the_window_further_submissions_get_the_first_job(house: House) -> None:
    first = await fetch(house)
    house.clock.advance(59 * 60 + 59)
    second = await fetch(house)
    assert not first.deduplicated
    assert (second.job_id, second.deduplicated) == (first.job_id, True)


async def test_after_the_window_a_new_job_does_the_work(house: House) -> None:
    first = await fetch(house)
    house.clock.advance(60 * 60 + 1)
    second = await fetch(house)
    assert second.job_id != first.job_id
    assert not second.deduplicated


async def test_duplicates_do_not_extend_the_window(house: House) -> None:
    first = await fetch(house)
    for _ in range(6):
        house.clock.advance(9 * 60 + 59)
        assert (await fetch(house)).job_id == first.job_id
    house.clock.advance(7)
    assert (await fetch(house)).job_id != first.job_id


async def test_a_completed_job_keeps_its_window(house: House) -> None:
    first = await fetch(house)
    await house.complete(await house.claim_one())
    again = await fetch(house)
    assert (again.job_id, again.state, again.deduplicated) == (first.job_id, State.COMPLETED, True)


@pytest.mark.parametrize("end", ["fail", "give up", "cancel waiting", "cancel running", "delete", "expire", "poison"])
async def test_the_window_is_freed_by_any_end_but_success(house: House, end: str) -> None:
    first = await fetch(house, expires_in=1000)
    match end:
        case "fail":
            await house.fail(await house.claim_one())
        case "give up":
            await house.give_up(await house.claim_one())
        case "cancel waiting":
            await house.cancel(first.job_id)
        case "cancel running":
            claim = await house.claim_one()
            await house.cancel(first.job_id)
            await house.fail(claim)
        case "delete":
            await house.delete(first.job_id)
        case "expire":
            house.clock.advance(1000)
            await house.store.expire()
        case _:
            for _ in range(UNPROVEN_LOSSES):
                house.clock.advance(60)
                await house.lose(await house.claim_one())
    second = await fetch(house)
    assert second.job_id != first.job_id
    assert second.state is State.SCHEDULED


async def test_the_window_of_a_completed_job_goes_with_its_deletion(house: House) -> None:
    first = await fetch(house)
    await house.complete(await house.claim_one())
    await house.delete(first.job_id)
    assert (await fetch(house)).job_id != first.job_id


async def test_a_job_that_is_tried_again_keeps_its_window(house: House) -> None:
    first = await fetch(house)
    await house.retry_later(await house.claim_one())
    await house.lose(await house.claim_one())
    assert (await fetch(house)).job_id == first.job_id


async def test_twice_in_one_batch_is_one_job(house: House) -> None:
    batch = [house.job("fetch", dedupe=Dedupe("a")) for _ in range(3)]
    batch.append(house.job("fetch", dedupe=Dedupe("b")))
    answers = [accepted(answer) for answer in await house.batch(*batch)]
    assert [answer.job_id for answer in answers] == [batch[0].id] * 3 + [batch[3].id]
    assert [answer.deduplicated for answer in answers] == [False, True, True, False]
    assert await house.store.counts() == {"default": {State.SCHEDULED: 2}}


@pytest.mark.parametrize("options", [{"delay": 60}, {"hold": True}])
async def test_jobs_not_due_at_acceptance_take_no_part(house: House, options: dict[str, Any]) -> None:
    first = await fetch(house)
    future = await fetch(house, **options)
    assert future.job_id != first.job_id
    assert not future.deduplicated


async def test_a_future_job_takes_no_window(house: House) -> None:
    future = await fetch(house, run_at=house.after(60))
    assert (await fetch(house)).job_id != future.job_id


async def test_a_repeated_submission_is_not_its_own_duplicate(house: House) -> None:
    job = house.job("fetch", dedupe=Dedupe("a"))
    await house.accept(job)
    again = await house.accept(job)
    assert (again.job_id, again.repeated, again.deduplicated) == (job.id, True, False)


async def test_a_refused_job_takes_no_window(house: House) -> None:
    await house.submit("busy")
    await house.refuse(house.job("busy", on_conflict=OnConflict.REJECT, dedupe=Dedupe("a")))
    assert not (await house.accept(house.job("fetch", dedupe=Dedupe("a")))).deduplicated


async def test_a_skipped_job_takes_no_window(house: House) -> None:
    await house.submit("busy")
    await house.accept(house.job("busy", on_conflict=OnConflict.SKIP, dedupe=Dedupe("a")))
    assert not (await house.accept(house.job("fetch", dedupe=Dedupe("a")))).deduplicated


async def test_a_duplicate_of_one_that_is_skipped_in_its_batch_gets_the_same_answer(house: House) -> None:
    other = house.job("busy", key="busy")
    skipped = house.job("busy", on_conflict=OnConflict.SKIP, dedupe=Dedupe("a"))
    duplicate = house.job("fetch", dedupe=Dedupe("a"))
    answers = [accepted(answer) for answer in await house.batch(other, skipped, duplicate)]
    assert [answer.job_id for answer in answers] == [other.id] * 3


async def test_windows_that_are_over_are_cleared_away(house: House) -> None:
    first = await fetch(house)
    await house.complete(await house.claim_one())
    house.clock.advance(HOUR)
    await house.store.prune(Retention(), None)
    assert (await fetch(house)).job_id != first.job_id
