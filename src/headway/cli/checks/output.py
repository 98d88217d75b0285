"""Whether the place for output takes what is given to it, and gives it back."""

from __future__ import annotations

from headway.cli.checks.contract import Patient
from headway.model.errors import ConfigurationError, OutputUnavailable
from headway.model.findings import Finding, fine, problem
from headway.output import open_outputs
from headway.settings import load

_MEND = "correct HEADWAY_OUTPUT, or the rights to it; meanwhile what jobs write can't be kept, or not be read"
_SHARED = "; all machines with workers or the API must share this directory"


async def output(patient: Patient) -> list[Finding]:
    """Write to it, and read that back."""
    url = load({"store": patient.url}, environment=patient.environment).output
    if not url or url == "store":
        return [fine("output", "is kept in the store (HEADWAY_OUTPUT names no other place)")]
    try:
        async with open_outputs(url, patient.store) as outputs:
            await outputs.prove()
    except (ConfigurationError, OutputUnavailable) as error:
        return [problem("output", str(error), _MEND)]
    return [fine("output", f"{url} can be written and read{_SHARED if url.startswith('file:') else ''}")]
