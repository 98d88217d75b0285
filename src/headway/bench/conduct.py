"""One run of the whole: the sites that there are, all measurements on each, a bar that tells how far it is."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from headway.bench.measures import MEASURES, Measure
from headway.bench.report import Chapter, Line
from headway.bench.server import PrivatePostgres
from headway.bench.sites import PostgresSite, Site, SqliteSite
from headway.bench.sizes import BATCH, CALLERS, MANY, SLOTS, Sizes
from headway.bench.stage import Stage
from headway.clock import Clock, SystemClock
from headway.model.errors import ConfigurationError

SERVER = {"shared_buffers": "1GB", "max_wal_size": "4GB", "max_connections": "100"}


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure, and where."""

    sizes: Sizes
    postgres: str | None = None
    sqlite_only: bool = False
    only: Sequence[str] = ()
    """Names of measurements; none are all."""

    @property
    def measures(self) -> list[Measure]:
        known = [measure.name for measure in MEASURES]
        unknown = sorted(set(self.only) - set(known))
        if unknown:
            raise ConfigurationError(f"there is no measurement {unknown[0]!r}: use one of {', '.join(known)}")
        return [measure for measure in MEASURES if not self.only or measure.name in self.only]


async def conduct(wish: Wish, console: Console) -> list[Chapter]:
    """Measure everything that is wished for; the bar goes to `console`."""
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as directory:
        chapters = [await _chapter(SqliteSite(Path(directory)), wish, console)]
    if wish.sqlite_only:
        return chapters
    with postgres_url(wish.postgres, console) as url:
        if url is None:
            return chapters
        site = PostgresSite(url)
        try:
            chapters.append(await _chapter(site, wish, console))
        finally:
            await site.close()
    return chapters


@contextmanager
def postgres_url(given: str | None, console: Console) -> Iterator[str | None]:
    """The server that was named, or one of our own; None where none is installed."""
    if given:
        yield given
        return
    try:
        server = PrivatePostgres(SERVER)
    except ConfigurationError as error:
        console.print(f"[yellow]PostgreSQL is not measured.[/] {error}: --postgres URL")
        yield None
        return
    with server:
        yield f"postgresql://postgres@/postgres?host={server.socket_directory}&port={server.port}"


def header(wish: Wish, clock: Clock | None = None) -> dict[str, object]:
    """On what, with what and how was measured."""
    return {
        "at": (clock or SystemClock()).now(),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            "system": platform.platform(),
            "load_before": os.getloadavg()[0],
        },
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in ("headway", "asyncpg", "uvloop", "msgspec")},
        },
        "how": {
            "sizes": msgspec.to_builtins(wish.sizes),
            "worker_slots": SLOTS,
            "bare_batch": BATCH,
            "callers": CALLERS,
            "submit_many": MANY,
        },
    }


def introduction(facts: dict[str, object]) -> str:
    """The header as people read it."""
    machine, versions, how = (
        msgspec.convert(facts[name], dict[str, object]) for name in ("machine", "versions", "how")
    )
    sizes = msgspec.convert(how["sizes"], Sizes)
    software = ", ".join(f"{name} {number}" for name, number in versions.items() if number)
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}, "
        f"load {machine['load_before']:.1f} before\n"
        f"{software}\n"
        f"Drain: no-op coroutines, {SLOTS} slots per worker; bare pipeline: claim {BATCH}, complete {BATCH}. "
        "Everything durable: a commit is on disk before it counts.\n"
        "Server, submitters and workers share the machine. "
        f"Medians of {sizes.repeat} run(s), in turn with the bare driver's.\n"
    )


async def _chapter(site: Site, wish: Wish, console: Console) -> Chapter:
    lines: list[Line] = []
    total = sum(measure.runs(wish.sizes) for measure in wish.measures)
    with _bar(site.name, total, console) as step:
        stage = Stage(site, wish.sizes, step)
        for measure in wish.measures:
            lines += await measure.act(stage)
    return Chapter(site.name, await site.settings(), lines)


@contextmanager
def _bar(name: str, total: int, console: Console) -> Iterator[Callable[[str], None]]:
    columns = (TextColumn(f"[bold]{name}[/]"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # Drawing costs CPU that the measured processes want: twice a second is enough.
    with Progress(*columns, TextColumn("{task.description}"), console=console, refresh_per_second=2) as progress:
        task = progress.add_task("", total=total, completed=-1)

        def step(text: str) -> None:
            progress.update(task, advance=1, description=text)

        yield step
        progress.update(task, completed=total, description="done")


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        if models:
            return models[0]
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def terminal_width(console: Console) -> int:
    """Wide enough for the tables where nobody looks at them live."""
    return console.width if sys.stdout.isatty() else max(shutil.get_terminal_size((140, 24)).columns, 140)
