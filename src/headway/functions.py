"""A function in the hands of a library user: called as ever, or submitted as a job."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

import msgspec

from headway.executors.call.functions import Function, Method, Options, Registry
from headway.jobs import Job
from headway.model.errors import ConfigurationError, InvalidJob, InvalidSchedule
from headway.model.retry import Retry
from headway.model.submission import Accepted, Dedupe, OnConflict, OnParentFailure, Submission
from headway.model.when import When
from headway.options import Base, SubmitOptions, base_of_call, build
from headway.schedules import Schedule
from headway.store.scripts.submit import Answer
from headway.transactional import asubmit_in, submit_in

P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")


class Host(Protocol):
    """The app that a function belongs to, as far as the function needs it."""

    registry: Registry
    code_version: str | None
    functions: dict[str, JobFunction[Any, Any]]
    declared: dict[str, JobFunction[Any, Any]]

    async def submit_one(self, submission: Submission) -> Job[Any]: ...
    def job_of(self, submission: Submission, accepted: Accepted) -> Job[Any]: ...
    def block(self, call: Coroutine[Any, Any, T], name: str) -> T: ...


class JobOptions(TypedDict, total=False):
    """What `@app.job` takes besides a name; it holds for every job of the function."""

    queue: str
    priority: int
    timeout: float | timedelta | None
    retry: Retry | None
    key: str
    on_conflict: str | OnConflict
    dedupe: Dedupe | float | timedelta
    expires: float | timedelta
    on_parent_failure: str | OnParentFailure
    tags: Sequence[str]
    retain: float | timedelta
    process: bool
    memory_limit: int
    schedule: When | str | Schedule
    """When it runs by itself: `cron(…)`, `every(…)`, `at(…)`, a plain cron expression, or a `Schedule` with more."""


class Decorator(Protocol):
    """What `@app.job(…)` gives: async functions and plain ones both become jobs with the function's own result."""

    @overload
    def __call__(self, target: Callable[P, Coroutine[Any, Any, R]], /) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, target: Callable[P, R], /) -> JobFunction[P, R]: ...


class Call(msgspec.Struct, frozen=True):
    """A call that is not submitted yet: for `app.submit_many`."""

    submission: Submission


class Prepared(Generic[P, R]):
    """A function with options for one submission: `welcome.options(delay=60).submit(42)`."""

    def __init__(self, app: Host, function: JobFunction[P, R], given: SubmitOptions) -> None:
        self._app = app
        self._function = function
        self._given = given

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Store the call as a job; returns when it is durable."""
        connection = self._given.get("connection")
        if connection is not None:
            submission = self.call(*args, **kwargs).submission
            [answer] = submit_in(connection, [submission], notify=self._given.get("notify", True))
            return self._app.job_of(submission, accepted(answer))
        return self._app.block(self._app.submit_one(self.call(*args, **kwargs).submission), "submit")

    async def asubmit(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Store the call as a job; returns when it is durable."""
        submission = self.call(*args, **kwargs).submission
        connection = self._given.get("connection")
        if connection is not None:
            [answer] = await asubmit_in(connection, [submission], notify=self._given.get("notify", True))
            return self._app.job_of(submission, accepted(answer))
        return await self._app.submit_one(submission)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """The call, to be submitted together with others."""
        return Call(self._function.submission(self._given, args, kwargs))


class JobFunction(Generic[P, R]):
    """A function that can be called as ever, or submitted as a job."""

    def __init__(
        self,
        app: Host,
        target: Callable[P, Any],
        name: str | None,
        options: Options,
        schedule: Schedule | None = None,
    ) -> None:
        functools.update_wrapper(self, target)
        self._schedule = schedule
        self._app = app
        self._target = target
        self._name = name
        self._options = options
        self._function: Function | None = None
        self._base: Base | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function here and now, without a job; of an async function this gives its coroutine."""
        return self._target(*args, **kwargs)

    @overload
    def __get__(self: JobFunction[Concatenate[S, Q], R], instance: None, owner: type[S]) -> JobFunction[Q, R]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method: of the class it is a job, of an instance the plain method."""
        return self if instance is None else self._target.__get__(instance)

    def __set_name__(self, owner: type, name: str) -> None:
        """Written in a class body: a job that calls a method of a service, which the worker builds."""
        self.register(Method(owner, self._target))

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Store the call as a job; returns when it is durable."""
        return self._app.block(self._app.submit_one(self.submission({}, args, kwargs)), "submit")

    async def asubmit(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Store the call as a job; returns when it is durable."""
        return await self._app.submit_one(self.submission({}, args, kwargs))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """The call, to be submitted together with others by `app.submit_many`."""
        return Call(self.submission({}, args, kwargs))

    def options(self, **given: Unpack[SubmitOptions]) -> Prepared[P, R]:
        """The function with other options for one submission."""
        return Prepared(self._app, self, given)

    @property
    def function(self) -> Function:
        """The function as it is registered."""
        return self._function or self.register(self._target)

    def submission(self, given: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Submission:
        """The checked submission of a call."""
        function = self.function
        assert self._base is not None
        return build(self._base, function.arguments.pack(args, kwargs), given)

    def register(self, target: Callable[..., Any] | Method) -> Function:
        function = Function.of(target, name=self._name, options=self._options, code_version=self._app.code_version)
        self._function = self._app.registry.add(function)
        self._app.functions[function.name] = self
        self._base = base_of_call(function.name, function.options, function.code_version)
        if self._schedule is not None:
            self._app.declared[function.name] = self
            # An annotation may name a class that is defined later: then the arguments are checked at the start.
            with suppress(ConfigurationError):
                self.declaration()
        return function

    def declaration(self) -> dict[str, Any]:
        """The function's schedule, as a body. Raises InvalidSchedule."""
        function, schedule = self.function, self._schedule
        assert schedule is not None
        try:
            payload = function.arguments.pack(schedule.args, schedule.kwargs)
        except InvalidJob as error:
            raise InvalidSchedule(
                f"schedule: {error}; arguments for the jobs of a schedule go there: Schedule(…, args=(42,))",
                field="schedule.args",
            ) from error
        return schedule.body(function.name, {"kind": "call", **msgspec.json.decode(payload)})


def in_class_body(function: Callable[..., Any]) -> bool:
    """Whether the decorator runs in a class body: the class itself comes to know of it by `__set_name__`."""
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    return bool(outer) and not outer.endswith("<locals>") and "self" in inspect.signature(function).parameters


def accepted(answer: Answer) -> Accepted:
    if isinstance(answer, Accepted):
        return answer
    raise answer
