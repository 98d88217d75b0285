"""How many jobs one caller may submit in a time."""

from __future__ import annotations

import pytest

from headway.access.allowance import Allowance, parse_rate
from headway.clock import FakeClock
from headway.model.errors import ConfigurationError, Throttled

TEN = parse_rate("10/s")


def test_each_caller_has_an_allowance_of_its_own_that_comes_back_with_time() -> None:
    clock = FakeClock()
    allowance = Allowance(TEN, clock)
    for _ in range(10):
        allowance.take("token:flood", 1)
    with pytest.raises(Throttled, match="token:flood may submit 10 jobs in 1 s") as refused:
        allowance.take("token:flood", 1)
    assert refused.value.wait == pytest.approx(0.1)
    allowance.take("token:other", 1)
    clock.advance(0.1)
    allowance.take("token:flood", 1)
    with pytest.raises(Throttled):
        allowance.take("token:flood", 1)


def test_a_batch_above_the_rate_goes_and_is_made_up_for() -> None:
    clock = FakeClock()
    allowance = Allowance(TEN, clock)
    allowance.take("token:ci", 100)
    with pytest.raises(Throttled) as refused:
        allowance.take("token:ci", 1)
    assert refused.value.wait == pytest.approx(9.1)
    clock.advance(9.1)
    allowance.take("token:ci", 1)


def test_without_a_rate_nothing_is_counted() -> None:
    allowance = Allowance(parse_rate(None), FakeClock())
    for _ in range(1000):
        allowance.take("token:ci", 1000)


def test_a_rate_that_is_none_is_refused_with_the_name_of_the_setting() -> None:
    with pytest.raises(ConfigurationError, match="HEADWAY_SUBMIT_RATE: rate must look like"):
        parse_rate("fast")
