"""What a submission does when another open job has the same key."""

from typing import Any
from uuid import UUID

import pytest

from headway.contracts.stores.house import House, accepted, ids
from headway.model.errors import Conflict
from headway.model.states import State
from headway.model.submission import OnConflict, Submission

ALLOW, REJECT, WAIT, SKIP, REPLACE = OnConflict


def wait(house: House, name: str = "sync") -> Submission:
    return house.job(name, on_conflict=WAIT)


async def run_and_complete(house: House) -> UUID:
    claim = await house.claim_one()
    await house.complete(claim)
    return claim.id


@pytest.mark.parametrize("policy", list(OnConflict))
async def test_without_another_open_job_every_policy_lets_the_job_in(house: House, policy: OnConflict) -> None:
    await house.complete(await house.running("sync"))
    assert await house.store.open_job("sync") is None
    answer = await house.accept(house.job("sync", on_conflict=policy))
    assert (answer.state, answer.deduplicated, answer.warnings) == (State.SCHEDULED, False, ())


async def test_allow_warns_of_the_other(house: House) -> None:
    first = await house.submit("sync")
    answer = await house.accept(house.job("sync", key="sync"))
    assert str(first) in answer.warnings[0]
    assert answer.state is State.SCHEDULED


@pytest.mark.parametrize("state", ["creating", "scheduled", "blocked", "future", "running", "cancelling"])
async def test_reject_meets_any_open_job_of_the_key(house: House, state: str) -> None:
    other = await house.submit("parent", queue="parents")
    options: dict[str, dict[str, Any]] = {
        "creating": {"hold": True},
        "blocked": {"after": (other,)},
        "future": {"delay": 1e6},
    }
    first = await house.submit("sync", **options.get(state, {}))
    if state in {"running", "cancelling"}:
        await house.claim_one()
    if state == "cancelling":
        await house.cancel(first)
    assert await house.store.open_job("sync") == first
    error = await house.refuse(house.job("sync", on_conflict=REJECT))
    assert isinstance(error, Conflict)
    assert (error.conflicting_job_id, error.key) == (first, "sync")


async def test_a_job_that_waits_for_its_retry_is_open(house: House) -> None:
    await house.retry_later(await house.running("sync"), wait=60)
    assert isinstance(await house.refuse(house.job("sync", on_conflict=REJECT)), Conflict)


async def test_a_rescued_job_is_open(house: House) -> None:
    await house.lose(await house.running("sync"))
    assert isinstance(await house.refuse(house.job("sync", on_conflict=REJECT)), Conflict)


async def test_keys_are_compared_and_not_names(house: House) -> None:
    await house.submit("sync", key="a")
    await house.accept(house.job("sync", key="b", on_conflict=REJECT))
    await house.accept(house.job("sync", on_conflict=REJECT))
    assert isinstance(await house.refuse(house.job("other", key="a", on_conflict=REJECT)), Conflict)


async def test_a_key_is_free_again_when_its_job_has_ended(house: House) -> None:
    for end in (house.complete, house.fail, house.give_up):
        claim = await house.running("sync", on_conflict=REJECT)
        await end(claim)
    cancelled = await house.submit("sync", on_conflict=REJECT)
    await house.cancel(cancelled)
    await house.submit("sync", on_conflict=REJECT)


async def test_skip_answers_with_the_other_job(house: House) -> None:
    first = await house.submit("sync")
    job = house.job("sync", on_conflict=SKIP)
    answer = await house.accept(job)
    assert (answer.job_id, answer.deduplicated) == (first, True)
    assert await house.gone(job.id)


async def test_skip_answers_with_a_running_job_too(house: House) -> None:
    claim = await house.running("sync")
    answer = await house.accept(house.job("sync", on_conflict=SKIP))
    assert (answer.job_id, answer.state) == (claim.id, State.RUNNING)


