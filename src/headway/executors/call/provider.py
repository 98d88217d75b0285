"""Where the services come from whose methods are jobs: a scope for each job, and in it an instance of each class."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import types
import typing
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack
from typing import Any, Protocol, TypeVar

import msgspec

from headway.executors.call.signature import UnresolvedName, resolved, type_name
from headway.model.errors import ConfigurationError

S = TypeVar("S")
Resolve = Callable[[type], Awaitable[Any]]
"""Gives the instance of a class that belongs to the job."""
_DATA = (str, bytes, int, float, complex, bool, list, tuple, dict, set, frozenset, type(None), object, Any)


class Provider(Protocol):
    """A container of services: Headway's own `Services`, or another one through an `Adapter`."""

    def scope(self) -> AbstractAsyncContextManager[Resolve]:
        """Entered before a job and left after it, with its exception if it failed."""

    async def close(self) -> None:
        """The worker stops."""


class Adapter(typing.Generic[S]):
    """A foreign container as a `Provider`.

    `open` gives the container's own scope for one job, a context manager; `get` asks that scope for an instance and may
    be async. For dishka: `Adapter(container, lambda scope, cls: scope.get(cls))`. Whoever made the container closes it.
    """

    def __init__(
        self,
        open: Callable[[], AbstractAsyncContextManager[S] | AbstractContextManager[S]],  # noqa: A002 - the verb it is
        get: Callable[[S, type], Any],
    ) -> None:
        self._open = open
        self._get = get

    @contextlib.asynccontextmanager
    async def scope(self) -> AsyncIterator[Resolve]:
        async with AsyncExitStack() as stack:
            scope = await _enter(stack, self._open())

            async def resolve(cls: type) -> Any:
                return await _awaited(self._get(scope, cls))

            yield resolve

    async def close(self) -> None:
        """Nothing: the container belongs to the user."""


class _Recipe(msgspec.Struct, frozen=True):
    make: Callable[..., Any]
    singleton: bool


class Services:
    """Headway's own provider. A class with a plain constructor needs no registration.

    Constructor parameters that are annotated with classes are made in the same way, each once per job. `provide` says
    how to make what can't be made like that, or what is to be shared by all jobs.
    """

    def __init__(self) -> None:
        self._recipes: dict[Any, _Recipe] = {}
        self._shared: dict[Any, Any] = {}
        self._making: dict[Any, asyncio.Lock] = {}
        self._stack = AsyncExitStack()
        self._root = _Scope(self, self._stack)

    def provide(self, cls: Any, source: Any = None, *, singleton: bool = False) -> None:
        """Say how instances of `cls` are made: by a factory, or by giving the one instance.

        A factory is a class or a function, async or not, whose own parameters are filled in the same way. One that
        yields its instance (a generator, or a function that returns a context manager) is closed after the job; with
        `singleton`, once for all jobs and when the worker stops. Without a source, `cls` is its own factory.
        """
        self._shared.pop(cls, None)
        source = cls if source is None else source
        if _is_factory(source):
            self._recipes[cls] = _Recipe(_as_context(source), singleton)
        else:
            self._recipes.pop(cls, None)
            self._shared[cls] = source

    @contextlib.asynccontextmanager
    async def scope(self) -> AsyncIterator[Resolve]:
        async with AsyncExitStack() as stack:
            yield _Scope(self, stack).resolve

    async def close(self) -> None:
        """Close what the singletons' factories opened. They are made anew if they are needed again."""
        stack, self._stack = self._stack, AsyncExitStack()
        for cls, recipe in self._recipes.items():
            if recipe.singleton:
                self._shared.pop(cls, None)
        self._root = _Scope(self, self._stack)
        await stack.aclose()

    def _knows(self, cls: Any) -> bool:
        return cls in self._shared or cls in self._recipes

    async def _singleton(self, cls: Any, path: tuple[Any, ...]) -> Any:
        """Made by whoever needs it first; it lives longer than any job, and so must all that it is made of."""
        async with self._making.setdefault(cls, asyncio.Lock()):
            if cls not in self._shared:
                self._shared[cls] = await self._root._make(self._recipes[cls].make, cls, path)
        return self._shared[cls]


