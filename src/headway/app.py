"""What users of the library hold: an app with its functions, which submits jobs and looks after them.

Every call has a blocking form (`submit`) for plain code and an async one (`asubmit`) for event loops.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, Unpack, overload

import msgspec

from headway.changing import Changing
from headway.client import Client, refuse_on_loop
from headway.clock import Clock, SystemClock
from headway.components.announced import Announced
from headway.components.shapes import record_of
from headway.declaring import Declared
from headway.executors.call.functions import Options, Registry, main_module
from headway.executors.call.provider import Provider, Services
from headway.firing import AppScheduler, SchedulerSettings
from headway.functions import Call, Decorator, JobFunction, JobOptions, accepted, in_class_body
from headway.hooks import Hook, HookList, Hooks
from headway.jobs import Job
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies
from headway.kinds.free import FreeKind
from headway.looking import Looking
from headway.model.errors import UnknownFunction
from headway.model.submission import Accepted, Submission
from headway.model.worker import FunctionInfo
from headway.options import SubmitOptions, checked
from headway.schedules import schedule_of
from headway.scheduling import Scheduling
from headway.serve import AppWorker, Plan, WorkerSettings
from headway.store.lending import Stores
from headway.vault.source import KeySource
from headway.vault.vault import Vault

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Headway(Looking, Changing, Scheduling):
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

    # Life

    def worker(self, **settings: Any) -> AppWorker:
        """A worker in this process: `async with app.worker(queues=["mail"], concurrency=50): …`; with `scheduler=True`
        it fires schedules as well."""
        return AppWorker(self._plan(), checked(WorkerSettings, settings))

    def scheduler(self, **settings: Any) -> AppScheduler:
        """A scheduler in this process, for those who run one apart from the workers."""
        return AppScheduler(self._plan(), checked(SchedulerSettings, settings))

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

    async def _read_functions(self) -> list[FunctionInfo]:
        return await self.client.call(lambda store: store.functions())

    def block(self, call: Coroutine[Any, Any, T], name: str) -> T:
        return self.client.block(call, name=name)


def _caller() -> str:
    """The module in which the app is made."""
    return str(sys._getframe(2).f_globals.get("__name__", "app"))
