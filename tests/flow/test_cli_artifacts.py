"""`headway jobs artifacts`: files that jobs have left, wherever output is kept."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headway.clock import FakeClock
from headway.model.job import Artifact
from headway.output import open_outputs
from headway.store.sqlite import sqlite_store
from tests.contract.house import House
from tests.flow.terminal import Terminal, refusal

NAME = "d/a b.bin"
CONTENT = bytes(range(256)) * 1000


@pytest.fixture(params=["store", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "store" if request.param == "store" else f"file://{tmp_path}/output"


def test_files_are_listed_and_fetched(tmp_path: Path, place: str) -> None:
    database = tmp_path / "headway.db"
    job, bare = asyncio.run(jobs(database, place))
    terminal = Terminal(tmp_path, f"sqlite:///{database}", HEADWAY_OUTPUT=place)
    listed = {each["name"]: each for each in terminal.json("jobs", "artifacts", job)["items"]}
    assert set(listed) == {NAME, "huge"}
    assert (listed[NAME]["size"], listed[NAME]["attempt"]) == (len(CONTENT), 1)
    terminal.fine("jobs", "artifacts", job, NAME, "-o", "copy.bin")
    assert (tmp_path / "copy.bin").read_bytes() == CONTENT
    shown, none = terminal.each(f"jobs artifacts {job}", f"jobs artifacts {bare}")
    assert NAME in shown.out
    assert none.err == "the job has left no files\n"
    where = None if place == "store" else str(tmp_path / "output" / job)
    assert terminal.json("jobs", "show", job)["output_location"] == where
    refused = terminal.all_refused([f"jobs artifacts {job} {name} -o none.bin" for name in ("nothing", "huge")])
    assert "has left no file 'nothing'" in refused[0]
    assert "was not kept: too large" in refused[1]
    assert "which file" in terminal.refused("jobs", "artifacts", job, "-o", "none.bin")


def test_a_file_that_is_elsewhere_is_not_taken_for_an_empty_one(tmp_path: Path, place: str) -> None:
    database = tmp_path / "headway.db"
    job, _ = asyncio.run(jobs(database, place))
    elsewhere = Terminal(tmp_path, f"sqlite:///{database}", HEADWAY_OUTPUT=f"file://{tmp_path}/elsewhere")
    assert "HEADWAY_OUTPUT" in refusal(elsewhere.run("jobs", "artifacts", job, NAME, "-o", "none.bin"))
    assert not [path for path in tmp_path.iterdir() if "none" in path.name]


async def jobs(database: Path, place: str) -> tuple[str, str]:
    """One with a file and one that was too large, and one with none."""
    clock = FakeClock()
    store = sqlite_store(str(database), clock=clock)
    await store.migrate()
    await store.open()
    house = House(store, clock, nobody)  # type: ignore[arg-type]
    await house.submit()
    [claim] = await house.claim()
    async with open_outputs(place, store) as outputs:
        await outputs.save(claim, NAME, pieces())
    kept = Artifact(name=NAME, size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
    await store.put_artifacts(claim, [kept, Artifact(name="huge", size=10**12, note="too large")])
    bare = await house.submit()
    await store.close()
    return str(claim.id), str(bare)


async def nobody() -> object:
    raise AssertionError("one store is enough")


async def pieces() -> AsyncIterator[bytes]:
    yield CONTENT
