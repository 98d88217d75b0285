"""How long each phase of a request took."""

from __future__ import annotations

from headway.clock import Clock


class Timings:
    """Fills up while a request is under way; of several hops, the phases are added up."""

    __slots__ = ("_clock", "_start", "opened", "phases")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.monotonic()
        self.phases: dict[str, float] = {}
        self.opened = False
        """A connection was made for it; otherwise there was one."""

    def begin(self) -> float:
        return self._clock.monotonic()

    def end(self, phase: str, began: float) -> None:
        self.phases[phase] = self.phases.get(phase, 0.0) + self._clock.monotonic() - began

    def shape(self) -> dict[str, float | bool]:
        """Seconds: `dns`, `connect` (with the look-up, and TLS), `wait` for the first byte, `read`, and `total`."""
        told: dict[str, float | bool] = {name: round(seconds, 6) for name, seconds in self.phases.items()}
        told["total"] = round(self._clock.monotonic() - self._start, 6)
        told["reused"] = not self.opened
        return told
