"""The far side works with the shells that servers have as /bin/sh."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psutil
import pytest

from headway.executors.script.orders import Place, Work, begin
from headway.executors.script.runner import far

SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"], "bash": ["bash", "--posix"]}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    words = SHELLS[request.param]
    assert shutil.which(words[0]), f"{words[0]} is not installed: run tools/servers"
    return words


def orders(shell: list[str], base: Path, text: str) -> list[str]:
    """What the far side answers to these orders."""
    given = far().decode().replace("setsid /bin/sh", f"setsid {' '.join(shell)}")
    # Not through a pipe: a run that goes on holds its end.
    with tempfile.TemporaryFile("w+") as answers:
        quoted = str(base).replace("'", "'\\''")
        given += f"serve '{quoted}'\n{text}\n"
        subprocess.run(shell, input=given, stdout=answers, text=True, timeout=60, check=False)
        answers.seek(0)
        return answers.read().splitlines()


def parts(script: str, run: Path) -> str:
    start = (
        f"headway_cwd={run}/work\nheadway_script() {{\n"
        f"( exec /bin/sh {run}/script-n </dev/null >$headway_run/out 2>$headway_run/err 3>&- 4>&- )\n}}"
    )
    return f"parts() {{ printf %s '{script}' >\"$run/script-n\" && start='{start}'; }}\n"


async def until(path: Path, lines: int = 1) -> str:
    """Until a file has so many whole lines."""
    async with asyncio.timeout(30):
        while not path.exists() or path.read_text().count("\n") < lines:
            await asyncio.sleep(0.02)
    return path.read_text()


async def ended(run: Path) -> str:
    """What the supervisor has written down of a script's end."""
    async with asyncio.timeout(30):
        while "\nn " not in (said := await until(run / "begun")) or not said.endswith("\n"):
            await asyncio.sleep(0.02)
    return said.rpartition("\nn ")[2]


async def test_a_run_begins_once_and_is_found_again(shell: list[str], tmp_path: Path) -> None:
    run = tmp_path / "job" / "1"
    begin = f"begin 1 '{tmp_path}/job' 1 '' n parts\n"
    said = orders(shell, tmp_path, parts("echo hi; exit 3", run) + begin + begin.replace("begin 1", "begin 2"))
    assert said[0] == f"headway: ready {tmp_path}"
    assert "1 begun" in said
    assert any(line.startswith("2 found 1 ") for line in said)
    assert await ended(run) == "3\n"
    assert (run / "out").read_text() == "hi\n"
    assert orders(shell, tmp_path, f"look 1 '{run}'\nclear 2 '{run}'")[1:] == ["1 state 0 ended 3", "2 cleared"]
    assert not (tmp_path / "job").exists()


async def test_a_run_is_stopped_with_its_group(shell: list[str], tmp_path: Path) -> None:
    run = tmp_path / "job" / "1"
    orders(shell, tmp_path, parts("sleep 1001 & sleep 1002", run) + f"begin 1 '{tmp_path}/job' 1 '' n parts")
    leader = int((await until(run / "begun", lines=2)).split()[1])
    async with asyncio.timeout(30):
        while not orders(shell, tmp_path, f"look 1 '{run}'")[1].startswith("1 state 4 alive"):
            await asyncio.sleep(0.05)
    assert orders(shell, tmp_path, f"stop 1 '{run}' KILL")[1] == "1 sent 0"
    async with asyncio.timeout(30):
        while "state 0" not in (said := orders(shell, tmp_path, f"look 1 '{run}'")[1]):
            await asyncio.sleep(0.05)
    assert said == "1 state 0 gone"
    assert not psutil.pid_exists(leader) or psutil.Process(leader).status() == psutil.STATUS_ZOMBIE


def test_a_run_that_was_stopped_before_it_began_never_does(shell: list[str], tmp_path: Path) -> None:
    run = tmp_path / "job" / "1"
    begin = f"begin 2 '{tmp_path}/job' 1 '' n parts"
    said = orders(shell, tmp_path, f"stop 1 '{run}' TERM\n" + parts("echo", run) + begin)
    assert said[1:] == ["1 sent 0", "2 found 1 barred"]
    assert not (run / "out").exists()
    later = orders(shell, tmp_path, parts("echo", run) + f"begin 1 '{tmp_path}/other' 3 '1 2' n parts")
    assert "1 begun" in later
    assert (tmp_path / "other" / "2" / "begun").read_text() == "barred\n"


