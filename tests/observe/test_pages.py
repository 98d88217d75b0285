"""The pages of real processes, as Prometheus would read them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.api.conftest import Site
from tests.flow.processes import Process, Processes
from tests.flow.waiting import block_until as wait_until

PATIENCE = 60.0

SHOP = """
import os
from headway import Headway, Retry, every

app = Headway(os.environ["SHOP_STORE"])


@app.job(queue="mail", name="hello")
async def hello(number: int) -> int:
    return number


@app.job(queue="mail", name="broken", retry=Retry(max_attempts=2, wait=0.01))
async def broken() -> None:
    raise ValueError("no")


@app.job(queue="mail", name="ticking", schedule=every(0.2))
async def ticking() -> None: ...
"""


def block_until(condition: Callable[[], Any], what: str) -> Any:
    return wait_until(condition, what, PATIENCE)


def page_of(process: Process) -> str:
    """Where a process serves its page, once it does."""

    def printed() -> str | None:
        assert process.running, process.text()
        found = re.search(r"metrics at (http\S+)/metrics", process.text())
        return found[1] if found else None

    url: str = block_until(printed, "the page")
    return url


def read(url: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    checked = subprocess.run(
        ["promtool", "check", "metrics"], check=False, input=text.encode(), capture_output=True, timeout=60
    )
    assert (checked.returncode, checked.stderr) == (0, b""), checked.stderr
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(page: dict[Any, float], name: str, **labels: str) -> float:
    """The sum of what matches."""
    return sum(
        number for (found, with_), number in page.items() if found == name and labels.items() <= dict(with_).items()
    )


def shop(directory: Path, store_url: str) -> dict[str, str]:
    (directory / "shop.py").write_text(SHOP)
    return {"SHOP_STORE": store_url}


def submit(processes: Processes, number: int, **variables: str) -> None:
    code = f"from shop import *; [hello.submit(n) for n in range({number})]; broken.submit(); app.close()"
    assert processes.python("-c", code, **variables).ended() == 0


def test_workers_and_schedulers_have_pages_of_their_own(processes: Processes, store_url: str, tmp_path: Path) -> None:
    variables = shop(tmp_path, store_url)
    worker = processes.headway("worker", "--app", "shop:app", "-q", "mail=7", "--metrics-port", "0", **variables)
    scheduler = processes.headway("scheduler", "--app", "shop:app", **variables, HEADWAY_METRICS_PORT="0")
    workers_page, schedulers_page = page_of(worker), page_of(scheduler)
    submit(processes, 20, **variables)

    def worked() -> Any:
        page = read(workers_page)
        failed = value(page, "headway_jobs_finished_total", outcome="failed")
        return page if failed and value(page, "headway_jobs_finished_total", outcome="succeeded") >= 21 else None

    page = block_until(worked, "the jobs to be counted")
    assert value(page, "headway_jobs_released_total", kind="call", queue="mail", reason="retry") == 1
    assert value(page, "headway_jobs_claimed_total", queue="mail") >= 23
    assert value(page, "headway_job_wait_seconds_count", queue="mail") >= 23
    assert value(page, "headway_job_run_seconds_count", queue="mail", kind="call") >= 23
    assert value(page, "headway_batch_size_count", act="finish") > 0
    assert value(page, "headway_store_transaction_seconds_count", lane="claim") > 0
    # On SQLite one writes for all, and workers read nothing beside.
    assert value(page, "headway_store_connections") >= (1 if store_url.startswith("sqlite") else 2)
    assert value(page, "headway_worker_slots", queue="mail") == 7
    assert value(page, "headway_process_memory_bytes", process="0") > 1e7
    assert value(page, "headway_heartbeat_age_seconds", process="0") < 60
    assert value(page, "headway_loop_lag_seconds_count") > 0
    assert not [name for name, _ in page if name.startswith("headway_queue_")], "the store is told of by schedulers"

    page = read(schedulers_page)
    assert value(page, "headway_occurrences_total", result="fired") > 0
    assert value(page, "headway_schedule_lateness_seconds_count") > 0
    assert value(page, "headway_jobs_submitted_total", queue="mail", kind="call") > 0
    assert value(page, "headway_queue_workers", queue="mail") == 1
    assert value(page, "headway_schedules", state="active") == 1
    assert value(page, "headway_store_up") == value(page, "headway_schedulers") == value(page, "headway_workers") == 1
    for url in (workers_page, schedulers_page):
        assert sign(url, "healthz") == sign(url, "readyz") == (200, "ok\n")
    assert worker.stop() == scheduler.stop() == 0


def test_several_processes_make_one_page_and_a_killed_one_takes_nothing_away(
    processes: Processes, tmp_path: Path
) -> None:
    variables = shop(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}")
    parent = processes.headway(
        "worker", "--app", "shop:app", "-q", "mail=7", "--processes", "2", "--metrics-port", "0", **variables
    )
    url = page_of(parent)
    block_until(lambda: value(read(url), "headway_worker_slots", queue="mail") == 14, "both processes to report")
    submit(processes, 20, **variables)
    done = {"queue": "mail", "outcome": "succeeded"}
    block_until(lambda: value(read(url), "headway_jobs_finished_total", **done) == 20, "the jobs to be counted")
    page = read(url)
    assert {dict(labels)["process"] for name, labels in page if name == "headway_process_memory_bytes"} == {
        "0",
        "1",
        "parent",
    }
    os.kill(parent.children[0].pid, signal.SIGKILL)
    block_until(lambda: value(read(url), "headway_process_restarts_total") == 1, "the process to be replaced")
    block_until(lambda: value(read(url), "headway_worker_slots", queue="mail") == 14, "the new process to report")
    assert value(read(url), "headway_jobs_finished_total", **done) == 20
    assert parent.stop() == 0


def sign(url: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{url}/{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_parent_is_ready_only_while_all_of_its_processes_serve(processes: Processes, tmp_path: Path) -> None:
    variables = shop(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}")
    arguments = ("--app", "shop:app", "--processes", "2", "--metrics-port", "0")
    parent = processes.headway("worker", *arguments, **variables)
    url = page_of(parent)
    block_until(lambda: sign(url, "readyz") == (200, "ok\n"), "both processes to serve")
    assert sign(url, "healthz") == (200, "ok\n")
    stopped = parent.children[1]
    stopped.suspend()
    assert sign(url, "readyz") in {(503, f"process {place}: it does not answer\n") for place in (0, 1)}
    assert sign(url, "healthz")[0] == 200, "not yet: one that is being replaced doesn't answer either"
    stopped.resume()
    block_until(lambda: sign(url, "readyz") == (200, "ok\n"), "the process to answer again")
    assert parent.stop() == 0


async def test_the_api_serves_metrics_to_this_machine_and_to_others_with_a_token(site: Site) -> None:
    job = await site.submit(queue="mail")
    await site.post(f"/jobs/{job['id']}/cancel")
    await site.submit(queue="mail")
    here = await site.client.get("/metrics", headers={"Authorization": ""})
    assert here.status_code == 200
    assert 'headway_jobs_submitted_total{kind="call",queue="mail"}' in here.text
    assert 'headway_queue_jobs{queue="mail",state="due"}' in here.text
    assert "headway_store_up 1.0" in here.text
    by_proxy = {"X-Forwarded-For": "203.0.113.9"}
    elsewhere = await site.client.get("/metrics", headers={"Authorization": "", **by_proxy})
    assert elsewhere.status_code == 401
    assert (await site.client.get("/metrics", headers=by_proxy)).status_code == 200
    for passed_on in ("X-Real-IP", "Forwarded", "Via"):
        told = {"Authorization": "", passed_on: "203.0.113.9"}
        assert (await site.client.get("/metrics", headers=told)).status_code == 401, passed_on
    openmetrics = await site.client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
