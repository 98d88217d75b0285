"""The functions that jobs may call: by name, each with its options, arguments and the way it is run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from headway.executors.call.arguments import Arguments, Returns
from headway.executors.call.signature import plain_function
from headway.model.errors import ConfigurationError
from headway.model.retry import Retry, seconds
from headway.model.submission import Dedupe, OnConflict, OnParentFailure, texts
from headway.model.worker import FunctionInfo

Mode = Literal["coroutine", "thread", "process"]
_DURATIONS = ("timeout", "expires", "retain")


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds for every job of a function, unless a submission says otherwise. All times are in seconds."""

    queue: str = "default"
    priority: int = 0
    timeout: float | None = None
    retry: Retry | None = None
    key: str | None = None
    on_conflict: OnConflict = OnConflict.ALLOW
    dedupe: Dedupe | float | None = None
    """A number is a window in which the same call (function and arguments) is not accepted twice."""
    expires: float | None = None
    """Seconds after acceptance; not begun by then, the job is cancelled."""
    on_parent_failure: OnParentFailure = OnParentFailure.CANCEL
    tags: tuple[str, ...] = ()
    retain: float | None = None
    process: bool = False
    """Run in a child process: hard timeout, hard cancel, memory limit."""
    memory_limit: int | None = None
    """Bytes that a job may take beyond what its child process takes idle; only with `process`."""

    @classmethod
    def of(cls, **given: Any) -> Options:
        """Options as users write them: durations may be timedeltas, tags any sequence, choices plain words."""
        return cls().changed(**given)

    def changed(self, **given: Any) -> Options:
        """These options with some replaced. Raises ConfigurationError for what is no option or no fitting value."""
        plain = {name: _normal(name, value) for name, value in given.items()}
        known = {name: getattr(self, name) for name in self.__struct_fields__}
        if unknown := sorted(plain.keys() - known.keys()):
            raise ConfigurationError(f"there is no option {unknown[0]!r}: use one of {', '.join(sorted(known))}")
        try:
            options = msgspec.convert(known | plain, Options)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"an option of the job is wrong: {error}") from error
        return options

    def __post_init__(self) -> None:
        if not -100 <= self.priority <= 100:
            raise ConfigurationError(f"priority must be from -100 to 100, not {self.priority}")
        if self.timeout is not None and self.timeout <= 0:
            raise ConfigurationError(f"timeout must be more than 0 seconds, or None for no limit, not {self.timeout:g}")
        if self.memory_limit is not None and not self.process:
            raise ConfigurationError("memory_limit needs process=True: only a process of its own can be limited")

    def given(self) -> dict[str, Any]:
        """What differs from the defaults, as plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class Method(NamedTuple):
    """A method of a service class; the instance is made for each job by the provider."""

    service: type
    function: Callable[..., Any]

    def of(self, instance: Any) -> Callable[..., Any]:
        """The method bound to an instance; one of another class that has such a method has its way."""
        bound: Callable[..., Any] = self.function.__get__(instance)
        if type(instance) is self.service:
            return bound
        other: Callable[..., Any] = getattr(instance, self.function.__name__, bound)
        return other


class Function(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A function that jobs may call."""

    name: str
    target: Callable[..., Any] | Method
    options: Options
    arguments: Arguments
    returns: Returns
    mode: Mode
    coroutine: bool
    place: str
    """Where it was written, for people: `file:line`."""
    code_version: str | None = None

    @classmethod
    def of(
        cls,
        target: Callable[..., Any] | Method,
        *,
        name: str | None = None,
        options: Options | None = None,
        code_version: str | None = None,
    ) -> Function:
        """Make a job of a function, or of a service's method. Raises ConfigurationError if it can't be one."""
        function = target.function if isinstance(target, Method) else target
        _refuse_generators(function)
        options = options or Options()
        name = name or name_of(function)
        if options.process and not importable(function):
            raise ConfigurationError(
                f"{name} can't run in a child process: a lambda or a function within a function can't be imported "
                "there; move it to the level of the module, or leave process=True out"
            )
        coroutine = is_coroutine_function(function)
        return cls(
            name=name,
            target=target,
            options=options,
            arguments=Arguments.of(function, name=name, method=isinstance(target, Method)),
            returns=Returns.of(function, name=name),
            mode=_mode(coroutine, options),
            coroutine=coroutine,
            place=_place(function),
            code_version=code_version,
        )

    @property
    def function(self) -> Callable[..., Any]:
        """What the user wrote; of a method, not bound to an instance."""
        return self.target.function if isinstance(self.target, Method) else self.target

    def info(self) -> FunctionInfo:
        """The function as workers announce it."""
        return FunctionInfo(
            name=self.name,
            queue=self.options.queue,
            defaults=self.options.given(),
            parameters=self.arguments.schema(),
            code_version=self.code_version,
        )