class _Scope:
    """The instances of one job; or, in the root scope, what singletons are made of."""

    def __init__(self, services: Services, stack: AsyncExitStack) -> None:
        self._services = services
        self._stack = stack
        self._made: dict[Any, Any] = {}

    async def resolve(self, cls: type) -> Any:
        return await self._instance(cls, ())

    async def _instance(self, cls: Any, path: tuple[Any, ...]) -> Any:
        services = self._services
        if cls in services._shared:
            return services._shared[cls]
        if cls in self._made:
            return self._made[cls]
        if cls in path:
            raise ConfigurationError(f"services need each other in a circle: {_route((*path, cls))}")
        recipe = services._recipes.get(cls)
        if recipe is not None and recipe.singleton:
            return await services._singleton(cls, path)
        self._made[cls] = await self._make(cls if recipe is None else recipe.make, cls, path)
        return self._made[cls]

    async def _make(self, make: Callable[..., Any], cls: Any, path: tuple[Any, ...]) -> Any:
        arguments = await self._arguments(make, (*path, cls))
        made = await _awaited(make(**arguments))
        return await _enter(self._stack, made) if _is_context_of(made, cls) else made

    async def _arguments(self, make: Callable[..., Any], path: tuple[Any, ...]) -> dict[str, Any]:
        wanted = ((p, _wanted(make, p, path)) for p in _parameters(make, path))
        return {
            parameter.name: await self._instance(cls, path)
            for parameter, cls in wanted
            if self._must_make(parameter, cls, path)
        }

    def _must_make(self, parameter: inspect.Parameter, cls: Any, path: tuple[Any, ...]) -> bool:
        if self._services._knows(cls):
            return True
        if parameter.default is not inspect.Parameter.empty:
            return False
        if isinstance(cls, type) and cls not in _DATA and not inspect.isabstract(cls) and not _is_protocol(cls):
            return True
        raise ConfigurationError(
            f"{type_name(path[-1])} can't be made: nothing says what to give for its parameter "
            f"{parameter.name!r} ({type_name(cls)}); needed by {_route(path)}. Give the parameter a default, or say "
            f"services.provide({type_name(path[-1])}, …)"
        )


def _parameters(make: Callable[..., Any], path: tuple[Any, ...]) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{type_name(path[-1])} can't be made: its parameters are unknown ({error}); needed by {_route(path)}"
        ) from error
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _wanted(make: Callable[..., Any], parameter: inspect.Parameter, path: tuple[Any, ...]) -> Any:
    holder = getattr(make, "__init__") if isinstance(make, type) else make  # noqa: B009 - mypy: unsound on instances
    try:
        annotation = resolved(holder, parameter.annotation)
    except UnresolvedName as error:
        raise ConfigurationError(
            f"{type_name(path[-1])} can't be made: the type of {parameter.name!r} is unknown ({error}); "
            f"needed by {_route(path)}"
        ) from error
    return _without_none(annotation)


def _without_none(annotation: Any) -> Any:
    """`X | None` asks for an X."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        if len(parts) == 1:
            return parts[0]
    return annotation


def _is_factory(source: Any) -> bool:
    return isinstance(source, type) or inspect.isroutine(source)


def _as_context(source: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(source):
        return contextlib.asynccontextmanager(source)
    if inspect.isgeneratorfunction(source):
        return contextlib.contextmanager(source)
    return source


def _is_context_of(made: Any, cls: Any) -> bool:
    """Whether a factory gave a context manager that yields the instance, not an instance that happens to be one."""
    if not isinstance(made, AbstractAsyncContextManager | AbstractContextManager):
        return False
    return not isinstance(made, cls) if isinstance(cls, type) and not _is_protocol(cls) else True


def _is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False))


async def _enter(stack: AsyncExitStack, context: Any) -> Any:
    if isinstance(context, AbstractAsyncContextManager):
        return await stack.enter_async_context(context)
    return stack.enter_context(context)


async def _awaited(made: Any) -> Any:
    return await made if inspect.isawaitable(made) else made


def _route(path: tuple[Any, ...]) -> str:
    return " → ".join(type_name(part) for part in path)
