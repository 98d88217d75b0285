"""The page of metrics: this process's numbers, and what the whole store looks like."""

from __future__ import annotations

from starlette.responses import Response

from headway.access.origin import is_forwarded, is_loopback
from headway.api.call import Call
from headway.api.table import PUBLIC, Answer, Route
from headway.model.access import Permission
from headway.model.errors import Forbidden
from headway.observe import page


async def metrics(call: Call) -> Response:
    """Anybody on this machine may look; others show who they are."""
    if not _from_here(call):
        principal = await call.service.gate.identify(call)
        if not principal.may(Permission.READ):
            raise Forbidden(principal.name, principal.role, Permission.READ)
    found = [*page.own_series(), *await call.service.census.series()]
    content_type, text = page.written(found, call.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


def _from_here(call: Call) -> bool:
    """Whether it comes from this machine, and by no proxy that speaks for others."""
    peer = call.request.client
    return peer is not None and is_loopback(peer.host) and not is_forwarded(call.headers)


ROUTES = [
    Route(
        method="GET",
        path="/metrics",
        root=True,
        handler=metrics,
        # Who may is decided by where the request comes from.
        permission=PUBLIC,
        summary="Metrics for Prometheus",
        description="Without a token only from this machine itself. What the series mean: docs/operating.md.",
        tag="Health",
        answers=[Answer(words="The page, in the form that the asker prefers.", content_type="text/plain")],
        problems=[401],
    )
]
