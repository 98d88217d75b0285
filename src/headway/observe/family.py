"""The processes that one command has started, and how they are.

They report to their parent through sockets in a directory of its own: each answers with its numbers, and with what is
wrong with it, when it is asked; the parent serves the sum. What a process that died had counted stays counted.
"""

from __future__ import annotations

import os
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from headway.clock import Clock, SystemClock
from headway.observe import metrics
from headway.observe.logs import get_logger
from headway.observe.metrics import SOCKET, Series
from headway.observe.series import STORE_WIDE

PATIENCE = 2.0
"""Seconds for which a parent waits for the answer of a process."""
SILENT = 30.0
"""Seconds after which a process that still doesn't answer is not just starting, or being replaced."""

Source = Callable[[], Sequence[Series]]
Sign = Callable[[], str | None]
"""What is wrong, if anything. May be asked by any thread."""

log = get_logger("headway.metrics")


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """How a process is: whether it had better be replaced (`health`), and whether it can do its work now (`ready`)."""

    health: Sign
    ready: Sign


WELL = Signs(health=lambda: None, ready=lambda: None)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a process tells its parent: its numbers, or how it is."""

    page: list[Series] = []
    trouble: str | None = None
    unready: str | None = None


PAGE, SIGNS = b"page", b"sign"
"""What a parent may ask for: numbers may have to be fetched from the store, which must not delay the other answer."""


@contextmanager
def answering(path: Path, source: Source, signs: Signs = WELL) -> Iterator[None]:
    """Tell the parent, whenever it asks."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if self.request.recv(len(PAGE)) == PAGE:
                answer = Answer(page=list(source()))
            else:
                answer = Answer(trouble=signs.health(), unready=signs.ready())
            self.request.sendall(msgspec.json.encode(answer))

    server = socketserver.ThreadingUnixStreamServer(str(path), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.1,), name="headway-metrics", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        path.unlink(missing_ok=True)


class Place:
    """One of the processes, which keeps its place when it is replaced."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.path: Path | None = None
        self.last: list[Series] = []
        self.silent_since: float | None = None
        """When it was first asked in vain."""


class Family:
    """The processes of one command: one page of numbers, and one answer to how they are."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="headway-")
        self._lock = threading.Lock()
        self._places: dict[int, Place] = {}
        self._gone: list[Series] = []
        self._born = 0
        self._clock = clock or SystemClock()
        self.signs = Signs(health=self._health, ready=self._ready)

    def environment(self, number: int) -> dict[str, str]:
        """What a new process of that place is to know; the one before it is gone."""
        with self._lock:
            self._born += 1
            place = self._places.setdefault(number, Place(number))
            self._gone = metrics.merged([self._gone, _lasting(place.last)])
            place.path, place.last = Path(self._directory.name) / f"{number}.{self._born}", []
        return {**os.environ, SOCKET: str(place.path)}

    def series(self) -> list[Series]:
        """All of them together, and what those had counted that are gone."""
        answers = self._ask(PAGE)
        with self._lock:
            for place, answer in answers.items():
                place.last = answer.page if answer is not None else place.last
            living = _once_of_the_store(_living(place.last, answers.get(place)) for place in self._places.values())
            return metrics.merged([page for page in (self._gone, *living) if page])

    def close(self) -> None:
        self._directory.cleanup()

    def _health(self) -> str | None:
        return self._first(lambda answer: answer.trouble, SILENT)

    def _ready(self) -> str | None:
        return self._first(lambda answer: answer.trouble or answer.unready, 0.0)

    def _first(self, wrong: Callable[[Answer], str | None], silent: float) -> str | None:
        """What is wrong with the first that isn't well; `silent`: the seconds for which one may give no answer."""
        now = self._clock.monotonic()
        for place, answer in self._ask(SIGNS).items():
            trouble = wrong(answer) if answer is not None else self._silence(place, now, silent)
            if trouble:
                return f"process {place.number}: {trouble}"
        return None

    def _silence(self, place: Place, now: float, limit: float) -> str | None:
        since = place.silent_since
        return "it does not answer" if since is not None and now - since >= limit else None

    def _ask(self, what: bytes) -> dict[Place, Answer | None]:
        """What each of them says, all asked at once: one that stands still must not delay the others."""
        with self._lock:
            asked = {place: place.path for place in self._places.values() if place.path is not None}
        now = self._clock.monotonic()
        with ThreadPoolExecutor(max(len(asked), 1)) as pool:
            answers = dict(zip(asked, pool.map(partial(_ask, what), asked.values()), strict=True))
        with self._lock:
            # The answer of one that was replaced meanwhile counts no more: what it told is among what is gone.
            answers = {place: answer for place, answer in answers.items() if place.path == asked[place]}
            for place, answer in answers.items():
                if answer is not None:
                    place.silent_since = None
                elif place.silent_since is None:
                    place.silent_since = now
        return answers


def _once_of_the_store(pages: Iterable[list[Series]]) -> Iterator[list[Series]]:
    """The pages, of which only the first that tells of the whole store does so: each would tell the same."""
    told = False
    for page in pages:
        yield [one for one in page if not (told and one.name in STORE_WIDE)]
        told = told or any(one.name in STORE_WIDE for one in page)


def _living(page: list[Series], answer: Answer | None) -> list[Series]:
    """Of a process that doesn't answer only what it has counted holds."""
    return page if answer is not None else _lasting(page)


def _lasting(page: Sequence[Series]) -> list[Series]:
    return [one for one in page if one.kind != "gauge"]


def _ask(what: bytes, path: Path) -> Answer | None:
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(PATIENCE)
            line.connect(str(path))
            line.sendall(what)
            pieces = iter(lambda: line.recv(1 << 16), b"")
            return msgspec.json.decode(b"".join(pieces), type=Answer)
    except (OSError, msgspec.MsgspecError) as error:
        # Just starting, or just gone.
        log.debug("metrics.process_silent", process=path.name, error=str(error))
        return None
