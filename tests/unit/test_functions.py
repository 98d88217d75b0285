from __future__ import annotations

import functools
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headway.executors.call.functions import Function, Method, Options, Registry, name_of
from headway.model.errors import ConfigurationError, InvalidJob
from headway.model.retry import Retry
from headway.model.submission import Dedupe, OnConflict
from tests.unit.calling import a_function


def plain(n: int) -> int:
    return n


async def coroutine(n: int = 1) -> int:
    """Counts."""
    return n


def generator() -> Any:
    yield 1


class Caller:
    async def __call__(self, n: int) -> int:
        return n


class Mailer:
    def send(self, to: str) -> None: ...


class LoudMailer(Mailer):
    def send(self, to: str) -> None: ...


def test_a_function_runs_where_its_kind_belongs() -> None:
    assert a_function(plain).mode == "thread"
    assert a_function(coroutine).mode == "coroutine"
    assert a_function(functools.partial(coroutine, 1)).mode == "coroutine"
    assert Function.of(Caller()).mode == "coroutine"
    assert a_function(coroutine, process=True).mode == "process"


def test_a_name_is_module_and_qualified_name() -> None:
    assert a_function(plain).name == f"{__name__}.plain"
    assert a_function(Mailer.send).name == f"{__name__}.Mailer.send"
    assert Function.of(plain, name="mail").name == "mail"


@pytest.mark.parametrize("how", ["script", "module", "package"])
def test_the_main_module_goes_by_the_name_under_which_others_import_it(how: str, tmp_path: Path) -> None:
    code = "from headway.executors.call.functions import name_of\ndef f(): ...\nprint(name_of(f))\n"
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "__init__.py").touch()
    for file in ("shop.py", "store/jobs.py", "store/__main__.py"):
        (tmp_path / file).write_text(code)
    command = {"script": ["shop.py"], "module": ["-m", "store.jobs"], "package": ["-m", "store"]}[how]
    out = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert out.strip() == {"script": "shop.f", "module": "store.jobs.f", "package": "store.f"}[how]


def test_a_method_of_a_service_is_a_job_without_self() -> None:
    function = Function.of(Method(Mailer, Mailer.send))
    assert function.arguments.schema()["required"] == ["to"]
    assert function.name == f"{__name__}.Mailer.send"
    mailer, loud = Mailer(), LoudMailer()
    method = Method(Mailer, Mailer.send)
    assert method.of(mailer) == mailer.send
    assert method.of(loud) == loud.send


def test_two_functions_of_one_name_are_refused_with_both_places() -> None:
    registry = Registry()
    registry.add(Function.of(plain, name="mail"))
    with pytest.raises(ConfigurationError, match=r"'mail': one at .*test_functions.py:\d+, one at .*:\d+"):
        registry.add(Function.of(coroutine, name="mail"))


def test_lambdas_and_nested_functions_are_jobs_but_not_in_a_child_process() -> None:
    def nested() -> None: ...

    assert a_function(nested).mode == "thread"
    assert a_function(lambda: None).mode == "thread"
    for target in (nested, lambda: None):
        with pytest.raises(ConfigurationError, match="can't run in a child process"):
            a_function(target, process=True)


def test_generators_are_no_jobs() -> None:
    with pytest.raises(ConfigurationError, match="generator"):
        a_function(generator)


def test_the_registry_announces_its_functions() -> None:
    registry = Registry()
    registry.add(
        Function.of(coroutine, options=Options.of(queue="mail", retry=Retry(max_attempts=3)), code_version="v1")
    )
    [info] = registry.infos()
    assert info.name == name_of(coroutine)
    assert info.queue == "mail"
    assert info.defaults == {"queue": "mail", "retry": {"max_attempts": 3}}
    assert info.parameters["properties"] == {"n": {"type": "integer", "default": 1}}
    assert info.code_version == "v1"
    assert registry.get("unknown") is None
    assert len(registry) == 1
    assert info.name in registry


def test_options_are_taken_as_people_write_them() -> None:
    options = Options.of(timeout=timedelta(minutes=1), tags=["a"], on_conflict="wait", dedupe=timedelta(hours=1))
    assert options.timeout == 60.0
    assert options.tags == ("a",)
    assert options.on_conflict is OnConflict.WAIT
    assert options.dedupe == 3600.0
    retry = Retry(max_attempts=2)
    assert Options.of(retry=retry, dedupe=Dedupe("k")).changed(queue="q") == Options(
        retry=retry, dedupe=Dedupe("k"), queue="q"
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"colour": "red"}, "no option 'colour'"),
        ({"priority": 101}, "priority must be from -100 to 100"),
        ({"priority": "high"}, "priority"),
        ({"on_conflict": "maybe"}, "on_conflict"),
        ({"memory_limit": 1}, "memory_limit needs process=True"),
        ({"timeout": -1}, "timeout"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises((ConfigurationError, InvalidJob), match=says):
        Options.of(**given)
