"""A real Prometheus reads a running system: every query of the dashboards and of the alert rules finds its series."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from headway.observe import metrics, series
from tests.flow.processes import Processes
from tests.flow.waiting import block_until
from tests.observe.test_pages import page_of
from tests.rabbit import Rabbit
from tests.servers import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
RULES = DEPLOY / "prometheus" / "rules.yml"
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


@app.job(queue="mail", name="ticking", schedule=every(0.5))
async def ticking() -> None:
    await hello.asubmit(1)
    await broken.asubmit()
    await app.asubmit("http", {"callback_url": os.environ["SHOP_URL"], "http_method": "GET"}, queue="mail", name="ask")
"""


class Prometheus:
    """A private server that reads these pages every second."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, expression: str) -> list[Any]:
        """What an instant query finds."""
        found = self._get("/api/v1/query", query=expression)
        assert found["status"] == "success", (expression, found)
        result: list[Any] = found["data"]["result"]
        return result

    def targets(self) -> list[str]:
        return [target["health"] for target in self._get("/api/v1/targets", state="active")["data"]["activeTargets"]]

    def ready(self) -> bool:
        try:
            self._get("/api/v1/status/buildinfo")
        except OSError:
            return False
        return True

    def _get(self, path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"{self._url}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            return json.load(answer)


@contextmanager
def prometheus(directory: Path, pages: list[str]) -> Iterator[Prometheus]:
    addresses = [url.removeprefix("http://") for url in pages]
    settings = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "headway", "static_configs": [{"targets": addresses}]}],
    }
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(settings))
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        server = Prometheus(port)
        block_until(server.ready, "Prometheus to answer", PATIENCE)
        yield server
    finally:
        process.kill()
        process.wait(PATIENCE)


class _Fine(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
        """Nobody reads it."""


@pytest.fixture
def callback() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Fine)
    thread = Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def dashboard_queries() -> list[str]:
    found: list[str] = []
    for board in BOARDS:
        for panel in json.loads(board.read_text())["panels"]:
            found += [target["expr"] for target in panel["targets"] if target["datasource"]["type"] == "prometheus"]
    return [query.replace("$__rate_interval", "30s").replace("$queue", ".*") for query in found]


def rule_selectors() -> list[str]:
    """What the rules go by. The rules themselves find nothing as long as all is well."""
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    return sorted({found[0] for rule in rules for found in re.finditer(r"headway_\w+(\{[^}]*\})?", rule["expr"])})


def test_every_query_of_dashboards_and_rules_finds_its_series(
    processes: Processes, tmp_path: Path, rabbit: Rabbit, callback: str
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    variables = {
        "SHOP_STORE": f"sqlite:///{tmp_path / 'headway.db'}",
        "SHOP_URL": callback,
        "HEADWAY_ALLOW_PRIVATE": "127.0.0.1",
        "HEADWAY_METRICS_PORT": "0",
        "HEADWAY_BUS": rabbit.url,
    }
    started = [
        processes.headway("worker", "--app", "shop:app", "-q", "mail", **variables),
        processes.headway("scheduler", "--app", "shop:app", **variables),
    ]
    with prometheus(tmp_path, [page_of(process) for process in started]) as server:
        block_until(lambda: server.targets() == ["up", "up"], "both pages to be read", PATIENCE)
        missing = dashboard_queries() + [s for s in rule_selectors() if "occurrences" not in s and "outcome" not in s]

        def found_all() -> bool:
            missing[:] = [query for query in missing if not server.ask(query)]
            return not missing

        try:
            block_until(found_all, "every query to find data", PATIENCE)
        finally:
            assert not missing
        known = {each.name for each in metrics.instruments(vars(series))}
        for selector in rule_selectors():
            assert selector.partition("{")[0] in known
        rules = server._get("/api/v1/rules")["data"]["groups"][0]["rules"]
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    for process in started:
        assert process.stop() == 0


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_alert_rules_are_sound_and_fire_when_they_should() -> None:
    promtool("check", "rules", RULES)
    promtool("test", "rules", RULES.with_name("rules.test.yml"))
    tested = (RULES.with_name("rules.test.yml")).read_text()
    for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]:
        assert f"alertname: {rule['alert']}" in tested, rule["alert"]
        assert {"summary", "help"} <= rule["annotations"].keys()


def test_the_dashboards_are_what_the_tool_writes(tmp_path: Path) -> None:
    tool = Path(__file__).parents[2] / "tools" / "dashboards"
    subprocess.run(["python3", tool, tmp_path], check=True, timeout=60)
    assert [board.name for board in BOARDS] == ["overview.json", "queues.json", "schedules.json", "workers.json"]
    for board in BOARDS:
        assert json.loads(board.read_text()) == json.loads((tmp_path / board.name).read_text()), "run tools/dashboards"


def test_a_failed_job_is_linked_to_its_lines_and_its_trace() -> None:
    [table] = [panel for panel in json.loads(BOARDS[0].read_text())["panels"] if panel["datasource"]["type"] == "loki"]
    links = {
        override["matcher"]["options"]: override["properties"][0]["value"][0]["url"]
        for override in table["fieldConfig"]["overrides"]
    }
    assert '"loki"' in links["job_id"]
    assert "${__data.fields.job_id}" in links["job_id"]
    assert '"tempo"' in links["trace_id"]
    assert "${__data.fields.trace_id}" in links["trace_id"]
