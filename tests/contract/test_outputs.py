"""Our places for output, each held to the contract. Another one passes by being added to `PLACES`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.contracts.outputs import *  # noqa: F403 - tests are found by their names
from headway.contracts.outputs import chunk, pieces, read, running
from headway.model.errors import OutputUnavailable
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

    async def paged(act: str, **given: Any) -> Any:
        return await counted(act, **given, **({"MaxKeys": 1} if act == "list_objects_v2" else {}))

    with monkeypatch.context() as small:
        small.setattr(outputs, "_do", paged)
        assert [seq for seq, _, _ in await read(outputs, claim, after_seq=19)] == [20, 21, 22, 23]
    # Of six: what lies far behind is not even listed.
    assert acts.count("list_objects_v2") == 3
    acts.clear()
    await outputs.trim(claim, 2, 19)
    assert [seq for seq, _, _ in await read(outputs, claim)] == [0, 1, 20, 21, 22, 23]
    assert acts.count("get_object") == 1 + 2
    await outputs.close()


async def test_a_place_that_is_gone_is_told(house: House, tmp_path: Path) -> None:
    with pytest.raises(OutputUnavailable, match="can't be written"):
        await FileOutputs(tmp_path / "nowhere", house.store).prove()
