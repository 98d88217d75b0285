"""What a script's next attempt is told of those before it, by every store: whatever nobody saw end may still run."""

from __future__ import annotations

from typing import Any

import pytest

from headway.executors.script.loading import StoredPast
from headway.executors.script.task import Before
from headway.model.job import Claim, ErrorInfo, Finish, Release
from headway.model.states import Outcome
from tests.contract.house import House

ENDED = ErrorInfo("ScriptFailed", "the script ended with exit code 7")
AWAY = ErrorInfo("Unreachable", "nobody answers")


async def moved(house: House, claim: Claim, how: str) -> None:
    """An attempt ends, and the job waits for the next one."""
    match how:
        case "lost":
            house.clock.advance(100)
            await house.store.rescue()
        case "given back":
            await house.store.release([Release.give_back(claim)])
        case "ended":
            await house.store.release([Release.retry(claim, 1.0, 0.0, ENDED, Outcome.FAILED)])
        case "away":
            await house.store.release([Release.retry(claim, 1.0, 0.0, AWAY, Outcome.FAILED)])
        case "unknown":
            await house.store.finish([Finish.failed(claim, 1.0, AWAY, Outcome.UNKNOWN)])
            await house.store.retry([claim.id], by="test")
        case _:
            raise AssertionError(how)
    house.clock.advance(1)


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ([], Before()),
        (["lost"], Before((1,))),
        (["lost", "away"], Before((1,))),
        (["unknown"], Before((1,))),
        (["unknown", "lost", "away"], Before((1, 2))),
        (["lost", "ended"], Before()),
        (["ended", "lost"], Before((2,))),
        (["given back"], Before(again=True)),
        (["lost", "given back"], Before((1,), again=True)),
        (["given back", "ended"], Before()),
        (["given back", "lost"], Before((1,))),
    ],
)
async def test_what_nobody_saw_end_may_still_run(house: House, ends: list[str], told: Any) -> None:
    await house.submit(kind="script")
    for how in ends:
        [claim] = await house.claim()
        house.clock.advance(1)
        await moved(house, claim, how)
    [claim] = await house.claim()
    assert await StoredPast(house.store)(claim) == told


async def test_where_a_script_may_have_begun_is_kept_in_mind(house: House) -> None:
    await house.submit(kind="script")
    past = StoredPast(house.store)
    first = await house.claim_one()
    begun = house.now
    assert await past.note(first, "here")
    await moved(house, first, "lost")
    assert not await past.note(first, "nowhere")
    second = await house.claim_one()
    assert await past.note(second, "there")
    await moved(house, second, "lost")
    claim = await house.claim_one()
    assert await past(claim) == Before((1, 2), places=("here", "there"), since=begun)
    await moved(house, claim, "ended")
    claim = await house.claim_one()
    assert await past(claim) == Before()
    begun = house.now
    assert await past.note(claim, "elsewhere")
    await moved(house, claim, "given back")
    assert await past(await house.claim_one()) == Before(again=True, places=("elsewhere",), since=begun)
