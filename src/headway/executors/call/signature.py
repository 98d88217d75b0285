"""What a function takes: its parameters, with their types resolved, in the forms that packing and unpacking need."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headway.model.errors import ConfigurationError

_NAMED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class UnresolvedName(Exception):
    """An annotation names something that doesn't exist (yet): perhaps a class defined further down."""


class Shape:
    """The parameters of one function, ready for use. `params` is a struct with a field for each named one.

    An optional parameter that isn't given is UNSET in the struct and absent from the JSON, so that the default is
    taken when the job runs, from the code that runs it.
    """

    def __init__(self, name: str, signature: inspect.Signature, hints: Mapping[str, Any]) -> None:
        parameters = signature.parameters.values()
        named = [parameter for parameter in parameters if parameter.kind in _NAMED]
        self.signature = signature
        self.types = hints
        self.rest = _of_kind(parameters, Parameter.VAR_POSITIONAL)
        self.extra = _of_kind(parameters, Parameter.VAR_KEYWORD)
        self.variadic = bool(self.rest or self.extra)
        self.positional = [p for p in named if p.kind is not Parameter.KEYWORD_ONLY]
        self.required = {p.name for p in named if p.default is Parameter.empty}
        self.named = {p.name for p in named}
        self.params = _struct(name, named, hints)
        self.decoders = {each: msgspec.json.Decoder(self.type_of(each)) for each in hints}
        self.plain = not self.variadic and all(
            p.default is Parameter.empty and p.kind is not Parameter.KEYWORD_ONLY for p in named
        )
        """Every call has the same positional form, so that nothing needs to be arranged."""

    def type_of(self, name: str) -> Any:
        """The type in which a parameter is stored."""
        type_ = self.types[name]
        if name == self.rest:
            return types.GenericAlias(list, (type_,))
        if name == self.extra:
            return types.GenericAlias(dict, (str, type_))
        return type_

    def arranged(self, values: dict[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Values by parameter, as positional and keyword arguments. Takes `values` over."""
        args: list[Any] = []
        for parameter in self.positional:
            if parameter.name in values:
                args.append(values.pop(parameter.name))
            elif parameter.kind is Parameter.POSITIONAL_ONLY:
                args.append(parameter.default)
            else:
                break
        if self.rest:
            args += values.pop(self.rest, ())
        if self.extra:
            values |= values.pop(self.extra, {})
        return args, values


def shape_of(name: str, target: Callable[..., Any], *, method: bool) -> Shape:
    """The parameters of `target`; `method` leaves the first one (`self`) out.

    Raises UnresolvedName, or ConfigurationError for a parameter whose type can't be stored.
    """
    signature = _signature(name, target)
    parameters = list(signature.parameters.values())[1 if method else 0 :]
    signature = signature.replace(parameters=parameters)
    hints = {p.name: resolved(target, p.annotation) for p in parameters}
    for parameter, type_ in hints.items():
        _check_storable(name, parameter, type_)
    return Shape(name, signature, hints)


def return_type(target: Callable[..., Any]) -> Any:
    """The annotated type of the result, as far as it can be resolved and stored; else Any."""
    try:
        type_ = resolved(target, inspect.signature(target).return_annotation)
        msgspec.json.schema(type_)
    except (UnresolvedName, TypeError, ValueError):
        return Any
    return type_


def resolved(target: Callable[..., Any], annotation: Any) -> Any:
    """An annotation as a type: strings are looked up where the function was written."""
    if annotation in (Parameter.empty, inspect.Signature.empty):
        return Any
    holder = SimpleNamespace(__annotations__={"it": annotation})
    names = getattr(plain_function(target), "__globals__", {})
    try:
        return typing.get_type_hints(holder, globalns=names, include_extras=True)["it"]
    except NameError as error:
        raise UnresolvedName(str(error)) from error


def plain_function(target: Callable[..., Any]) -> Any:
    """The function that the user wrote, beneath decorators, partials and callable objects."""
    while isinstance(target, functools.partial):
        target = target.func
    target = inspect.unwrap(target)
    if not hasattr(target, "__code__") and not isinstance(target, type):
        target = getattr(target, "__call__", target)  # noqa: B004 - its function is wanted, not whether there is one
    return getattr(target, "__func__", target)


def type_name(type_: Any) -> str:
    """A type as people write it."""
    if isinstance(type_, type) and not typing.get_args(type_):
        return type_.__qualname__
    return str(type_).replace("typing.", "")


def _signature(name: str, target: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(target)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{name} can't be a job: its parameters are unknown ({error}); wrap it in a function of your own"
        ) from error


def _struct(name: str, named: Sequence[Parameter], hints: Mapping[str, Any]) -> type[msgspec.Struct]:
    keyword_only = [_field(p, hints) for p in named if p.kind is Parameter.KEYWORD_ONLY]
    positional = [_field(p, hints) for p in named if p.kind is not Parameter.KEYWORD_ONLY]
    # msgspec knows keyword-only fields per class: those of the base stay so, and are put after the others.
    base = msgspec.defstruct(f"{name} options", keyword_only, kw_only=True)
    return msgspec.defstruct(name, positional, bases=(base,), forbid_unknown_fields=True)


def _field(parameter: Parameter, hints: Mapping[str, Any]) -> Any:
    type_ = hints[parameter.name]
    if parameter.default is Parameter.empty:
        return (parameter.name, type_)
    return (parameter.name, typing.Union[type_, UnsetType], UNSET)  # noqa: UP007 - built at run time


def _check_storable(name: str, parameter: str, type_: Any) -> None:
    try:
        msgspec.json.schema(type_)
    except (TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        if "custom types" in reason:
            reason = "it is neither a dataclass, a msgspec.Struct, a TypedDict nor plain data"
        raise ConfigurationError(
            f"{name}: the parameter {parameter!r} has the type {type_name(type_)}, which can't be stored as JSON "
            f"({reason}); pass an id or plain data and look the object up in the job"
        ) from error


def _of_kind(parameters: typing.Iterable[Parameter], kind: Any) -> str | None:
    return next((p.name for p in parameters if p.kind is kind), None)
