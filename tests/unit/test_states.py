"""The one table of a job's life."""

from __future__ import annotations

import pytest

from headway.model.states import HELD, OPEN, TERMINAL, TRANSITIONS, Label, State, diagram, label, may_follow


def test_every_state_has_its_row_and_leads_somewhere() -> None:
    assert TRANSITIONS.keys() == set(State)
    assert all(TRANSITIONS[state] for state in State)


def test_ended_and_open_part_the_states() -> None:
    assert set(State) == TERMINAL | OPEN
    assert not TERMINAL & OPEN
    assert HELD <= OPEN


def test_only_a_retry_leads_out_of_an_end() -> None:
    assert all(TRANSITIONS[state] == {State.SCHEDULED, State.BLOCKED} for state in TERMINAL)


def test_a_job_being_cancelled_never_goes_back_to_wait() -> None:
    assert not may_follow(State.CANCELLING, State.SCHEDULED)
    assert not may_follow(State.CANCELLING, State.FAILED)


def test_every_state_can_be_reached_and_can_come_to_an_end() -> None:
    for start in OPEN:
        assert TERMINAL & _reachable(start), start


@pytest.mark.parametrize(
    ("due", "failures", "wait_reason", "expected"),
    [
        (True, 0, None, Label.PENDING),
        (False, 0, None, State.SCHEDULED),
        (True, 1, None, Label.RETRYING),
        (True, 1, "no_code", Label.PARKED),
    ],
)
def test_a_waiting_job_has_the_most_telling_label(
    due: bool, failures: int, wait_reason: str | None, expected: str
) -> None:
    assert label(State.SCHEDULED, due=due, failures=failures, wait_reason=wait_reason) == expected


def test_other_states_are_their_own_label() -> None:
    others = set(State) - {State.SCHEDULED}
    assert all(label(state, due=True, failures=3, wait_reason="no_code") == state for state in others)


def test_the_diagram_shows_the_whole_table() -> None:
    shown = diagram()
    assert all(f"{before} --> {after}" in shown for before in State for after in TRANSITIONS[before])


def _reachable(start: State) -> set[State]:
    found, todo = set[State](), [start]
    while todo:
        state = todo.pop()
        if state not in found:
            found.add(state)
            todo += TRANSITIONS[state]
    return found
