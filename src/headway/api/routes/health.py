"""Whether the process lives, and whether it is ready to serve."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from headway.api.call import Call, answer
from headway.api.readiness import Ready
from headway.api.table import PUBLIC, Answer, Route

_NO_STORE = {"Cache-Control": "no-store"}


class Health(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str


async def healthz(_call: Call) -> Response:
    return answer(Health("ok"), headers=_NO_STORE)


async def readyz(call: Call) -> Response:
    ready = await call.service.readiness.look()
    if call.service.closing.is_set():
        ready = Ready(False, ["this process is ending"])
    return answer(ready, 200 if ready.ready else 503, _NO_STORE)


ROUTES = [
    Route(
        method="GET",
        path="/healthz",
        root=True,
        handler=healthz,
        permission=PUBLIC,
        summary="Whether this process lives",
        tag="Health",
        answers=[Answer(form=Health, words="It does.", example={"status": "ok"})],
    ),
    Route(
        method="GET",
        path="/readyz",
        root=True,
        handler=readyz,
        permission=PUBLIC,
        summary="Whether this process can do its work",
        description="False when the store can't be reached, and when claiming stalls: jobs are due and nothing runs.",
        tag="Health",
        answers=[
            Answer(form=Ready, words="It can.", example={"ready": True, "reasons": []}),
            Answer(
                status=503,
                form=Ready,
                words="It can't.",
                example={"ready": False, "reasons": ["the store did not answer within 3 s"]},
            ),
        ],
    ),
]
