"""Kind `call`: a function of the user's own code, by its name.

What workers have announced of the function is used here: its options are the job's defaults, its parameters say
whether the call can be made. A function that nobody has announced may still come: the job waits for it.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from headway.executors.call.functions import Options
from headway.kinds.contract import Functions, Prepared
from headway.kinds.schema import misfit
from headway.model.errors import InvalidJob
from headway.model.worker import FunctionInfo
from headway.options import Base, base_of_call


class CallFields(msgspec.Struct, kw_only=True):
    """What a body of kind `call` has."""

    function: Annotated[str, Meta(min_length=1, description='the name of a function, such as "mail.welcome"')]
    args: Annotated[list[Any], Meta(description="a list of arguments by position, such as [42]")] = []
    kwargs: Annotated[dict[str, Any], Meta(description='an object of arguments by name, such as {"user_id": 42}')] = {}


class CallKind:
    """Calls of functions."""

    name = "call"
    fields: type[msgspec.Struct] | None = CallFields
    private: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._bases: dict[str, tuple[FunctionInfo, Base]] = {}

    async def prepare(self, fields: CallFields, functions: Functions) -> Prepared:
        known = await functions.function(fields.function)
        if known is None:
            return Prepared(payload=_payload(fields), name=fields.function, warnings=(_unknown(fields.function),))
        base = self._base(known)
        return Prepared(
            payload=_payload(_arranged(fields, known)), name=known.name, fields=base.fields, dedupe=base.dedupe
        )

    def _base(self, known: FunctionInfo) -> Base:
        """Made once of what was announced."""
        made = self._bases.get(known.name)
        if made is None or made[0] is not known:
            base = base_of_call(known.name, msgspec.convert(known.defaults, Options), known.code_version)
            made = self._bases[known.name] = (known, base)
        return made[1]


def _payload(call: CallFields) -> str:
    """As the executor reads it fastest: without empty parts."""
    parts = {"function": call.function, "args": call.args, "kwargs": call.kwargs}
    return msgspec.json.encode({name: part for name, part in parts.items() if part or name == "kwargs"}).decode()


def _unknown(function: str) -> str:
    return (
        f"no worker has announced the function {function!r} so far: the job waits until one does, "
        "with the default options instead of the function's own"
    )


def _arranged(call: CallFields, known: FunctionInfo) -> CallFields:
    """The call with its arguments by name, as far as that is possible. Raises InvalidJob if it can't be made."""
    if not call.args:
        _check(known, call.kwargs, [])
        return call
    schema = known.parameters
    apart = schema.get("x-keyword-only", ())
    positional = [name for name in schema.get("properties", {}) if name not in apart]
    by_position = dict(zip(positional, call.args, strict=False))
    twice = sorted(by_position.keys() & call.kwargs.keys())
    if twice:
        raise InvalidJob(
            f"{known.name}: the argument {twice[0]!r} stands in args and in kwargs: give it once",
            field=f"kwargs.{twice[0]}",
        )
    rest = call.args[len(positional) :]
    _check_rest(known, rest, len(positional))
    _check(known, {**by_position, **call.kwargs}, list(by_position))
    if rest:
        return call
    return CallFields(function=call.function, kwargs={**by_position, **call.kwargs})


def _check(known: FunctionInfo, arguments: dict[str, Any], by_position: list[str]) -> None:
    wrong = misfit(arguments, known.parameters)
    if wrong is None:
        return
    name, *within = wrong.path or ("",)
    place = f"args[{by_position.index(str(name))}]" if name in by_position else f"kwargs.{name}"
    _refuse(known, repr(name), place, within, wrong.wanted)


def _check_rest(known: FunctionInfo, rest: list[Any], positional: int) -> None:
    if not rest:
        return
    if "x-args" not in known.parameters:
        raise InvalidJob(
            f"{known.name} takes {positional} arguments by position, not {positional + len(rest)}", field="args"
        )
    wrong = misfit(rest, known.parameters["x-args"])
    if wrong is not None:
        index, *within = wrong.path
        place = f"args[{positional + int(index)}]"
        _refuse(known, place, place, within, wrong.wanted)


def _refuse(known: FunctionInfo, name: str, place: str, within: list[str | int], form: str) -> None:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in within)
    raise InvalidJob(f"{known.name}: the argument {name + path} must be {form}", field=place + path)
