"""Traces, by way of OpenTelemetry, for programs that use it: a job remembers the span that submitted it, each attempt
at it is a span below that one, and requests that it sends carry the attempt on.

Nobody has to switch it on. Where nobody has loaded OpenTelemetry nobody traces, and it costs one look. Whoever does
sets up a provider and an exporter as for any other program. The commands do so themselves where `ENDPOINT` is set.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headway.observe.logs import get_logger

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from headway.model.job import Claim

TRACEPARENT = "traceparent"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"

log = get_logger("headway.traces")

_FORM = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def export() -> None:
    """Send the spans of this process to the collector that OpenTelemetry's own variables name, unless none is named, or
    the user's code has arranged something else. Called when that is loaded."""
    if not os.environ.get(ENDPOINT) or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        log.warning("traces.not_exported", variable=ENDPOINT, missing=error.name, help="pip install 'headway[otlp]'")
        return
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)


def loaded() -> bool:
    """Whether anybody in this process traces."""
    return "opentelemetry.trace" in sys.modules


def current() -> str | None:
    """The span that runs here, as other processes are told of it."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    context = api.get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def readable(given: object) -> str | None:
    """What somebody gave as a traceparent, if it is one. A wrong one is no reason to refuse a job."""
    return given if isinstance(given, str) and len(given) <= 200 and _FORM.fullmatch(given) else None


def headers() -> dict[str, str]:
    """What a request from here says about where it comes from."""
    told = current()
    return {TRACEPARENT: told} if told else {}


@contextmanager
def attempt(claim: Claim) -> Iterator[Span]:
    """One try at a job, as a span below the one that submitted it; asked for where it is `loaded`."""
    from opentelemetry import trace

    parent = _context(claim.traceparent)
    with trace.get_tracer("headway").start_as_current_span(
        f"run {claim.name}",
        context=parent,
        kind=trace.SpanKind.CONSUMER,
        attributes=_attributes(claim),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


@contextmanager
def within(traceparent: str | None) -> Iterator[None]:
    """What is done here belongs to a span of another process, which ends it."""
    if traceparent is None:
        yield
        return
    from opentelemetry import context

    token = context.attach(_context(traceparent))
    try:
        yield
    finally:
        context.detach(token)


def conclude(span: Span, outcome: str, error: str | None) -> None:
    """How the attempt ended."""
    from opentelemetry.trace import StatusCode

    span.set_attribute("headway.outcome", outcome)
    if error is not None:
        span.set_status(StatusCode.ERROR, error)


@contextmanager
def request(method: str, host: str) -> Iterator[dict[str, str]]:
    """A request that is sent from here; gives the headers that carry the trace on."""
    if not loaded():
        yield {}
        return
    from opentelemetry import trace

    attributes = {"http.request.method": method, "server.address": host}
    with trace.get_tracer("headway").start_as_current_span(method, kind=trace.SpanKind.CLIENT, attributes=attributes):
        yield headers()


def _context(traceparent: str | None) -> Any:
    """The context of a remote span; an empty one without, lest the worker's own span become every job's parent."""
    from opentelemetry import trace
    from opentelemetry.context import Context

    found = _FORM.fullmatch(traceparent or "")
    if found is None:
        return Context()
    remote = trace.SpanContext(
        trace_id=int(found[1], 16),
        span_id=int(found[2], 16),
        is_remote=True,
        trace_flags=trace.TraceFlags(int(found[3], 16)),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(remote), Context())


def _attributes(claim: Claim) -> dict[str, str | int]:
    return {
        "headway.job.id": str(claim.id),
        "headway.job.name": claim.name,
        "headway.job.kind": claim.kind,
        "headway.queue": claim.queue,
        "headway.attempt": claim.attempt,
        "headway.correlation_id": claim.correlation_id or str(claim.id),
    }
