"""Leases, rescue, losses and poison; cancelling; ways back that charge nothing."""

import pytest

from headway.contracts.stores.house import ERROR, TTL, House, ids, words
from headway.model.job import SUSPECT_LOSSES, UNPROVEN_LOSSES, Finish, Release
from headway.model.states import Outcome, State


async def test_a_job_is_rescued_when_its_lease_lapses_and_not_before(house: House) -> None:
    claim = await house.running()
    house.clock.advance(TTL - 0.001)
    assert await house.store.rescue() == []
    house.clock.advance(0.001)
    [rescue] = await house.store.rescue()
    assert (rescue.job_id, rescue.state, rescue.outcome) == (claim.id, State.SCHEDULED, Outcome.LOST)
    assert rescue.worker_id == house.worker.id


async def test_a_renewed_job_is_never_rescued_however_long_it_runs(house: House) -> None:
    claim = await house.running()
    for _ in range(20):
        house.clock.advance(TTL * 0.9)
        assert claim.lease_id in await house.renew()
        assert await house.store.rescue() == []
    await house.complete(claim)
    assert (await house.get(claim.id)).losses == 0


async def test_a_renewal_prolongs_by_its_own_term(house: House) -> None:
    await house.running()
    await house.renew(ttl=5)
    house.clock.advance(5)
    assert len(await house.store.rescue()) == 1


async def test_a_lapsed_lease_is_not_revived_by_renewal(house: House) -> None:
    claim = await house.running()
    house.clock.advance(TTL)
    assert await house.renew() == frozenset()
    [rescue] = await house.store.rescue()
    assert rescue.job_id == claim.id


async def test_a_worker_renews_its_own_leases_only(shared: House) -> None:
    other = await shared.second()
    mine = await shared.running()
    theirs = await other.running()
    assert await shared.renew() == {mine.lease_id}
    assert await other.renew() == {theirs.lease_id}


async def test_a_worker_may_renew_only_the_leases_it_knows_of(house: House) -> None:
    known, unknown = await house.running(), await house.running()
    house.clock.advance(TTL * 0.9)
    renewal = await house.store.renew(house.worker, TTL, [], held=[known.lease_id])
    assert renewal.leases == {known.lease_id}
    house.clock.advance(TTL * 0.9)
    assert [rescue.job_id for rescue in await house.store.rescue()] == [unknown.id]
    assert (await house.store.renew(house.worker, TTL, [], held=[])).leases == frozenset()


async def test_a_lapsed_lease_is_not_revived_by_name_either(house: House) -> None:
    claim = await house.running()
    house.clock.advance(TTL)
    renewal = await house.store.renew(house.worker, TTL, [], held=[claim.lease_id])
    assert renewal.leases == frozenset()
    assert [rescue.job_id for rescue in await house.store.rescue()] == [claim.id]


async def test_a_lease_that_is_done_is_dropped(house: House) -> None:
    claim = await house.running()
    await house.complete(claim)
    assert await house.renew(done=[claim.lease_id]) == frozenset()


async def test_a_rescue_takes_back_only_what_is_still_held_under_the_lapsed_lease(house: House) -> None:
    for _ in range(3):
        await house.submit()
    done, given_back, held = await house.claim(3)
    await house.complete(done)
    await house.release(Release.give_back(given_back))
    again = await house.claim_one(ttl=1000)
    assert again.id == given_back.id

    house.clock.advance(TTL)
    rescued = await house.store.rescue()

    assert [rescue.job_id for rescue in rescued] == [held.id]
    assert (await house.get(again.id)).token == again.token
    assert await house.states(done.id, again.id, held.id) == ["completed", "running", "scheduled"]


async def test_a_rescued_job_is_claimed_again_with_its_next_attempt(house: House) -> None:
    claim = await house.running()
    await house.lose(claim)
    again = await house.claim_one()
    assert (again.id, again.attempt, again.losses, again.failures) == (claim.id, 2, 1, 0)
    [first, second] = await house.store.attempts(claim.id)
    assert (first.number, first.outcome, second.number, second.outcome) == (1, Outcome.LOST, 2, None)


