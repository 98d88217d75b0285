"""The table of states, walked arrow by arrow."""

from itertools import pairwise

import pytest

from headway.contracts.stores.house import House
from headway.contracts.stores.walk import STARTS, Path, Walker, every_move, paths
from headway.model.states import TRANSITIONS, State, may_follow

LENGTH = 5


@pytest.mark.parametrize("start", STARTS)
async def test_every_legal_path_can_be_walked_and_is_told_by_the_history(house: House, start: State) -> None:
    for path in paths(start, LENGTH):
        walker = Walker(house)
        await walker.walk(path)
        assert await house.told(walker.job_id) == walker.seen, path


def test_the_paths_walked_use_every_arrow_of_the_table() -> None:
    walked = {pair for start in STARTS for path in paths(start, LENGTH) for pair in pairwise(path)}
    assert walked == {(before, after) for before in State for after in TRANSITIONS[before]}


def ways_to(state: State) -> list[Path]:
    """The shortest way, and the shortest on which a worker has held the job before."""
    ways = [path for length in range(1, 6) for start in STARTS for path in paths(start, length) if path[-1] is state]
    return [ways[0], *[way for way in ways if State.RUNNING in way[:-1]][:1]]


@pytest.mark.parametrize("state", list(State))
async def test_no_move_makes_a_step_that_the_table_does_not_allow(house: House, state: State) -> None:
    for way in ways_to(state):
        scout = Walker(house)
        await scout.walk(way)
        for name in every_move(scout):
            walker = Walker(house)
            await walker.walk(way)
            await every_move(walker)[name]()
            after = await house.state(walker.job_id)
            assert after is state or may_follow(state, after), f"{name}: {state} → {after}"


async def test_the_history_names_who_asked_and_why(house: House) -> None:
    claim = await house.running(created_by="bob")
    await house.cancel(claim.id, by="ann", reason="wrong address")
    await house.fail(claim)
    house.clock.advance(1)
    await house.retry(claim.id, by="eve")

    lines = [(line.what, line.by, line.detail) for line in await house.store.history(claim.id)]

    assert lines[0] == ("scheduled", "bob", None)
    assert ("cancel", "ann", "wrong address") in lines
    assert ("retry", "eve", None) in lines


async def test_a_cancel_of_a_waiting_job_is_one_step_that_names_who_asked(house: House) -> None:
    job_id = await house.submit()
    assert await house.cancel(job_id, by="ann", reason="not needed") is State.CANCELLED
    assert [line.by for line in await house.store.history(job_id) if line.what == "cancel"] == ["ann"]


async def test_a_job_whose_start_is_moved_keeps_the_time_that_was_asked_for(house: House) -> None:
    job_id = await house.submit(run_at=house.after(60))
    await house.schedule(job_id, house.after(120))
    job = await house.get(job_id)
    assert (job.desired_at, job.run_at) == (house.after(60), house.after(120))
    assert "edit" in [line.what for line in await house.store.history(job_id)]


async def test_an_unknown_job_has_no_history(house: House) -> None:
    assert await house.store.history(house.new_id()) == []
