"""How many jobs one caller may submit in a time, so that the flood of one program is not the drought of the others."""

from __future__ import annotations

from headway.clock import Clock
from headway.model.errors import ConfigurationError, InvalidJob, Throttled
from headway.model.limits import Rate


def parse_rate(given: str | None) -> Rate | None:
    """The rate that the setting asks for. Raises ConfigurationError."""
    try:
        return Rate.parse(given) if given is not None else None
    except InvalidJob as error:
        raise ConfigurationError(f"HEADWAY_SUBMIT_RATE: {error}") from error


class Allowance:
    """What each caller has left, in this process. Without a rate everybody may as much as they like."""

    def __init__(self, rate: Rate | None, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._paid_until: dict[str, float] = {}
        """When the rate has made up for all that the caller has submitted."""

    def take(self, caller: str | None, jobs: int) -> None:
        """So many jobs are about to be submitted. A batch goes if anything is left, and is made up for before the
        next: a rate below its size would shut it out for ever. Raises Throttled."""
        if self._rate is None or caller is None:
            return
        now, rate = self._clock.monotonic(), self._rate
        paid_until = max(self._paid_until.get(caller, now), now)
        wait = paid_until + rate.period / rate.count - rate.period - now
        if wait > 0:
            raise Throttled(f"{caller} may submit {rate.count:,} jobs in {rate.period:g} s: go on a little later", wait)
        self._paid_until[caller] = paid_until + jobs * rate.period / rate.count
