from __future__ import annotations

import dataclasses
import inspect
import json
import math
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.executors.call.arguments import Arguments, Returns, UnstorableResult, called, decode
from headway.model.errors import ConfigurationError, InvalidJob


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Line(msgspec.Struct):
    start: Point
    end: Point | None = None


class Address(TypedDict):
    street: str
    number: int


class Opaque:
    pass


def add(a: int, b: int) -> int:
    return a + b


def defaults(a: int, b: int = 2, *, c: str = "c", d: float) -> None: ...


def positional_only(a: int, b: int = 5, /, c: int = 6) -> None: ...


def anything(value: Any, other=None) -> None: ...  # type: ignore[no-untyped-def]


def variadic(first: int, *rest: int, flag: bool = False, **extra: Decimal) -> None: ...


def late(value: Later) -> Later:
    return value


def nowhere(value: Nowhere) -> None:  # type: ignore[name-defined] # noqa: F821
    ...


@dataclasses.dataclass
class Later:
    n: int


def typed(
    when: datetime,
    day: date,
    span: timedelta,
    ident: UUID,
    price: Decimal,
    colour: Colour,
    point: Point,
    line: Line,
    address: Address,
    mode: Literal["a", "b"],
    maybe: int | None,
    pair: tuple[int, str],
    names: set[str],
    data: bytes,
    nested: dict[str, list[Point]],
) -> None: ...


finite = st.floats(allow_nan=False, allow_infinity=False)
points = st.builds(Point, finite, finite)
texts = st.text(st.characters(exclude_categories=["Cs"]))
typed_calls = st.fixed_dictionaries(
    {
        "when": st.datetimes(timezones=st.just(UTC)),
        "day": st.dates(),
        "span": st.timedeltas(timedelta(days=-10_000), timedelta(days=10_000)),
        "ident": st.uuids(),
        "price": st.decimals(allow_nan=False, allow_infinity=False),
        "colour": st.sampled_from(Colour),
        "point": points,
        "line": st.builds(Line, points, st.none() | points),
        "address": st.fixed_dictionaries({"street": texts, "number": st.integers(0, 999)}),
        "mode": st.sampled_from(["a", "b"]),
        "maybe": st.none() | st.integers(),
        "pair": st.tuples(st.integers(), texts),
        "names": st.sets(texts),
        "data": st.binary(),
        "nested": st.dictionaries(texts, st.lists(points, max_size=2), max_size=2),
    }
)


