"""The document as a page: plain HTML, made on the server, without a script and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import msgspec

Schema = Mapping[str, Any]


def page(document: Schema) -> str:
    """All routes by their tags, then all schemas."""
    tags: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tags.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    links = "".join(f'<li><a href="#{_anchor(tag)}">{escape(tag)}</a></li>' for tag in [*tags, "Schemas"])
    sections = "".join(_section(tag, parts) for tag, parts in tags.items())
    schemas = [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Headway API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/api/docs.css"></head><body>'
        f"<header><h1>Headway API {escape(document['info']['version'])}</h1>"
        f"<p>{escape(document['info']['description'])}</p>"
        "<p>Say who you are with <code>Authorization: Bearer &lt;token&gt;</code>. "
        'For programs: <a href="/api/openapi.json">openapi.json</a>.</p></header>'
        f"<nav><ul>{links}</ul></nav><main>{sections}{_section('Schemas', schemas)}</main></body></html>"
    )


def _section(title: str, parts: list[str]) -> str:
    return f'<section id="{_anchor(title)}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def _operation(method: str, path: str, operation: Schema) -> str:
    permission = operation.get("x-permission", "anybody")
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><b class="{method}">{method.upper()}</b> '
        f"<code>{escape(path)}</code> <span>{escape(operation['summary'])}</span></summary>"
        f"<p>{_words(operation.get('description', ''))}</p>"
        f"<p>Permission: <code>{escape(permission)}</code></p>"
        f"{''.join(_parts(operation))}</details>"
    )


def _parts(operation: Schema) -> Iterator[str]:
    if parameters := operation.get("parameters"):
        rows = "".join(
            f"<tr><td><code>{escape(each['name'])}</code></td><td>{each['in']}</td><td>{_type(each['schema'])}</td>"
            f"<td>{_words(each.get('description', ''))}</td></tr>"
            for each in parameters
        )
        yield f"<h3>Parameters</h3><table>{rows}</table>"
    if body := operation.get("requestBody"):
        for content_type, content in body["content"].items():
            yield f"<h3>Body</h3><p>{escape(content_type)}: {_type(content['schema'])}</p>"
            yield from (_example(each["value"], name) for name, each in content.get("examples", {}).items())
    yield "<h3>Answers</h3>"
    for status, response in operation["responses"].items():
        types = ", ".join(f"{escape(kind)}: {_type(it['schema'])}" for kind, it in response.get("content", {}).items())
        yield f"<p><b>{status}</b> {_words(response['description'])} {types}</p>"
        for content in response.get("content", {}).values():
            if "example" in content:
                yield _example(content["example"], "Example")


def _schema(name: str, schema: Schema) -> str:
    return (
        f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code> '
        f"<span>{_words(schema.get('description', ''))}</span></summary><pre>{_json(schema)}</pre></details>"
    )


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    kind = schema.get("format") or schema.get("type", "anything")
    return f"list of {_type(schema.get('items', {}))}" if kind == "array" else escape(str(kind))


def _example(value: Any, name: str) -> str:
    return f"<figure><figcaption>{escape(name)}</figcaption><pre>{_json(value)}</pre></figure>"


def _json(value: Any) -> str:
    return escape(msgspec.json.format(msgspec.json.encode(value)).decode())


def _words(text: str) -> str:
    """Plain text with `code` in it."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


def _anchor(title: str) -> str:
    return escape(title.lower().replace(" ", "-"))
