"""Log lines: what they say, who hears them, what they cost."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from typing import Any, TextIO
from uuid import UUID, uuid4

import pytest
import structlog

from headway import compose
from headway.model.errors import ConfigurationError
from headway.model.states import State
from headway.observe import rendering, trail
from headway.observe.logs import get_logger

log = get_logger("headway.test")


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """Logging as it was, afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("headway")
    before = root.handlers[:], root.level, ours.level, structlog.get_config()
    yield io.StringIO()
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    structlog.configure(**before[3])


def set_up(level: int, out: TextIO, *, as_json: bool = True) -> None:
    """Only as our own processes do: the test run's own handlers cost time, and mind what can't be formatted."""
    rendering.set_up(level, as_json=as_json, stream=out)
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if isinstance(handler, rendering.Lines)]


def printed(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_one_object_of_json_with_all_its_fields(out: io.StringIO) -> None:
    set_up(logging.INFO, out)
    job_id = uuid4()
    log.info("job.done", job_id=job_id, took=1.5, queues=["mail"], what=State.RUNNING, odd=object, text='"ä"\n')
    log.debug("job.unheard")
    [line] = printed(out)
    assert line.pop("timestamp")[-1] == "Z"
    assert "object" in line.pop("odd")
    assert line == {
        "level": "info",
        "logger": "headway.test",
        "event": "job.done",
        "job_id": str(job_id),
        "took": 1.5,
        "queues": ["mail"],
        "what": "running",
        "text": '"ä"\n',
    }


def test_lines_of_other_libraries_and_those_still_given_to_structlog_have_the_same_form(out: io.StringIO) -> None:
    set_up(logging.DEBUG, out)
    logging.getLogger("asyncpg").warning("slow by %d ms", 7)
    logging.getLogger("asyncpg").debug("chatter")
    structlog.get_logger("headway.old").info("old.line", number=7)
    log.debug("new.line")
    assert [(line["logger"], line["level"], line["event"], line.get("number")) for line in printed(out)] == [
        ("asyncpg", "warning", "slow by 7 ms", None),
        ("headway.old", "info", "old.line", 7),
        ("headway.test", "debug", "new.line", None),
    ]


def test_what_jobs_log_is_heard_at_the_level_of_the_process(out: io.StringIO) -> None:
    set_up(logging.WARNING, out)
    logging.getLogger("headway.job.shop").info("resized")
    logging.getLogger("headway.job.shop").warning("broken")
    assert [line["event"] for line in printed(out)] == ["broken"]


@pytest.mark.parametrize("source", [log, structlog.get_logger("headway.test")])
def test_an_exception_comes_with_its_trace(out: io.StringIO, source: Any) -> None:
    set_up(logging.INFO, out)
    try:
        raise ValueError("broken")
    except ValueError as error:
        source.exception("it.failed", part="x")
        source.error("it.failed", exc_info=error)
    for line in printed(out):
        assert (line["event"], line["level"]) == ("it.failed", "error")
        assert "in test_an_exception_comes_with_its_trace" in line["exception"]
        assert line["exception"].endswith("ValueError: broken")


def test_for_people_a_line_is_columns(out: io.StringIO) -> None:
    set_up(logging.INFO, out, as_json=False)
    log.warning("worker.slow", queue="mail")
    assert "[warning  ] worker.slow" in out.getvalue()
    assert "queue=mail" in out.getvalue()


def test_setting_up_again_replaces_what_was_set_up(out: io.StringIO) -> None:
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        set_up(level, out)
    log.info("unheard")
    log.warning("once")
    assert [line["event"] for line in printed(out)] == ["once"]


def test_a_line_that_can_not_be_written_breaks_nothing(out: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no words")

    set_up(logging.INFO, out)
    log.info("odd", value=Broken())
    log.info("next")
    assert [line["event"] for line in printed(out)] == ["next"]
    assert "no words" in capsys.readouterr().err


def test_a_level_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigurationError, match="debug, info, warning or error, not 'loud'"):
        compose.configure_logs("loud", as_json=False)


def run(program: str) -> str:
    """What a user's own process prints, on both streams."""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return told.stdout + told.stderr


LINES = """
log = get_logger("headway.worker")
log.info("worker.started", queues=["mail"])
log.warning("worker.slow", queue="mail", why="two words")
"""


def test_in_a_users_process_nothing_below_warning_is_printed_by_itself() -> None:
    program = f"from headway.observe.logs import get_logger\n{LINES}"
    assert run(program) == "worker.slow queue=mail why='two words'\n"


def test_in_a_users_process_the_users_own_logging_decides() -> None:
    set_up = 'import logging\nlogging.basicConfig(level="INFO", format="%(name)s|%(funcName)s|%(message)s")\n'
    told = run(f"{set_up}from headway.observe.logs import get_logger\n{LINES}")
    assert told.splitlines() == [
        "headway.worker|<module>|worker.started queues=['mail']",
        "headway.worker|<module>|worker.slow queue=mail why='two words'",
    ]
    silenced = 'logging.getLogger("headway").setLevel("ERROR")\n'
    assert run(f"{set_up}{silenced}from headway.observe.logs import get_logger\n{LINES}") == ""


JOB = UUID("01920000-0000-7000-8000-000000000001")


def cost(line: Any, times: int) -> float:
    """Microseconds, at best: what a busy machine adds is not the line's."""
    return min(timeit.repeat(line, number=times, repeat=20, timer=time.process_time)) / times * 1e6


def test_a_line_that_nobody_hears_costs_next_to_nothing(out: io.StringIO) -> None:
    set_up(logging.WARNING, out)
    nothing = cost(lambda: None, 20_000)
    assert cost(lambda: log.info("job.done", component="create", job_id=JOB), 20_000) < 30 * nothing
    assert cost(lambda: trail.changed("create", JOB, before=None, after=State.CREATING), 20_000) < 30 * nothing


def test_a_line_of_json_costs_no_more_than_some_encodings_of_it(out: io.StringIO, tmp_path: Any) -> None:
    line = {"event": "job.state_changed", "component": "create", "job_id": str(JOB), "from": None, "to": "creating"}
    encoding = cost(lambda: json.dumps(line), 2_000)
    with (tmp_path / "log").open("w") as file:
        set_up(logging.INFO, file)
        assert cost(lambda: trail.changed("create", JOB, before=None, after=State.CREATING), 2_000) < 12 * encoding