@pytest.mark.parametrize("end", ["complete", "fail", "give_up", "lose in cancelling", "cancel", "delete"])
async def test_a_job_that_waits_runs_after_any_end_of_the_previous_one(house: House, end: str) -> None:
    first = await house.running("sync")
    second = await house.accept(wait(house))
    assert second.state is State.BLOCKED
    assert await house.claim() == []
    match end:
        case "lose in cancelling":
            await house.cancel(first.id)
            await house.lose(first)
        case "cancel":
            await house.cancel(first.id)
            await house.fail(first)
        case "delete":
            await house.delete(first.id)
            await house.complete(first)
        case _:
            await getattr(house, end)(first)
    assert ids(await house.claim(5)) == [second.job_id]


async def test_a_job_that_waits_still_waits_while_the_previous_one_is_tried_again(house: House) -> None:
    first = await house.running("sync")
    second = (await house.accept(wait(house))).job_id
    await house.retry_later(first)
    assert await house.state(second) is State.BLOCKED
    first = await house.claim_one()
    await house.lose(first)
    assert await house.state(second) is State.BLOCKED
    assert ids(await house.claim(5)) == [first.id]


async def test_waiting_jobs_run_one_after_another_in_the_order_of_their_acceptance(house: House) -> None:
    chain = [await house.submit("sync", on_conflict=WAIT) for _ in range(6)]
    for expected in chain:
        claims = await house.claim(10)
        assert ids(claims) == [expected]
        await house.complete(*claims)


async def test_waiting_jobs_of_one_batch_line_up_in_its_order(house: House) -> None:
    batch = [wait(house) for _ in range(5)]
    answers = [accepted(answer) for answer in await house.batch(*batch)]
    assert [answer.state for answer in answers] == [State.SCHEDULED] + [State.BLOCKED] * 4
    assert [await run_and_complete(house) for _ in batch] == [job.id for job in batch]


async def test_when_one_in_the_middle_is_cancelled_the_next_still_waits_for_the_first(house: House) -> None:
    first = await house.running("sync")
    middle, last = [await house.submit("sync", on_conflict=WAIT) for _ in range(2)]
    await house.cancel(middle)
    assert await house.state(last) is State.BLOCKED
    assert await house.claim() == []
    await house.complete(first)
    assert ids(await house.claim(5)) == [last]


async def test_a_long_chain_keeps_its_order_when_several_in_it_are_cancelled_or_deleted(house: House) -> None:
    first = await house.running("sync")
    chain = [await house.submit("sync", on_conflict=WAIT) for _ in range(6)]
    await house.store.cancel([chain[1], chain[2]], by=None, reason="")
    await house.delete(chain[4])
    await house.complete(first)
    assert [await run_and_complete(house) for _ in range(3)] == [chain[0], chain[3], chain[5]]


async def test_a_waiting_job_waits_for_all_that_were_let_in_before_it(house: House) -> None:
    await house.store.submit([house.job("sync", key="sync") for _ in range(3)])
    last = await house.submit("sync", on_conflict=WAIT)
    for claim in await house.claim(3):
        assert await house.state(last) is State.BLOCKED
        await house.complete(claim)
    assert ids(await house.claim(5)) == [last]


async def test_one_let_in_between_is_waited_for_too(house: House) -> None:
    first = await house.running("sync")
    second = await house.submit("sync", on_conflict=WAIT)
    between = await house.running("sync", key="sync")
    last = await house.submit("sync", on_conflict=WAIT)
    await house.complete(first)
    assert await house.claim_one() is not None
    assert await house.states(second, last) == ["running", "blocked"]
    await house.complete(between)
    assert await house.state(last) is State.BLOCKED


async def test_replace_cancels_those_that_wait(house: House) -> None:
    waiting = [await house.submit("sync", delay=60), await house.submit("sync", hold=True)]
    answer = await house.accept(house.job("sync", on_conflict=REPLACE))
    assert answer.state is State.SCHEDULED
    assert await house.states(*waiting) == ["cancelled", "cancelled"]
    assert str(answer.job_id) in (await house.get(waiting[0])).error.message  # type: ignore[union-attr]


