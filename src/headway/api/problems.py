"""Refusals as problem details (RFC 9457): `type`, `title`, `status` and `code` for programs, `detail` for people,
`field` for the part to mend."""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID

import msgspec
from starlette.responses import Response

from headway.model.errors import (
    HeadwayError,
    Malformed,
    NotIdentified,
    StoreUnavailable,
    Throttled,
)

PROBLEM = "application/problem+json"
STATUSES = {
    "malformed": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "conflict": 409,
    "illegal_move": 409,
    "gone": 410,
    "version_conflict": 412,
    "precondition_failed": 412,
    "too_large": 413,
    "unsupported_media_type": 415,
    "range_not_satisfiable": 416,
    "invalid_job": 422,
    "invalid_request": 422,
    "invalid_schedule": 422,
    "unknown_function": 422,
    "secret_not_found": 422,
    "throttled": 429,
    "seal_broken": 503,
    "vault_locked": 503,
    "unavailable": 503,
}
"""By the `code` of an error; one that isn't here is our own fault: 500."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong. `code` is for programs, `detail` for people, `field` is what to mend."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: str | None = None
    conflicting_job_id: UUID | None = None


def status_of(error: HeadwayError) -> int:
    return STATUSES.get(error.code, 500)


def problem_of(error: HeadwayError) -> Problem:
    """The error as problem details."""
    status = status_of(error)
    return Problem(
        type=f"urn:headway:problem:{error.code}",
        title=HTTPStatus(status).phrase,
        status=status,
        code=error.code,
        detail=str(error),
        field=getattr(error, "field", None),
        conflicting_job_id=getattr(error, "conflicting_job_id", None),
    )


def refusal(error: HeadwayError) -> Response:
    """The answer to a request that can't be fulfilled."""
    problem = problem_of(error)
    return Response(msgspec.json.encode(problem), problem.status, headers=_headers(error, problem), media_type=PROBLEM)


def _headers(error: HeadwayError, problem: Problem) -> dict[str, str]:
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, NotIdentified):
        headers["WWW-Authenticate"] = 'Bearer realm="headway"'
    if isinstance(error, StoreUnavailable):
        headers["Retry-After"] = "1"
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(max(1, round(error.wait)))
    if isinstance(error, Malformed) or problem.status == 413:
        # The rest of the request may not have been read: this connection can't be used for another.
        headers["Connection"] = "close"
    return headers
