"""`headway.RemoteClient` and `headway submit` against a service over real HTTP."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import Headway, RemoteClient
from headway.model.errors import ConfigurationError, WaitTimeout
from headway.model.states import State
from headway.remote import RemoteError
from tests.api.conftest import TOKEN, Site
from tests.outgoing.site import Site as FarSide

CALL = {"kind": "call", "function": "nobody.knows"}


@pytest.fixture
def remote(memory_site: Site) -> Iterator[RemoteClient]:
    with RemoteClient(str(memory_site.client.base_url), TOKEN) as client:
        yield client


async def test_a_job_is_submitted_looked_at_and_cancelled(remote: RemoteClient) -> None:
    job = await remote.asubmit({**CALL, "queue": "mail"})
    assert (job.state, job.queue) == (State.SCHEDULED, "mail")
    assert (await remote.aget(job.id)).id == job.id
    assert (await remote.acancel(job.id)).state is State.CANCELLED
    assert (await remote.await_ended(job.id, 10)).state is State.CANCELLED
    assert (await remote.aretry(job.id)).state is State.SCHEDULED
    await remote.adelete(job.id)
    with pytest.raises(RemoteError) as refused:
        await remote.aget(job.id)
    assert refused.value.status == 404


async def test_a_repeated_submit_is_the_same_job(remote: RemoteClient) -> None:
    first = await remote.asubmit(CALL)
    again = await remote.asubmit({**CALL, "id": str(first.id)})
    assert again.id == first.id


async def test_many_are_submitted_in_steps_and_listed_over_pages(remote: RemoteClient) -> None:
    told: list[int] = []
    items = await remote.asubmit_many([{**CALL, "queue": "many"}] * 1050, on_progress=told.append)
    assert told == [1000, 1050]
    ids = [item.job.id for item in items if item.job]
    found = await asyncio.to_thread(lambda: [job.id for job in remote.jobs(queue="many", limit=500)])
    assert sorted(found) == sorted(ids)


async def test_of_many_those_that_can_be_taken_are_when_asked(remote: RemoteClient) -> None:
    items = await remote.asubmit_many([CALL, {"kind": "unheard of"}], partial=True)
    assert [item.job is not None for item in items] == [True, False]
    with pytest.raises(RemoteError):
        await remote.asubmit_many([CALL, {"kind": "unheard of"}])


async def test_waiting_ends_with_its_time(remote: RemoteClient) -> None:
    job = await remote.asubmit({**CALL, "hold": True})
    with pytest.raises(WaitTimeout):
        await remote.await_ended(job.id, 0.2)
    assert (await remote.arelease(job.id)).state is State.SCHEDULED


async def test_a_refusal_says_what_to_mend(remote: RemoteClient) -> None:
    with pytest.raises(RemoteError) as refused:
        await remote.asubmit({**CALL, "priority": 1000})
    assert refused.value.field == "priority"


async def test_a_wrong_token_is_told_by_the_name_of_its_variable(memory_site: Site) -> None:
    with (
        RemoteClient(str(memory_site.client.base_url), "wrong") as client,
        pytest.raises(RemoteError, match="HEADWAY_TOKEN"),
    ):
        await client.asubmit(CALL)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(RemoteError, match=r"http://127\.0\.0\.1:9 does not answer"):
        RemoteClient("http://127.0.0.1:9").submit(CALL)


def test_something_that_is_no_url_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="HEADWAY_URL"):
        RemoteClient("jobs.example.com")


async def test_the_command_submits_to_a_server(memory_site: Site) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headway", "submit", "call", "nobody.knows", "--queue", "mail", "--json"),
        env={"HEADWAY_URL": str(memory_site.client.base_url), "HEADWAY_TOKEN": TOKEN},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    [item] = json.loads(printed)["items"]
    found = await memory_site.get(f"/jobs/{item['job']['id']}")
    assert found.json()["queue"] == "mail"


@pytest.mark.parametrize("partial", [False, True])
async def test_the_command_submits_to_a_store_all_or_none_unless_told_otherwise(tmp_path: Path, partial: bool) -> None:
    file, url = tmp_path / "jobs.jsonl", f"sqlite:///{tmp_path / 'headway.db'}"
    bodies = [CALL, {**CALL, "priority": 1000}, {**CALL, "queue": "mail"}]
    file.write_text("\n".join(map(json.dumps, bodies)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headway", "submit", "body", str(file), "--store", url),
        *(["--partial"] if partial else []),
        env={"HEADWAY_DATA": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, told = await process.communicate()
    assert (process.returncode, b"priority" in told) == (1, True), told
    app = Headway(url)
    stored = [job.queue for job in await app.ajobs()]
    await app.aclose()
    assert sorted(stored) == (["default", "mail"] if partial else [])
    assert len(printed.splitlines()) == len(stored)


async def test_all_jobs_are_listed_from_a_coroutine_too(remote: RemoteClient) -> None:
    ids = [(await remote.asubmit(CALL)).id for _ in range(5)]
    assert [job.id async for job in remote.ajobs(limit=2)] == ids[::-1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {}, b"<html>hello"), "not as Headway does"),
        ((302, {"Location": "https://login/"}, b""), "https://login/"),
    ],
)
async def test_something_else_that_answers_is_told_from_headway(
    answer: tuple[int, dict[str, str], bytes], words: str
) -> None:
    with FarSide() as far:
        far.say("/api/v1/jobs", answer)
        with RemoteClient(far.url) as client, pytest.raises(RemoteError, match=words):
            await client.asubmit(CALL)
