"""What users of the library hold: an app with its functions, which submits jobs and looks after them.

Every call has a blocking form (`submit`) for plain code and an async one (`asubmit`) for event loops.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

import msgspec

from headway.client import Client, refuse_on_loop
from headway.clock import Clock, SystemClock, sleep
from headway.components.announced import Announced
from headway.components.cancel import cancel_jobs, delete_jobs
from headway.components.schedule import retry_jobs, schedule_jobs
from headway.components.shapes import record_of
from headway.components.status import find_jobs, get_job
from headway.declaring import Declared
from headway.executors.call.arguments import called
from headway.executors.call.functions import Options, Registry, main_module
from headway.executors.call.provider import Provider, Services
from headway.firing import AppScheduler, SchedulerSettings
from headway.functions import Call, Decorator, JobFunction, JobOptions, accepted, in_class_body
from headway.hooks import Hook, HookList, Hooks
from headway.jobs import Job, decode_result
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.kinds.free import FreeKind
from headway.model.errors import (
    ConfigurationError,
    HeadwayError,
    InvalidRequest,
    JobNotFound,
    UnknownFunction,
    WaitTimeout,
)
from headway.model.filters import JobFilter
from headway.model.job import Accepted, JobRecord, Moved, Submission, texts
from headway.model.limits import Limit, QueueSettings, Rate
from headway.model.result import JSON
from headway.model.states import State
from headway.model.why import Why
from headway.model.worker import FunctionInfo
from headway.options import SubmitOptions
from headway.results import Result, describe_result, load_result, read_chunks
from headway.schedules import schedule_of
from headway.scheduling import Scheduling
from headway.serve import AppWorker, Plan, WorkerSettings
from headway.store.contract import Store
from headway.store.lending import Stores
from headway.vault.source import KeySource
from headway.vault.vault import Vault

P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")

_LONGEST_LOOK = 0.25


class Headway(Scheduling):
    """An app: a store, and the functions that run as jobs. Opens nothing before it is used.

    `store` is `sqlite:///path.db`, `sqlite://` (memory, for tests) or `postgresql://user@host/database`. `bus` is
    `amqp://user@host/vhost` where RabbitMQ is to wake the workers; without one the store does.
    """

    def __init__(  # noqa: PLR0913 - one parameter per setting
        self,
        store: str = "sqlite:///headway.db",
        *,
        services: Provider | None = None,
        hooks: Hooks | None = None,
        clock: Clock | None = None,
        code_version: str | None = None,
        bus: str | None = None,
        name: str | None = None,
    ) -> None:
        self.url = store
        self.bus = bus
        self.registry = Registry()
        self._module = _caller()
        self.name = name or (main_module() if self._module == "__main__" else self._module)
        """Whose the schedules in its code are, when several apps share a store; by default the module's name."""
        self.functions: dict[str, JobFunction[Any, Any]] = {}
        self.declared: dict[str, JobFunction[Any, Any]] = {}
        """Functions that run by themselves, by a schedule in the code."""
        self.services = services or Services()
        self.code_version = code_version
        self.reference: str | None = None
        """`module:attribute` under which child processes import this app; set by the command line, else found where the
        app was made, unless that is the script that runs."""
        self._clock = clock or SystemClock()
        self.hooks = HookList(hooks)
        self.stores = Stores(store, clock)
        self.client = Client(self.stores, self._clock)
        self._keys = KeySource(store)
        self.announced = Announced(self._read_functions, self._clock, here=self.registry.info)
        """Its own functions, and those that workers have announced."""

    @property
    def vault(self) -> Vault:
        """Where secrets, scripts and credentials are kept. Opens nothing before it is asked."""
        return Vault(self.client, self._keys)

    # Functions

    @overload
    def job(self, target: Callable[P, Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, target: Callable[P, R], /) -> JobFunction[P, R]: ...
    @overload
    def job(self, /, *, name: str | None = None, **options: Unpack[JobOptions]) -> Decorator: ...
    def job(self, target: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Make a function, or a method of a service class, a job: `@app.job` or `@app.job(queue="mail", …)`."""
        timed = options.pop("schedule", None)
        checked, schedule = Options.of(**options), None if timed is None else schedule_of(timed)

        def decorate(function: Callable[..., Any]) -> JobFunction[..., Any]:
            wrapped = JobFunction[..., Any](self, function, name, checked, schedule)
            if not in_class_body(function):
                wrapped.register(function)
            return wrapped

        return decorate if target is None else decorate(target)

    def function(self, name: str) -> JobFunction[Any, Any]:
        """The job function of that name. Raises UnknownFunction."""
        if name not in self.functions:
            known = ", ".join(sorted(self.functions)) or "none"
            raise UnknownFunction(f"no function {name!r} is registered in this app (known: {known})")
        return self.functions[name]

    def on_success(self, hook: Hook) -> Hook:
        """Call this after a job completed."""
        self.hooks.success.append(hook)
        return hook

    def on_failed(self, hook: Hook) -> Hook:
        """Call this after a job failed for good."""
        self.hooks.failed.append(hook)
        return hook

    def on_retry(self, hook: Hook) -> Hook:
        """Call this after an attempt failed and another is to follow."""
        self.hooks.retry.append(hook)
        return hook

    # Submitting

    def submit(self, kind: str, payload: Mapping[str, Any], **given: Unpack[SubmitOptions]) -> Job[Any]:
        """Submit a job of any kind, by the fields of its kind: for kinds that plug-ins add. Give it a `name` among the
        options, unless its kind has one for it."""
        return self.block(self.asubmit(kind, payload, **given), "submit")

    async def asubmit(self, kind: str, payload: Mapping[str, Any], **given: Unpack[SubmitOptions]) -> Job[Any]:
        """Submit a job of any kind, by the fields of its kind. One that isn't installed here may be elsewhere."""
        kinds = load_kinds()
        bodies = Bodies(kinds, self.announced, self.vault)
        asked = await bodies.of_kind(kinds.get(kind) or FreeKind(kind), payload, given)
        return await self.submit_one(asked.submission, asked.warnings)

    def submit_many(self, calls: Sequence[Call]) -> list[Job[Any]]:
        """Store all calls in one transaction: all of them, or none."""
        return self.block(self.asubmit_many(calls), "submit_many")

    async def asubmit_many(self, calls: Sequence[Call]) -> list[Job[Any]]:
        """Store all calls in one transaction: all of them, or none."""
        submissions = [call.submission for call in calls]
        answers = await self.client.submit_many(submissions)
        pairs = [(submission, accepted(answer)) for submission, answer in zip(submissions, answers, strict=True)]
        return [
            await self._earlier(submission, accepted) if accepted.earlier else self.job_of(submission, accepted)
            for submission, accepted in pairs
        ]

    # Looking

    def get(self, job_id: Job[Any] | UUID) -> Job[Any]:
        """The job as it is now. Raises JobNotFound."""
        return self.block(self.aget(job_id), "get")

    async def aget(self, job_id: Job[Any] | UUID) -> Job[Any]:
        """The job as it is now. Raises JobNotFound."""
        return await self._with_result(await self.client.call(lambda store: get_job(store, _id(job_id))))

    def jobs(self, **wanted: Any) -> list[Job[Any]]:
        """Jobs that match, newest first: `state=`, `kind=`, `queue=`, `name=`, `tags=`, `since=`, `until=`, `limit=`"""
        return self.block(self.ajobs(**wanted), "jobs")

    async def ajobs(self, **wanted: Any) -> list[Job[Any]]:
        """Jobs that match, newest first."""
        asked = _filter(wanted)
        page = await self.client.call(lambda store: find_jobs(store, asked))
        return [Job(record.id, record.state, record, self) for record in page.jobs]

    def wait(self, job_id: Job[Any] | UUID, timeout: float | None = None) -> Job[Any]:
        """The job when it has ended. Raises WaitTimeout."""
        return self.block(self.await_ended(job_id, timeout), "wait")

    async def await_ended(self, job_id: Job[Any] | UUID, timeout: float | None = None) -> Job[Any]:
        """The job when it has ended. Raises WaitTimeout."""
        started, pause = self._clock.monotonic(), 0.002
        while True:
            job = await self.aget(job_id)
            if job.ended:
                return job
            if timeout is not None and self._clock.monotonic() - started >= timeout:
                raise WaitTimeout(f"job {job.id} ({job.name}) is still {job.state} after {timeout:g} s")
            await sleep(self._clock, pause)
            pause = min(pause * 1.5, _LONGEST_LOOK)

    async def aoutput(self, job_id: Job[Any] | UUID, attempt: int | None = None) -> bytes:
        """What the job wrote and logged, of its last attempt or another."""
        number = attempt if attempt is not None else (await self.aget(job_id)).attempt

        async def read(store: Store) -> bytes:
            return b"".join([chunk.data async for chunk in read_chunks(store, _id(job_id), number)])

        return await self.client.call(read)

    def output(self, job_id: Job[Any] | UUID, attempt: int | None = None) -> bytes:
        """What the job wrote and logged, of its last attempt or another."""
        return self.block(self.aoutput(job_id, attempt), "output")

    async def aresult_meta(self, job_id: Job[Any] | UUID) -> dict[str, Any] | None:
        """What is known of a job's result besides its content, such as the status, headers and timings of a response;
        None when there is none."""
        found = await self.client.call(lambda store: store.result_metas([_id(job_id)]))
        return describe_result(*found.values()) if found else None

    def result_meta(self, job_id: Job[Any] | UUID) -> dict[str, Any] | None:
        """What is known of a job's result besides its content, such as the status, headers and timings of a response;
        None when there is none."""
        return self.block(self.aresult_meta(job_id), "result_meta")

    async def awhy(self, job_id: Job[Any] | UUID) -> Why:
        """Why the job is not running now, in a sentence, and what to do. Raises JobNotFound."""
        why = await self.client.call(lambda store: store.why(_id(job_id)))
        if why is None:
            raise JobNotFound(_id(job_id))
        return why

    def why(self, job_id: Job[Any] | UUID) -> Why:
        """Why the job is not running now, in a sentence, and what to do. Raises JobNotFound."""
        return self.block(self.awhy(job_id), "why")

    # Changing

    def cancel(
        self, *jobs: Job[Any] | UUID, reason: str = "cancelled on request", by: str | None = None
    ) -> list[State]:
        """Cancel jobs: waiting ones at once, running ones as soon as they can be stopped. Returns their states now.

        Here and below, `by` is who asked, as the job's history tells it; where nobody says, the app's name.
        """
        return self.block(self.acancel(*jobs, reason=reason, by=by), "cancel")

    async def acancel(
        self, *jobs: Job[Any] | UUID, reason: str = "cancelled on request", by: str | None = None
    ) -> list[State]:
        """Cancel jobs; returns their states now."""
        act = partial(cancel_jobs, by=self._asker(by), reason=reason)
        return _states(await self.client.move(_ids(jobs), act))

    def retry(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Run ended jobs again, under the same id."""
        return self.block(self.aretry(*jobs, by=by), "retry")

    async def aretry(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Run ended jobs again, under the same id."""
        return _states(await self.client.move(_ids(jobs), partial(retry_jobs, by=self._asker(by))))

    def release(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Let jobs that were submitted with `hold=True` go."""
        return self.block(self.arelease(*jobs, by=by), "release")

    async def arelease(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Let jobs that were submitted with `hold=True` go."""
        return _states(await self.client.move(_ids(jobs), partial(schedule_jobs, by=self._asker(by))))

    def delete(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Remove jobs with all that belongs to them; running ones are cancelled first."""
        return self.block(self.adelete(*jobs, by=by), "delete")

    async def adelete(self, *jobs: Job[Any] | UUID, by: str | None = None) -> list[State]:
        """Remove jobs with all that belongs to them; running ones are cancelled first."""
        return _states(await self.client.move(_ids(jobs), partial(delete_jobs, by=self._asker(by))))

    def _asker(self, by: str | None) -> str:
        if not isinstance(by, str | None):
            raise InvalidRequest(f"by must be the name of whoever asks, not {by!r}", field="by")
        return by or self.name

    # Settings

    def queue(self, name: str, **settings: Any) -> None:
        """Set a queue's limits, for all workers: paused, max_running, rate ("10/s"), key_max_running, key_rate,
        keep_completed, keep_failed."""
        self.block(self.aqueue(name, **settings), "queue")

    async def aqueue(self, name: str, **settings: Any) -> None:
        """Set a queue's limits, for all workers; what isn't given stays as it is."""
        changes = _queue_changes(settings)
        _checked(QueueSettings, {"name": name, **changes})
        await self.client.call(lambda store: store.change_queue(name, changes, by=self.name))

    def limit(self, key: str, *, max_running: int | None = None, rate: str | None = None) -> None:
        """Limit the jobs of one key, for all workers and queues; without a limit, lift it."""
        self.block(self.alimit(key, max_running=max_running, rate=rate), "limit")

    async def alimit(self, key: str, *, max_running: int | None = None, rate: str | None = None) -> None:
        """Limit the jobs of one key, for all workers and queues."""
        limit = Limit(max_running=max_running, rate=Rate.parse(rate) if rate else None)
        await self.client.call(lambda store: store.set_key_limit(key, None if limit == Limit() else limit))

    # Life

    def worker(self, **settings: Any) -> AppWorker:
        """A worker in this process: `async with app.worker(queues=["mail"], concurrency=50): …`; with `scheduler=True`
        it fires schedules as well."""
        return AppWorker(self._plan(), _settings(settings))

    def scheduler(self, **settings: Any) -> AppScheduler:
        """A scheduler in this process, for those who run one apart from the workers."""
        return AppScheduler(self._plan(), _checked(SchedulerSettings, settings))

    def _plan(self) -> Plan:
        return Plan(
            stores=self.stores,
            client=self.client,
            vault=self.vault,
            registry=self.registry,
            provider=self.services,
            hooks=self.hooks,
            get=self.aget,
            clock=self._clock,
            reference=self.found(),
            code_version=self.code_version,
            bus=self.bus,
            declared=self.declaration(),
        )

    def declaration(self) -> Declared:
        """The schedules in its code, for processes that tell the store of them."""
        return Declared(
            source=self.name,
            bodies=lambda: [function.declaration() for function in self.declared.values()],
            registry=self.registry,
            code_version=self.code_version,
        )

    def found(self) -> str | None:
        """`module:attribute` under which child processes import this app; None if nobody knows. The script that runs is
        not looked at: imported again, it would do again what it does."""
        module = None if self._module == "__main__" else sys.modules.get(self._module)
        names = [name for name, value in vars(module).items() if value is self] if module is not None else []
        return self.reference or (f"{self._module}:{names[0]}" if names else None)

    @contextmanager
    def staged(self, stores: Stores, clock: Clock) -> Iterator[None]:
        """For a while, work with another store and another clock (see `headway.testing`)."""
        before = self.stores, self._clock, self.client
        self.stores, self._clock, self.client = stores, clock, Client(stores, clock)
        try:
            yield
        finally:
            self.stores, self._clock, self.client = before

    def close(self) -> None:
        """Let go of the store; the next call opens it again."""
        refuse_on_loop("close")
        asyncio.run(self.aclose())

    async def aclose(self) -> None:
        """Let go of the store; the next call opens it again."""
        await asyncio.to_thread(self.client.close)
        await self.stores.close()

    # What the handles of functions and jobs build on

    async def submit_one(self, submission: Submission, warnings: tuple[str, ...] = ()) -> Job[Any]:
        accepted = await self.client.submit(submission)
        if warnings:
            accepted = msgspec.structs.replace(accepted, warnings=(*warnings, *accepted.warnings))
        if accepted.earlier:
            return await self._earlier(submission, accepted)
        return self.job_of(submission, accepted)

    async def _earlier(self, submission: Submission, accepted: Accepted) -> Job[Any]:
        """The job that stands for the submission, read at once: an async caller can't have it read lazily."""
        [record] = await self.client.call(lambda store: store.get([accepted.job_id]))
        if record is None:
            return self.job_of(submission, accepted)
        return Job(record.id, record.state, record, self, accepted=accepted)

    def job_of(self, submission: Submission, accepted: Accepted) -> Job[Any]:
        if accepted.deduplicated:
            return Job(
                accepted.job_id, accepted.state, lambda: self.get(accepted.job_id).record, self, accepted=accepted
            )
        return Job(submission.id, accepted.state, lambda: record_of(submission, accepted), self, accepted=accepted)

    async def _with_result(self, record: JobRecord) -> Job[Any]:
        result = None
        if record.state is State.COMPLETED:
            found = await self.client.call(lambda store: load_result(store, record.id))
            result = self._decode(record, found)
        return Job(record.id, record.state, record, self, result=result)

    def _decode(self, record: JobRecord, found: Result | None) -> Any:
        """Fetched content stays as it came, whatever its type."""
        if found is None:
            return None
        if record.kind == "fetch" or found.content_type != JSON:
            return found.content
        function = self.registry.get(called(record.payload)) if record.kind == "call" else None
        return function.returns.decode(found.content) if function else decode_result(found.content)

    async def _read_functions(self) -> list[FunctionInfo]:
        return await self.client.call(lambda store: store.functions())

    def block(self, call: Coroutine[Any, Any, T], name: str) -> T:
        return self.client.block(call, name=name)


def _caller() -> str:
    """The module in which the app is made."""
    return str(sys._getframe(2).f_globals.get("__name__", "app"))


def _id(job: Job[Any] | UUID) -> UUID:
    if isinstance(job, Job):
        return job.id
    if not isinstance(job, UUID):
        raise InvalidRequest(f"a job is named by its id, a UUID, or by the Job itself, not by {job!r}", field="job_id")
    return job


def _ids(jobs: Sequence[Job[Any] | UUID]) -> list[UUID]:
    return [_id(job) for job in jobs]


def _states(verdicts: Sequence[Moved | HeadwayError]) -> list[State]:
    for verdict in verdicts:
        if isinstance(verdict, HeadwayError):
            raise verdict
    return [verdict.state for verdict in verdicts if isinstance(verdict, Moved)]


def _filter(wanted: Mapping[str, Any]) -> JobFilter:
    asked = {
        "states": texts("state", wanted.get("state", ()), InvalidRequest),
        "tags": texts("tags", wanted.get("tags", wanted.get("tag", ())), InvalidRequest),
    }
    rest = {name: value for name, value in wanted.items() if name not in {"state", "tags", "tag"}}
    return _checked(JobFilter, {**asked, **rest})


def _queue_changes(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: Rate.parse(value) if name in {"rate", "key_rate"} and isinstance(value, str) else value
        for name, value in settings.items()
    }


def _settings(settings: Mapping[str, Any]) -> WorkerSettings:
    return _checked(WorkerSettings, settings)


Settings = TypeVar("Settings", bound=msgspec.Struct)


def _checked(kind: type[Settings], given: Mapping[str, Any]) -> Settings:
    unknown = sorted(given.keys() - set(kind.__struct_fields__))
    if unknown:
        raise ConfigurationError(
            f"there is no setting {unknown[0]!r}: use one of {', '.join(sorted(kind.__struct_fields__))}"
        )
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"a setting is wrong: {error}") from error
