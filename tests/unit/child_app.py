"""An app as child processes import it: `tests.unit.child_app:app`."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headway.executors.call.functions import Function, Method, Options, Registry
from headway.executors.call.provider import Services
from headway.executors.contract import current
from headway.model.errors import Cancel, Fail, Snooze
from headway.observe import traces

app = SimpleNamespace(registry=Registry(), services=Services())


def job(**options: Any) -> Any:
    def register(target: Any) -> Function:
        function = Function.of(target, options=Options.of(process=True, **options))
        app.registry.add(function)
        return function

    return register


@dataclass
class Point:
    x: int


class Counter:
    def __init__(self) -> None:
        self.step = 10

    def count(self, n: int) -> int:
        return n + self.step


count = app.registry.add(Function.of(Method(Counter, Counter.count), options=Options.of(process=True)))


@job()
def add(a: int, b: int) -> int:
    return a + b


@job()
def span_here() -> str | None:
    return traces.current()


@job()
async def move(point: Point) -> Point:
    await asyncio.sleep(0)
    return Point(point.x + 1)


@job()
def pid() -> int:
    return os.getpid()


@job()
def talk() -> None:
    print("hello")
    logging.getLogger("shop").warning("careful")
    subprocess.run(["echo", "from below"], check=True)
    current().progress(1, 2, "half")
    print("dear stderr", file=sys.stderr)
    sys.stdout.write("no newline")


@job()
def end(how: str) -> None:
    match how:
        case "snooze":
            raise Snooze(7)
        case "fail":
            raise Fail("for good")
        case "cancel":
            raise Cancel("no need")
        case "exit":
            sys.exit(3)
        case "error":
            raise ValueError(how)
        case _:
            pass


@job()
def die(how: str) -> None:
    print("last words")
    match how:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            ctypes.string_at(0)
        case "exit":
            os._exit(7)
        case _:
            pass


@job()
def hang(file: Path_) -> None:
    """Says where it runs, and then nothing stops it but a kill."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    below = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    written = Path(file + ".new")
    written.write_text(f"{os.getpid()} {below.pid}")
    written.rename(file)
    time.sleep(600)


@job()
def tidy(file: Path_) -> None:
    try:
        Path(file).write_text("begun")
        time.sleep(600)
    finally:
        Path(file + ".tidied").write_text("yes")


@job()
async def tidy_coroutine(file: Path_) -> None:
    try:
        Path(file).write_text("begun")
        await asyncio.sleep(600)
    finally:
        Path(file + ".tidied").write_text("yes")


@job(memory_limit=64 * 1024 * 1024)
def eat(size: int) -> int:
    return len(bytearray(size))


Path_ = str


@job()
def good() -> int:
    return 42


@job()
def bad() -> None:
    raise ValueError("no good")


@job()
def endless() -> None:
    time.sleep(600)
