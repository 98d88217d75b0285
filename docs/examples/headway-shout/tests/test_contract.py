"""Shouting keeps the promises of executors."""

import pytest
from headway_shout import Shout

from headway.clock import SystemClock
from headway.contracts.executors import *  # noqa: F403 - tests are found by their names
from headway.contracts.executors import Trial
from headway.executors.contract import Setup


@pytest.fixture
def executor() -> Shout:
    return Shout(Setup(clock=SystemClock()))


@pytest.fixture
def trial() -> Trial:
    return Trial(good='{"text": "hey"}', bad='{"text": ""}', endless='{"text": "hey", "seconds": 600}')
