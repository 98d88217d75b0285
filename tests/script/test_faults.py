"""Whatever breaks, a script runs once, and its end is told as it was, or as unknown."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import datetime
from pathlib import Path

import msgspec
import psutil
import pytest

from headway.executors.contract import Answer, Cancelled, Completed, Failed, Snoozed, TimedOut, Unknown
from headway.executors.script.executor import ScriptExecutor
from headway.executors.script.hosts import Access
from headway.executors.script.orders import Work
from headway.executors.script.task import Task
from headway.model.errors import OutputUnavailable, SecretNotFound
from headway.model.job import Claim
from headway.model.sealed import Credential
from tests.script.far import PATIENCE, Bench, Job
from tests.script.wire import Wire
from tests.sshd import SshServer

WAITING = b"echo $$ >> %s; echo begun; while [ ! -e %s ]; do sleep 0.05; done; echo done; exit 7"


class Gate:
    """A script that notes each of its runs, and waits until it may end."""

    def __init__(self, directory: Path) -> None:
        self.runs = directory / "runs"
        self.go = directory / "go"
        script = WAITING % (os.fsencode(self.runs), os.fsencode(self.go))
        self.work = Work(script=script, command=("/bin/sh",))

    def open(self) -> None:
        self.go.touch()

    @property
    def times(self) -> int:
        return len(self.runs.read_text().split()) if self.runs.exists() else 0


@pytest.fixture
def gate(sshd: SshServer) -> Gate:
    return Gate(sshd.place())


def code(answer: Answer) -> int | None:
    return answer.failure.exit if isinstance(answer, Failed) else None


async def left_running(sshd: SshServer, gate: Gate) -> Job:
    """A job whose worker has gone in mid-script."""
    job = Job(gate.work)
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        job.context.ask_to_stop(leaving=True)
        running.cancel()
        await asyncio.wait([running])
    return job


async def until(running: asyncio.Task[Answer]) -> Answer:
    async with asyncio.timeout(PATIENCE):
        return await running


async def test_password_key_and_locked_key_log_in(sshd: SshServer) -> None:
    locked = Credential(private_key=sshd.locked_key, passphrase="open sesame")
    for credential in (sshd.by_password, sshd.by_key, locked):
        async with Bench(Access(sshd.target(), credential)) as bench:
            assert (await bench.script("id -un")).stdout.decode().strip() == sshd.user


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("password", "refuses the user"),
        ("key", "refuses the user"),
        ("passphrase", "private key can't be used"),
        ("nothing", "refuses the user"),
    ],
)
async def test_a_wrong_credential_is_refused_for_good(sshd: SshServer, wrong: str, said: str) -> None:
    other = {
        "password": Credential(password="guess"),
        "key": Credential(private_key=sshd._keygen(sshd._directory / "stranger")) if wrong == "key" else None,
        "passphrase": Credential(private_key=sshd.locked_key, passphrase="guess"),
        "nothing": None,
    }[wrong]
    async with Bench(Access(sshd.target(), other)) as bench:
        done = await bench.script("true")
    assert said in done.error
    assert "step login" in done.error
    assert isinstance(done.answer, Failed)
    assert done.answer.permanent
    assert "guess" not in done.error


async def test_a_host_without_a_pinned_key_and_one_with_another_are_refused(private_sshd: SshServer) -> None:
    unknown = private_sshd.target(host_key=None)
    async with Bench(Access(unknown, private_sshd.by_key)) as bench:
        assert "no host key is pinned" in (await bench.script("true")).error
    before = private_sshd.target()
    private_sshd.new_host_key()
    private_sshd.restart()
    async with Bench(Access(before, private_sshd.by_key)) as bench:
        done = await bench.script("true")
    assert bench.alarms == ["target.host_key_changed"]
    assert "does not show the host key that is pinned" in done.error
    assert "step host_key" in done.error
    assert private_sshd.user not in private_sshd.log().split("Accepted")[-1] or "Accepted" not in private_sshd.log()


async def test_a_host_that_is_not_there_is_told_with_its_step(sshd: SshServer) -> None:
    for changes, step in (({"port": 1}, "connect"), ({"host": "no-such-host.invalid"}, "resolve")):
        async with Bench(Access(sshd.target(**changes), sshd.by_key)) as bench:
            done = await bench.script("true")
        assert f"step {step}" in done.error
        assert isinstance(done.answer, Failed)
        assert not done.answer.permanent


async def test_a_script_goes_on_while_sshd_is_killed_and_is_found_again(private_sshd: SshServer, gate: Gate) -> None:
    async with Bench(Access(private_sshd.target(), private_sshd.by_key)) as bench:
        job = Job(gate.work)
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        await asyncio.to_thread(private_sshd.stop)
        await asyncio.to_thread(private_sshd.start)
        gate.open()
        assert code(await until(running)) == 7
        assert job.heard.stdout == b"begun\ndone\n"
    assert gate.times == 1


async def test_a_host_that_stays_away_leaves_the_end_unknown(private_sshd: SshServer, gate: Gate) -> None:
    async with Bench(Access(private_sshd.target(), private_sshd.by_key), patience=0.5) as bench:
        job = Job(gate.work)
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        await asyncio.to_thread(private_sshd.stop)
        answer = await until(running)
    assert isinstance(answer, Unknown)
    assert "It may still be running" in answer.error.message
    gate.open()


async def test_connections_cut_at_every_stage_run_a_script_once(sshd: SshServer, gate: Gate) -> None:
    """From the first byte to long after the script has begun."""
    async with Wire(sshd.port) as wire:
        async with Bench(Access(sshd.target(port=wire.port), sshd.by_key)) as bench:
            await bench.script("true")
        whole = wire.passed
        gate.open()
        for stage in range(12):
            wire.cut_after = whole * (stage + 1) // 11
            async with Bench(Access(sshd.target(port=wire.port), sshd.by_key)) as bench:
                job = Job(gate.work)
                before = gate.times
                running = asyncio.create_task(bench.run(job))
                while not wire.cuts and not running.done():
                    await asyncio.sleep(0.01)
                wire.cut_after = None
                answer = await until(running)
                if isinstance(answer, Failed) and answer.failure.exit is None:
                    # It never came to log in: nothing has begun.
                    assert gate.times == before, answer
                else:
                    assert code(answer) == 7, answer
                    assert gate.times == before + 1
                    assert job.heard.stdout == b"begun\ndone\n"
            wire.cuts = 0


async def test_a_cut_in_mid_script_changes_nothing(sshd: SshServer, gate: Gate) -> None:
    async with Wire(sshd.port) as wire, Bench(Access(sshd.target(port=wire.port), sshd.by_key)) as bench:
        job = Job(gate.work)
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        for _ in range(3):
            before = wire.connections
            wire.cut()
            async with asyncio.timeout(PATIENCE):
                while wire.connections == before:
                    await asyncio.sleep(0.02)
        gate.open()
        answer = await until(running)
        assert code(answer) == 7
        assert job.heard.stdout == b"begun\ndone\n"
        assert isinstance(answer, Failed)
        assert b'"attached":false' in (answer.result or b""), "it was ours all the time"
    assert gate.times == 1


async def test_a_slow_host_takes_longer_and_nothing_else(sshd: SshServer) -> None:
    async with Wire(sshd.port) as wire:
        wire.delay = 0.05
        async with Bench(Access(sshd.target(port=wire.port), sshd.by_key)) as bench:
            done = await bench.script("echo slow; exit 4")
        assert (done.stdout, done.code) == (b"slow\n", 4)


async def test_another_worker_finds_the_script_of_one_that_died(sshd: SshServer, gate: Gate) -> None:
    """Alive it is attached to; ended, its exit code is taken."""
    job = await left_running(sshd, gate)
    async with Bench(Access(sshd.target(), sshd.by_password)) as second:
        again = job.again()
        running = asyncio.create_task(second.run(again))
        await again.heard.until(b"begun")
        gate.open()
        answer = await until(running)
        assert code(answer) == 7
        assert again.heard.stdout == b"begun\ndone\n"
        assert gate.times == 1
        assert isinstance(answer, Failed)
        assert b'"attached":true' in (answer.result or b"")


async def test_an_ended_script_is_not_run_again_by_the_next_attempt(sshd: SshServer, gate: Gate) -> None:
    gate.open()
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        job = Job(gate.work)
        # Its end is not recorded: the worker dies first.
        bench._tasks[job.id] = job.work
        assert code(await bench.executor.submit(job.claim, job.context)) == 7
        again = job.again()
        assert code(await bench.run(again)) == 7
        assert again.heard.stdout == b"begun\ndone\n"
    assert gate.times == 1


async def test_a_script_whose_supervisor_was_killed_is_unknown(sshd: SshServer, gate: Gate) -> None:
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        job = Job(gate.work)
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        supervisor = int((sshd.runs / str(job.id) / "1" / "begun").read_text().split()[1])
        os.kill(supervisor, signal.SIGKILL)
        answer = await until(running)
    assert isinstance(answer, Unknown)
    gate.open()


async def test_an_attempt_that_was_overtaken_never_begins(sshd: SshServer, gate: Gate) -> None:
    """A worker that was thought dead wakes up after the next attempt has begun, or ended."""
    gate.open()
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        zombie = Job(gate.work)
        assert code(await bench.run(zombie.again())) == 7
        answer = await bench.run(zombie)
    assert isinstance(answer, Unknown)
    assert "taken over" in answer.error.message
    assert gate.times == 1


async def test_a_cancelled_script_is_dead_when_its_cancel_is_told(any_bench: Bench, gate: Gate) -> None:
    stubborn = b"trap '' TERM; (trap '' TERM; sleep 1000) & " + gate.work.script
    job = Job(Work(script=stubborn, command=("/bin/sh",)))
    running = asyncio.create_task(any_bench.run(job))
    await job.heard.until(b"begun")
    leader = int(gate.runs.read_text())
    group = os.getsid(leader)
    running.cancel()
    answer = await until(running)
    assert isinstance(answer, Cancelled)
    assert [process for process in psutil.process_iter() if _session(process.pid) == group] == []


@pytest.mark.parametrize("why", ["cancel", "timeout"])
async def test_a_stop_while_the_next_attempt_connects_ends_the_script_of_the_one_before(
    sshd: SshServer, gate: Gate, why: str
) -> None:
    job = await left_running(sshd, gate)
    async with Wire(sshd.port) as wire, Bench(Access(sshd.target(port=wire.port), sshd.by_key)) as bench:
        wire.held.clear()
        again = job.again(timeout=0.2 if why == "timeout" else 100.0)
        running = asyncio.create_task(bench.run(again))
        async with asyncio.timeout(PATIENCE):
            while not wire.connections:
                await asyncio.sleep(0.01)
            if why == "cancel":
                running.cancel()
            while wire.connections < 2 and not running.done():
                # The first connection is given up with the attempt, and the stop makes another.
                await asyncio.sleep(0.01)
        wire.held.set()
        answer = await until(running)
    assert isinstance(answer, Cancelled if why == "cancel" else TimedOut)
    assert "seen dead" in str(answer)
    assert _session(int(gate.runs.read_text())) is None


async def test_a_cancel_while_the_order_to_begin_is_unread_keeps_the_script_from_ever_beginning(
    sshd: SshServer, gate: Gate
) -> None:
    """One has been sent, the other waits for its turn. They are read long after the jobs have ended."""
    gate.open()
    pipe = gate.go.with_name("pipe")
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    bench = Bench(Access(sshd.target(), sshd.by_key))
    async with bench, bench.hosts.of(bench.access).station() as station:
        station.runner._send(f"read line <{pipe}".encode())
        jobs = [Job(gate.work), Job(gate.work)]
        running = [asyncio.create_task(bench.run(job)) for job in jobs]
        async with asyncio.timeout(PATIENCE):
            while not (station.runner._beginning and station.runner._waiting):
                await asyncio.sleep(0.01)
        for task in running:
            task.cancel()
        for task in running:
            answer = await until(task)
            assert isinstance(answer, Cancelled)
            assert "never will" in answer.reason
        await bench.cleared()
        await asyncio.to_thread(pipe.write_text, "go\n")
        assert (await bench.script("echo read")).stdout == b"read\n"
    assert gate.times == 0


async def test_a_worker_that_wakes_up_after_its_run_was_cleared_does_not_begin_it_again(
    sshd: SshServer, gate: Gate
) -> None:
    job = await left_running(sshd, gate)
    gate.open()
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        assert code(await bench.run(job.again())) == 7
        await bench.cleared()
        zombie = Job(gate.work, job_id=job.id)
        answer = await bench.run(zombie)
    assert isinstance(answer, Unknown)
    assert "taken over" in answer.error.message
    assert gate.times == 1


async def test_a_host_that_is_away_leaves_the_end_of_an_earlier_attempt_unknown(sshd: SshServer, gate: Gate) -> None:
    async with Bench(Access(sshd.target(port=1), sshd.by_key), patience=0.2) as bench:
        answer = await bench.run(Job(gate.work).again())
    assert isinstance(answer, Unknown)
    assert "may still be running" in answer.error.message


async def test_a_host_whose_shell_ends_at_once_is_unreachable() -> None:
    with SshServer(shell="/bin/false") as server:
        async with Bench(Access(server.target(), server.by_key), patience=0.2) as bench:
            done = await bench.script("true")
    assert "step directory" in done.error
    assert isinstance(done.answer, Failed)
    assert not done.answer.permanent


async def test_a_script_that_was_killed_with_its_supervisor_can_be_begun_again_by_a_person(
    sshd: SshServer, gate: Gate
) -> None:
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        job = Job(gate.work)
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        os.killpg(os.getsid(int(gate.runs.read_text())), signal.SIGKILL)
        assert isinstance(await until(running), Unknown)
        await bench.cleared()
        gate.open()
        assert code(await bench.run(job.again())) == 7
    assert gate.times == 2


async def test_files_that_cannot_be_kept_change_nothing_about_the_end(sshd: SshServer) -> None:
    tries: list[int] = []

    async def keep(*_: object) -> int:
        tries.append(1)
        raise OutputUnavailable("the bucket is away")

    async with Bench(Access(sshd.target(), sshd.by_key), keep=keep) as bench:
        done = await bench.script("exit 5")
    assert done.code == 5
    assert b"files could not be collected: the bucket is away" in done.stderr
    assert len(tries) > 1


async def test_a_cancel_waits_for_a_host_that_is_away(private_sshd: SshServer, gate: Gate) -> None:
    async with Bench(Access(private_sshd.target(), private_sshd.by_key)) as bench:
        job = Job(gate.work)
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        await asyncio.to_thread(private_sshd.stop)
        running.cancel()
        async with asyncio.timeout(PATIENCE):
            while not job.heard.progress:
                await asyncio.sleep(0.02)
        assert "can't be stopped yet" in (job.heard.progress[0].text or "")
        assert not running.done()
        await asyncio.to_thread(private_sshd.start)
        assert isinstance(await until(running), Cancelled)
    assert private_sshd.processes() == []


async def test_a_script_that_has_ended_before_its_cancel_keeps_its_end(sshd: SshServer) -> None:
    async with Bench(Access(sshd.target(), sshd.by_key)) as bench:
        job = Job(Work(script=b"echo begun; sleep 0.2", command=("/bin/sh",)))
        running = asyncio.create_task(bench.run(job))
        await job.heard.until(b"begun")
        async with asyncio.timeout(PATIENCE):
            # The run's directory may be gone as soon as its end is known.
            while not running.done() and not _ended(sshd.runs / str(job.id) / "1" / "begun"):
                await asyncio.sleep(0.005)
        running.cancel()
        answer = await until(running)
    assert isinstance(answer, Completed)


async def test_output_that_nobody_reads_does_not_fill_the_host(
    sshd: SshServer, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is away while the script prints thirty times of what its host is to keep."""
    for name, value in (("SPOOL", 1000), ("SPOOL_HEAD", 100_000), ("GUARD_EVERY", 0.2)):
        monkeypatch.setattr(f"headway.executors.script.hosts.{name}", value)
    more = gate.go.with_name("more")
    script = (
        f"echo begun; while [ ! -e {more} ]; do sleep 0.05; done; yes 'a line of output' | head -c 30000000; "
        f"touch {gate.runs}; while [ ! -e {gate.go} ]; do sleep 0.05; done; echo done"
    )
    job = Job(Work(script=script.encode(), command=("/bin/sh",)))
    async with Bench(Access(sshd.target(), sshd.by_key)) as first:
        running = asyncio.create_task(first.run(job))
        await job.heard.until(b"begun")
        job.context.ask_to_stop(leaving=True)
        running.cancel()
        await asyncio.wait([running])
    more.touch()
    spool = sshd.runs / str(job.id) / "1" / "out"
    async with asyncio.timeout(PATIENCE):
        while not gate.runs.exists() or spool.stat().st_blocks * 512 > 1_100_000:
            await asyncio.sleep(0.05)
    assert spool.with_name("out.head").stat().st_size == 100_000
    async with Bench(Access(sshd.target(), sshd.by_key)) as second:
        again = job.again()
        running = asyncio.create_task(second.run(again))
        gate.open()
        assert isinstance(await until(running), Completed)
    said = again.heard.stdout
    assert said.startswith(b"begun\na line of output\n")
    assert b"bytes were let go on the host" in said
    assert said.endswith(b"done\n")
    assert b"\0" not in said
    assert len(said) < 2_000_000


