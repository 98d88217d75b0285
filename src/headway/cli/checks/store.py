"""Is the store fit for its work?"""

from __future__ import annotations

from uuid_utils.compat import uuid7

from headway.cli.checks.contract import Patient
from headway.model.findings import Finding, fine, problem, warning
from headway.model.words import duration

SLOW_WRITE = 0.25
APART = 2.0
FAR_APART = 60.0


async def write(patient: Patient) -> list[Finding]:
    """A real write, as durable as that of a job."""
    began = patient.clock.monotonic()
    await patient.store.take_duty("doctor", uuid7(), 0.0)
    took = patient.clock.monotonic() - began
    text = f"a durable write takes {took * 1000:.1f} ms"
    if took > SLOW_WRITE:
        return [warning("writing", text, "look at the disk and the load of the machine that holds the store")]
    return [fine("writing", text)]


async def clock(patient: Patient) -> list[Finding]:
    """The store's time decides what is due; times that callers work out are by their own."""
    before = patient.clock.now()
    theirs = await patient.store.now()
    after = patient.clock.now()
    apart = (theirs - (before + (after - before) / 2)).total_seconds()
    text = f"this machine and the store are {duration(abs(apart))} apart"
    if abs(apart) < APART:
        return [fine("clock", text)]
    level = problem if abs(apart) > FAR_APART else warning
    which = "behind" if apart > 0 else "ahead of"
    return [level("clock", f"{text}: this one is {which} the store", "let both machines set their clocks by NTP")]


async def engine(patient: Patient) -> list[Finding]:
    """What only the engine knows: settings, rights, disk, dead rows."""
    return await patient.store.examine()
