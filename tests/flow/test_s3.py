"""Output kept in S3: written by a worker, read over REST and at a command line, looked after by `doctor`."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.browser.house import TOKEN, House
from tests.flow.terminal import Terminal
from tests.s3 import BUCKET, S3Server


def test_output_in_s3_is_read_over_rest_and_at_a_command_line(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'headway.db'}"
    with S3Server() as server:
        place = {"HEADWAY_OUTPUT": f"s3://{BUCKET}/kept", **server.environment}
        house = House(tmp_path, store, "--app", "jobs:app", HEADWAY_ADMIN_TOKEN=TOKEN, **place)
        house.start()
        try:
            job = _run(house.url)
        finally:
            house.close()
        assert job["output_location"].startswith(f"s3://{BUCKET}/kept")
        held = httpx.get(f"{server.url}/{BUCKET}?list-type=2", trust_env=False).text
        assert job["id"] in held

        terminal = Terminal(tmp_path, store, **place)
        assert "hello bucket" in terminal.fine("jobs", "output", job["id"]).out
        findings = {found["check"]: found for found in terminal.run("doctor", "--json").data["findings"]}
        assert findings["output"]["level"] == "ok"
        assert "s3" in findings["output"]["text"].lower()


def _run(url: str) -> dict[str, str]:
    """A job that has written something, once all of it is there."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, trust_env=False, timeout=60) as client:
        body = {"kind": "call", "function": "greet", "kwargs": {"name": "bucket"}}
        job = client.post("/jobs", json=body).json()
        while job["state"] not in {"completed", "failed"}:
            job = client.get(f"/jobs/{job['id']}", params={"wait": 30}).json()
        assert "hello bucket" in client.get(f"/jobs/{job['id']}/output").text
        shown: dict[str, str] = job
        return shown
