"""One trace from whoever submits a job to the request that the job sends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from headway import Headway, Retry
from headway.observe import traces
from tests.api.conftest import Site

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Exported:
    """The spans that have ended, while anybody wants them."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        trace.set_tracer_provider(provider)

    def clear(self) -> None:
        self._exporter.clear()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


@pytest.fixture(scope="module")
def _exported() -> Exported:
    # A process can have one provider only, for good.
    return Exported()


@pytest.fixture
def spans(_exported: Exported) -> Iterator[Exported]:
    _exported.clear()
    yield _exported
    _exported.clear()


def parent_of(span: ReadableSpan) -> tuple[int, int]:
    assert span.parent is not None
    return span.parent.trace_id, span.parent.span_id


async def test_every_attempt_is_a_span_below_the_one_that_submitted_the_job(store_url: str, spans: Exported) -> None:
    app = Headway(store_url)
    seen: list[str | None] = []

    @app.job(name="shaky", retry=Retry(max_attempts=2, wait=0.0))
    def shaky() -> None:
        seen.append(traces.current())
        if len(seen) == 1:
            raise ValueError("not yet")

    with trace.get_tracer("shop").start_as_current_span("order") as order:
        job = await shaky.asubmit()
    async with app.worker():
        await job.finished(60)
    first, second = spans.named("run shaky")
    context = order.get_span_context()
    for attempt in (first, second):
        assert parent_of(attempt) == (context.trace_id, context.span_id)
        assert attempt.kind is SpanKind.CONSUMER
    attributes: dict[str, Any] = dict(first.attributes or {})
    assert attributes["headway.job.id"] == str(job.id)
    assert (attributes["headway.attempt"], attributes["headway.queue"]) == (1, "default")
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "ValueError: not yet")
    assert dict(second.attributes or {})["headway.outcome"] == "succeeded"
    # The function itself, in its thread, is within its attempt.
    spans_of_attempts = [f"{attempt.context.span_id:016x}" for attempt in (first, second) if attempt.context]
    assert [(text or "").split("-")[2] for text in seen] == spans_of_attempts
    await app.aclose()


class Receiver:
    """A server that notes where requests say they come from."""

    def __init__(self) -> None:
        self.url = ""
        self.told: list[str | None] = []

    async def take(self, request: web.Request) -> web.Response:
        self.told.append(request.headers.get("traceparent"))
        return web.Response(text="ok")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver, app = Receiver(), web.Application()
    app.router.add_route("*", "/", receiver.take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield receiver
    await runner.cleanup()


async def test_a_trace_goes_from_a_rest_call_to_the_request_that_the_job_sends(
    site: Site, receiver: Receiver, spans: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_ALLOW_PRIVATE", "127.0.0.1")
    body = {"kind": "http", "name": "call-back", "callback_url": receiver.url, "http_method": "POST"}
    caller = f"00-{TRACE}-b7ad6b7169203331-01"
    answer = await site.post("/jobs", body, headers={"traceparent": caller})
    assert (answer.status_code, answer.json()["traceparent"]) == (201, caller), answer.text
    broken = await site.post("/jobs", {**body, "name": "other"}, headers={"traceparent": "nonsense"})
    assert broken.status_code == 201, "a wrong header is no reason to refuse a job"
    async with site.app.worker():
        job = await site.app.aget(UUID(answer.json()["id"]))
        await job.finished(60)
    [attempt] = spans.named("run call-back")
    assert parent_of(attempt) == (int(TRACE, 16), int("b7ad6b7169203331", 16))
    [request] = [span for span in spans.named("POST") if (span.context and span.context.trace_id == int(TRACE, 16))]
    assert attempt.context is not None
    assert parent_of(request) == (int(TRACE, 16), attempt.context.span_id)
    assert request.context is not None
    assert f"00-{TRACE}-{request.context.span_id:016x}-01" in receiver.told


@pytest.mark.parametrize("given", ["", "00", f"00-{'0' * 32}-b7ad6b7169203331-01", f"00-{TRACE}-{'0' * 16}-01", None])
def test_what_is_no_traceparent_is_left_aside(given: str | None) -> None:
    assert traces.readable(given) is None
