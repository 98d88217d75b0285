"""Something to look at, for those who have nothing yet."""

from __future__ import annotations

from starlette.responses import Response

from headway.api.call import Call, nothing
from headway.api.table import Answer, Route
from headway.model.access import Permission
from headway.model.errors import InvalidRequest


async def seed(call: Call) -> Response:
    """Jobs and schedules of a shop that there isn't. Only where a worker is in the same process can they be run."""
    if call.service.seed is None:
        raise InvalidRequest("this process runs no jobs, so it can't show any: start `headway up --demo` for that")
    await call.service.seed()
    return nothing()


ROUTES = [
    Route(
        method="POST",
        path="/demo",
        handler=seed,
        permission=Permission.ADMINISTER,
        summary="Fill the store with a demo",
        description="Jobs and schedules of a shop that there isn't, run by this process.",
        tag="Demo",
        problems=[422],
        answers=[Answer(status=204, words="They are on their way.")],
    )
]
