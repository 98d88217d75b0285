"""A process that plays one role of a measurement: `python -m headway.bench.child ROLE '{"url": …}'`.

It says `ready`, waits for `go`, and in the end prints its result as one line of JSON.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Awaitable, Callable, Coroutine
from importlib import import_module
from typing import Any

import msgspec
import structlog

from headway.clock import SystemClock

Role = Callable[..., Awaitable[Any]]

clock = SystemClock()


class Parent:
    """The process that has started this one, over standard input and output."""

    def say(self, word: str) -> None:
        sys.stdout.write(f"{word}\n")
        sys.stdout.flush()

    async def hear(self) -> str:
        """The next word; empty when the parent has gone."""
        line: str = await asyncio.to_thread(sys.stdin.readline)
        return line.strip()

    async def go(self) -> None:
        """Be ready, and wait for the signal."""
        self.say("ready")
        await self.hear()


class Stopwatch:
    """Wall time and this process's CPU time, from its making."""

    def __init__(self) -> None:
        self._began = clock.monotonic()
        self._cpu = _cpu()

    @property
    def seconds(self) -> float:
        return clock.monotonic() - self._began

    @property
    def cpu(self) -> float:
        return _cpu() - self._cpu

    def read(self) -> dict[str, float]:
        return {"seconds": self.seconds, "cpu": self.cpu}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """uvloop where it is installed, as `headway worker` does."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def role(name: str) -> Role:
    """`ours.drain` is the function `drain` of `headway.bench.ours`."""
    module, _, function = name.rpartition(".")
    found: Role = getattr(import_module(f"headway.bench.{module}"), function)
    return found


def main() -> None:
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(30),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    act, spec = role(sys.argv[1]), msgspec.json.decode(sys.argv[2])
    parent = Parent()
    parent.say(msgspec.json.encode(run(_play(act, parent, spec))).decode())


async def _play(act: Role, parent: Parent, spec: dict[str, Any]) -> Any:
    return await act(parent, **spec)


if __name__ == "__main__":
    main()
