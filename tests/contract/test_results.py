"""Results and output."""

import pytest

from headway.model.job import CHUNK, Chunk, Claim, Progress, Release, Report
from headway.model.submission import INLINE_LIMIT
from tests.contract.house import House


async def read_result(house: House, claim: Claim) -> bytes | None:
    stored = await house.store.result(claim.id)
    if stored is None:
        return None
    if stored.data is not None:
        return stored.data
    data, seq = b"", -1
    while pieces := await house.store.chunks(claim.id, 0, stream="result", after_seq=seq, limit=3):
        assert all(len(piece.data) <= CHUNK for piece in pieces)
        data += b"".join(piece.data for piece in pieces)
        seq = pieces[-1].seq
    assert len(data) == stored.size
    return data


def log(seq: int, text: str, stream: str = "log") -> Chunk:
    return Chunk(seq=seq, stream=stream, data=text.encode())


async def texts(house: House, claim: Claim, attempt: int = 1) -> list[str]:
    return [chunk.data.decode() for chunk in await house.store.chunks(claim.id, attempt)]


@pytest.mark.parametrize("size", [0, 1, INLINE_LIMIT, INLINE_LIMIT + 1, 1024 * 1024])
async def test_a_result_of_any_size_is_read_back_as_it_was(house: House, size: int) -> None:
    claim = await house.running()
    result = bytes(number % 251 for number in range(size))
    await house.complete(claim, result=result)
    stored = await house.store.result(claim.id)
    assert stored is not None
    assert (stored.size, stored.content_type) == (size, "application/json")
    assert (stored.data is not None) is (size <= INLINE_LIMIT)
    assert await read_result(house, claim) == result


async def test_a_job_without_a_result_has_none(house: House) -> None:
    claim = await house.running()
    await house.complete(claim)
    assert await house.store.result(claim.id) is None


async def test_the_null_of_json_is_a_result(house: House) -> None:
    claim = await house.running()
    await house.complete(claim, result=b"null")
    assert await read_result(house, claim) == b"null"


@pytest.mark.parametrize("second", [b"2", b"y" * 300_000])
async def test_a_retried_job_has_the_result_of_its_last_attempt_only(house: House, second: bytes) -> None:
    claim = await house.running()
    await house.complete(claim, result=b"x" * 500_000)
    await house.retry(claim.id)
    assert await house.store.result(claim.id) is None
    assert await house.store.chunks(claim.id, 0, stream="result") == []
    claim = await house.claim_one()
    await house.complete(claim, result=second)
    assert await read_result(house, claim) == second


async def test_output_is_read_back_in_order_and_from_any_place(house: House) -> None:
    claim = await house.running()
    assert await house.append(claim, [log(0, "a"), log(1, "b")])
    assert await house.append(claim, [log(2, "err", "stderr"), log(3, "c")])
    assert await texts(house, claim) == ["a", "b", "err", "c"]
    read = await house.store.chunks(claim.id, 1, stream="log", after_seq=0, limit=1)
    assert [(chunk.seq, chunk.data) for chunk in read] == [(1, b"b")]


async def test_several_jobs_say_something_at_once_and_only_those_that_are_held_are_heard(house: House) -> None:
    lost, one, two = [await house.running() for _ in range(3)]
    await house.release(Release.give_back(lost))
    parcels = [(claim, [log(0, claim.name), log(1, "more")]) for claim in (one, lost, two)]
    assert await house.store.append(parcels) == [True, False, True]
    assert await house.store.note([(claim, "placed", "here") for claim in (lost, two, one)]) == [False, True, True]
    assert await house.store.chunks(lost.id, 1) == []
    for claim in (one, two):
        assert [chunk.seq for chunk in await house.store.chunks(claim.id, 1)] == [0, 1]
        assert [change.what for change in await house.store.history(claim.id)].count("placed") == 1
    assert [change.what for change in await house.store.history(lost.id)].count("placed") == 0


async def test_each_attempt_has_its_own_output(house: House) -> None:
    claim = await house.running()
    await house.append(claim, [log(0, "first")])
    await house.retry_later(claim)
    again = await house.claim_one()
    await house.append(again, [log(0, "second")])
    assert (await texts(house, claim, 1), await texts(house, claim, 2)) == (["first"], ["second"])


async def test_the_output_of_an_attempt_that_was_not_charged_does_not_hide_that_of_the_next(house: House) -> None:
    claim = await house.running()
    await house.append(claim, [log(0, "before"), log(1, "more")])
    await house.release(Release.snooze(claim, 0.5, 0))
    again = await house.claim_one()
    assert await house.append(again, [log(0, "after")])
    assert "after" in await texts(house, again, again.attempt)


async def test_chunks_may_be_sent_again_after_an_unknown_commit(house: House) -> None:
    claim = await house.running()
    assert await house.append(claim, [log(0, "a")])
    assert await house.append(claim, [log(0, "a")])
    assert await texts(house, claim) == ["a"]


async def test_output_after_the_end_is_refused(house: House) -> None:
    claim = await house.running()
    await house.complete(claim)
    assert not await house.append(claim, [log(0, "late")])
    assert await texts(house, claim) == []


async def test_output_does_not_show_the_result(house: House) -> None:
    claim = await house.running()
    await house.append(claim, [log(0, "a")])
    await house.complete(claim, result=b"x" * 300_000)
    assert await texts(house, claim) == ["a"]
    assert await house.store.chunks(claim.id, 0) == []


async def test_progress_and_start_are_reported_while_the_job_runs(house: House) -> None:
    claim = await house.running()
    house.clock.advance(3)
    news = Report(job_id=claim.id, token=claim.token, ran=2.0, progress='{"done":3,"total":10}')
    assert await house.store.report([news]) == {claim.id}
    job = await house.get(claim.id)
    assert (job.started_at, job.progress) == (house.after(-2), Progress(3, 10))
    house.clock.advance(3)
    await house.store.report([Report(job_id=claim.id, token=claim.token, ran=5.5)])
    assert (await house.get(claim.id)).progress == Progress(3, 10)
    assert (await house.get(claim.id)).started_at == house.after(-5)


async def test_the_next_attempt_starts_without_progress(house: House) -> None:
    claim = await house.running()
    await house.store.report([Report(job_id=claim.id, token=claim.token, ran=0.5, progress='{"done":3}')])
    await house.retry_later(claim)
    await house.claim_one()
    job = await house.get(claim.id)
    assert (job.progress, job.started_at) == (None, None)


async def test_a_report_answers_for_the_jobs_that_are_still_held(house: House) -> None:
    held, done = await house.running(), await house.running()
    await house.complete(done)
    news = [Report(job_id=claim.id, token=claim.token, ran=0.1) for claim in (held, done)]
    assert await house.store.report(news) == {held.id}
