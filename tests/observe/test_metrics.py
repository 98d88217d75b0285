"""Counting: what is counted, under which labels, and how the numbers of several processes become one page."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from headway.clock import FakeClock
from headway.model.errors import ConfigurationError
from headway.observe import metrics, page, series
from headway.observe.family import SILENT, Family, Signs, answering
from headway.observe.metrics import NAMES, Counter, Gauge, Histogram, merged
from headway.observe.page import Address

DOCS = Path(__file__).parents[2] / "docs" / "operating.md"


@pytest.fixture(autouse=True)
def _counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # What other tests have counted in this process must not use up the names.
    monkeypatch.setattr(metrics, "_names", {label: set() for label in metrics.CHOSEN})
    with page.counted():
        yield


def test_labels_that_users_choose_are_bounded() -> None:
    counter = Counter("headway_test_total", "Test.", ("queue", "outcome"))
    for number in range(10 * NAMES):
        counter.add((f"queue-{number}", "failed"))
    values = dict(counter.series().values)
    assert len(values) <= NAMES + 1
    assert values["other", "failed"] == [10 * NAMES - (len(values) - 1)]


def test_every_series_has_bounded_labels_only() -> None:
    """Whoever adds a label says here why it can't grow without end."""
    bounded = {
        "queue": "the first 100, then `other`",
        "kind": "the first 100, then `other`",
        "outcome": "an enumeration",
        "reason": "why jobs are released: five words",
        "act": "submit, claim, finish, release",
        "result": "fired, the reasons of skips; delivered, refused",
        "lane": "an enumeration",
        "bus": "the scheme of a URL",
        "process": "numbered within one command",
        "status": "three digits, or error",
        "what": "the fields of a bus's or a desk's counters",
        "channel": "an enumeration",
        "state": "an enumeration",
        "worker": "the 100 longest silent",
    }
    used = {label for instrument in metrics.instruments(vars(series)) for label in instrument.labels}
    assert used <= bounded.keys()


def test_a_histogram_counts_what_is_sorted_already_like_what_is_not() -> None:
    one = Histogram("headway_one_seconds", "Test.", bounds=(0.1, 1.0))
    other = Histogram("headway_other_seconds", "Test.", bounds=(0.1, 1.0))
    one.observe([0.05, 0.1, 0.5, 7.0])
    other.count([2, 1, 1], 7.65)
    assert one.series().values == other.series().values == [((), [2, 1, 1, pytest.approx(7.65)])]


def test_a_gauge_asks_when_the_page_is_made() -> None:
    gauge = Gauge("headway_test_things", "Test.", ("queue",))
    things = [1.0]
    end = gauge.watch(lambda: [(("mail",), things[0])])
    things[0] = 5.0
    assert gauge.series().values == [(("mail",), [5.0])]
    end()
    assert gauge.series().values == []


def test_pages_of_several_processes_are_summed_up_by_labels() -> None:
    def process(number: int) -> list[metrics.Series]:
        counter = Counter("headway_test_total", "Test.", ("queue",))
        counter.add(("mail",), number)
        counter.add((f"own-{number}",), 1)
        return [counter.series()]

    [both] = merged([process(3), process(4)])
    assert dict(both.values) == {("mail",): [7], ("own-3",): [1], ("own-4",): [1]}


def test_of_queues_that_are_not_told_apart_the_worst_counts_and_jobs_are_added_up() -> None:
    queues = [f"queue-{number}" for number in range(NAMES + 3)]
    for gauge, together in ((series.queue_oldest_due, 7.0), (series.queue_paused, 7.0), (series.queue_workers, 21.0)):
        assert dict(gauge.at(((name,), 7.0) for name in queues).values)["other",] == [together]


