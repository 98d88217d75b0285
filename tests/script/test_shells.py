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

FAR = Path(__file__).parents[2] / "src" / "headway" / "executors" / "script" / "far.sh"
SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"], "bash": ["bash", "--posix"]}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    words = SHELLS[request.param]
    assert shutil.which(words[0]), f"{words[0]} is not installed: run tools/servers"
    return words


def orders(shell: list[str], base: Path, text: str) -> list[str]:
    """What the far side answers to these orders."""
    supervisor = " ".join(shell)
    far = FAR.read_text().replace("setsid /bin/sh", f"setsid {supervisor}")
    # Not through a pipe: a run that goes on holds its end.
    with tempfile.TemporaryFile("w+") as answers:
        quoted = str(base).replace("'", "'\\''")
        given = f"{far}\nserve '{quoted}'\n{text}\n"
        subprocess.run(shell, input=given, stdout=answers, text=True, timeout=60, check=False)
        answers.seek(0)
        return answers.read().splitlines()


def parts(script: str, run: Path) -> str:
    supervisor = FAR.with_name("supervisor.sh").read_text()
    start = (
        f"headway_run={run}\nheadway_cwd={run}/work\nheadway_script() {{\n"
        f"( exec /bin/sh {run}/script-n </dev/null >$headway_run/out 2>$headway_run/err 3>&- )\n}}\n{supervisor}"
    )
    quoted = start.replace("'", "'\\''")
    return f"parts() {{ printf %s '{script}' >\"$run/script-n\" && printf %s '{quoted}' >\"$run/start-n\"; }}\n"


async def until(path: Path) -> str:
    async with asyncio.timeout(30):
        while not path.exists() or not path.read_text().endswith("\n"):
            await asyncio.sleep(0.02)
    return path.read_text()


async def test_a_run_begins_once_and_is_found_again(shell: list[str], tmp_path: Path) -> None:
    run = tmp_path / "job" / "1"
    begin = f"begin 1 '{tmp_path}/job' 1 '' n parts\n"
    said = orders(shell, tmp_path, parts("echo hi; exit 3", run) + begin + begin.replace("begin 1", "begin 2"))
    assert said[0] == f"headway: ready {tmp_path}"
    assert "1 begun" in said
    assert any(line.startswith("2 found 1 ") for line in said)
    assert await until(run / "exit") == "3\n"
    assert (run / "out").read_text() == "hi\n"
    assert orders(shell, tmp_path, f"look 1 '{run}'\nclear 2 '{run}'")[1:] == ["1 state 0 ended 3", "2 cleared"]
    assert not (tmp_path / "job").exists()


async def test_a_run_is_stopped_with_its_group(shell: list[str], tmp_path: Path) -> None:
    run = tmp_path / "job" / "1"
    orders(shell, tmp_path, parts("sleep 1001 & sleep 1002", run) + f"begin 1 '{tmp_path}/job' 1 '' n parts")
    leader = int((await until(run / "pid")).split()[0])
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
        (path / "begun").write_text("n\n")
        (path / "pid").write_text("1 none\n")
    (base / "old" / "1" / "vault").write_text(f"{vault}\n")
    for path in (base / "old", base / "oldest", *foreign[:2]):
        os.utime(path, (0, 0))
    quoted = str(base).replace("'", "'\\''")
    assert orders(shell, base, f"cd '{tmp_path}'\nsweep 1 '{quoted}' 30")[1:] == ["1 swept"]
    assert [path.name for path in base.iterdir()] == ["young"]
    assert all(path.exists() for path in foreign)
    assert not vault.exists()


@pytest.mark.parametrize("sign", ["pid", "stopped"])
def test_a_script_that_could_not_be_found_again_or_is_to_be_stopped_is_not_started(
    shell: list[str], tmp_path: Path, sign: str
) -> None:
    run, ran = tmp_path / "job" / "1", tmp_path / "ran"
    (run / sign).mkdir(parents=True)
    begin = f"begin 1 '{tmp_path}/job' 1 '' n parts\nwait\n"
    said = orders(shell, tmp_path, parts(f"touch {ran}", run) + begin + f"look 2 '{run}'")
    assert said[1] == "1 begun"
    assert said[2:] == (["1 ended 126 0 1", "2 state 0 ended 126"] if sign == "pid" else ["2 state 0 gone"])
    assert not ran.exists()


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
    await until(run / "exit")
    assert orders(shell, tmp_path, f"look 1 '{run}'")[1] == f"1 state 0 {end}"


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
    await until(run / "exit")
    assert (run / "out.head").read_bytes() == bytes(1000)
    assert (run / "out").read_bytes()[2_000_000:] == b"last\n"
    assert (run / "out").stat().st_blocks * 512 < 600_000
