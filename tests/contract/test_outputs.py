"""What every place for output promises. Another one passes by being added to `PLACES`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.model.errors import OutputUnavailable
from headway.model.job import CHUNK, Chunk, Claim
from headway.output import files, s3
from headway.output.contract import Outputs
from headway.output.files import FileOutputs
from headway.output.stored import StoredOutputs
from headway.store.contract import Store
from tests.contract.house import House
from tests.s3 import BUCKET, S3Server

PLACES: dict[str, Callable[[Store, Path], Outputs]] = {
    "store": lambda store, _: StoredOutputs(store),
    "files": lambda store, directory: files.from_url(f"file://{directory}/output", store),
    "s3": lambda store, directory: s3.from_url(f"s3://{BUCKET}/{directory.name}", store),
}


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture(params=PLACES)
async def outputs(
    request: pytest.FixtureRequest, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Outputs]:
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
    made = PLACES[request.param](house.store, tmp_path)
    yield made
    await made.close()


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


async def test_files_never_lead_out_of_their_directory(house: House, tmp_path: Path) -> None:
    outputs = FileOutputs(tmp_path / "output", house.store)
    claim = await running(house)
    for name in ("../x", "/etc/passwd", "a/../../../x", "", ".", "a\0b"):
        with pytest.raises(ValueError, match="no name for an artifact"):
            await outputs.save(claim, name, pieces(b"x"))
    assert not (tmp_path / "output").exists()


async def test_what_is_in_a_bucket_is_told_by_names_alone(
    house: House, tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request for each object would take hours where a script has printed a line every now and then."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    outputs = s3.from_url(f"s3://{BUCKET}/{tmp_path.name}", house.store)
    claim = await running(house)
    for start in range(0, 24, 4):
        await outputs.append(claim, [chunk(seq, b"x" * seq, "a.b-c,d/e") for seq in range(start, start + 4)])
    acts: list[str] = []
    do = outputs._do

    async def counted(act: str, **given: Any) -> Any:
        acts.append(act)
        return await do(act, **given)

    monkeypatch.setattr(outputs, "_do", counted)
    sizes = await outputs.sizes(claim.id, claim.attempt)
    assert [(each.seq, each.stream, each.size) for each in sizes] == [(seq, "a.b-c,d/e", seq) for seq in range(24)]
    assert acts == ["list_objects_v2"]
    acts.clear()
    assert [seq for seq, _, _ in await read(outputs, claim, after_seq=9, limit=3)] == [10, 11, 12]
    assert acts == ["list_objects_v2", "get_object", "get_object"]
    acts.clear()
    await outputs.trim(claim, 2, 19)
    assert [seq for seq, _, _ in await read(outputs, claim)] == [0, 1, 20, 21, 22, 23]
    assert acts.count("get_object") == 1 + 2
    await outputs.close()


async def test_a_place_proves_itself_and_keeps_nothing_of_it(outputs: Outputs, tmp_path: Path) -> None:
    await outputs.prove()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "proof" in path.name]


async def test_a_place_that_is_gone_is_told(house: House, tmp_path: Path) -> None:
    with pytest.raises(OutputUnavailable, match="can't be written"):
        await FileOutputs(tmp_path / "nowhere", house.store).prove()
