"""Whether the bus is there and carries what is given to it."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from headway.bus import make_bus
from headway.bus.contract import Bus, BusUnavailable
from headway.cli.checks.contract import Patient
from headway.clock import wait_for
from headway.model.errors import ConfigurationError
from headway.model.findings import Finding, fine, problem
from headway.plugins import redacted
from headway.settings import load

PATIENCE = 3.0

_MEND = "start the broker, or correct HEADWAY_BUS; meanwhile jobs go on, but workers hear of them up to a second later"


async def bus(patient: Patient) -> list[Finding]:
    """Call ourselves over it."""
    url = load({"store": patient.url}, environment=patient.environment).bus
    if not url:
        return [fine("bus", "none is named (HEADWAY_BUS): the store itself wakes the workers")]
    try:
        opened = make_bus(url, patience=PATIENCE)
        await opened.open()
    except (BusUnavailable, ConfigurationError) as error:
        return [problem("bus", str(error), _MEND)]
    try:
        return [await _call(opened, url, patient)]
    finally:
        await opened.close()


async def _call(opened: Bus, url: str, patient: Patient) -> Finding:
    heard, channel = asyncio.Event(), f"doctor {uuid4()}"
    await opened.on_call(channel, heard.set)
    began = patient.clock.monotonic()
    opened.call(channel)
    if await wait_for(patient.clock, heard, PATIENCE):
        return fine("bus", f"{redacted(url)} answers in {(patient.clock.monotonic() - began) * 1000:.0f} ms")
    return problem("bus", f"{redacted(url)} is there, but a call over it did not come back in {PATIENCE:g} s", _MEND)
