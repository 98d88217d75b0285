"""The page with this process's numbers, in the forms that Prometheus reads, on a port of its own.

It is served by a thread: a job that blocks the event loop must not hide that it does. `/metrics` is the page;
`/healthz` answers 200 as long as the process gives signs of life, `/readyz` as long as it can do its work.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from headway.model.errors import ConfigurationError
from headway.observe import metrics, series
from headway.observe.family import WELL, Signs, Source, answering
from headway.observe.logs import get_logger
from headway.observe.metrics import SOCKET, Labels, Series, instruments, process_name

TEXT = "text/plain; version=0.0.4; charset=utf-8"

log = get_logger("headway.metrics")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where to serve the page. Port 0 is a free one; one that was not `asked` for gives way to another process."""

    port: int
    host: str = "127.0.0.1"
    asked: bool = True


def available() -> bool:
    """Whether the library that writes pages is installed."""
    try:
        import prometheus_client  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


def own_series() -> list[Series]:
    """The numbers of this process."""
    return [instrument.series() for instrument in instruments(vars(series)) if instrument.name not in series.STORE_WIDE]


def written(page: Sequence[Series], accept: str = "") -> tuple[str, bytes]:
    """The page's content type and text, in the form that the asker prefers."""
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector, CollectorRegistry

    class Given(Collector):
        def collect(self) -> Iterator[Any]:
            return map(_family, (each for each in page if each.values))

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Given())
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


def _family(one: Series) -> Any:
    from prometheus_client import core

    if one.kind == "histogram":
        histogram = core.HistogramMetricFamily(one.name, one.help, labels=one.labels)
        for labels, numbers in one.values:
            histogram.add_metric(labels, _cumulated(one.bounds, numbers), numbers[-1])
        return histogram
    family = (core.CounterMetricFamily if one.kind == "counter" else core.GaugeMetricFamily)(
        one.name, one.help, labels=one.labels
    )
    for labels, [number] in one.values:
        family.add_metric(labels, number)
    return family


def _cumulated(bounds: Sequence[float], numbers: Sequence[float]) -> list[tuple[str, float]]:
    """Prometheus counts in each bucket all that lies below."""
    total, buckets = 0.0, []
    for bound, number in zip((*bounds, float("inf")), numbers, strict=False):
        total += number
        buckets.append(("+Inf" if bound == float("inf") else repr(float(bound)), total))
    return buckets


@contextmanager
def reported(
    address: Address | None, *, more: Source = list, signs: Signs = WELL, process: str | None = None
) -> Iterator[None]:
    """While this lasts, numbers are counted and served: to the parent if there is one, else at the address.

    Without the library there is no page, unless somebody asked for it. `more`: what else belongs on the page.
    """
    own = os.environ.get(SOCKET)
    if own is None and (address is None or not usable(address)):
        yield
        return
    with counted(process), ExitStack() as stack:
        source = partial(_both, more)
        if own is not None:
            stack.enter_context(answering(Path(own), source, signs))
        elif address is not None:
            stack.enter_context(served(address, source, signs))
        yield


def _both(more: Source) -> list[Series]:
    return metrics.merged([own_series(), more()])


@contextmanager
def counted(process: str | None = None) -> Iterator[None]:
    """While this lasts, numbers are counted."""
    with metrics.switched_on(), ExitStack() as stack:
        for end in _watch_process((process or process_name(),)):
            stack.callback(end)
        yield


@contextmanager
def served(address: Address, source: Source, signs: Signs = WELL) -> Iterator[int]:
    """The page, from a thread; gives the port."""
    server = _bind(address, source, signs)
    port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="headway-metrics", daemon=True)
    thread.start()
    url = f"http://{address.host}:{port}/metrics"
    log.info("metrics.served", url=url)
    if address.port == 0:
        sys.stderr.write(f"headway: metrics at {url}\n")
    try:
        yield port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def usable(address: Address) -> bool:
    """Whether there can be a page. Raises ConfigurationError if there can't, and somebody asked for it."""
    if available():
        return True
    if address.asked:
        raise ConfigurationError("a page of metrics needs a library: pip install 'headway[metrics]'")
    log.debug("metrics.unavailable", help="pip install 'headway[metrics]' for numbers about this process")
    return False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Two processes must not share a port unknowingly; one that just ended may be replaced at once all the same.
    allow_reuse_address = True


def _bind(address: Address, source: Source, signs: Signs) -> _Server:
    handler = type("Handler", (_Handler,), {"source": staticmethod(source), "signs": signs})
    try:
        return _Server((address.host, address.port), handler)
    except OSError as error:
        if address.asked:
            raise ConfigurationError(
                f"the metrics can't be served on {address.host}:{address.port}: {error.strerror or error}; choose "
                "another --metrics-port (0: any free one)"
            ) from error
        log.info("metrics.port_taken", port=address.port, help="another process has it: a free one is taken instead")
        return _Server((address.host, 0), handler)


class _Handler(BaseHTTPRequestHandler):
    source: Source
    signs: Signs
    server_version = "headway"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        """Answer."""
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, *written(self.source(), self.headers.get("accept", "")))
            case "/healthz":
                self._tell(self.signs.health())
            case "/readyz":
                self._tell(self.signs.ready())
            case _:
                self._answer(404, TEXT, b"here are /metrics, /healthz and /readyz\n")

    def _tell(self, trouble: str | None) -> None:
        self._answer(503 if trouble else 200, TEXT, f"{trouble or 'ok'}\n".encode())

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
        log.debug("metrics.asked", line=format % args)


# This process


def _watch_process(name: Labels) -> Iterator[Callable[[], None]]:
    yield series.process_memory.watch(lambda: [(name, _memory())])
    started = _started()
    if started is not None:
        yield series.process_started.watch(lambda: [(name, started)])


def _memory() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        # Not on Linux: the most that it has been will have to do.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(most if sys.platform == "darwin" else most * 1024)
    return float(pages * resource.getpagesize())


def _started() -> float | None:
    """When this process began, where the system tells."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        boot = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    except (OSError, IndexError, ValueError, StopIteration):
        return None
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")
