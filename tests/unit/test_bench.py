"""`headway bench`, from the command to the figures; so small that the figures mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.bench.report import Line


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headway", "bench", "--size", "tiny", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
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
    assert len(lines) == 23
    assert all(line["value"] > 0 for line in lines.values())


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