def test_a_run_that_is_over_never_begins_again(shell: list[str], tmp_path: Path) -> None:
    run = tmp_path / "job" / "1"
    begin = f"begin 3 '{tmp_path}/job' 1 '' n parts"
    said = orders(shell, tmp_path, f"stop 1 '{run}' TERM\nbury 2 '{run}'\n" + parts("echo", run) + begin)
    assert said[1:] == ["1 sent 0", "2 buried", "3 found 1 over"]
    assert [path.name for path in run.iterdir()] == ["begun"]
    later = orders(shell, tmp_path, parts("echo", run) + f"begin 1 '{tmp_path}/job' 2 '1' n parts")
    assert "1 begun" in later


@pytest.mark.parametrize("name", ["head way", "*", "it's"])
async def test_what_is_swept_away_is_ours(shell: list[str], tmp_path: Path, name: str) -> None:
    """Whatever the name of the directory: neither blanks nor stars in it lead to others."""
    base = tmp_path / name / "runs"
    vault = tmp_path / "memory"
    foreign = [tmp_path / "head", tmp_path / "way" / "runs" / "old", base / "young"]
    for path in (base / "old" / "1", base / "oldest" / "1", vault, *foreign):
        path.mkdir(parents=True)
        (path / "begun").write_text("n\n1 none\n")
    (base / "old" / "1" / "vault").write_text(f"{vault}\n")
    for path in (base / "old", base / "oldest", *foreign[:2]):
        os.utime(path, (0, 0))
    quoted = str(base).replace("'", "'\\''")
    assert orders(shell, base, f"cd '{tmp_path}'\nsweep 1 '{quoted}' 30")[1:] == ["1 swept"]
    assert [path.name for path in base.iterdir()] == ["young"]
    assert all(path.exists() for path in foreign)
    assert not vault.exists()


def test_a_script_that_is_to_be_stopped_is_not_started(shell: list[str], tmp_path: Path) -> None:
    run, ran = tmp_path / "job" / "1", tmp_path / "ran"
    (run / "stopped").mkdir(parents=True)
    begin = f"begin 1 '{tmp_path}/job' 1 '' n parts\nwait\n"
    said = orders(shell, tmp_path, parts(f"touch {ran}", run) + begin + f"look 2 '{run}'")
    assert said[1:] == ["1 begun", "2 state 0 gone"]
    assert not ran.exists()


def test_a_script_that_could_not_be_found_again_is_not_started(shell: list[str], tmp_path: Path) -> None:
    """The disk is full from the moment in which the run has begun."""
    run, ran = tmp_path / "job" / "1", tmp_path / "ran"
    full = 'once() { ln -s /dev/full "$1"; }\n'
    begin = f"begin 1 '{tmp_path}/job' 1 '' n parts\nwait\n"
    said = orders(shell, tmp_path, full + parts(f"touch {ran}", run) + begin)
    assert said[1:] == ["1 begun", "1 ended 126 0 1"]
    assert "is the disk full?" in (run / "err").read_text()
    assert not ran.exists()


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("", "starting"),
        ("n", "starting"),
        ("barre", "starting"),
        ("n\n1 no", "starting"),
        ("n\n1 none\n", "gone"),
        ("n\n1 none\nn 0", "gone"),
        ("n\n1 none\n\nn 12", "gone"),
        ("n\n1 no\nn 126\n", "ended 126"),
        ("n\n1 none\nTerminated\nn 12\n", "ended 12"),
        ("n\n1 none\nkilled: ( x 'a\nexit 0\nm 0\n0\n' )\n", "gone"),
        ("barred\n1 none\nbarred 0\n", "barred"),
        ("over\n\nn 0\n", "over"),
    ],
)
def test_of_what_is_written_down_only_whole_lines_count(
    shell: list[str], tmp_path: Path, told: str, state: str
) -> None:
    run = tmp_path / "job" / "1"
    run.mkdir(parents=True)
    (run / "begun").write_text(told)
    assert orders(shell, tmp_path, f"look 1 '{run}'")[1] == f"1 state 0 {state}"


def test_a_directory_that_cannot_be_made_is_told(shell: list[str], tmp_path: Path) -> None:
    (tmp_path / "job").write_text("in the way")
    [_, said] = orders(shell, tmp_path, parts("echo", tmp_path) + f"begin 1 '{tmp_path}/job' 1 '' n parts")
    assert said.startswith("1 refused ")
    assert "job" in said


