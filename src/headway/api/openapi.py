"""The API's description, OpenAPI 3.1, made of the table of routes and of the kinds of jobs that are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import msgspec

from headway.api.problems import PROBLEM, Problem
from headway.api.table import Answer, Body, Public, Route
from headway.kinds.contract import Kind
from headway.kinds.documentation import body_schema
from headway.model.schedule import Misfire, Overlap

REF = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
_KINDS = "JobBody"

Schema = dict[str, Any]


def document(routes: Sequence[Route], kinds: Mapping[str, Kind]) -> Schema:
    """The whole description."""
    shown = [route for route in routes if not route.hidden]
    forms = list(dict.fromkeys(form for route in shown for form in _forms(route)))
    schemas, components = msgspec.json.schema_components(forms, ref_template=REF)
    by_form = dict(zip(map(id, forms), schemas, strict=True))
    paths: dict[str, Schema] = {}
    for route in shown:
        path = _PARAMETER.sub(r"{\1}", route.full_path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, by_form, components)
    for route in shown:
        if route.query is not None:
            components.pop(_name(by_form[id(route.query)]), None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headway",
            "version": version("headway"),
            "description": "Background jobs that are never lost: submit, schedule, watch and change them.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**components, **job_bodies(kinds), **schedule_bodies()}.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def job_bodies(kinds: Mapping[str, Kind]) -> dict[str, Schema]:
    """The body of each kind, and the union that `kind` tells apart."""
    schemas: dict[str, Schema] = {}
    for name, kind in sorted(kinds.items()):
        whole = body_schema(kind)
        schemas |= {part: _hoisted(schema) for part, schema in whole.pop("$defs").items()}
        schemas[f"JobBody-{name}"] = _hoisted(whole)
    mapping = {name: REF.format(name=f"JobBody-{name}") for name in sorted(kinds)}
    schemas[_KINDS] = {
        "title": "A job to submit",
        "oneOf": [{"$ref": reference} for reference in mapping.values()],
        "discriminator": {"propertyName": "kind", "mapping": mapping},
    }
    return schemas


def schedule_bodies() -> dict[str, Schema]:
    """What may be said of a schedule: all of it, some of it, or as much as a preview needs."""
    names = ("schedule", "timezone", "gap", "fold", "start", "end", "jitter")
    preview = {name: _SCHEDULE[name] for name in names} | {"count": {"type": "integer", "minimum": 1, "maximum": 1000}}
    return {
        "ScheduleBody": _object(_SCHEDULE, "name", "schedule", "job"),
        "ScheduleChanges": _object(_SCHEDULE),
        "PreviewBody": _object(preview, "schedule"),
        "ScheduleJob": {
            "title": "The job that a schedule makes",
            "description": "A job body (see JobBody) without its time; `kind` is http if it isn't given.",
            "type": "object",
            "properties": {"kind": {"type": "string", "default": "http"}},
            "additionalProperties": True,
        },
    }


def _object(properties: Schema, *required: str) -> Schema:
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**made, "required": list(required)} if required else made


def _nullable(form: Schema) -> Schema:
    return {"anyOf": [form, {"type": "null"}]}


_TIME = {"type": "string", "format": "date-time"}
_TEXT = {"type": "string"}
_SCHEDULE: Schema = {
    "name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Unique."},
    "description": _nullable(_TEXT),
    "schedule": {
        "description": "A cron expression of five fields, or six with seconds first; an interval; or a single time.",
        "anyOf": [
            {"type": "string", "examples": ["* * * * *", "0 3 * * MON-FRI", "@daily"]},
            _object({"every": {"type": "number", "minimum": 0.1, "description": "seconds"}}, "every"),
            _object({"at": _TIME}, "at"),
        ],
    },
    "timezone": _nullable({"type": "string", "default": "UTC", "examples": ["Europe/Berlin"]}),
    "gap": _nullable({"enum": ["after", "skip"], "description": "What a fixed time does that the clocks skip."}),
    "fold": _nullable({"enum": ["first", "both"], "description": "What a fixed time does that comes twice."}),
    "misfire": _nullable({"enum": list(Misfire), "default": "run_once"}),
    "misfire_limit": _nullable({"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
    "overlap": _nullable({"enum": list(Overlap), "default": "skip"}),
    "jitter": _nullable({"type": "number", "minimum": 0, "maximum": 86400, "default": 0}),
    "start": _nullable(_TIME),
    "end": _nullable(_TIME),
    "paused": _nullable({"type": "boolean", "default": False}),
    "pause_reason": _nullable(_TEXT),
    "tags": _nullable({"type": "array", "items": _TEXT}),
    "job": {"$ref": REF.format(name="ScheduleJob")},
}


def _hoisted(schema: Any) -> Any:
    """References to what stood beside a schema, now among the components."""
    if isinstance(schema, dict):
        return {
            name: part.replace("#/$defs/", "#/components/schemas/") if name == "$ref" else _hoisted(part)
            for name, part in schema.items()
        }
    return [_hoisted(part) for part in schema] if isinstance(schema, list) else schema


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _forms(route: Route) -> Iterator[Any]:
    yield Problem
    if route.query is not None:
        yield route.query
    if route.body is not None and route.body.form is not None:
        yield route.body.form
    yield from (answer.form for answer in route.answers if answer.form is not None)


def _operation(route: Route, by_form: Mapping[int, Schema], components: dict[str, Schema]) -> Schema:
    made: Schema = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.tag],
        "responses": _responses(route, by_form),
    }
    if route.description:
        made["description"] = route.description
    if isinstance(route.permission, Public):
        made["security"] = []
    else:
        made["x-permission"] = route.permission
    if parameters := [*_path_parameters(route), *_query_parameters(route, by_form, components), *_headers(route)]:
        made["parameters"] = parameters
    if route.body is not None:
        made["requestBody"] = _request_body(route.body, by_form)
    return made


def _operation_id(route: Route) -> str:
    words = re.sub(r"\W+", "_", route.full_path.removeprefix("/api/v1")).strip("_")
    return f"{route.method.lower()}_{words}"


def _path_parameters(route: Route) -> Iterator[Schema]:
    for name in _PARAMETER.findall(route.full_path):
        form = {"type": "string", "format": "uuid"} if name.endswith("_id") else {"type": "string"}
        yield {"name": name, "in": "path", "required": True, "schema": form}


def _query_parameters(route: Route, by_form: Mapping[int, Schema], components: dict[str, Schema]) -> Iterator[Schema]:
    if route.query is None:
        return
    schema = components[_name(by_form[id(route.query)])]
    for name, described in schema["properties"].items():
        form = dict(described)
        parameter = {"name": name, "in": "query", "required": name in schema.get("required", ())}
        if words := form.pop("description", None):
            parameter["description"] = words
        yield {**parameter, "schema": form}


def _headers(route: Route) -> Iterator[Schema]:
    for name, words in route.headers.items():
        yield {"name": name, "in": "header", "required": False, "description": words, "schema": {"type": "string"}}


def _request_body(body: Body, by_form: Mapping[int, Schema]) -> Schema:
    content: Schema = {"schema": _body_schema(body, by_form)}
    if body.examples:
        content["examples"] = {name: {"value": value} for name, value in body.examples.items()}
    return {"required": body.required, "content": {body.content_type: content}}


def _body_schema(body: Body, by_form: Mapping[int, Schema]) -> Any:
    if body.form is not None:
        return by_form[id(body.form)]
    return {"$ref": REF.format(name=body.schema)} if isinstance(body.schema, str) else body.schema


def _responses(route: Route, by_form: Mapping[int, Schema]) -> Schema:
    told = {str(answer.status): _response(answer, by_form) for answer in route.answers}
    for status in _refusals(route):
        told[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {PROBLEM: {"schema": by_form[id(Problem)]}},
        }
    return dict(sorted(told.items()))


def _refusals(route: Route) -> list[int]:
    """Statuses with which a route of this sort may refuse."""
    found = {*route.problems, 500, 503}
    if not isinstance(route.permission, Public):
        found |= {401, 403}
    if _PARAMETER.search(route.full_path):
        found.add(404)
    if route.query is not None:
        found.add(422)
    if route.body is not None:
        found |= {400, 413, 415, 422}
    return sorted(found)


def _response(answer: Answer, by_form: Mapping[int, Schema]) -> Schema:
    made: Schema = {"description": answer.words}
    schema = by_form[id(answer.form)] if answer.form is not None else answer.schema
    if schema is not None:
        content: Schema = {"schema": schema}
        if answer.example is not None:
            content["example"] = answer.example
        made["content"] = {answer.content_type: content}
    return made
