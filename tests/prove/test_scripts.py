"""What is claimed of scripts on servers, measured on a server of our own: speed, memory, delay, orphans."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from headway import Headway
from headway.executors.contract import Answer, Cancelled
from headway.executors.script.hosts import Access
from headway.executors.script.orders import Work
from tests.api.conftest import serving
from tests.script.far import Bench, Job
from tests.script.memory import MOST, grown
from tests.sshd import SshServer

pytestmark = pytest.mark.prove

SCRIPTS = 1000
AT_ONCE = 50
SESSIONS = 6
"""As many as bare asyncssh can have open at a time, with those that the server is about to close."""
GIB = 1024**3


@pytest.fixture(scope="module")
def sshd() -> Iterator[SshServer]:
    with SshServer() as server:
        yield server


async def test_short_scripts_a_second(sshd: SshServer) -> None:
    """At least 200 a second, or half of what bare asyncssh reaches in the same run."""
    ours, bare = [], []
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        await bench.script("echo hello")
        for _ in range(3):
            ours.append(await _ours(bench, SCRIPTS))
            bare.append(await _bare(sshd, SCRIPTS // 2))
        assert bench.connections == 1
    best, ceiling = sorted(ours)[1], sorted(bare)[1]
    print(f"\nshort scripts: {best:.0f}/s ours, {ceiling:.0f}/s bare asyncssh, {best / ceiling:.0%}")
    assert best >= 200 or best >= 0.5 * ceiling


async def _ours(bench: Bench, count: int) -> float:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with slots:
            assert (await bench.script("echo hello")).stdout == b"hello\n"

    began = time.monotonic()
    await asyncio.gather(*(one() for _ in range(count)))
    return count / (time.monotonic() - began)


async def _bare(sshd: SshServer, count: int) -> float:
    slots = asyncio.Semaphore(SESSIONS)
    trusted = asyncssh.import_public_key(sshd.host_key)
    async with asyncssh.connect(
        "127.0.0.1",
        sshd.port,
        username=sshd.user,
        known_hosts=([trusted], [], []),
        client_keys=[asyncssh.import_private_key(sshd.key)],
        config=None,
        agent_path=None,
    ) as connection:

        async def one() -> None:
            async with slots:
                while True:
                    try:
                        done = await connection.run("/bin/sh", input="echo hello\n")
                    except asyncssh.ChannelOpenError:
                        await asyncio.sleep(0.01)
                        continue
                    assert done.stdout == "hello\n"
                    return

        began = time.monotonic()
        await asyncio.gather(*(one() for _ in range(count)))
        return count / (time.monotonic() - began)


async def test_a_gibibyte_of_output_costs_a_worker_little(
    sshd: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    more, kept = await grown(sshd, tmp_path, GIB)
    print(f"\n1 GiB of output: memory grew by {more / 1e6:.0f} MB, {kept:,} bytes kept")
    assert more <= MOST
    assert kept <= 11 * 1024 * 1024


async def test_live_output_is_seen_soon(sshd: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the moment of printing to the moment at which who follows it over HTTP has it."""
    monkeypatch.setenv("HEADWAY_DATA", str(tmp_path / "data"))
    delays: list[float] = []
    app = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
    async with serving(app) as site, app.worker():
        await app.vault.create_target(sshd.target(), sshd.by_key, by="test")
        script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do date +%s.%N; sleep 0.31; done"
        job = await app.asubmit("script", {"target": "box", "script": script}, name="live")
        async with site.client.stream("GET", f"/api/v1/jobs/{job.id}/output?follow=true") as stream:
            async for line in stream.aiter_lines():
                told = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
                delays += [time.time() - float(printed) for printed in told.get("text", "").split()]
    ordered = sorted(delays)
    middle, late = ordered[len(ordered) // 2], ordered[len(ordered) * 9 // 10]
    print(
        f"\nlive output: {middle * 1000:.0f} ms after it was printed (median), {late * 1000:.0f} ms for nine of ten, "
        f"{ordered[-1] * 1000:.0f} ms at most"
    )
    assert len(ordered) == 20
    assert late <= 0.2


async def test_a_hundred_cancels_leave_no_orphan(sshd: SshServer) -> None:
    script = b"trap '' TERM; (trap '' TERM; sleep 7777) & sleep 7777 & echo begun; sleep 7777"
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        for _ in range(4):
            jobs = [Job(Work(script=script, command=("/bin/sh",))) for _ in range(25)]
            runs = [asyncio.create_task(bench.run(job)) for job in jobs]
            for job in jobs:
                await job.heard.until(b"begun")
            for run in runs:
                run.cancel()
            assert all(isinstance(answer, Cancelled) for answer in await asyncio.gather(*runs))
            assert [command for command in sshd.commands() if "7777" in command] == []
    print("\n100 cancelled scripts: no process left")


async def test_cancels_at_any_moment_leave_nothing_that_runs_or_comes_to_run(sshd: SshServer) -> None:
    """Some before the order to begin is sent, some while it is on its way, some when the script runs."""
    script = b"sleep 8888 & echo begun; sleep 8888"
    chance = random.Random(7)
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:

        async def cancelled(job: Job) -> Answer:
            run = asyncio.create_task(bench.run(job))
            await asyncio.sleep(chance.random() * 0.4)
            run.cancel()
            return await run

        for _ in range(4):
            jobs = [Job(Work(script=script, command=("/bin/sh",))) for _ in range(25)]
            answers = await asyncio.gather(*map(cancelled, jobs))
            assert all(isinstance(answer, Cancelled) for answer in answers)
            await bench.cleared()
            # Behind all orders that were given before.
            await bench.script("true")
            assert [command for command in sshd.commands() if "8888" in command] == []
    print("\n100 scripts cancelled at any moment: no process left, none begun later")
