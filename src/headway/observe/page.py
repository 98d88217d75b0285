"""The page with this process's numbers, in the forms that Prometheus reads, on a port of its own.

It is served by a thread: a job that blocks the event loop must not hide that it does. `/metrics` is the page;
`/healthz` answers 200 as long as the process gives signs of life.

The worker processes of one command report to their parent through sockets in a directory of its own: each answers with
its numbers when it is asked, and the parent serves the sum. What a process that died had counted stays counted.
"""

from __future__ import annotations

import os
import resource
import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from headway.model.errors import ConfigurationError
from headway.observe import metrics, series
from headway.observe.logs import get_logger
from headway.observe.metrics import SOCKET, Labels, Series, instruments, process_name

PATIENCE = 2.0
"""Seconds for which a parent waits for the numbers of a process."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"

Source = Callable[[], Sequence[Series]]
Health = Callable[[], str | None]
"""What is wrong with this process, if anything."""

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
    return [instrument.series() for instrument in instruments(vars(series)) if instrument.name not in STORE_WIDE]


STORE_WIDE = frozenset(
    instrument.name
    for instrument in (
        series.store_up,
        series.queue_jobs,
        series.queue_oldest_due,
        series.queue_workers,
        series.queue_paused,
        series.schedules,
        series.schedule_late,
        series.schedulers,
        series.workers,
        series.worker_heartbeat_age,
    )
)
"""Told only by those who can see the whole store."""


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
    address: Address | None, *, more: Source = list, health: Health = lambda: None, process: str | None = None
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
            stack.enter_context(_answering(Path(own), source))
        elif address is not None:
            stack.enter_context(served(address, source, health))
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
def served(address: Address, source: Source, health: Health = lambda: None) -> Iterator[int]:
    """The page, from a thread; gives the port."""
    server = _bind(address, source, health)
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


def _bind(address: Address, source: Source, health: Health) -> _Server:
    handler = type("Handler", (_Handler,), {"source": staticmethod(source), "health": staticmethod(health)})
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
    health: Health
    server_version = "headway"
    sys_version = ""
    timeout = 10

    def do_GET(self) -> None:
        """Answer."""
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, *written(self.source(), self.headers.get("accept", "")))
            case "/healthz":
                trouble = self.health()
                self._answer(503 if trouble else 200, TEXT, f"{trouble or 'ok'}\n".encode())
            case _:
                self._answer(404, TEXT, b"here are /metrics and /healthz\n")

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's own name
        log.debug("metrics.asked", line=format % args)


# Several processes, one page


@contextmanager
def _answering(path: Path, source: Source) -> Iterator[None]:
    """Tell the parent, whenever it asks."""

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(msgspec.json.encode(list(source())))

    server = socketserver.ThreadingUnixStreamServer(str(path), Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.1,), name="headway-metrics", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        path.unlink(missing_ok=True)


class Family:
    """The numbers of the processes that one command has started, each at a place that it keeps when it is replaced."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="headway-")
        self._lock = threading.Lock()
        self._last: dict[Path, list[Series]] = {}
        self._gone: list[Series] = []
        self._born = 0

    def environment(self, place: int) -> dict[str, str]:
        """What a new process of that place is to know; the one before it is gone."""
        with self._lock:
            self._born += 1
            for path in [path for path in self._last if path.name.startswith(f"{place}.")]:
                self._gone = metrics.merged([self._gone, _lasting(self._last.pop(path))])
            path = Path(self._directory.name) / f"{place}.{self._born}"
            self._last[path] = []
        return {**os.environ, SOCKET: str(path)}

    def series(self) -> list[Series]:
        """All of them together, and what those had counted that are gone."""
        with self._lock:
            paths = list(self._last)
        answers = {path: _ask(path) for path in paths}
        with self._lock:
            for path, answer in answers.items():
                if answer is not None and path in self._last:
                    self._last[path] = answer
            living = _once_of_the_store(_living(page, answers.get(path)) for path, page in self._last.items())
            return metrics.merged([page for page in (self._gone, *living) if page])

    def close(self) -> None:
        self._directory.cleanup()


def _once_of_the_store(pages: Iterable[list[Series]]) -> Iterator[list[Series]]:
    """The pages, of which only the first that tells of the whole store does so: each would tell the same."""
    told = False
    for page in pages:
        yield [one for one in page if not (told and one.name in STORE_WIDE)]
        told = told or any(one.name in STORE_WIDE for one in page)


def _living(page: list[Series], answer: list[Series] | None) -> list[Series]:
    """Of a process that doesn't answer only what it has counted holds."""
    return page if answer is not None else _lasting(page)


def _lasting(page: Sequence[Series]) -> list[Series]:
    return [one for one in page if one.kind != "gauge"]


def _ask(path: Path) -> list[Series] | None:
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(PATIENCE)
            line.connect(str(path))
            pieces = iter(lambda: line.recv(1 << 16), b"")
            return msgspec.json.decode(b"".join(pieces), type=list[Series])
    except (OSError, msgspec.MsgspecError) as error:
        # Just starting, or just gone.
        log.debug("metrics.process_silent", process=path.name, error=str(error))
        return None


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
