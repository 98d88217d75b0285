"""What every place for output promises: `from headway.contracts.outputs import *` in a test file runs it all.

Bring a fixture `outputs`: the place under test, made for `house.store`; and `make_store` as for the suite of stores,
where `lambda: headway.store.make_store("sqlite://", clock)` will do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headway.contracts.stores.house import House
from headway.model.job import CHUNK, Chunk, Claim
from headway.output.contract import Outputs


def chunk(seq: int, data: bytes, stream: str = "stdout") -> Chunk:
    return Chunk(seq=seq, stream=stream, data=data)


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


async def read(outputs: Outputs, claim: Claim, **which: object) -> list[tuple[int, str, bytes]]:
    found = await outputs.chunks(claim.id, claim.attempt, **which)  # type: ignore[arg-type]
    return [(each.seq, each.stream, each.data) for each in found]


async def running(house: House) -> Claim:
    await house.submit()
    [claim] = await house.claim()
    return claim


async def test_chunks_come_back_in_order_with_their_times(house: House, outputs: Outputs) -> None:
    claim = await running(house)
    assert await outputs.append(claim, [chunk(0, b"a"), chunk(1, b"\0\xff", "stderr")])
    assert await outputs.append(claim, [chunk(2, b"c")])
    assert await read(outputs, claim) == [(0, "stdout", b"a"), (1, "stderr", b"\0\xff"), (2, "stdout", b"c")]
    assert await read(outputs, claim, stream="stdout") == [(0, "stdout", b"a"), (2, "stdout", b"c")]
    assert await read(outputs, claim, after_seq=0, limit=1) == [(1, "stderr", b"\0\xff")]
    assert all(each.at is not None for each in await outputs.chunks(claim.id, claim.attempt))
    assert [(each.seq, each.size) for each in await outputs.sizes(claim.id, claim.attempt)] == [(0, 1), (1, 2), (2, 1)]


async def test_a_chunk_may_be_said_again(house: House, outputs: Outputs) -> None:
    claim = await running(house)
    await outputs.append(claim, [chunk(0, b"a"), chunk(1, b"10 left out", "note")])
    await outputs.append(claim, [chunk(1, b"20 left out", "note")])
    assert await read(outputs, claim) == [(0, "stdout", b"a"), (1, "note", b"20 left out")]


async def test_what_is_said_again_takes_nothing_of_what_came_with_it_before(house: House, outputs: Outputs) -> None:
    """Long output: each time, the words about what is missing stand before what has come since."""
    claim = await running(house)
    await outputs.append(claim, [chunk(0, b"a"), chunk(1, b"10 left out", "note"), chunk(5, b"5")])
    await outputs.append(claim, [chunk(1, b"20 left out", "note"), chunk(6, b"6"), chunk(7, b"7")])
    await outputs.append(claim, [chunk(1, b"30 left out", "note"), chunk(8, b"8")])
    told = [(1, "note", b"30 left out"), *((seq, "stdout", b"%d" % seq) for seq in (5, 6, 7, 8))]
    assert await read(outputs, claim) == [(0, "stdout", b"a"), *told]
    assert await read(outputs, claim, limit=2) == [(0, "stdout", b"a"), told[0]]
    assert await read(outputs, claim, after_seq=0) == told
    assert [each.seq for each in await outputs.sizes(claim.id, claim.attempt)] == [0, 1, 5, 6, 7, 8]
    await outputs.trim(claim, 5, 7)
    assert [seq for seq, _, _ in await read(outputs, claim)] == [0, 1, 8]


async def test_chunks_are_taken_out_of_the_middle(house: House, outputs: Outputs) -> None:
    claim = await running(house)
    await outputs.append(claim, [chunk(seq, b"%d" % seq) for seq in range(6)])
    await outputs.trim(claim, 1, 3)
    await outputs.append(claim, [chunk(6, b"6")])
    assert [seq for seq, _, _ in await read(outputs, claim)] == [0, 4, 5, 6]
    await outputs.trim(claim, 0, 100)
    assert await read(outputs, claim) == []


async def test_who_no_longer_holds_the_job_adds_nothing(house: House, outputs: Outputs) -> None:
    claim = await running(house)
    await outputs.append(claim, [chunk(0, b"a")])
    await house.complete(claim)
    assert not await outputs.append(claim, [chunk(1, b"late")])
    assert not await outputs.save(claim, "late", pieces(b"x"))
    await outputs.trim(claim, 0, 5)
    assert await read(outputs, claim) == [(0, "stdout", b"a")]


@pytest.mark.parametrize("size", [0, 1, CHUNK, 3 * CHUNK + 17])
async def test_artifacts_come_back_whole_and_in_part(house: House, outputs: Outputs, size: int) -> None:
    claim = await running(house)
    content = bytes(number % 251 for number in range(size))
    assert await outputs.save(claim, "dir/report 1.bin", pieces(content[: size // 2], content[size // 2 :]))
    for start in (0, size // 3, size):
        found = b"".join([piece async for piece in outputs.load(claim.id, claim.attempt, "dir/report 1.bin", start)])
        assert found == content[start:]
    assert await read(outputs, claim) == []


async def test_what_is_left_of_jobs_that_are_gone_is_swept_away(house: House, outputs: Outputs, tmp_path: Path) -> None:
    claim = await running(house)
    await outputs.append(claim, [chunk(0, b"a")])
    await house.complete(claim)
    await house.store.delete([claim.id], by="test")

    async def none(ids: object) -> set[object]:
        return set()

    await outputs.sweep(none)  # type: ignore[arg-type]
    assert await read(outputs, claim) == []


async def test_a_place_proves_itself_and_keeps_nothing_of_it(outputs: Outputs, tmp_path: Path) -> None:
    await outputs.prove()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "proof" in path.name]