async def test_losses_are_counted_apart_from_failures(house: House) -> None:
    claim = await house.running()
    await house.retry_later(claim)
    await house.lose(await house.claim_one())
    job = await house.get(claim.id)
    assert (job.attempt, job.failures, job.losses) == (2, 1, 1)


async def test_any_other_end_of_an_attempt_clears_the_losses(house: House) -> None:
    claim = await house.running()
    await house.lose(claim)
    await house.retry_later(await house.claim_one())
    assert (await house.get(claim.id)).losses == 0


async def test_a_job_given_back_unbegun_keeps_its_losses(house: House) -> None:
    claim = await house.running()
    await house.lose(claim)
    await house.release(Release.give_back(await house.claim_one()))
    assert (await house.get(claim.id)).losses == 1


async def test_a_job_lost_twice_is_a_suspect(house: House) -> None:
    claim = await house.running()
    for _ in range(SUSPECT_LOSSES):
        assert not claim.suspect
        await house.lose(claim)
        claim = await house.claim_one()
    assert claim.suspect


async def test_a_job_that_dies_in_its_own_child_process_counts_a_loss(house: House) -> None:
    claim = await house.running()
    ended = await house.release(Release.lost(claim, 0.5, ERROR))
    job = await house.get(claim.id)
    assert (ended.state, job.losses, job.failures) == (State.SCHEDULED, 1, 0)
    assert [attempt.outcome for attempt in await house.store.attempts(claim.id)] == [Outcome.LOST]


async def test_a_job_lost_too_often_is_poison_and_stays_so(house: House) -> None:
    job_id = await house.submit()
    for loss in range(1, UNPROVEN_LOSSES + 1):
        house.clock.advance(60)
        await house.lose(await house.claim_one())
        lost = await house.get(job_id)
        assert lost.losses == loss
        assert (lost.state is State.FAILED) is (loss == UNPROVEN_LOSSES)
    job = await house.get(job_id)
    assert (job.outcome, job.finished_at) == (Outcome.POISON, house.now)
    assert await house.claim() == []


async def test_a_suspect_whose_worker_died_again_waits_longer_each_time(house: House) -> None:
    """Whoever kills workers from outside, again and again, must not make poison of the jobs that they hold."""
    job_id = await house.submit()
    waits = []
    for _ in range(UNPROVEN_LOSSES - 1):
        house.clock.advance(60)
        await house.lose(await house.claim_one())
        waits.append(((await house.get(job_id)).run_at - house.now).total_seconds())
    assert [max(wait, 0) for wait in waits] == [0, 0, 5, 10, 20]


async def test_a_person_may_retry_poison(house: House) -> None:
    job_id = await house.submit()
    for _ in range(UNPROVEN_LOSSES):
        house.clock.advance(60)
        await house.lose(await house.claim_one())
    assert await house.retry(job_id) is State.SCHEDULED
    claim = await house.claim_one()
    assert (claim.losses, claim.attempt) == (0, UNPROVEN_LOSSES + 1)


# Cancelling


async def test_the_worker_of_a_cancelled_job_hears_of_it_at_its_renewal(house: House) -> None:
    claim = await house.running()
    assert await house.cancel(claim.id) is State.CANCELLING
    renewal = await house.store.renew(house.worker, TTL, [], held=house.leases)
    assert renewal.cancels == {claim.id}


async def test_a_cancel_that_comes_too_late_leaves_the_success(house: House) -> None:
    claim = await house.running()
    await house.cancel(claim.id)
    [ended] = await house.store.finish([Finish.succeeded(claim, 0.5, b"1")])
    assert (ended.state, ended.outcome) == (State.COMPLETED, Outcome.SUCCEEDED)
    assert await house.state(claim.id) is State.COMPLETED


