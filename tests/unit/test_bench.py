"""`headway bench`, from the command to the figures; so small that the figures mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.bench.dispatch import dispatch
from headway.bench.report import Line
from headway.bench.scripts import scripts
from headway.bench.sites import SqliteSite
from headway.bench.sizes import TINY
from headway.bench.stage import Stage


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headway", "bench", "--size", "tiny", *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def lines_of(path: Path) -> dict[str, Any]:
    [chapter] = json.loads(path.read_bytes())["stores"]
    assert chapter["store"] == "SQLite"
    assert chapter["settings"]["synchronous"] == "full"
    return {line["what"]: line for line in chapter["lines"]}


def test_a_run_shows_figures_beside_their_ceilings_and_targets(tmp_path: Path) -> None:
    done = bench("--sqlite-only", "--only", "drain", "--only", "idle", "--json", str(tmp_path / "figures.json"))
    assert done.returncode == 0, done.stderr
    lines = lines_of(tmp_path / "figures.json")
    drain, memory = lines["drain 1,000 jobs, 1 process"], lines["memory of an idle worker"]
    assert min(drain["value"], drain["ceiling"], memory["value"]) > 0
    assert [target["text"] for target in memory["targets"]] == ["≤ 60.0 MB"]
    assert set(drain) > {"ratio", "runs", "ceiling_runs", "targets"}
    assert "drain 1,000 jobs, 1 process" in done.stdout


@pytest.mark.prove
def test_every_measurement_brings_its_lines(tmp_path: Path) -> None:
    done = bench("--sqlite-only", "--in-a-row", "1000", "--json", str(tmp_path / "figures.json"))
    assert done.returncode == 0, done.stderr
    lines = lines_of(tmp_path / "figures.json")
    assert len(lines) == 26
    assert all(line["value"] > 0 for line in lines.values())


def test_a_drain_rung_by_rabbitmq_is_shown_beside_the_store_s_own(tmp_path: Path) -> None:
    done = bench("--sqlite-only", "--only", "dispatch", "--json", str(tmp_path / "figures.json"))
    assert done.returncode == 0, done.stderr
    line = lines_of(tmp_path / "figures.json")["drain rung by RabbitMQ, beside the store's own"]
    assert min(line["value"], line["ceiling"]) > 0


async def test_without_rabbitmq_the_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.bench.broker.SCRIPTS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    [line] = await dispatch(Stage(SqliteSite(tmp_path), TINY, lambda _: None))
    assert line.value > 0
    assert line.ceiling is None
    assert "RabbitMQ is not installed" in (line.note or "")


def test_scripts_are_measured_on_a_server_of_our_own(tmp_path: Path) -> None:
    done = bench("--sqlite-only", "--only", "scripts", "--json", str(tmp_path / "figures.json"))
    assert done.returncode == 0, done.stderr
    short, p50, p99 = lines_of(tmp_path / "figures.json").values()
    assert short["ceiling"] > 0
    assert 0 < p50["value"] <= p99["value"]
    assert [target["text"] for target in p99["targets"]] == ["≤ 200 ms"]


async def test_without_openssh_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.bench.sshd.shutil.which", lambda *_, **__: None)
    [line] = await scripts(Stage(SqliteSite(tmp_path), TINY, lambda _: None))
    assert "apt-get install openssh-server" in (line.note or "")


def test_an_unknown_measurement_is_refused() -> None:
    done = bench("--sqlite-only", "--only", "speed")
    assert done.returncode == 2
    assert "use one of submit, drain" in done.stderr


@pytest.mark.parametrize(
    ("runs", "reached"), [((40_000.0, 10_000.0, 41_000.0), [True, True]), ((29_000.0,), [False, False])]
)
def test_a_line_is_judged_by_its_median(runs: tuple[float, ...], reached: list[bool]) -> None:
    line = Line(what="drain", unit="jobs/s", runs=runs, ceiling_runs=(60_000.0,)).aiming(at_least=30_000, share=0.5)
    assert [target.reached for target in line.targets] == reached
