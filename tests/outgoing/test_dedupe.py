"""A URL that was submitted within the last hour is not fetched again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from headway import Headway
from headway.kinds.fetch import FetchKind
from headway.model.states import State
from headway.model.submission import Accepted
from headway.settings import Settings
from tests.contract.conftest import (  # noqa: F401 - fixtures are found by their names
    clock,
    house,
    make_store,
    postgres_template,
    wipe_clean,
    wiped_url,
)
from tests.contract.house import House
from tests.outgoing.conftest import Bench, read_body
from tests.outgoing.site import Site

URL = "https://example.com/data"


async def ask(house: House, url: str = URL, **body: Any) -> Accepted:  # noqa: F811 - pytest's way
    submission = await read_body({"kind": "fetch", "url": url, **body})
    return await house.accept(msgspec.structs.replace(submission, id=house.new_id()))


async def done(house: House) -> UUID:  # noqa: F811
    claim = await house.claim_one()
    await house.complete(claim, result=b"content")
    return claim.id


async def test_for_an_hour_a_url_is_the_same_job_and_then_another(house: House) -> None:  # noqa: F811
    first = await ask(house)
    house.clock.advance(1800)
    # A duplicate doesn't make the window longer.
    assert (await ask(house, "HTTPS://EXAMPLE.COM:443/data#part")).job_id == first.job_id
    house.clock.advance(1799)
    late = await ask(house)
    assert (late.job_id, late.deduplicated) == (first.job_id, True)
    house.clock.advance(2)
    again = await ask(house)
    assert (again.job_id != first.job_id, again.deduplicated) == (True, False)


async def test_the_hour_counts_from_acceptance_also_when_the_fetch_is_done(house: House) -> None:  # noqa: F811
    first = await ask(house)
    house.clock.advance(600)
    assert await done(house) == first.job_id
    house.clock.advance(3599 - 601)
    kept = await ask(house)
    assert (kept.job_id, kept.state, kept.deduplicated) == (first.job_id, State.COMPLETED, True)
    house.clock.advance(2)
    assert not (await ask(house)).deduplicated


async def test_after_a_failure_it_is_fetched_again(house: House) -> None:  # noqa: F811
    first = await ask(house)
    await house.fail(await house.claim_one())
    assert (await ask(house)).job_id != first.job_id


async def test_after_a_delete_it_is_fetched_again(house: House) -> None:  # noqa: F811
    first = await ask(house)
    await done(house)
    await house.store.delete([first.job_id], by="ann")
    second = await ask(house)
    assert (second.job_id != first.job_id, second.deduplicated) == (True, False)


async def test_twice_in_one_batch_is_once(house: House) -> None:  # noqa: F811
    bodies = [URL, "https://example.com/other", f"{URL}#again"]
    jobs = [await read_body({"kind": "fetch", "url": url}) for url in bodies]
    one, other, same = await house.batch(*jobs)
    assert isinstance(one, Accepted)
    assert isinstance(same, Accepted)
    assert isinstance(other, Accepted)
    assert (same.job_id, same.deduplicated, one.deduplicated) == (one.job_id, True, False)
    assert other.job_id != one.job_id


async def test_the_window_may_be_chosen_and_left_out(house: House) -> None:  # noqa: F811
    first = await ask(house, dedupe=10)
    house.clock.advance(9)
    assert (await ask(house, dedupe={"window": 10})).job_id == first.job_id
    house.clock.advance(2)
    second = await ask(house)
    assert second.job_id != first.job_id
    assert (await ask(house, dedupe=False)).job_id != second.job_id
    assert (await ask(house, headers={"Accept": "text/html"})).job_id != second.job_id


async def test_what_is_due_later_takes_no_part(house: House) -> None:  # noqa: F811
    later = await ask(house, delay=60)
    first = await ask(house)
    assert first.job_id != later.job_id
    assert not (await ask(house, delay=60)).deduplicated


async def test_a_server_has_its_own_window() -> None:
    body = {"kind": "fetch", "url": URL}
    short = await read_body(body, fetch=FetchKind(Settings(fetch_window=60)))
    assert short.dedupe is not None
    assert short.dedupe.window == 60
    off = FetchKind(Settings(fetch_window=0, fetch_max_size=5))
    assert (await read_body(body, fetch=off)).dedupe is None
    assert msgspec.json.decode((await read_body(body, fetch=off)).payload)["max_size"] == 5
    asked = await read_body({**body, "dedupe": 5}, fetch=off)
    assert asked.dedupe is not None
    assert (asked.dedupe.key, asked.dedupe.window) == (short.dedupe.key, 5)


async def test_the_library_is_told_of_the_earlier_job(stored: Bench, site: Site) -> None:
    first = await stored.fetch(f"{site.url}/page")
    again = await stored.app.asubmit("fetch", {"url": f"{site.url}/page"})
    assert (again.id, again.deduplicated, again.state) == (first.id, True, State.COMPLETED)
    assert len(site.asked("/page")) == 1


SUBMITTER = """
import asyncio, sys
from headway import Headway

async def main(store, url, count):
    app = Headway(store)
    await app.ajobs(limit=1)
    print("ready", flush=True)
    sys.stdin.readline()
    jobs = await asyncio.gather(*(app.asubmit("fetch", {"url": url}) for _ in range(count)))
    for job in jobs:
        print(job.id, int(job.deduplicated))
    await app.aclose()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


@pytest.fixture
async def submitters(migrated: str, site: Site, tmp_path: Path) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Four processes that wait for the word to submit the same URL fifty times each, all at once."""
    script = tmp_path / "submitter.py"
    script.write_text(SUBMITTER)
    pipe = asyncio.subprocess.PIPE
    arguments = (sys.executable, str(script), migrated, f"{site.url}/once", "50")
    started = [await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe) for _ in range(4)]
    yield started
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_two_hundred_at_once_from_four_processes_are_one_fetch(
    migrated: str, site: Site, submitters: list[asyncio.subprocess.Process]
) -> None:
    for process in submitters:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ready\n"
    said = await asyncio.gather(*(process.communicate(b"go\n") for process in submitters))
    answers = [line.split() for output, _ in said for line in output.decode().splitlines()]
    assert len(answers) == 200
    assert len({job_id for job_id, _ in answers}) == 1
    assert sorted(told for _, told in answers) == ["0"] + ["1"] * 199
    app = Headway(migrated)
    async with app.worker():
        job = await app.await_ended(UUID(answers[0][0]), 60)
    await app.aclose()
    assert (job.state, len(site.asked("/once"))) == (State.COMPLETED, 1)
