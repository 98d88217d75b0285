"""Jobs that run after others."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from headway.contracts.stores.house import House, accepted, ids
from headway.model.errors import InvalidJob
from headway.model.states import Outcome, State
from headway.model.submission import OnConflict, OnParentFailure

CANCEL, RUN, HOLD = OnParentFailure


async def child_of(house: House, *parents: UUID, **options: Any) -> UUID:
    return await house.submit("child", queue="children", after=parents, **options)


async def test_a_child_runs_when_all_its_parents_have_completed(house: House) -> None:
    parents = [await house.running() for _ in range(3)]
    child = await child_of(house, *ids(parents))
    for parent in parents:
        assert await house.state(child) is State.BLOCKED
        assert await house.claim(queue="children") == []
        await house.complete(parent)
    assert ids(await house.claim(5, queue="children")) == [child]
    assert set((await house.get(child)).after) == set(ids(parents))


async def test_parents_that_end_in_one_batch_release_the_child_once(house: House) -> None:
    parents = [await house.running() for _ in range(3)]
    child = await child_of(house, *ids(parents))
    await house.complete(*parents)
    assert ids(await house.claim(5, queue="children")) == [child]


async def test_one_that_is_waited_for_may_end_among_many_that_are_not(house: House) -> None:
    jobs = [await house.running() for _ in range(5)]
    child = await child_of(house, jobs[2].id)
    await house.complete(*jobs)
    assert [await house.state(job.id) for job in jobs] == [State.COMPLETED] * 5
    assert ids(await house.claim(5, queue="children")) == [child]


@pytest.mark.parametrize("end", ["fail", "give_up", "cancel"])
@pytest.mark.parametrize("policy", list(OnParentFailure))
async def test_what_becomes_of_a_child_whose_parent_did_not_complete(
    house: House, policy: OnParentFailure, end: str
) -> None:
    parent = await house.submit()
    child = await child_of(house, parent, on_parent_failure=policy)
    if end == "cancel":
        await house.cancel(parent)
    else:
        await getattr(house, end)(await house.claim_one())
    job = await house.get(child)
    match policy:
        case OnParentFailure.CANCEL:
            assert (job.state, job.outcome) == (State.CANCELLED, Outcome.CANCELLED)
            assert job.error is not None
            assert str(parent) in job.error.message
        case OnParentFailure.RUN:
            assert job.state is State.SCHEDULED
        case OnParentFailure.HOLD:
            assert (job.state, job.wait_reason) == (State.BLOCKED, "parent_failed")


async def test_a_child_held_back_is_released_by_a_person(house: House) -> None:
    parent = await house.running()
    child = await child_of(house, parent.id, on_parent_failure=HOLD)
    await house.fail(parent)
    assert await house.claim(queue="children") == []
    assert await house.schedule(child) is State.SCHEDULED
    assert ids(await house.claim(queue="children")) == [child]


async def test_a_child_held_back_stays_so_when_its_other_parent_completes(house: House) -> None:
    failing, other = await house.running(), await house.running()
    child = await child_of(house, failing.id, other.id, on_parent_failure=HOLD)
    await house.fail(failing)
    await house.complete(other)
    assert await house.state(child) is State.BLOCKED
    await house.schedule(child)
    assert await house.state(child) is State.SCHEDULED


async def test_a_child_released_by_a_person_still_waits_for_its_other_parent(house: House) -> None:
    failing, other = await house.running(), await house.running()
    child = await child_of(house, failing.id, other.id, on_parent_failure=HOLD)
    await house.fail(failing)
    assert await house.schedule(child) is State.BLOCKED
    await house.complete(other)
    assert await house.state(child) is State.SCHEDULED


async def test_a_child_that_runs_anyway_still_waits_for_its_other_parents(house: House) -> None:
    failing, other = await house.running(), await house.running()
    child = await child_of(house, failing.id, other.id, on_parent_failure=RUN)
    await house.fail(failing)
    assert await house.state(child) is State.BLOCKED
    await house.complete(other)
    assert await house.state(child) is State.SCHEDULED


async def test_a_child_is_cancelled_by_the_first_failure_and_not_woken_by_later_ends(house: House) -> None:
    failing, other = await house.running(), await house.running()
    child = await child_of(house, failing.id, other.id)
    await house.fail(failing)
    assert await house.state(child) is State.CANCELLED
    await house.complete(other)
    assert await house.state(child) is State.CANCELLED


async def test_a_failure_is_passed_on_through_generations(house: House) -> None:
    first = await house.running()
    second = await child_of(house, first.id)
    third = await child_of(house, second)
    anyway = await child_of(house, third, on_parent_failure=RUN)
    await house.fail(first)
    assert await house.states(second, third, anyway) == ["cancelled", "cancelled", "scheduled"]


async def test_a_parent_that_is_tried_again_is_waited_for(house: House) -> None:
    parent = await house.running()
    child = await child_of(house, parent.id)
    await house.retry_later(parent)
    await house.lose(await house.claim_one())
    assert await house.state(child) is State.BLOCKED
    await house.complete(await house.claim_one())
    assert await house.state(child) is State.SCHEDULED


async def test_a_rescue_that_ends_the_parent_settles_its_child(house: House) -> None:
    parent = await house.running()
    child = await child_of(house, parent.id)
    await house.cancel(parent.id)
    await house.lose(parent)
    assert await house.state(child) is State.CANCELLED


async def test_an_expired_parent_counts_as_cancelled(house: House) -> None:
    parent = await house.submit(expires_in=5)
    child = await child_of(house, parent)
    house.clock.advance(5)
    await house.store.expire()
    assert await house.state(child) is State.CANCELLED


@pytest.mark.parametrize("policy", list(OnParentFailure))
async def test_parents_that_have_ended_already_resolve_at_once(house: House, policy: OnParentFailure) -> None:
    completed, failed = await house.running(), await house.running()
    await house.complete(completed)
    await house.fail(failed)

    happy = await house.accept(house.job("child", after=(completed.id,), on_parent_failure=policy))
    sad = await house.accept(house.job("child", after=(completed.id, failed.id), on_parent_failure=policy))

    assert happy.state is State.SCHEDULED
    assert sad.state is {CANCEL: State.CANCELLED, RUN: State.SCHEDULED, HOLD: State.BLOCKED}[policy]
    assert await house.states(happy.job_id, sad.job_id) == [happy.state.value, sad.state.value]


async def test_ended_and_open_parents_may_be_mixed(house: House) -> None:
    ended, open_ = await house.running(), await house.running()
    await house.complete(ended)
    child = await child_of(house, ended.id, open_.id)
    assert await house.state(child) is State.BLOCKED
    await house.complete(open_)
    assert await house.state(child) is State.SCHEDULED


async def test_a_batch_may_contain_parents_and_their_children(house: House) -> None:
    first = house.job("first")
    second = house.job("second", after=(first.id,))
    third = house.job("third", after=(first.id, second.id))
    answers = [accepted(answer) for answer in await house.batch(first, second, third)]
    assert [answer.state for answer in answers] == [State.SCHEDULED, State.BLOCKED, State.BLOCKED]
    for job in (first, second, third):
        claims = await house.claim(5)
        assert ids(claims) == [job.id]
        await house.complete(*claims)


async def test_a_whole_batch_behind_a_failed_parent_is_settled_at_once(house: House) -> None:
    failed = await house.running()
    await house.fail(failed)
    first = house.job("first", after=(failed.id,))
    second = house.job("second", after=(first.id,))
    answers = [accepted(answer) for answer in await house.batch(first, second)]
    assert await house.states(first.id, second.id) == ["cancelled", "cancelled"]
    assert [answer.state for answer in answers] == [State.CANCELLED, State.CANCELLED]


async def test_an_unknown_parent_is_refused_by_name(house: House) -> None:
    unknown = house.new_id()
    good = house.job()
    answers = await house.batch(good, house.job("child", after=(unknown,)))
    assert accepted(answers[0]).job_id == good.id
    assert isinstance(answers[1], InvalidJob)
    assert answers[1].field == "after"
    assert str(unknown) in str(answers[1])


async def test_a_job_cannot_run_after_itself_or_after_a_later_one_of_its_batch(house: House) -> None:
    later = house.job("later")
    job = house.job("child", after=(later.id,))
    own = house.new_id()
    refused, _, selfish = await house.batch(job, later, house.job("selfish", id=own, after=(own,)))
    assert isinstance(refused, InvalidJob)
    assert isinstance(selfish, InvalidJob)


@pytest.mark.parametrize("running", [False, True])
async def test_a_deleted_parent_counts_as_cancelled(house: House, running: bool) -> None:
    parent = await house.submit()
    claims = await house.claim() if running else []
    children = [await child_of(house, parent, on_parent_failure=policy) for policy in OnParentFailure]
    await house.delete(parent)
    for claim in claims:
        await house.give_up(claim)
    assert await house.gone(parent)
    assert await house.states(*children) == ["cancelled", "scheduled", "blocked"]


async def test_a_deleted_ended_parent_leaves_its_children_alone(house: House) -> None:
    parent = await house.running()
    child = await child_of(house, parent.id)
    await house.complete(parent)
    await house.delete(parent.id)
    assert await house.state(child) is State.SCHEDULED


async def test_a_child_on_hold_waits_for_both_its_parent_and_its_release(house: House) -> None:
    for parent_first in (True, False):
        parent = await house.running()
        child = await child_of(house, parent.id, hold=True)
        assert await house.state(child) is State.CREATING
        if parent_first:
            await house.complete(parent)
            assert await house.state(child) is State.CREATING
            assert await house.schedule(child) is State.SCHEDULED
        else:
            assert await house.schedule(child) is State.BLOCKED
            await house.complete(parent)
            assert await house.state(child) is State.SCHEDULED


async def test_a_child_of_the_same_key_is_cancelled_with_its_parent_and_waits_for_the_others(house: House) -> None:
    parent = await house.running("sync")
    child = await house.submit("sync", on_conflict=OnConflict.WAIT, after=(parent.id,))
    await house.fail(parent)
    assert await house.state(child) is State.CANCELLED


async def test_who_queued_up_behind_a_cancelled_child_does_not_wait_for_its_parents(house: House) -> None:
    parent = await house.running()
    first = await house.running("sync")
    middle = await house.submit("sync", on_conflict=OnConflict.WAIT, after=(parent.id,))
    last = await house.submit("sync", on_conflict=OnConflict.WAIT)
    await house.cancel(middle)
    await house.complete(first)
    assert await house.state(last) is State.SCHEDULED


async def test_a_child_that_runs_anyway_keeps_its_place_in_its_keys_line(house: House) -> None:
    first = await house.running("sync")
    parent = await house.submit("sync", on_conflict=OnConflict.WAIT)
    child = await house.submit("sync", on_conflict=OnConflict.WAIT, after=(parent,), on_parent_failure=RUN)
    await house.cancel(parent)
    assert await house.state(child) is State.BLOCKED
    await house.complete(first)
    assert await house.state(child) is State.SCHEDULED


async def test_a_child_keeps_its_own_time(house: House) -> None:
    parent = await house.running()
    child = await child_of(house, parent.id, delay=100)
    await house.complete(parent)
    assert await house.state(child) is State.SCHEDULED
    assert await house.claim(queue="children") == []
    house.clock.advance(100)
    assert ids(await house.claim(queue="children")) == [child]


async def test_a_cancelled_child_is_not_woken_by_its_parent(house: House) -> None:
    parent = await house.running()
    child = await child_of(house, parent.id)
    await house.cancel(child)
    await house.complete(parent)
    assert await house.state(child) is State.CANCELLED


async def test_two_parents_that_end_at_once_in_two_processes_release_the_child(shared: House) -> None:
    other = await shared.second()
    for _ in range(15):
        parents = [await shared.running(), await shared.running()]
        child = await child_of(shared, *ids(parents))
        await asyncio.gather(shared.complete(parents[0]), other.complete(parents[1]))
        assert await shared.state(child) is State.SCHEDULED


async def test_a_parent_that_ends_while_its_child_is_submitted_is_not_missed(shared: House) -> None:
    other = await shared.second()
    for _ in range(15):
        parent = await shared.running()
        child, _ = await asyncio.gather(child_of(shared, parent.id), other.complete(parent))
        assert await shared.state(child) is State.SCHEDULED