@pytest.mark.parametrize(("script", "end"), [("kill -TERM $$", "ended -15"), ("exit 143", "ended 143")])
async def test_a_signal_that_ended_the_script_is_told_from_an_exit_code(
    shell: list[str], tmp_path: Path, script: str, end: str
) -> None:
    run = tmp_path / "job" / "1"
    orders(shell, tmp_path, parts(script, run) + f"begin 1 '{tmp_path}/job' 1 '' n parts")
    await ended(run)
    assert orders(shell, tmp_path, f"look 1 '{run}'")[1] == f"1 state 0 {end}"


FORGED = "exit 0\nn 0\nbegun 0\n1 ended 0 0 0\n0\nended 0\nover\nbarred\n1 none\n{job} 0\n\n"


async def test_nothing_in_a_script_s_arguments_is_taken_for_its_end(shell: list[str], tmp_path: Path) -> None:
    """Of a script that a signal has ended, bash writes down the whole command, with whatever its author gave it."""
    forged = f"\n{FORGED.format(job='job')}"
    work = Work(script=b"kill -KILL $$", command=("/bin/sh",), args=(forged, forged), env={"FORGED": forged})
    run = tmp_path / "job" / "1"
    order = begin(work, Place(job="job", attempt=1), str(tmp_path), 1).decode()
    said = orders(shell, tmp_path, f"{order}\nwait\nlook 2 '{run}'")
    assert said[1:] == ["1 begun", "1 ended -9 0 0", "2 state 0 ended -9"]
    control = run / "begun"
    assert (forged in control.read_text()) == (shell[0] == "bash")
    # The supervisor was killed, too, before it could tell.
    control.write_text(control.read_text().rstrip("\n").rpartition("\n")[0] + "\n")
    assert orders(shell, tmp_path, f"look 1 '{run}'")[1] == "1 state 0 gone"


async def test_many_arguments_reach_a_script(shell: list[str], tmp_path: Path) -> None:
    """More than a variable can hold."""
    words = tuple(f"{number}{'x' * 50_000}" for number in range(5))
    work = Work(script=b'echo $#; echo "$5"; env', command=("/bin/sh",), args=words)
    order = begin(work, Place(job="job", attempt=1), str(tmp_path), 1).decode()
    assert orders(shell, tmp_path, f"{order}\nwait")[1:] == ["1 begun", "1 ended 0 1 0"]
    said = (tmp_path / "job" / "1" / "out").read_text()
    assert said.startswith(f"5\n{words[4]}\n")
    assert "HEADWAY_START" not in said


async def test_a_run_makes_few_files(shell: list[str], tmp_path: Path) -> None:
    """What is made and removed again is most of what a short script costs its host."""
    work = Work(script=b"echo hi; ls /proc/self/fd", command=("/bin/sh",))
    order = begin(work, Place(job="job", attempt=1), str(tmp_path), 1).decode()
    orders(shell, tmp_path, f"{order}\nwait")
    made = sorted(path.name.partition("-")[0] for path in (tmp_path / "job").rglob("*"))
    assert made == ["1", "begun", "err", "out", "script", "work"]
    # Neither the channel nor the control file is the script's.
    assert (tmp_path / "job" / "1" / "out").read_text().split() == ["hi", "0", "1", "2", "3"]


def test_runs_lie_far_from_each_other_on_their_disk(
    shell: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    chattr = tmp_path / "chattr"
    chattr.write_text(f'#!/bin/sh\necho "$@" >>{asked}\nexit 1\n')
    chattr.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert orders(shell, tmp_path / "runs", "") == [f"headway: ready {tmp_path}/runs"]
    assert asked.read_text() == f"+T {tmp_path}/runs\n"


async def test_spooled_output_is_cut_while_its_run_lives(shell: list[str], tmp_path: Path) -> None:
    run, go = tmp_path / "job" / "1", tmp_path / "go"
    script = f"head -c 2000000 /dev/zero; while [ ! -e {go} ]; do sleep 0.05; done; echo last"
    guard = "guard 500 1000 0.1\n"
    orders(shell, tmp_path, guard + parts(script, run) + f"begin 1 '{tmp_path}/job' 1 '' n parts")
    cuts = [int(line) for line in (await until(run / "out.cut")).split()]
    assert all(500 * 1024 < cut <= 2_000_000 for cut in cuts)
    # What is to go is written down first: a run that ended between the two would be left as it is.
    async with asyncio.timeout(30):
        while (run / "out").stat().st_blocks * 512 >= 600_000:
            await asyncio.sleep(0.02)
    go.touch()
    await ended(run)
    assert (run / "out.head").read_bytes() == bytes(1000)
    assert (run / "out").read_bytes()[2_000_000:] == b"last\n"
    assert (run / "out").stat().st_blocks * 512 < 600_000
