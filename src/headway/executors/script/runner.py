"""A shell on the far side that takes orders (`far.sh`): many runs are begun by one, one after another, and go on at the
same time. Every order has a number and is answered by a line that begins with it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import cache
from importlib.resources import files

from headway.clock import Clock, deadline
from headway.executors.script.link import Channel, Link, LinkLost, Unreachable
from headway.executors.script.quoting import quoted
from headway.model.target import Step

ANSWER_WITHIN = 30.0
"""Seconds after which a host that doesn't answer an order counts as lost."""


TOGETHER = 32
"""Runs that are begun by one message."""


class RunEnd:
    """Told by the supervisor itself when its script ends, as long as the shell that began it is connected."""

    __slots__ = ("code", "err", "out")

    def __init__(self, code: int, out: bool, err: bool) -> None:
        self.code = code
        self.out = out
        self.err = err
        """Whether there is any output of this kind."""


class Runner:
    """Made by `open`. Raises LinkLost from every order once its shell is gone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._channel: Channel | None = None
        self._buffer = b""
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers: dict[int, asyncio.Future[list[str]]] = {}
        self._ends: dict[int, Callable[[RunEnd | None], None]] = {}
        self._waiting: list[tuple[int, str, bytes]] = []
        self._beginning: set[int] = set()
        self._number = 0
        self.lost = False
        self.base = ""
        """Where runs live, as an absolute path."""

    @classmethod
    async def open(cls, link: Link, directory: str, clock: Clock, *, guard: bytes = b"") -> Runner:
        """`guard` is an order that is not answered. Raises LinkLost, or Unreachable when the host lacks something."""
        runner = cls(clock)
        runner._channel = await link.shell(runner._heard, runner._gone)
        base = directory.removeprefix("~/") or "."
        runner._channel.write(far() + b"serve " + quoted(base) + b"\n" + guard)
        try:
            async with deadline(clock, ANSWER_WITHIN):
                runner.base = await runner._ready
        except TimeoutError as error:
            runner.close()
            raise LinkLost(f"the shell there gave no sign within {ANSWER_WITHIN:g} s") from error
        return runner

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._gone()

    def number(self) -> int:
        """For an order to come."""
        self._number += 1
        return self._number

    def watch(self, number: int, on_end: Callable[[RunEnd | None], None]) -> None:
        """Be told when the run of this order ends; None: the shell is gone, so nobody will tell."""
        self._ends[number] = on_end

    def forget(self, number: int) -> None:
        self._ends.pop(number, None)

    async def begin(self, number: int, directory: str, order: bytes) -> list[str]:
        """Begin a run. Runs that are to begin while others are being begun go together: the host then makes one
        process fewer for each."""
        answer = self._expect(number)
        self._waiting.append((number, directory, order))
        if not self._beginning:
            self._begin_waiting()
        try:
            return await self._answer(answer)
        finally:
            self._answers.pop(number, None)
            # Nobody waits for it any more: what was not sent must not be.
            self._waiting = [each for each in self._waiting if each[0] != number]
            self._begun(number)

    def _begun(self, number: int) -> None:
        self._beginning.discard(number)
        if not self._beginning and self._waiting and not self.lost:
            self._begin_waiting()

    def _begin_waiting(self) -> None:
        batch, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
        self._beginning = {number for number, _, _ in batch}
        rooms = b" ".join(quoted(f"{directory}/work") for _, directory, _ in batch)
        lines = [b"rooms " + rooms] if len(batch) > 1 else []
        self._send(b"\n".join([*lines, *(order for _, _, order in batch)]))

    async def order(self, words: bytes, *more: bytes) -> list[str]:
        """Give an order, `look`, `stop`…; the words of its answer."""
        number = self.number()
        return await self.ask(number, b" ".join((words, b"%d" % number, *more)))

    async def ask(self, number: int, order: bytes) -> list[str]:
        """Send an order that carries this number; the words of its answer."""
        answer = self._expect(number)
        try:
            self._send(order)
            return await self._answer(answer)
        finally:
            self._answers.pop(number, None)

    def _expect(self, number: int) -> asyncio.Future[list[str]]:
        if self.lost:
            raise LinkLost("the shell there has ended")
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        return answer

    def _send(self, order: bytes) -> None:
        if self._channel is not None:
            self._channel.write(order + b"\n")

    async def _answer(self, answer: asyncio.Future[list[str]]) -> list[str]:
        try:
            async with deadline(self._clock, ANSWER_WITHIN):
                return await answer
        except TimeoutError as error:
            raise LinkLost(f"the host did not answer within {ANSWER_WITHIN:g} s") from error

    def _heard(self, data: bytes) -> None:
        lines = (self._buffer + data).split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            self._line(line.decode(errors="replace"))

    def _line(self, line: str) -> None:
        if not self._ready.done():
            # Before it is ready, a shell's start-up files may say whatever they like.
            self._begin(line)
            return
        number, _, rest = line.partition(" ")
        words = rest.split(" ")
        if words[0] == "ended" and number.isdigit():
            tell = self._ends.pop(int(number), None)
            if tell is not None:
                tell(RunEnd(int(words[1]), words[2] == "1", words[3] == "1"))
            return
        answer = self._answers.get(int(number)) if number.isdigit() else None
        if answer is not None and not answer.done():
            answer.set_result(words)

    def _begin(self, line: str) -> None:
        if line.startswith("headway: ready "):
            self._ready.set_result(line.removeprefix("headway: ready "))
        elif line.startswith("headway: lacking: "):
            self._ready.set_exception(Unreachable(line.removeprefix("headway: lacking: "), Step.DIRECTORY))

    def _gone(self) -> None:
        if self.lost:
            return
        self.lost = True
        gone = LinkLost("the connection was lost")
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(gone)
        if not self._ready.done():
            self._ready.set_exception(gone)
            # Nobody may be waiting for it any more.
            self._ready.exception()
        ends, self._ends = self._ends, {}
        for tell in ends.values():
            tell(None)


def nonce() -> str:
    return secrets.token_hex(4)


@cache
def far() -> bytes:
    """What a shell must know before it takes orders."""
    beside = files("headway.executors.script")
    supervisor = quoted(beside.joinpath("supervisor.sh").read_bytes())
    return beside.joinpath("far.sh").read_bytes() + b"headway_supervisor=" + supervisor + b"\n"
