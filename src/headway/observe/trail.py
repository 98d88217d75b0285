"""The trail that a job leaves in the logs of all processes it passes through: these three lines, in one form.

| event               | told by whom                     | fields besides component, job_id, correlation_id |
|---------------------|----------------------------------|--------------------------------------------------|
| `message.received`  | the component that acts on it    | `type`                                           |
| `job.state_changed` | whoever had the store record it  | `from`, `to`, `trace_id` if there is one         |
| `message.sent`      | the component that wrote it      | `type`                                           |

All are of level info. Whoever greps for a correlation id, or for a job's id, sees the job's whole way.
"""

from __future__ import annotations

import logging
from uuid import UUID

from headway.model.states import State
from headway.observe.logs import get_logger

log = get_logger("headway.components")


def heard() -> bool:
    """Whether anybody listens: asked once for a whole batch."""
    return log.enabled(logging.INFO)


def received(component: str, *, type: str, job_id: UUID | None, correlation_id: str | None) -> None:  # noqa: A002 - the message's own word
    """A message came in, and this component is the one to act on it."""
    if heard():
        log.write(logging.INFO, "message.received", {**_of(component, job_id, correlation_id), "type": type})


def sent(component: str, *, type: str, job_id: UUID | str | None, correlation_id: str | None) -> None:  # noqa: A002 - the message's own word
    """A message, or a reply, has been handed on."""
    if heard():
        log.write(logging.INFO, "message.sent", {**_of(component, job_id, correlation_id), "type": type})


def changed(  # noqa: PLR0913 - the fields of a line
    component: str,
    job_id: UUID,
    *,
    before: State | None,
    after: State,
    correlation_id: str | None = None,
    traceparent: str | None = None,
) -> None:
    """The store has recorded a change; a job that is new comes from nowhere. A job with a trace tells its id."""
    if heard():
        line = _of(component, job_id, correlation_id)
        line["from"] = before and before.value
        line["to"] = after.value
        if traceparent:
            line["trace_id"] = traceparent.split("-")[1]
        log.write(logging.INFO, "job.state_changed", line)


def _of(component: str, job_id: UUID | str | None, correlation_id: str | None) -> dict[str, str | None]:
    """A job without a correlation id is its own."""
    job = str(job_id) if job_id else None
    return {"component": component, "job_id": job, "correlation_id": correlation_id or job}
