"""Arguments and results are data: JSON, typed by the function's annotations, checked before anything is stored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

import msgspec

from headway.executors.call.signature import Shape, UnresolvedName, return_type, shape_of, type_name
from headway.model.errors import ConfigurationError, HeadwayError, InvalidJob

_encode = msgspec.json.Encoder().encode
_UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError)
_MISFIT = (*_UNENCODABLE, msgspec.MsgspecError)
_SHOWN = 80


class UnstorableResult(HeadwayError):
    """A function returned something that is no data."""


class _Call(msgspec.Struct):
    """The payload of a `call` job in its general form, as REST and SQL may write it."""

    function: str
    args: list[msgspec.Raw] = []
    kwargs: dict[str, msgspec.Raw] = {}


class _Named(msgspec.Struct):
    function: str


_read_call = msgspec.json.Decoder(_Call).decode
_read_name = msgspec.json.Decoder(_Named).decode
_read_any = msgspec.json.Decoder().decode


def called(payload: str) -> str:
    """The name of the function that a payload calls. Raises InvalidJob."""
    try:
        return _read_name(payload).function
    except (msgspec.MsgspecError, ValueError) as error:
        raise _corrupt(error) from error


class Arguments:
    """The arguments of one function: from a call to JSON and back.

    The work of finding the types is done once, when the function is registered; or, if an annotation names a class
    that is defined later, when it is first needed.
    """

    __slots__ = ("_method", "_opening", "_read", "_shape", "_target", "name")

    def __init__(self, name: str, target: Callable[..., Any], *, method: bool = False) -> None:
        self.name = name
        self._target = target
        self._method = method
        self._opening = f'{{"function":{_encode(name).decode()},"kwargs":'
        self._shape: Shape | None = None
        self._read: Callable[[str], Any]

    @classmethod
    def of(cls, target: Callable[..., Any], *, name: str | None = None, method: bool = False) -> Arguments:
        """The arguments of a function; of a method without its `self`. Raises ConfigurationError."""
        arguments = cls(name or target.__qualname__, target, method=method)
        try:
            arguments._build()
        except UnresolvedName:
            return arguments
        return arguments

    def pack(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The payload of a job that makes this call. Raises InvalidJob if the call can't be made or stored."""
        shape = self._shape or self._resolve()
        if shape.variadic:
            return self._pack_variadic(shape, args, kwargs)
        try:
            given = shape.params(*args, **kwargs)
            text = _encode(given)
            payload = f"{self._opening}{text.decode()}}}"
            self._read(payload)
        except _MISFIT as error:
            raise self._refusal(shape, args, kwargs, error) from None
        if b"null" in text:
            self._refuse_not_finite(shape, args, kwargs)
        return payload

    def unpack(self, payload: str) -> tuple[Sequence[Any], dict[str, Any]]:
        """The positional and keyword arguments that a payload holds, typed. Raises InvalidJob."""
        shape = self._shape or self._resolve()
        try:
            params = self._read(payload).kwargs
        except (msgspec.MsgspecError, ValueError):
            return shape.arranged(self._values(shape, payload))
        if shape.plain:
            return msgspec.structs.astuple(params), {}
        values = msgspec.structs.asdict(params)
        return shape.arranged({name: value for name, value in values.items() if value is not msgspec.UNSET})

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, given by name."""
        shape = self._shape or self._resolve()
        (root,), parts = msgspec.json.schema_components([shape.params], ref_template="#/$defs/{name}")
        schema = parts.pop(root["$ref"].removeprefix("#/$defs/"))
        for parameter in shape.signature.parameters.values():
            _add_default(schema["properties"].get(parameter.name), parameter.default)
        if shape.extra:
            schema["additionalProperties"] = msgspec.json.schema(shape.types[shape.extra])
        by_name_only = sorted(shape.named.difference(parameter.name for parameter in shape.positional))
        if by_name_only:
            schema["x-keyword-only"] = by_name_only
        if shape.rest:
            schema["x-args"] = msgspec.json.schema(shape.type_of(shape.rest))
        return {**schema, "$defs": parts} if parts else schema

    def _build(self) -> Shape:
        shape = shape_of(self.name, self._target, method=self._method)
        form = msgspec.defstruct("call", [("function", str), ("kwargs", shape.params)], forbid_unknown_fields=True)
        self._read = msgspec.json.Decoder(form).decode
        self._shape = shape
        return shape

    def _resolve(self) -> Shape:
        try:
            return self._build()
        except UnresolvedName as error:
            raise ConfigurationError(
                f"{self.name}: an annotation can't be resolved ({error}); names used in a job's parameters must be "
                "importable at run time, at the level of the module"
            ) from error

    def _pack_variadic(self, shape: Shape, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        try:
            bound = shape.signature.bind(*args, **kwargs)
            text = _encode({"function": self.name, "args": bound.args, "kwargs": bound.kwargs})
            self._values(shape, text.decode())
        except (*_MISFIT, InvalidJob) as error:
            raise self._refusal(shape, args, kwargs, error) from None
        if b"null" in text:
            self._refuse_not_finite(shape, args, kwargs)
        return text.decode()

    def _values(self, shape: Shape, payload: str) -> dict[str, Any]:
        """The arguments by parameter, read one by one: slower, takes every form, and knows which one is wrong."""
        try:
            call = _read_call(payload)
        except (msgspec.MsgspecError, ValueError) as error:
            raise _corrupt(error) from error
        given = self._assigned(shape, call)
        if missing := sorted(shape.required - given.keys()):
            raise InvalidJob(f"{self.name}: the argument {missing[0]!r} is missing", field=missing[0])
        return {name: self._value(shape, name, raw) for name, raw in given.items()}

    def _assigned(self, shape: Shape, call: _Call) -> dict[str, bytes]:
        positional = [parameter.name for parameter in shape.positional]
        given: dict[str, bytes] = {name: bytes(raw) for name, raw in zip(positional, call.args, strict=False)}
        rest, extra = call.args[len(positional) :], {}
        for name, raw in call.kwargs.items():
            if name not in shape.named:
                extra[name] = raw
            elif name in given:
                raise InvalidJob(f"{self.name}: the argument {name!r} is given twice", field=name)
            else:
                given[name] = bytes(raw)
        if rest:
            given[self._catcher(shape.rest, f"takes {len(positional)} positional arguments, not {len(call.args)}")] = (
                _encode(rest)
            )
        if extra:
            unknown = next(iter(extra))
            given[self._catcher(shape.extra, f"has no argument {unknown!r}", unknown)] = _encode(extra)
        return given

    def _catcher(self, parameter: str | None, complaint: str, field: str | None = None) -> str:
        if parameter is None:
            raise InvalidJob(f"{self.name} {complaint}", field=field)
        return parameter

    def _value(self, shape: Shape, name: str, raw: bytes) -> Any:
        try:
            return shape.decoders[name].decode(raw)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InvalidJob(self._wrong(shape, name, _shortened(raw.decode()), error), field=name) from error

    def _refusal(self, shape: Shape, args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception) -> InvalidJob:
        """Why a call can't be stored: looked for only after it failed, so that good calls pay nothing for it."""
        try:
            given = shape.signature.bind(*args, **kwargs).arguments
        except TypeError as misfit:
            named = re.search(r"'(\w+)'", str(misfit))
            return InvalidJob(f"{self.name}{shape.signature}: {misfit}", field=named[1] if named else None)
        for name, value in given.items():
            if refusal := self._refused(shape, name, value):
                return refusal
        return error if isinstance(error, InvalidJob) else InvalidJob(f"{self.name}: {error}")

    def _refused(self, shape: Shape, name: str, value: Any) -> InvalidJob | None:
        try:
            text = _encode(value)
        except _UNENCODABLE as error:
            return InvalidJob(
                f"{self.name}: the argument {name!r} can't be stored: {_unencodable(value, error)}; pass an id, a path "
                "or plain data instead, and look the object up in the job",
                field=name,
            )
        try:
            shape.decoders[name].decode(text)
        except (msgspec.MsgspecError, ValueError) as error:
            return InvalidJob(self._wrong(shape, name, _described(value), error), field=name)
        return None

    def _wrong(self, shape: Shape, name: str, given: str, error: Exception) -> str:
        expected = type_name(shape.type_of(name))
        return f"{self.name}: the argument {name!r} must be {expected}, not {given} ({error})"

    def _refuse_not_finite(self, shape: Shape, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """JSON has no NaN or infinity: they would silently come back as None."""
        for name, value in shape.signature.bind(*args, **kwargs).arguments.items():
            if not finite(value):
                raise InvalidJob(
                    f"{self.name}: the argument {name!r} holds NaN or an infinite number, which JSON can't store; "
                    "pass None or a text for it",
                    field=name,
                )


class Returns:
    """The results of one function: to JSON, and back as the type that it is annotated with."""

    __slots__ = ("_read", "_target", "name")

    def __init__(self, name: str, target: Callable[..., Any]) -> None:
        self.name = name
        self._target = target
        self._read: Callable[[bytes], Any] | None = None

    @classmethod
    def of(cls, target: Callable[..., Any], *, name: str | None = None) -> Returns:
        return cls(name or target.__qualname__, target)

    def encode(self, value: Any) -> bytes | None:
        """The result as JSON; None for None. Raises UnstorableResult."""
        if value is None:
            return None
        try:
            data = _encode(value)
        except _UNENCODABLE as error:
            raise UnstorableResult(
                f"{self.name} returned {_described(value)}, which can't be stored: {_unencodable(value, error)}; "
                "return plain data, or nothing"
            ) from None
        if b"null" in data and not finite(value):
            raise UnstorableResult(
                f"{self.name} returned NaN or an infinite number ({_described(value)}), which JSON can't store; "
                "return None or a text for it"
            )
        return data

    def decode(self, data: bytes | None) -> Any:
        """A stored result as the annotated type; as plain data if it doesn't match the annotation (any more)."""
        if data is None:
            return None
        if self._read is None:
            self._read = msgspec.json.Decoder(return_type(self._target)).decode
        try:
            return self._read(data)
        except msgspec.ValidationError:
            return _read_any(data)


def decode(data: bytes | None, type_: Any = Any) -> Any:
    """A stored result as a given type. Raises InvalidJob if it isn't one."""
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.MsgspecError as error:
        raise InvalidJob(f"the result is no {type_name(type_)}: {error}") from error


def _corrupt(error: Exception) -> InvalidJob:
    return InvalidJob(
        f"the payload is no call ({error}): it must look like "
        '{"function": "module.name", "args": […], "kwargs": {…}}',
        field="payload",
    )


def finite(value: Any) -> bool:
    """Whether there is no NaN and nothing infinite in it, which JSON would turn into null."""
    waiting = [msgspec.to_builtins(value)]
    while waiting:
        match waiting.pop():
            case float() as number if not math.isfinite(number):
                return False
            case dict() as mapping:
                waiting += mapping.values()
            case list() | tuple() | set() | frozenset() as items:
                waiting += items
            case _:
                pass
    return True


def _unencodable(value: Any, error: Exception) -> str:
    match error:
        case RecursionError():
            return "it contains itself"
        case UnicodeEncodeError():
            return "its text is not valid Unicode"
        case _:
            return f"{error} (within {_described(value)})"


def _described(value: Any) -> str:
    try:
        shown = _shortened(repr(value))
    except Exception:  # a broken __repr__ must not hide what we have to say
        shown = "…"
    return f"{type(value).__qualname__} {shown}"


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _add_default(schema: dict[str, Any] | None, default: Any) -> None:
    if schema is None or default is Parameter.empty:
        return
    try:
        schema["default"] = msgspec.to_builtins(default)
    except _UNENCODABLE:
        return