def test_of_several_processes_one_tells_of_the_whole_store() -> None:
    """Each sees all of it: added up, a job would count as often as there are processes."""
    family = Family()
    own = Gauge("headway_test_things", "Test.")
    own.watch(lambda: [((), 3)])

    def told() -> list[metrics.Series]:
        return [own.series(), series.queue_jobs.at([(("mail", "due"), 5)]), series.store_up.at([((), 1)])]

    paths = [Path(family.environment(place)[metrics.SOCKET]) for place in range(3)]
    # The first has not begun to look at the store.
    sources = [lambda: [own.series()], told, told]
    with ExitStack() as stack:
        for path, source in zip(paths, sources, strict=True):
            stack.enter_context(answering(path, source))
        found = {one.name: one.values for one in family.series()}
    family.close()
    assert found == {
        "headway_test_things": [((), [9])],
        "headway_queue_jobs": [(("mail", "due"), [5])],
        "headway_store_up": [((), [1])],
    }


def test_what_a_process_that_died_had_counted_stays_counted(tmp_path: Path) -> None:
    family = Family()
    counter = Counter("headway_test_total", "Test.")
    counter.add((), 5)
    gauge = Gauge("headway_test_things", "Test.")
    gauge.watch(lambda: [((), 3)])
    path = Path(family.environment(0)[metrics.SOCKET])
    with answering(path, lambda: [counter.series(), gauge.series()]):
        before = {one.name: one.values for one in family.series()}
    assert before == {"headway_test_total": [((), [5])], "headway_test_things": [((), [3])]}
    # It is gone, and replaced by one that has not begun to answer.
    family.environment(0)
    assert {one.name: one.values for one in family.series()} == {"headway_test_total": [((), [5])]}
    family.close()


def test_a_parent_tells_what_is_wrong_with_the_first_of_its_processes() -> None:
    clock = FakeClock()
    family = Family(clock)
    wrong: dict[str, str | None] = {"health": None, "ready": "claiming stalls"}
    signs = Signs(health=lambda: wrong["health"], ready=lambda: wrong["ready"])
    first, second = (Path(family.environment(place)[metrics.SOCKET]) for place in range(2))
    with answering(first, list):
        assert family.signs.ready() == "process 1: it does not answer"
        assert family.signs.health() is None, "it may be starting"
        with answering(second, list, signs):
            assert (family.signs.health(), family.signs.ready()) == (None, "process 1: claiming stalls")
            wrong["health"] = "no sign of life"
            assert family.signs.health() == family.signs.ready() == "process 1: no sign of life"
            wrong.update(health=None, ready=None)
            clock.advance(2 * SILENT)
            assert family.signs.health() is family.signs.ready() is None
        assert family.signs.health() is None, "it may be about to be replaced"
        clock.advance(SILENT)
        family.environment(1)
        assert family.signs.health() == "process 1: it does not answer", "nor does the one in its place"
    family.close()


def test_the_page_is_what_promtool_takes() -> None:
    series.jobs_finished.add(("call", 'a "queue" with \\ and\nlines', "succeeded"), 3)
    series.job_run.observe([0.2], ("call", "mail"))
    content_type, text = page.written(page.own_series())
    assert content_type.startswith("text/plain")
    checked = subprocess.run(["promtool", "check", "metrics"], check=False, input=text, capture_output=True, timeout=60)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_every_series_is_explained_in_the_docs() -> None:
    told = dict(re.findall(r"^\| `(headway_\w+)` \| \w+ \| [^|]*\| (.*) \|$", DOCS.read_text(), re.MULTILINE))
    assert told == {each.name: each.help for each in metrics.instruments(vars(series))}


def test_a_port_that_was_asked_for_must_be_free_and_the_default_gives_way() -> None:
    with page.served(Address(port=0), list) as port:
        with pytest.raises(ConfigurationError, match="--metrics-port"), page.served(Address(port=port), list):
            pass
        with page.served(Address(port=port, asked=False), list) as another:
            assert another != port


WITHOUT = """
import sys
sys.modules["prometheus_client"] = None
from headway.model.errors import ConfigurationError
from headway.observe import metrics, page, series
with page.reported(page.Address(port=0, asked=False)):
    assert not metrics.counting()
    series.leases_lost.add()
assert series.leases_lost.series().values == [((), [0.0])]
try:
    with page.reported(page.Address(port=0)):
        pass
except ConfigurationError as error:
    assert "headway[metrics]" in str(error)
else:
    raise AssertionError("a page was asked for, and there is none")
"""


def test_without_the_library_nothing_is_counted_and_who_asks_for_a_page_is_told() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True, timeout=60)
