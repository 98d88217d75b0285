"""Traces of the commands, on their way to a collector."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headway.observe.traces import ENDPOINT
from tests.flow.processes import Processes
from tests.flow.waiting import block_until
from tests.observe.test_pages import shop

TRACE = "0af7651916cd43dd8448eb211c80319c"
SUBMIT = f"""
from headway.observe.traces import within
from shop import *
with within("00-{TRACE}-b7ad6b7169203331-01"):
    hello.submit(1)
app.close()
"""


@contextmanager
def collector() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Where traces go; gives its address and, of each span that came, the service, the name and the trace."""
    spans: list[tuple[str, str, str]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            given = gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body
            assert self.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(given).resource_spans:
                told = {each.key: each.value.string_value for each in resource.resource.attributes}
                for scope in resource.scope_spans:
                    spans.extend((told["service.name"], span.name, span.trace_id.hex()) for span in scope.spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", spans
    finally:
        server.shutdown()
        server.server_close()


def test_a_worker_sends_its_spans_where_the_variable_says(processes: Processes, tmp_path: Path) -> None:
    variables = shop(tmp_path, f"sqlite:///{tmp_path / 'headway.db'}")
    with collector() as (url, spans):
        told = {ENDPOINT: url, "OTEL_SERVICE_NAME": "headway-worker", "NO_PROXY": "*"}
        worker = processes.headway("worker", "--app", "shop:app", "--metrics-port", "0", **variables, **told)
        assert processes.python("-c", SUBMIT, **variables).ended() == 0
        wanted = ("headway-worker", "run hello", TRACE)
        block_until(lambda: wanted in spans, f"the span of the job\n{worker.text()}")
        assert worker.stop() == 0


OWN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from headway.observe import traces
own = TracerProvider()
trace.set_tracer_provider(own)
traces.export()
assert trace.get_tracer_provider() is own
"""

WITHOUT = """
import sys
sys.modules["opentelemetry.exporter"] = None
from headway.compose import configure_logs
from headway.observe import traces
configure_logs("info", as_json=True)
traces.export()
"""


def test_what_an_app_has_arranged_stays_and_a_missing_exporter_is_told(processes: Processes) -> None:
    told = {ENDPOINT: "http://127.0.0.1:9"}
    own, without = (processes.python("-c", code, **told) for code in (OWN, WITHOUT))
    assert own.ended() == 0, own.text()
    assert without.ended() == 0, without.text()
    [line] = [json.loads(each) for each in without.text().splitlines()]
    assert (line["event"], line["help"]) == ("traces.not_exported", "pip install 'headway[otlp]'")
