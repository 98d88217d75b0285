"""One script on one host, from its begin to its end, whatever connections are lost on the way.

To begin is to make sure that it has begun: the order is the same for the first time, after a lost connection, and for
an attempt that follows one whose worker died. The far side answers what it found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import msgspec

from headway.clock import Clock, sleep, wait_for
from headway.executors.script import orders
from headway.executors.script.hosts import Host, Station
from headway.executors.script.link import READ_AHEAD, READ_SIZE, File, LinkLost
from headway.executors.script.orders import Place, Work
from headway.executors.script.quoting import quoted
from headway.executors.script.runner import RunEnd
from headway.executors.script.spool import MUCH, Spool
from headway.model.errors import HeadwayError
from headway.observe.logs import get_logger

POLL = 0.04
"""Seconds between looks at a running script's output; more where many run at once."""
LOOK_EVERY = 5.0
"""Seconds between looks whether a run still lives: its supervisor may have been killed."""
START_PATIENCE = 10.0
"""Seconds for which a run may be seen as starting."""
log = get_logger("headway.script")
STREAMS = (("stdout", "out"), ("stderr", "err"))

Sink = Callable[[str, bytes], None]
"""Takes output: the stream's name, and a piece of it."""


class Vanished(HeadwayError):
    """Nobody can find out what became of the script."""

    code = "unknown"

    def __init__(self, message: str, *, nothing_left: bool = False) -> None:
        super().__init__(message)
        self.nothing_left = nothing_left
        """None of its processes lives: a person may have it begun again."""


class Refused(HeadwayError):
    """The host did not let the script begin."""

    code = "refused"


class Ended(msgspec.Struct, frozen=True):
    """The script has ended by itself, or by a signal."""

    code: int
    """Its exit code; less than zero, the signal that has ended it."""