class Registry:
    """The functions of one app, by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._infos: dict[str, FunctionInfo] = {}
        self.get: Callable[[str], Function | None] = self._functions.get
        """The function of a name, or None."""

    def add(self, function: Function) -> Function:
        """Take a function in. Raises ConfigurationError if the name is taken."""
        if other := self.get(function.name):
            raise ConfigurationError(
                f"two functions have the name {function.name!r}: one at {other.place}, one at {function.place}; "
                "give one of them another by name="
            )
        self._functions[function.name] = function
        return function

    def info(self, name: str) -> FunctionInfo | None:
        """A function as workers announce it. Asked with every body that names it, so it is made but once."""
        known = self._infos.get(name)
        if known is None and (function := self.get(name)):
            known = self._infos[name] = function.info()
        return known

    def infos(self) -> list[FunctionInfo]:
        """All functions as workers announce them. Raises ConfigurationError if one's annotations can't be resolved."""
        return [function.info() for function in self]

    def queues(self) -> list[str]:
        """Where the jobs of its functions go, unless a submission says otherwise, and `default`."""
        return sorted({"default", *(function.options.queue for function in self)})

    def __iter__(self) -> Iterator[Function]:
        return iter(list(self._functions.values()))

    def __len__(self) -> int:
        return len(self._functions)

    def __contains__(self, name: object) -> bool:
        return name in self._functions


def name_of(function: Callable[..., Any]) -> str:
    """`module.qualname`; the main module is called by the name under which others would import it."""
    plain = plain_function(function)
    module = getattr(plain, "__module__", None) or "unknown"
    qualname = getattr(plain, "__qualname__", type(plain).__qualname__)
    return f"{main_module() if module == '__main__' else module}.{qualname}"


def main_module() -> str:
    """The real name of the module that runs as `__main__`."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return Path(file).stem if file else "__main__"


def importable(function: Callable[..., Any]) -> bool:
    """Whether another process finds the function by importing its module."""
    qualname = getattr(plain_function(function), "__qualname__", "<none>")
    return "<" not in qualname


def _normal(name: str, value: Any) -> Any:
    if name in _DURATIONS and value is not None:
        return seconds(value, name)
    if name == "dedupe" and isinstance(value, timedelta):
        return seconds(value, name)
    if name == "tags":
        return texts(name, value)
    return value


def _refuse_generators(function: Callable[..., Any]) -> None:
    plain = plain_function(function)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise ConfigurationError(f"{name_of(function)} can't be a job: it is a generator; return a list, or nothing")


def _mode(coroutine: bool, options: Options) -> Mode:
    if options.process:
        return "process"
    return "coroutine" if coroutine else "thread"


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether a call gives something to await; also true of objects with an async `__call__`."""
    if inspect.iscoroutinefunction(function):
        return True
    call = getattr(type(function), "__call__", None)  # noqa: B004 - its kind is wanted, not whether there is one
    return inspect.iscoroutinefunction(call)


def _place(function: Callable[..., Any]) -> str:
    code = getattr(plain_function(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "an unknown place"