async def test_a_failure_of_a_job_being_cancelled_is_its_cancellation(house: House) -> None:
    claim = await house.running()
    await house.cancel(claim.id)
    [ended] = await house.store.finish([Finish.failed(claim, 0.5, ERROR, Outcome.TIMED_OUT)])
    assert (ended.state, ended.outcome) == (State.CANCELLED, Outcome.CANCELLED)
    job = await house.get(claim.id)
    assert (job.state, job.outcome) == (State.CANCELLED, Outcome.CANCELLED)


@pytest.mark.parametrize("way", ["retry", "snooze", "give_back", "parked", "lost"])
async def test_a_job_being_cancelled_never_goes_back_to_wait(house: House, way: str) -> None:
    claim = await house.running()
    await house.cancel(claim.id)
    moves = {
        "retry": Release.retry(claim, 0.5, 0, ERROR, Outcome.FAILED),
        "snooze": Release.snooze(claim, 0.5, 0),
        "give_back": Release.give_back(claim),
        "parked": Release.parked(claim, 0),
        "lost": Release.lost(claim, 0.5, ERROR),
    }
    ended = await house.release(moves[way])
    assert ended.state is State.CANCELLED
    assert await house.claim() == []
    assert (await house.get(claim.id)).finished_at is not None


async def test_a_lease_that_lapses_in_cancelling_ends_the_job_as_cancelled(house: House) -> None:
    claim = await house.running()
    await house.cancel(claim.id)
    await house.lose(claim)
    job = await house.get(claim.id)
    assert (job.state, job.outcome) == (State.CANCELLED, Outcome.CANCELLED)
    assert await house.claim() == []


async def test_what_outlives_its_worker_is_cancelled_only_once_it_is_seen_stopped(house: House) -> None:
    """A lapsed lease, a worker that leaves: the script may still run, so the cancel waits for the next worker."""
    claim = await house.running(kind="script", expires_at=house.after(3600))
    await house.cancel(claim.id)
    house.clock.advance(TTL)
    [rescue] = await house.store.rescue()
    assert (rescue.state, rescue.outcome) == (State.CANCELLING, Outcome.LOST)
    assert await house.cancel(claim.id) is State.CANCELLING
    assert await house.delete(claim.id) is State.CANCELLING
    assert [attempt.outcome for attempt in await house.store.attempts(claim.id)] == [Outcome.LOST]
    house.clock.advance(3600)
    assert await house.store.expire() == []
    second = await house.claim_one()
    assert (second.id, second.attempt, await house.state(claim.id)) == (claim.id, 2, State.CANCELLING)
    assert (await house.release(Release.give_back(second))).state is State.CANCELLING
    third = await house.claim_one()
    [end] = await house.store.finish([Finish.cancelled(third, 1.0, "seen dead")])
    assert end.state is State.CANCELLED
    assert await house.gone(claim.id), "it was to be deleted once it is seen stopped"


@pytest.mark.parametrize("way", ["lost", "given back"])
async def test_a_cancel_of_what_waits_but_has_begun_waits_for_a_worker(house: House, way: str) -> None:
    claim = await house.running(kind="script")
    await (house.lose(claim) if way == "lost" else house.release(Release.give_back(claim)))
    assert await house.state(claim.id) is State.SCHEDULED
    assert await house.cancel(claim.id) is State.CANCELLING
    assert (await house.claim_one()).id == claim.id
    fresh = await house.submit(kind="script")
    assert await house.cancel(fresh) is State.CANCELLED


async def test_a_failed_script_that_waits_for_its_retry_is_cancelled_at_once(house: House) -> None:
    claim = await house.running(kind="script")
    await house.retry_later(claim, wait=60.0)
    assert await house.cancel(claim.id) is State.CANCELLED


async def test_a_second_cancel_changes_nothing(house: House) -> None:
    claim = await house.running()
    await house.cancel(claim.id)
    assert await house.cancel(claim.id) is State.CANCELLING
    await house.give_up(claim)
    assert await house.cancel(claim.id) is State.CANCELLED


