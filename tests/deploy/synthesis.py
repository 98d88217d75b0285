"""Every template that the tests look at, made by one process for the whole test run: starting CDK costs the most.

Run as a program it does what `deploy/aws/app.py DIRECTORY name=value …` does, once for each variant.
"""

from __future__ import annotations

import fcntl
import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

APP = Path(__file__).parents[2] / "deploy/aws/app.py"
CERTIFICATE = "arn:aws:acm:eu-central-1:123456789012:certificate/1"
VARIANTS = {
    "full": ["domain=jobs.example.com", "zone_id=Z1", "zone_name=example.com", "output=s3", "prometheus=true"],
    "plain": [],
    "certified": [f"certificate={CERTIFICATE}"],
    "homeless": ["domain=jobs.example.com"],
}


def synthesised(shared: Path) -> Path:
    """The directory with a directory for each variant; whoever comes first makes it, others wait for that."""
    made = shared / "aws"
    with (shared / "aws.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "done").exists():
            command = [sys.executable, __file__, str(made)]
            run = subprocess.run(command, capture_output=True, text=True, timeout=220, check=False)
            assert run.returncode == 0, run.stderr
            (made / "done").touch()
    return made


def template(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "Headway.template.json").read_text())
    return found


def _synthesise(directory: Path, context: list[str]) -> None:
    directory.mkdir(parents=True)
    sys.argv = [str(APP), str(directory), *context]
    try:
        runpy.run_path(str(APP), run_name="__main__")
    except SystemExit as refused:
        (directory / "refused").write_text(str(refused))


if __name__ == "__main__":
    sys.path.insert(0, str(APP.parent))
    target = Path(sys.argv[1])
    for name, context in VARIANTS.items():
        _synthesise(target / name, context)