class Run:
    """The script's life as this attempt sees it. `attached`: it was found, begun by somebody before."""

    def __init__(self, host: Host, work: Work, place: Place, clock: Clock, sink: Sink) -> None:
        self._host = host
        self._work = work
        self._place = place
        self._clock = clock
        self._sink = sink
        self._offsets = {stream: 0 for stream, _ in STREAMS}
        self._attempt = place.attempt
        self._asked = 0
        """Orders to begin it that were given."""
        self._begun = False
        self.sent = place.again
        """This attempt may have begun it."""
        self.attached = False
        self._holes: set[str] = set()
        """Streams that were cut right where they are read."""

    @property
    def may_live(self) -> bool:
        """Some attempt may have begun the script."""
        return self.sent or bool(self._place.earlier)

    @property
    def seen(self) -> bool:
        """The script has begun, as far as we were told."""
        return self._begun or self.attached

    @property
    def settled(self) -> bool:
        """Where we look, no order to begin it can still be on its way: the only one was ours, and was answered."""
        ours = self._begun and self._asked == 1 and not self._place.again
        return ours and self._attempt == self._place.attempt

    def each(self) -> Iterator[int]:
        """Turn to each attempt that may have begun the script, this one included, one after another."""
        for attempt in (*self._place.earlier, self._place.attempt):
            self._attempt = attempt
            yield attempt

    def directory(self, base: str) -> str:
        return orders.run_directory(base, self._place.job, self._attempt)

    async def follow(self, station: Station) -> Ended:
        """Begin the run or find it, and see it through. Raises LinkLost (begin again), Refused, Vanished."""
        following = _Following(station)
        number = station.runner.number()
        station.runner.watch(number, following.tell)
        try:
            self.sent = True
            self._asked += 1
            answer = await station.runner.begin(
                number, self.directory(station.base), orders.begin(self._work, self._place, station.base, number)
            )
            match answer:
                case ["begun"]:
                    following.told = self._begun = True
                case ["refused", *why]:
                    self.sent = False
                    raise Refused(f"the host did not let the script begin: {' '.join(why)}")
                case ["found", attempt, *state]:
                    # After an order of ours that was not answered, it is most likely ours.
                    self._attempt, self.attached = int(attempt), self.attached or self._asked == 1
                    following.end = await self._found(station, state)
                case _:
                    raise LinkLost(f"the host gave an answer that makes no sense: {' '.join(answer)[:100]}")
            return await self._see_through(station, following)
        finally:
            station.runner.forget(number)
            await following.close()

    async def _found(self, station: Station, state: list[str]) -> RunEnd | None:
        """What to make of a run that somebody has begun: its end, or None while it lives."""
        waited = 0.0
        while state == ["starting"] and waited < START_PATIENCE:
            await sleep(self._clock, 0.2)
            waited += 0.2
            _, state = await self._look(station)
        match state:
            case ["alive", _]:
                return None
            case ["ended", code]:
                return RunEnd(int(code), out=True, err=True)
            case ["barred" | "over"]:
                raise Vanished("a later attempt at this job has taken over, so this one must not begin any more")
            case _:
                count, _ = await self._look(station)
                left = f"; {count} of its processes still run" if count else ""
                raise Vanished(
                    "the script was begun, its supervisor is gone and has left no exit code: the host was restarted, "
                    f"or somebody killed it{left}",
                    nothing_left=not count and state == ["gone"],
                )

    async def _look(self, station: Station) -> tuple[int, list[str]]:
        """How many of its processes live, and the state of the run."""
        _, count, *state = await station.control.order(b"look", quoted(self.directory(station.base)))
        return int(count), state

    async def _see_through(self, station: Station, following: _Following) -> Ended:
        looked = self._clock.monotonic()
        while following.end is None:
            pause = POLL + station.runs * 0.002
            await wait_for(self._clock, following.news, pause)
            if following.lost:
                raise LinkLost("the connection was lost")
            if following.end is None:
                await self._drain(station, following)
                now = self._clock.monotonic()
                if now - looked >= (LOOK_EVERY if following.told else 4 * pause):
                    looked = now
                    following.end = await self._found(station, (await self._look(station))[1])
        await self._drain(station, following)
        return Ended(following.end.code)

    async def _drain(self, station: Station, following: _Following) -> None:
        """Take over what the script has written since the last look."""
        end = following.end
        for stream, name in STREAMS:
            if end is not None and not (end.out if stream == "stdout" else end.err):
                continue
            path = f"{self.directory(station.base)}/{name}"
            file = following.files.get(stream) or await station.files.open(path)
            if file is None:
                continue
            spool = Spool(station.files, path, file)
            if stream not in following.files and not following.told:
                await self._jump(spool, stream)
            following.files[stream] = file
            await self._read_on(spool, stream)
            if end is not None and self._offsets[stream] > MUCH:
                await self._jump(spool, stream)

    async def _read_on(self, spool: Spool, stream: str) -> None:
        """To the present end of a file; where there is much, several pieces at a time."""
        read, ahead = spool.file.read, 1
        while True:
            offset = self._offsets[stream]
            places = [offset + piece * READ_SIZE for piece in range(ahead)]
            pieces = [await read(offset)] if ahead == 1 else await asyncio.gather(*map(read, places))
            if pieces[0] and not pieces[0].strip(b"\0") and await self._jump(spool, stream):
                continue
            for data in pieces:
                self._offsets[stream] += len(data)
                self._say(stream, data)
                if len(data) < READ_SIZE:
                    return
            ahead = READ_AHEAD

    async def _jump(self, spool: Spool, stream: str) -> bool:
        """Over what the host has let go: its beginning is kept, the rest is told as missing. Whether there was any."""
        offset, cut = self._offsets[stream], await spool.cut()
        if cut <= offset:
            return False
        async for data in spool.head(offset):
            offset += len(data)
            self._sink(stream, data)
        self._sink(stream, f"\n[… {cut - offset:,} bytes were let go on the host …]\n".encode())
        self._offsets[stream] = cut
        self._holes.add(stream)
        return True

    def _say(self, stream: str, data: bytes) -> None:
        if stream in self._holes:
            # What was written between the look at the file and its cut is a hole, too.
            data = data.lstrip(b"\0")
        if data:
            self._holes.discard(stream)
            self._sink(stream, data)

    async def signal(self, station: Station, name: bytes) -> bool:
        """Send a signal to all its processes, or see to it that it never begins; whether that was allowed."""
        _, denied = await station.control.order(b"stop", quoted(self.directory(station.base)), name)
        return denied == "0"

    async def look(self, station: Station) -> tuple[int, list[str]]:
        """How many of its processes live, and the state of the run."""
        return await self._look(station)

    async def rest(self, station: Station) -> None:
        """Take over what is left of its output."""
        following = _Following(station)
        following.end = RunEnd(0, out=True, err=True)
        try:
            await self._drain(station, following)
        finally:
            await following.close()


class _Following:
    """A run as seen through one connection."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self.end: RunEnd | None = None
        self.lost = False
        self.told = False
        """Its supervisor will tell us of its end."""
        self.news = asyncio.Event()
        self.files: dict[str, File] = {}

    def tell(self, end: RunEnd | None) -> None:
        self.lost = end is None
        self.end = self.end or end
        self.news.set()

    async def close(self) -> None:
        if self._station.lost:
            return
        try:
            for file in self.files.values():
                await file.close()
        except (LinkLost, OSError) as error:
            # Its handles die with it.
            log.debug("script.files_left_open", error=str(error))
