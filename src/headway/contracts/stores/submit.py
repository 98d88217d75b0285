"""Submitting: what is kept, repeats, batches."""

from __future__ import annotations

import msgspec

from headway.contracts.stores.house import House, accepted
from headway.model.errors import IdTaken
from headway.model.retry import Retry
from headway.model.states import State
from headway.model.submission import OnConflict


async def test_a_job_is_stored_as_it_was_asked_for(house: House) -> None:
    asked = house.job(
        "report",
        key="customer 7",
        queue="reports",
        priority=-5,
        payload='{"args": [1, "ä€🙂"]}',
        run_at=house.after(60),
        timeout=12.5,
        retry=Retry(max_attempts=3),
        expires_at=house.after(3600),
        tags=("daily", "vip"),
        metadata={"a": [1, None]},
        created_by="ann",
        correlation_id="c-1",
        traceparent="00-1-2-03",
        code_version="1.2",
    )
    answer = await house.accept(asked)
    job = await house.get(asked.id)

    for field in ("id", "kind", "name", "key", "queue", "priority", "run_at", "timeout", "retry", "expires_at"):
        assert getattr(job, field) == getattr(asked, field), field
    for field in ("tags", "metadata", "created_by", "correlation_id", "traceparent", "code_version"):
        assert getattr(job, field) == getattr(asked, field), field
    assert msgspec.json.decode(job.payload) == msgspec.json.decode(asked.payload)
    assert (job.state, job.desired_at, job.created_at) == (State.SCHEDULED, house.after(60), house.now)
    assert (answer.state, answer.run_at, answer.created_at) == (State.SCHEDULED, house.after(60), house.now)
    assert (job.attempt, job.failures, job.losses, job.token) == (0, 0, 0, 0)


async def test_a_delay_counts_from_acceptance_by_the_stores_clock(house: House) -> None:
    job = house.job(delay=30)
    house.clock.advance(5)
    assert (await house.accept(job)).run_at == house.after(30)


async def test_a_repeated_submission_is_the_same_job(house: House) -> None:
    job = house.job()
    first = await house.accept(job)
    house.clock.advance(5)
    assert await house.accept(job) == msgspec.structs.replace(first, repeated=True)
    assert (await house.store.counts()) == {"default": {State.SCHEDULED: 1}}


async def test_a_repeat_tells_what_has_become_of_the_job(house: House) -> None:
    job = house.job()
    await house.accept(job)
    await house.complete(await house.claim_one())
    assert (await house.accept(job)).state is State.COMPLETED
    assert await house.claim() == []


async def test_a_repeated_keyed_submission_does_not_conflict_with_itself(house: House) -> None:
    for policy in OnConflict:
        job = house.job(f"mail {policy}", on_conflict=policy)
        first = await house.accept(job)
        assert (await house.accept(job)).job_id == first.job_id
        assert await house.state(job.id) is State.SCHEDULED


async def test_an_id_with_another_content_is_taken(house: House) -> None:
    job = house.job()
    await house.accept(job)
    for changed in ({"payload": "[]"}, {"name": "sms"}, {"queue": "other"}, {"priority": 1}, {"key": "k"}):
        error = await house.refuse(msgspec.structs.replace(job, **changed))
        assert isinstance(error, IdTaken)
    assert (await house.get(job.id)).payload == "{}"


async def test_in_a_batch_of_a_hundred_only_the_taken_one_fails(house: House) -> None:
    taken = await house.accept(house.job())
    batch = [house.job() for _ in range(99)]
    batch.insert(42, house.job(id=taken.job_id, payload="[]"))

    answers = await house.store.submit(batch)

    assert [type(answer).__name__ for answer in answers] == ["Accepted"] * 42 + ["IdTaken"] + ["Accepted"] * 57
    assert [accepted(answer).job_id for answer in answers if not isinstance(answer, IdTaken)] == [
        job.id for job in batch if job.id != taken.job_id
    ]
    assert (await house.store.counts()) == {"default": {State.SCHEDULED: 100}}


async def test_in_a_mixed_batch_a_refused_job_fails_alone(house: House) -> None:
    await house.submit("busy")
    batch = [house.job(), house.job("busy", on_conflict=OnConflict.REJECT), house.job("other", key="x"), house.job()]
    answers = await house.store.submit(batch)
    assert [type(answer).__name__ for answer in answers] == ["Accepted", "Conflict", "Accepted", "Accepted"]
    assert await house.gone(batch[1].id)


async def test_the_same_submission_twice_in_one_batch_is_one_job(house: House) -> None:
    for options in ({}, {"on_conflict": OnConflict.WAIT}, {"on_conflict": OnConflict.REJECT}):
        job = house.job(f"mail {options}", **options)
        first, second = await house.batch(job, job)
        assert accepted(first).job_id == accepted(second).job_id == job.id
        assert await house.state(job.id) is State.SCHEDULED


async def test_one_id_for_two_contents_in_one_batch_is_taken_for_the_second(house: House) -> None:
    for options in ({}, {"key": "k"}):
        job = house.job(**options)
        first, second = await house.batch(job, msgspec.structs.replace(job, payload="[2]"))
        assert accepted(first).job_id == job.id
        assert isinstance(second, IdTaken)
        assert (await house.get(job.id)).payload == "{}"


async def test_an_empty_batch_is_harmless(house: House) -> None:
    assert await house.store.submit([]) == []


async def test_a_job_on_hold_waits_until_it_is_released(house: House) -> None:
    job_id = await house.submit(hold=True)
    assert await house.state(job_id) is State.CREATING
    assert await house.claim() == []
    assert await house.schedule(job_id, house.after(60)) is State.SCHEDULED
    assert await house.claim() == []
    house.clock.advance(60)
    assert (await house.claim_one()).id == job_id


async def test_a_job_on_hold_is_not_swept_away(house: House) -> None:
    job_id = await house.submit(hold=True)
    house.clock.advance(3600)
    assert await house.store.sweep(grace=0) == 0
    assert await house.state(job_id) is State.CREATING