async def test_what_is_left_behind_ends_with_its_server() -> None:
    """Of the tests' own server: nothing sleeps on when a test fails."""
    leaders: list[int] = []
    with SshServer() as server:
        for target in (server.target(), server.root_target()):
            async with Bench(Access(target, server.by_key)) as bench:
                job = Job(Work(script=b"echo $$; echo begun; sleep 1000", command=("/bin/sh",)))
                running = asyncio.create_task(bench.run(job))
                await job.heard.until(b"begun")
                leaders.append(os.getsid(int(job.heard.stdout.split()[0])))
                job.context.ask_to_stop(leaving=True)
                running.cancel()
                await asyncio.wait([running])
        assert all(_session(leader) for leader in leaders)
    assert not any(_session(leader) for leader in leaders)


def _ended(control: Path) -> bool:
    try:
        word, *told = control.read_text().splitlines()
    except FileNotFoundError:
        return True
    return f"{word} 0" in told


def _session(pid: int) -> int | None:
    try:
        alive = psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        return os.getsid(pid) if alive else None
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None


async def test_a_cancel_of_what_can_not_be_loaded_is_done_only_if_it_has_never_begun(bench: Bench) -> None:
    async def load(claim: Claim, begun_at: datetime | None) -> Task:
        raise SecretNotFound("key")

    executor = ScriptExecutor(msgspec.structs.replace(bench.executor._parts, load=load))
    first = Job(Work(script=b"true", command=("/bin/sh",)))
    bench.cancelling.add(first.id)
    answer = await executor.submit(first.claim, first.context)
    assert isinstance(answer, Cancelled)
    assert "never will" in answer.reason
    second = first.again()
    assert isinstance(await executor.submit(second.claim, second.context), Snoozed)
    assert "no secret 'key'" in (second.heard.progress[-1].text or "")
