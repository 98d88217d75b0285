"""The executor on a real host, without a worker: what a script needs is given by hand."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from headway.clock import SystemClock
from headway.executors.contract import Answer, Context, Failed, Written
from headway.executors.script.executor import ScriptExecutor
from headway.executors.script.hosts import Access, Hosts, Station
from headway.executors.script.link import Link
from headway.executors.script.local import LocalLink
from headway.executors.script.orders import Work
from headway.executors.script.run import Run
from headway.executors.script.ssh import connect
from headway.executors.script.task import Before, Keep, Parts, Task
from headway.model.job import Claim, Progress
from headway.model.target import TargetKind

PATIENCE = 60.0


class Plain:
    """Leaves everything as it is."""

    def feed(self, piece: bytes) -> bytes:
        return piece

    def close(self) -> bytes:
        return b""


class Heard:
    """What a job says of itself."""

    def __init__(self) -> None:
        self.pieces: list[Written] = []
        self.progress: list[Progress] = []
        self._news = asyncio.Event()

    def __call__(self, news: Progress | Written) -> None:
        if isinstance(news, Progress):
            self.progress.append(news)
        else:
            self.pieces.append(news)
        self._news.set()

    def stream(self, name: str) -> bytes:
        return b"".join(piece.data for piece in self.pieces if piece.stream == name)

    @property
    def stdout(self) -> bytes:
        return self.stream("stdout")

    @property
    def stderr(self) -> bytes:
        return self.stream("stderr")

    async def until(self, word: bytes) -> None:
        """Until it has said this on standard output."""
        async with asyncio.timeout(PATIENCE):
            while word not in self.stdout:
                self._news.clear()
                await self._news.wait()


class Job:
    """A script job in this process's hands."""

    def __init__(
        self, work: Work, *, timeout: float | None = 100.0, attempt: int = 1, job_id: UUID | None = None
    ) -> None:
        self.work = work
        self.timeout = timeout
        self.attempt = attempt
        self.id = job_id or uuid4()
        self.heard = Heard()
        self.context = Context(self.claim, timeout=timeout, emit=self.heard)

    @property
    def claim(self) -> Claim:
        return Claim(
            id=self.id,
            token=self.attempt,
            kind="script",
            name="job",
            payload="{}",
            attempt=self.attempt,
            failures=0,
            losses=0,
            timeout=self.timeout,
            retry=None,
            correlation_id=None,
            traceparent=None,
            lease_id=uuid4(),
            queue="default",
        )

    def again(self, timeout: float | None = None) -> Job:
        """The next attempt, in other hands, after this one was lost."""
        return Job(self.work, timeout=timeout or self.timeout, attempt=self.attempt + 1, job_id=self.id)


class Past:
    """All earlier attempts were lost."""

    def __init__(self, cancelling: set[UUID]) -> None:
        self._cancelling = cancelling

    async def __call__(self, claim: Claim) -> Before:
        return Before(tuple(range(1, claim.attempt)), cancelling=claim.id in self._cancelling)

    async def note(self, claim: Claim, place: str) -> bool:
        return True

    async def served(self, machine: str, queue: str) -> bool:
        return False


class Bench:
    """An executor for scripts on one target."""

    def __init__(self, access: Access, *, patience: float = 60.0, keep: Keep | None = None) -> None:
        self.access = access
        self.clock = SystemClock()
        self.hosts = Hosts(self._dial, self.clock)
        self._tasks: dict[UUID, Work] = {}
        self._running: dict[asyncio.Task[Any], Job] = {}
        self.connections = 0
        self.alarms: list[str] = []
        self.cancelling: set[UUID] = set()
        """Jobs that are to be cancelled, and that nobody has seen stopped."""
        self.executor = ScriptExecutor(
            Parts(
                clock=self.clock,
                load=self._load,
                past=Past(self.cancelling),
                hosts=self.hosts,
                keep=keep or self._keep,
                alarm=self._alarm,
                patience=patience,
                kill_after=0.5,
                keep_patience=0.5,
            )
        )

    async def run(self, job: Job) -> Answer:
        self._tasks[job.id] = job.work
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = job
        try:
            answer = await self.executor.submit(job.claim, job.context)
        finally:
            del self._running[task]
        self.executor.recorded(job.claim)
        return answer

    async def cleared(self) -> None:
        """Until nothing is to be removed from the host any more."""
        async with asyncio.timeout(PATIENCE):
            while self.hosts.of(self.access)._clearing is not None:
                await asyncio.sleep(0.01)

    async def script(self, text: str | bytes, *, command: tuple[str, ...] = ("/bin/sh",), **more: Any) -> Done:
        script = text.encode() if isinstance(text, str) else text
        job = Job(Work(script=script, command=command, **more))
        return Done(job, await self.run(job))

    async def __aenter__(self) -> Bench:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Scripts that a failed test has left are not waited for: their server ends them."""
        for task, job in list(self._running.items()):
            job.context.ask_to_stop(leaving=True)
            task.cancel()
        await self.executor.close()

    async def _dial(self, access: Access) -> Link:
        self.connections += 1
        if access.target.kind is TargetKind.LOCAL:
            return LocalLink()
        return await connect(access.target, access.credential, self.clock)

    async def _load(self, claim: Claim, begun_at: datetime | None) -> Task:
        return Task(access=self.access, work=self._tasks[claim.id], redactor=Plain)

    async def _alarm(self, claim: Claim, action: str, thing: str, words: str) -> None:
        self.alarms.append(action)

    async def _keep(self, claim: Claim, run: Run, station: Station, task: Task) -> int:
        return 0


class Done:
    """A script's end and what it has said."""

    def __init__(self, job: Job, answer: Answer) -> None:
        self.job = job
        self.answer = answer

    @property
    def stdout(self) -> bytes:
        return self.job.heard.stdout

    @property
    def stderr(self) -> bytes:
        return self.job.heard.stderr

    @property
    def result(self) -> dict[str, Any]:
        result = getattr(self.answer, "result", None)
        assert result is not None, self.answer
        told: dict[str, Any] = msgspec.json.decode(result)
        return told

    @property
    def code(self) -> int:
        return int(self.result["exit_code"])

    @property
    def error(self) -> str:
        assert isinstance(self.answer, Failed), self.answer
        return self.answer.error.message