async def test_cancels_answer_for_each_job_in_order(house: House) -> None:
    running = await house.running()
    done = await house.running()
    await house.complete(done)
    waiting = await house.submit()
    unknown = house.new_id()
    verdicts = await house.store.cancel([done.id, unknown, running.id, waiting], by=None, reason="")
    assert words(verdicts) == [
        "completed → completed",
        "JobNotFound",
        "running → cancelling",
        "scheduled → cancelled",
    ]


# Ways back that charge nothing


async def test_a_job_given_back_is_charged_no_attempt_and_keeps_its_place(house: House) -> None:
    claim = await house.running()
    later = await house.submit()
    await house.release(Release.give_back(claim))
    job = await house.get(claim.id)
    assert (job.state, job.attempt, job.failures, job.started_at) == (State.SCHEDULED, 0, 0, None)
    assert ids(await house.claim(2)) == [claim.id, later]


async def test_a_snoozed_job_comes_back_at_its_time_uncharged(house: House) -> None:
    claim = await house.running()
    await house.release(Release.snooze(claim, 0.5, 60))
    assert (await house.get(claim.id)).run_at == house.after(60)
    assert await house.claim() == []
    house.clock.advance(60)
    again = await house.claim_one()
    assert (again.id, again.attempt, again.failures) == (claim.id, 1, 0)


async def test_a_parked_job_says_so_and_is_tried_again_uncharged(house: House) -> None:
    claim = await house.running()
    await house.release(Release.parked(claim, 15))
    job = await house.get(claim.id)
    assert (job.label, job.attempt, job.run_at) == ("parked", 0, house.after(15))
    assert await house.claim() == []
    house.clock.advance(15)
    assert (await house.claim_one()).attempt == 1
    assert (await house.get(claim.id)).wait_reason is None


async def test_a_failed_attempt_is_charged_and_comes_back_after_its_wait(house: House) -> None:
    claim = await house.running()
    await house.retry_later(claim, wait=10)
    job = await house.get(claim.id)
    assert (job.label, job.attempt, job.failures, job.run_at) == ("retrying", 1, 1, house.after(10))
    house.clock.advance(8.9)
    assert await house.claim() == []
    again = await house.claim_one()
    assert (again.attempt, again.failures) == (2, 1)


async def test_a_job_retried_by_a_person_counts_failures_from_zero_and_attempts_on(house: House) -> None:
    claim = await house.running()
    await house.retry_later(claim)
    await house.fail(await house.claim_one())
    assert (await house.get(claim.id)).failures == 2
    await house.retry(claim.id)
    job = await house.get(claim.id)
    assert (job.failures, job.attempt, job.outcome, job.finished_at) == (0, 2, None, None)
    assert (await house.claim_one()).attempt == 3
    assert [attempt.number for attempt in await house.store.attempts(claim.id)] == [1, 2, 3]


async def test_only_a_job_that_has_ended_can_be_retried(house: House) -> None:
    waiting = await house.submit(queue="other")
    claim = await house.running()
    verdicts = await house.store.retry([waiting, claim.id, house.new_id()], by=None)
    assert words(verdicts) == ["IllegalMove", "IllegalMove", "JobNotFound"]


async def test_only_a_job_on_hold_can_be_released(house: House) -> None:
    claim = await house.running()
    held = await house.submit(hold=True)
    verdicts = await house.store.schedule([claim.id, held, house.new_id()], None, by=None)
    assert words(verdicts) == ["IllegalMove", "creating → scheduled", "JobNotFound"]


async def test_start_and_end_of_an_attempt_are_told_by_the_stores_clock(house: House) -> None:
    claim = await house.running()
    claimed_at = house.now
    house.clock.advance(10)
    await house.store.finish([Finish.succeeded(claim, 4, None)])
    job = await house.get(claim.id)
    assert (job.claimed_at, job.started_at, job.finished_at) == (claimed_at, house.after(-4), house.now)
