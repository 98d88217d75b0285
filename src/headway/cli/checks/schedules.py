"""Are schedules fired?"""

from __future__ import annotations

from headway.cli.checks.contract import Patient
from headway.model.findings import Finding, fine, problem, warning
from headway.model.words import count, duration, listed
from headway.store.scripts.schedules import ScheduleFilter, Unreadable

LATE = 60.0
"""Seconds after which a due schedule should have been fired by whoever is there."""
LOOKED_AT = 1000
"""So many are read one by one."""


async def schedules(patient: Patient) -> list[Finding]:
    """Active ones that nobody fires, late ones, and such as can't be read."""
    found, schedulers = await patient.store.schedule_stats(), await patient.store.schedulers()
    told = f"{count(found.schedules, 'schedule')}, {found.active:,} active, {count(schedulers, 'scheduler')}"
    if found.active and not schedulers:
        return [
            problem("schedules", f"{told}: nobody fires them", "start one: headway scheduler, or a worker --scheduler"),
            *await _unreadable(patient),
        ]
    if found.late > LATE:
        text = f"{told}; one is due for {duration(found.late)} and not fired"
        return [warning("schedules", text, "see the schedulers' logs"), *await _unreadable(patient)]
    return [fine("schedules", told), *await _unreadable(patient)]


async def _unreadable(patient: Patient) -> list[Finding]:
    found = await patient.store.find_schedules(ScheduleFilter(limit=LOOKED_AT))
    names = [one.name for one in found if isinstance(one, Unreadable)]
    if not names:
        return []
    mend = "upgrade headway here, or delete them: headway schedules delete NAME"
    return [problem("schedules", f"{listed(names)} can't be read by this version and don't fire", mend)]