async def test_replace_waits_until_the_running_one_has_stopped(house: House) -> None:
    first = await house.running("sync")
    waiting = await house.submit("sync", on_conflict=WAIT)
    answer = await house.accept(house.job("sync", on_conflict=REPLACE))
    assert answer.state is State.BLOCKED
    assert await house.states(first.id, waiting) == ["cancelling", "cancelled"]
    assert await house.claim() == []
    await house.fail(first)
    assert ids(await house.claim(5)) == [answer.job_id]


async def test_replace_after_replace_leaves_the_last_one(house: House) -> None:
    first = await house.running("sync")
    second = (await house.accept(house.job("sync", on_conflict=REPLACE))).job_id
    third = (await house.accept(house.job("sync", on_conflict=REPLACE))).job_id
    await house.complete(first)
    assert await house.states(first.id, second, third) == ["completed", "cancelled", "scheduled"]


async def test_conflicts_are_judged_within_one_batch_too(house: House) -> None:
    for policy, answers in {
        ALLOW: ["scheduled", "scheduled"],
        REJECT: ["scheduled", "Conflict"],
        WAIT: ["scheduled", "blocked"],
        SKIP: ["scheduled", "scheduled"],
        REPLACE: ["cancelled", "scheduled"],
    }.items():
        batch = [house.job(f"sync {policy}", key=f"{policy}", on_conflict=policy) for _ in range(2)]
        first, second = await house.batch(*batch)
        states = [await house.state(batch[0].id)]
        if policy is REJECT:
            assert isinstance(second, Conflict)
        elif policy is SKIP:
            assert accepted(second).job_id == accepted(first).job_id
            assert accepted(second).deduplicated
            assert await house.gone(batch[1].id)
        else:
            states.append(await house.state(batch[1].id))
            assert [state.value for state in states] == answers


async def test_a_retry_by_a_person_is_rejected_while_another_is_open(house: House) -> None:
    for policy in (REJECT, SKIP):
        name = f"sync {policy}"
        failed = await house.running(name, on_conflict=policy)
        await house.fail(failed)
        other = await house.submit(name, delay=60)
        verdict = await house.retry(failed.id)
        assert isinstance(verdict, Conflict)
        assert verdict.conflicting_job_id == other
        assert await house.state(failed.id) is State.FAILED


async def test_a_retry_by_a_person_waits_for_the_others(house: House) -> None:
    failed = await house.running("sync", on_conflict=WAIT)
    await house.fail(failed)
    running = await house.running("sync")
    assert await house.retry(failed.id) is State.BLOCKED
    assert await house.claim() == []
    await house.complete(running)
    assert ids(await house.claim(5)) == [failed.id]


async def test_a_retry_by_a_person_replaces_the_others(house: House) -> None:
    failed = await house.running("sync", on_conflict=REPLACE)
    await house.fail(failed)
    waiting = await house.submit("sync", delay=60)
    assert await house.retry(failed.id) is State.SCHEDULED
    assert await house.state(waiting) is State.CANCELLED


async def test_a_retry_by_a_person_that_replaces_waits_for_a_running_one(house: House) -> None:
    failed = await house.running("sync", on_conflict=REPLACE)
    await house.fail(failed)
    running = await house.running("sync")
    assert await house.retry(failed.id) is State.BLOCKED
    assert await house.state(running.id) is State.CANCELLING
    await house.give_up(running)
    assert ids(await house.claim(5)) == [failed.id]


async def test_who_comes_after_a_retried_job_waits_for_it_too(house: House) -> None:
    failed = await house.running("sync", on_conflict=WAIT)
    await house.fail(failed)
    running = await house.running("sync", on_conflict=WAIT)
    waiting = await house.submit("sync", on_conflict=WAIT)
    await house.retry(failed.id)
    last = await house.submit("sync", on_conflict=WAIT)
    await house.complete(running)
    order = []
    for _ in range(3):
        claims = await house.claim(5)
        assert len(claims) == 1, "two jobs of one line run at once"
        order.append(claims[0].id)
        await house.complete(*claims)
    assert order == [waiting, failed.id, last]
