"""What a process tells the cloud it runs in: how far behind the workers are, and that it holds jobs."""

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from uuid import uuid4

import pytest

from headway.clock import SystemClock
from headway.duties import backlog
from headway.model.limits import QueueSettings
from headway.observe import cloudwatch
from headway.store import make_store
from headway.worker import protection


class Agent(BaseHTTPRequestHandler):
    """Answers like the agent of ECS, and keeps what it was told."""

    told: list[tuple[str, dict[str, Any]]]
    heard: threading.Event

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.told.append((self.path, json.loads(body)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.heard.set()

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def agent() -> Iterator[tuple[str, type[Agent]]]:
    kept = type("Kept", (Agent,), {"told": [], "heard": threading.Event()})
    server = HTTPServer(("127.0.0.1", 0), kept)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api/x", kept
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_task_that_holds_jobs_is_protected_and_an_idle_one_is_not(
    agent: tuple[str, type[Agent]], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, kept = agent
    monkeypatch.setattr(protection, "EVERY", 0.01)
    busy = True
    task = asyncio.create_task(protection.protect(uri, lambda: busy, SystemClock()))
    await asyncio.to_thread(kept.heard.wait, 30)
    kept.heard.clear()
    busy = False
    await asyncio.to_thread(kept.heard.wait, 30)
    task.cancel()
    await asyncio.wait([task])
    path = "/api/x/task-protection/v1/state"
    assert kept.told == [
        (path, {"ProtectionEnabled": True, "ExpiresInMinutes": protection.MINUTES}),
        (path, {"ProtectionEnabled": False}),
    ]


async def test_an_agent_that_is_not_there_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "EVERY", 0.01)
    asked = asyncio.Event()
    times = 0

    def busy() -> bool:
        nonlocal times
        times += 1
        if times == 3:
            asked.set()
        return True

    task = asyncio.create_task(protection.protect("http://127.0.0.1:9", busy, SystemClock()))
    async with asyncio.timeout(30):
        await asked.wait()
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])


class Lines(io.StringIO):
    """A stream that tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def flush(self) -> None:
        self.written.set()


async def test_one_of_several_schedulers_tells_the_backlog() -> None:
    store = make_store("sqlite://")
    await store.open()
    await store.set_queue(QueueSettings(name="mail"))
    first, second = Lines(), Lines()
    one = asyncio.create_task(backlog.tell(store, uuid4(), SystemClock(), first))
    async with asyncio.timeout(30):
        await first.written.wait()
    other = asyncio.create_task(backlog.tell(store, uuid4(), SystemClock(), second))
    await store.queue_stats()
    for task in (one, other):
        task.cancel()
    await asyncio.wait([one, other])
    await store.close()
    told = json.loads(first.getvalue())
    assert told[cloudwatch.BACKLOG] == 0
    named = [metric["Name"] for metric in told["_aws"]["CloudWatchMetrics"][0]["Metrics"]]
    assert set(named) == set(told) - {"_aws"}
    assert second.getvalue() == ""
