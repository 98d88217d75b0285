"""The hosts that a worker works on: connections are made when needed, shared by many runs, and kept for a while."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from headway.clock import Clock, Timer
from headway.executors.script.link import Files, Link, LinkLost
from headway.executors.script.quoting import quoted
from headway.executors.script.runner import Runner
from headway.model.sealed import Credential
from headway.model.target import Target, TargetKind
from headway.observe.logs import get_logger

RUNS_EACH = 64
"""Runs that share a connection while another may still be made. It has three sessions, however many they are: one that
begins runs, one that is kept for control, so that a cancel never waits behind anything, and one for files."""
IDLE = 60.0
"""Seconds for which an unused connection is kept."""
SWEEP_AFTER_DAYS = 30
SPOOL = 256 * 1024
"""KiB of each stream of a run that its host keeps at most, give or take what is written in `GUARD_EVERY`."""
SPOOL_HEAD = 5 * 1024 * 1024
"""Bytes of its beginning among them: as many as are kept of long output."""
GUARD_EVERY = 5.0

_LOCAL = "machine "

log = get_logger("headway.script")


class Access(msgspec.Struct, frozen=True):
    """A target and what opens it. Equal ones share connections; whatever changes makes another."""

    target: Target
    credential: Credential | None = None

    def __repr__(self) -> str:
        return f"Access({self.target.name})"

    @property
    def place(self) -> str:
        """Where runs are: what is begun in one is not found in another."""
        if self.target.kind is TargetKind.LOCAL:
            return f"{_LOCAL}{socket.gethostname()} {self.target.directory}"
        return f"{self.target.user}@{self.target.address} {self.target.directory}"


def machine_of(place: str) -> str | None:
    """Of a place on the machine of other workers: which one."""
    machine = place.removeprefix(_LOCAL).partition(" ")[0] if place.startswith(_LOCAL) else None
    return None if machine == socket.gethostname() else machine


Dial = Callable[[Access], Awaitable[Link]]


class Station:
    """One connection with its sessions."""

    def __init__(self, link: Link, runner: Runner, control: Runner, files: Files) -> None:
        self.link = link
        self.runner = runner
        self.control = control
        self.files = files
        self.runs = 0

    @property
    def lost(self) -> bool:
        return self.runner.lost or self.control.lost

    @property
    def base(self) -> str:
        return self.runner.base

    async def close(self) -> None:
        self.runner.close()
        self.control.close()
        await self.link.close()


class Host:
    """The connections of this worker to one target."""

    def __init__(self, access: Access, dial: Dial, clock: Clock, used: Callable[[Host, bool], None]) -> None:
        self._access = access
        self._used = used
        self._dial = dial
        self._clock = clock
        self._stations: list[Station] = []
        self._making = asyncio.Lock()
        self._idle: Timer | None = None
        self._cleared: list[tuple[bytes, str]] = []
        self._clearing: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def station(self) -> AsyncIterator[Station]:
        """A connection for one run, for as long as the block lasts. Raises LinkLost or Unreachable."""
        try:
            station = await self._take()
        except BaseException:
            self._watch_idleness()
            raise
        station.runs += 1
        try:
            yield station
        except LinkLost:
            # Half a connection is none: whoever else uses it notices now, too.
            self._drop(station)
            raise
        finally:
            station.runs -= 1
            self._watch_idleness()

    def clear(self, directory: str, *, for_good: bool = False) -> None:
        """Remove a run whose end is recorded: soon, together with others. `for_good`: an order to begin it may still be
        on its way, and must find that it is over."""
        self._cleared.append((b"bury" if for_good else b"clear", directory))
        if self._clearing is None:
            self._clearing = asyncio.create_task(self._clear())

    async def close(self) -> None:
        if self._clearing is not None:
            await asyncio.wait([self._clearing])
        if self._idle is not None:
            self._idle.cancel()
        stations, self._stations = self._stations, []
        for station in stations:
            await station.close()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _take(self) -> Station:
        station = self._free()
        if station is not None:
            return station
        async with self._making:
            # Somebody else may have made one meanwhile.
            return self._free() or await self._make()

    def _free(self) -> Station | None:
        for station in [station for station in self._stations if station.lost]:
            self._drop(station)
        if not self._stations:
            return None
        least = min(self._stations, key=lambda station: station.runs)
        full = least.runs >= RUNS_EACH and len(self._stations) < self._access.target.max_connections
        return None if full else least

    async def _make(self) -> Station:
        link = await self._dial(self._access)
        try:
            directory = f"{self._access.target.directory.rstrip('/')}/runs"
            guard = b"guard %d %d %.1f\n" % (SPOOL, SPOOL_HEAD, GUARD_EVERY)
            control = await Runner.open(link, directory, self._clock, guard=guard)
            runner = await Runner.open(link, directory, self._clock)
            station = Station(link, runner, control, await link.files())
            await control.order(b"sweep", quoted(control.base), b"%d" % SWEEP_AFTER_DAYS)
        except BaseException:
            await link.close()
            raise
        self._stations.append(station)
        self._used(self, True)
        log.info("script.connected", target=self._access.target.name, connections=len(self._stations))
        return station

    def _drop(self, station: Station) -> None:
        if station in self._stations:
            self._stations.remove(station)
            closing = asyncio.create_task(station.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _watch_idleness(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = self._clock.call_later(IDLE, self._let_idle_go)

    def _let_idle_go(self) -> None:
        for station in [station for station in self._stations if not station.runs]:
            self._drop(station)
        if not self._stations:
            self._used(self, False)

    async def _clear(self) -> None:
        """What could not be removed stays: a later connection sweeps it away."""
        try:
            while self._cleared:
                some, self._cleared = self._cleared[:100], self._cleared[100:]
                async with self.station() as station:
                    for act in sorted({act for act, _ in some}):
                        directories = [quoted(directory) for each, directory in some if each == act]
                        await station.control.order(act, *directories)
        except Exception as error:
            log.warning("script.left_behind", target=self._access.target.name, error=str(error))
        finally:
            self._clearing = None


class Hosts:
    """All hosts of a worker."""

    def __init__(self, dial: Dial, clock: Clock) -> None:
        self._dial = dial
        self._clock = clock
        self._hosts: dict[bytes, Host] = {}

    def of(self, access: Access) -> Host:
        key = msgspec.msgpack.encode((access.target, access.credential))
        host = self._hosts.get(key)
        if host is None:
            host = self._hosts[key] = Host(access, self._dial, self._clock, partial(self._mark, key))
        return host

    def _mark(self, key: bytes, host: Host, used: bool) -> None:
        """One that has no connections any more is forgotten, with its credential, until somebody uses it again."""
        if used:
            self._hosts.setdefault(key, host)
        elif self._hosts.get(key) is host:
            del self._hosts[key]

    async def close(self) -> None:
        for host in list(self._hosts.values()):
            await host.close()
        self._hosts.clear()
