"""The job bodies that `headway submit` makes of a command line."""

from pathlib import Path
from typing import Any

import pytest

from headway.cli.bodies import Asked, bodies_of
from headway.model.errors import ConfigurationError


def bodies(kind: str, *what: str, fields: tuple[str, ...] = (), **said: Any) -> list[dict[str, Any]]:
    own = {name: said.pop(name, None) for name in ("args", "kwargs", "http_method", "payload", "headers", "target")}
    return bodies_of(Asked(kind=kind, what=what, own=own, common=said, fields=fields))


def test_a_call_has_its_arguments() -> None:
    assert bodies("call", "mail.welcome", args="[42]", kwargs='{"at": null}', queue="mail", name=None) == [
        {"kind": "call", "function": "mail.welcome", "args": [42], "kwargs": {"at": None}, "queue": "mail"}
    ]


def test_every_url_is_a_job_of_its_own() -> None:
    found = bodies("fetch", "https://a.example/", "https://b.example/", fields=("dedupe=false",))
    assert [body["url"] for body in found] == ["https://a.example/", "https://b.example/"]
    assert all(body["dedupe"] is False for body in found)


def test_a_request_has_method_headers_and_payload() -> None:
    [body] = bodies("http", "https://a.example/", http_method="PUT", headers=["X-A: 1"], payload='{"a": [1]}')
    assert body == {
        "kind": "http",
        "callback_url": "https://a.example/",
        "http_method": "PUT",
        "headers": {"X-A": "1"},
        "payload": {"a": [1]},
    }


def test_a_script_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "backup.sh"
    file.write_text("#!/bin/sh\ntrue\n")
    [body] = bodies("script", str(file), target="web1", name="backup", args='["-v"]')
    assert (body["script"], body["target"], body["args"]) == ("#!/bin/sh\ntrue\n", "web1", ["-v"])


@pytest.mark.parametrize(
    "text", ['[{"kind": "a"}, {"kind": "b"}]', '{"kind": "a"}\n{"kind": "b"}\n', '{"kind": "a"}\n\n{"kind": "b"}']
)
def test_bodies_come_as_a_list_or_line_by_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(text)
    assert bodies("body", str(file), priority=5) == [{"kind": "a", "priority": 5}, {"kind": "b", "priority": 5}]


@pytest.mark.parametrize(
    ("kind", "what", "said", "words"),
    [
        ("call", (), {}, "needs a function"),
        ("call", ("f",), {"args": "[1"}, "--args is no JSON"),
        ("fetch", ("https://a.example/",), {"http_method": "PUT"}, "--method is not for jobs of kind fetch"),
        ("http", ("https://a.example/",), {"headers": ["Accept"]}, "must look like 'Accept: text/html'"),
        ("script", ("missing.sh",), {}, "missing.sh can't be read"),
        ("call", ("f",), {"fields": ("dedupe",)}, "must look like name=JSON"),
    ],
)
def test_what_cannot_be_understood_is_said(kind: str, what: tuple[str, ...], said: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        bodies(kind, *what, **said)


def test_a_file_without_bodies_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text("[1, 2]")
    with pytest.raises(ConfigurationError, match="must hold a job body"):
        bodies("body", str(file))