def through(target: Any, *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    arguments = Arguments.of(target)
    positional, named = arguments.unpack(arguments.pack(args, kwargs))
    return list(positional), dict(named)


@given(typed_calls)
def test_typed_values_come_back_as_they_went(values: dict[str, Any]) -> None:
    args, kwargs = through(typed, **values)
    sent = [values[name] for name in inspect.signature(typed).parameters]
    assert (args, kwargs) == (sent, {})
    assert [type(value) for value in args] == [type(value) for value in sent]


@given(st.integers(), st.lists(st.integers()), st.booleans(), st.dictionaries(texts, st.decimals(allow_nan=False)))
def test_variadic_calls_come_back_as_they_went(
    first: int, rest: list[int], flag: bool, extra: dict[str, Decimal]
) -> None:
    extra = {name: value for name, value in extra.items() if name not in {"first", "flag"}}
    assert through(variadic, first, *rest, flag=flag, **extra) == ([first, *rest], {"flag": flag, **extra})


def test_the_payload_names_the_function_and_its_arguments() -> None:
    payload = Arguments.of(add, name="shop.add").pack((1,), {"b": 2})
    assert json.loads(payload) == {"function": "shop.add", "kwargs": {"a": 1, "b": 2}}
    assert called(payload) == "shop.add"


def test_an_argument_not_given_is_not_stored_so_that_the_default_of_the_running_code_counts() -> None:
    payload = Arguments.of(defaults).pack((1,), {"d": 1.5})
    assert json.loads(payload)["kwargs"] == {"a": 1, "d": 1.5}
    assert through(defaults, 1, d=1.5) == ([1], {"d": 1.5})
    assert through(defaults, 1, 3, d=1, c="x") == ([1, 3], {"c": "x", "d": 1.0})


def test_positional_only_arguments_arrive_by_position() -> None:
    assert through(positional_only, 1, c=2) == ([1, 5, 2], {})


def test_a_payload_may_give_arguments_by_position_as_rest_and_sql_do() -> None:
    arguments = Arguments.of(typed)
    args, kwargs = Arguments.of(add).unpack('{"function": "add", "args": [1], "kwargs": {"b": 2}}')
    assert (list(args), kwargs) == ([1, 2], {})
    args, _ = Arguments.of(late).unpack('{"function": "late", "args": [{"n": 3}]}')
    assert args == [Later(3)]
    assert arguments.name == "typed"


def test_a_method_takes_no_self() -> None:
    class Service:
        def act(self, n: int) -> None: ...

    arguments = Arguments.of(Service.act, method=True)
    assert arguments.unpack(arguments.pack((1,), {})) == ((1,), {})


def test_a_class_defined_after_the_function_is_found_when_it_is_needed() -> None:
    assert through(late, Later(1)) == ([Later(1)], {})
    with pytest.raises(ConfigurationError, match=r"nowhere.*Nowhere.*importable"):
        Arguments.of(nowhere).pack((1,), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "field", "says"),
    [
        ((1,), {}, "b", "missing a required argument: 'b'"),
        ((1, 2, 3), {}, None, "too many positional arguments"),
        ((1, 2), {"c": 3}, "c", "unexpected keyword argument 'c'"),
        ((1,), {"a": 2}, "a", "multiple values for argument 'a'"),
        ((1, "two"), {}, "b", r"'b' must be int, not str 'two'"),
        ((1, 2.5), {}, "b", r"'b' must be int, not float 2.5"),
        ((Decimal(1), 2), {}, "a", r"'a' must be int, not Decimal Decimal\('1'\)"),
        ((lambda: 1, 2), {}, "a", r"'a' can't be stored.*function.*pass an id"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_by_the_name_of_the_argument(
    args: Any, kwargs: Any, field: str | None, says: str
) -> None:
    with pytest.raises(InvalidJob, match=says) as refusal:
        Arguments.of(add).pack(args, kwargs)
    assert refusal.value.field == field


def test_a_nested_mistake_is_located() -> None:
    def paint(points: list[Point]) -> None: ...

    with pytest.raises(InvalidJob, match=r"'points' must be list\[.*Point\].*\$\[1\].x"):
        Arguments.of(anything_of(paint)).pack(([Point(1), {"x": "wide"}],), {})


def anything_of(target: Any) -> Any:
    target.__annotations__ = {"points": list[Point]}
    return target


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: [None, n], lambda n: {"a": (n,)}, lambda n: Point(1, n)])
def test_numbers_that_json_lacks_are_refused_instead_of_becoming_none(number: float, wrap: Any) -> None:
    with pytest.raises(InvalidJob, match=r"'value' holds NaN or an infinite number") as refusal:
        Arguments.of(anything).pack((wrap(number),), {})
    assert refusal.value.field == "value"
    with pytest.raises(UnstorableResult, match="NaN"):
        Returns.of(anything).encode(wrap(number))


def test_none_and_the_word_null_are_fine() -> None:
    assert through(anything, [None, "null"], None) == ([[None, "null"], None], {})


def test_what_is_no_data_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value, says in [
        (sys.stdout, "unsupported"),
        (Opaque(), "Opaque"),
        ("\ud800", "Unicode"),
        (circle, "contains itself"),
        ({(1, 2): 3}, "keys"),
    ]:
        with pytest.raises(InvalidJob, match=says) as refusal:
            Arguments.of(anything).pack((1,), {"other": value})
        assert refusal.value.field == "other"


def test_a_parameter_whose_type_can_not_be_stored_is_refused_when_the_function_is_registered() -> None:
    def takes(thing: Opaque) -> None: ...

    with pytest.raises(ConfigurationError, match=r"parameter 'thing' has the type Opaque.*pass an id"):
        Arguments.of(takes)

    def ambiguous(thing: str | UUID) -> None: ...

    with pytest.raises(ConfigurationError, match=r"'thing'.*str \| uuid.UUID.*more than one str-like"):
        Arguments.of(ambiguous)


def test_variadic_calls_are_checked_too() -> None:
    arguments = Arguments.of(variadic)
    with pytest.raises(InvalidJob, match=r"'rest' must be list\[int\]") as refusal:
        arguments.pack((1, 2, "three"), {})
    assert refusal.value.field == "rest"
    with pytest.raises(InvalidJob, match=r"'extra' must be dict\[str, decimal.Decimal\]"):
        arguments.pack((1,), {"price": Point(1)})
    with pytest.raises(InvalidJob, match="missing a required argument: 'first'"):
        arguments.pack((), {})


@pytest.mark.parametrize(
    ("payload", "field", "says"),
    [
        ("", "payload", "no call"),
        ("[]", "payload", "must look like"),
        ('{"function": "add", "args": 3}', "payload", "no call"),
        ('{"function": "add", "kwargs": {"a": 1}}', "b", "'b' is missing"),
        ('{"function": "add", "kwargs": {"a": 1, "b": "x"}}', "b", "'b' must be int, not \"x\""),
        ('{"function": "add", "kwargs": {"a": 1, "b": 2, "c": 3}}', "c", "has no argument 'c'"),
        ('{"function": "add", "args": [1, 2, 3]}', None, "takes 2 positional arguments, not 3"),
        ('{"function": "add", "args": [1], "kwargs": {"a": 1}}', "a", "'a' is given twice"),
    ],
)
def test_a_corrupt_payload_is_refused_with_the_reason(payload: str, field: str | None, says: str) -> None:
    with pytest.raises(InvalidJob, match=says) as refusal:
        Arguments.of(add).unpack(payload)
    assert refusal.value.field == field


def test_the_schema_describes_the_parameters() -> None:
    def book(guest: Point, nights: Annotated[int, msgspec.Meta(gt=0)] = 1, **more: str) -> None: ...

    book.__annotations__ = {"guest": Point, "nights": Annotated[int, msgspec.Meta(gt=0)], "more": str}
    schema = Arguments.of(book).schema()
    assert schema["required"] == ["guest"]
    assert schema["properties"]["nights"] == {"type": "integer", "exclusiveMinimum": 0, "default": 1}
    assert schema["properties"]["guest"] == {"$ref": "#/$defs/Point"}
    assert schema["additionalProperties"] == {"type": "string"}
    assert set(schema["$defs"]) == {"Point"}
    assert Arguments.of(add).schema()["additionalProperties"] is False


def test_results_come_back_as_the_annotated_type() -> None:
    returns = Returns.of(late)
    assert returns.decode(returns.encode(Later(4))) == Later(4)
    assert returns.encode(None) is None
    assert returns.decode(None) is None
    assert decode(b'{"n": 4}', Later) == Later(4)
    assert decode(b'{"n": 4}') == {"n": 4}


def test_a_result_that_no_longer_fits_its_annotation_comes_back_as_plain_data() -> None:
    assert Returns.of(late).decode(b'{"m": 1}') == {"m": 1}
    assert Returns.of(nowhere).decode(b"[1]") == [1]


def test_a_result_that_can_not_be_stored_names_function_and_type() -> None:
    with pytest.raises(UnstorableResult, match=r"shop.add returned Opaque .*return plain data"):
        Returns.of(add, name="shop.add").encode(Opaque())
