"""Kinds: how bodies become submissions, and how schemas judge arguments."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from headway import kinds
from headway.executors.call.functions import Function, Options
from headway.kinds import load_kinds
from headway.kinds.bodies import Bodies, Origin, fingerprint
from headway.kinds.documentation import body_schema
from headway.kinds.schema import misfit
from headway.model.errors import InvalidJob
from headway.model.worker import FunctionInfo


class NoFunctions:
    async def function(self, name: str) -> FunctionInfo | None:
        return None


# A kind of a plug-in


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with a kind of its own, and one with an executor only."""
    info = tmp_path / "headway_shout-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: headway-shout\nVersion: 1.0\n")
    points = "[headway.kinds]\nshout = headway_shout:Shout\n[headway.executors]\nshout = x:y\nwhisper = x:y\n"
    (info / "entry_points.txt").write_text(points)
    (tmp_path / "headway_shout.py").write_text(
        """
from typing import Annotated
import msgspec
from headway.kinds.contract import Prepared

class Fields(msgspec.Struct):
    text: Annotated[str, msgspec.Meta(description='a text to shout, such as "hey"')]
    times: int = 1

class Shout:
    name = "shout"
    fields = Fields
    private = frozenset()

    async def prepare(self, fields, functions):
        payload = msgspec.json.encode(fields).decode()
        return Prepared(payload=payload, name=f"shout {fields.text}", fields={"timeout": 5})
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    kinds.load_kinds.cache_clear()
    yield
    kinds.load_kinds.cache_clear()


@pytest.mark.usefixtures("plugin")
async def test_a_kind_that_a_package_brings_is_checked_by_its_own_fields() -> None:
    bodies = Bodies(load_kinds(), NoFunctions())
    job = (await bodies.read({"kind": "shout", "text": "hey", "queue": "loud"}, Origin(by="ann"))).submission
    assert (job.kind, job.name, job.queue, job.timeout, job.created_by) == ("shout", "shout hey", "loud", 5, "ann")
    assert msgspec.json.decode(job.payload) == {"text": "hey", "times": 1}
    for body, field, says in (
        ({}, "text", 'a text to shout, such as "hey"'),
        ({"text": 7}, "text", 'a text to shout, such as "hey"'),
        ({"text": "hey", "time": 3}, "time", "did you mean"),
        ({"text": "hey", "times": "3"}, "times", "Expected `int`, got `str`"),
    ):
        with pytest.raises(InvalidJob, match=says) as refusal:
            await bodies.read({"kind": "shout", **body}, Origin())
        assert refusal.value.field == field


@pytest.mark.usefixtures("plugin")
async def test_a_package_that_brings_an_executor_only_takes_any_fields() -> None:
    bodies = Bodies(load_kinds(), NoFunctions())
    body = {"kind": "whisper", "name": "psst", "to": ["ann"], "priority": 5}
    job = (await bodies.read(body, Origin())).submission
    assert (job.kind, job.name, job.priority, job.payload) == ("whisper", "psst", 5, '{"to":["ann"]}')
    with pytest.raises(InvalidJob, match="a job of kind 'whisper' needs a name"):
        await bodies.read({"kind": "whisper"}, Origin())
    assert {"call", "shout", "whisper"} <= set(load_kinds())


@pytest.mark.usefixtures("plugin")
def test_each_kind_is_documented_by_a_schema_of_its_whole_body() -> None:
    call, shout, whisper = (body_schema(load_kinds()[name]) for name in ("call", "shout", "whisper"))
    assert call["required"] == ["kind", "function"]
    assert call["properties"]["kind"] == {"const": "call"}
    assert call["properties"]["function"]["description"] == 'the name of a function, such as "mail.welcome"'
    assert call["properties"]["priority"]["maximum"] == 100
    assert {"id", "run_at", "retry", "on_conflict", "args", "kwargs"} < set(call["properties"])
    assert (shout["required"], shout["additionalProperties"]) == (["kind", "text"], False)
    assert (whisper["required"], whisper["additionalProperties"]) == (["kind"], True)
    good = {"kind": "call", "function": "f", "delay": 5, "retry": {"max_attempts": 3}}
    assert misfit(good, call) is None
    assert misfit({**good, "priority": "x"}, call) == (("priority",), "a whole number (minimum -100, maximum 100)")
    assert misfit({**good, "functoin": "x"}, call) is not None


def test_bodies_with_the_same_content_have_the_same_fingerprint() -> None:
    one = {"kind": "call", "id": "x", "kwargs": {"a": 1, "b": [1, 2]}}
    assert fingerprint(one) == fingerprint({"kwargs": {"b": [1, 2], "a": 1}, "kind": "call", "id": "y"})
    assert fingerprint(one) != fingerprint({**one, "kwargs": {"a": 1, "b": [2, 1]}})
    assert fingerprint(one) != fingerprint({**one, "delay": 1})


# Schemas


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct):
    x: int
    label: str | None = None


class Circle(msgspec.Struct, tag="circle"):
    radius: float


class Square(msgspec.Struct, tag="square"):
    side: float


SAMPLES: list[tuple[Any, list[Any], list[Any]]] = [
    (int, [1, -5], [1.5, 1.0, "1", True, None]),
    (float, [1, 1.5], ["1", True]),
    (str, ["", "x"], [1, None]),
    (bool, [True], [0, "true"]),
    (int | None, [1, None], ["x"]),
    (list[int], [[], [1]], [1, ["x"], {"a": 1}]),
    (set[int], [[1]], [["x"]]),
    (tuple[int, str], [[1, "x"]], [[1], [1, "x", 2], ["x", 1]]),
    (dict[str, int], [{}, {"a": 1}], [[], {"a": "x"}]),
    (Colour, ["red"], ["green", 1]),
    (Literal["a", 1], ["a", 1], ["b", True, 2]),
    (Point, [{"x": 1}, {"x": 1, "label": None}], [{}, {"x": "1"}, {"x": 1, "label": 5}, 7]),
    (list[Point], [[{"x": 1}]], [[{"x": None}]]),
    (Circle | Square, [{"type": "circle", "radius": 1}], [{"type": "oval"}, {"type": "circle", "side": 1}]),
    (uuid.UUID, [str(uuid.uuid4())], ["me", 5]),
    (Annotated[datetime.datetime, msgspec.Meta(tz=True)], ["2030-01-31T12:00:00Z"], ["noon", 5]),
    (datetime.date, ["2030-01-31"], ["31.1.2030"]),
    (datetime.timedelta, ["PT5S"], ["five"]),
    (decimal.Decimal, ["9.95"], ["dear"]),
    (bytes, ["aGV5"], ["***", 5]),
    (Annotated[int, msgspec.Meta(ge=1, lt=5)], [1, 4], [0, 5]),
    (Annotated[str, msgspec.Meta(min_length=2, pattern="^a")], ["ab"], ["a", "ba"]),
    (Any, [None, 1, {"a": [1]}], []),
]


@pytest.mark.parametrize(("kind", "good", "bad"), SAMPLES)
def test_values_are_judged_as_the_type_behind_the_schema_would(kind: Any, good: list[Any], bad: list[Any]) -> None:
    schema = msgspec.json.schema(kind)
    for value in good:
        assert misfit(value, schema) is None, value
        msgspec.json.decode(msgspec.json.encode(value), type=kind)
    for value in bad:
        assert misfit(value, schema) is not None, value
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(msgspec.json.encode(value), type=kind)


def test_a_misfit_tells_where_and_what_is_wanted() -> None:
    schema = msgspec.json.schema(dict[str, list[Point]])
    assert misfit({"a": [{"x": 1}, {"x": "?"}]}, schema) == (("a", 1, "x"), "a whole number")
    assert misfit("x", msgspec.json.schema(Annotated[int, msgspec.Meta(ge=1)] | None)) == (
        (),
        "a whole number (minimum 1) or null",
    )


def test_a_schema_with_words_that_we_do_not_know_says_nothing_by_them() -> None:
    assert misfit("x", {"type": "string", "format": "haiku", "x-odd": 1, "not": {}}) is None
    assert misfit({"a": 1}, {"$ref": "#/$defs/Gone"}) is None


async def test_arguments_of_all_sorts_find_their_names() -> None:
    def odd(a: int, /, b: Point, *rest: int, c: str = "x", **extra: Circle) -> None: ...

    class Known:
        async def function(self, name: str) -> FunctionInfo | None:
            return Function.of(odd, name=name, options=Options()).info()

    bodies = Bodies(load_kinds(), Known())

    async def payload(**call: Any) -> Any:
        asked = await bodies.read({"kind": "call", "function": "odd", **call}, Origin())
        return msgspec.json.decode(asked.submission.payload)

    named = {"a": 1, "b": {"x": 2}}
    assert (await payload(args=[1, {"x": 2}]))["kwargs"] == named
    assert (await payload(args=[1], kwargs={"b": {"x": 2}, "c": "y"}))["kwargs"] == {**named, "c": "y"}
    with_rest = {"args": [1, {"x": 2}, 3, 4], "kwargs": {"o": {"type": "circle", "radius": 1}}}
    assert await payload(**with_rest) == {"function": "odd", **with_rest}
    for call, field in (
        ({"args": [1, {"x": 2}, 3, "4"]}, "args[3]"),
        ({"args": [1, {"x": "2"}]}, "args[1].x"),
        ({"args": [1], "kwargs": {"b": {"x": 2}, "o": {"type": "circle", "radius": "1"}}}, "kwargs.o.radius"),
    ):
        with pytest.raises(InvalidJob) as refusal:
            await payload(**call)
        assert refusal.value.field == field
