"""One route of the table: what it is for, who may use it, what it takes, what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from headway.model.access import Permission
from headway.model.errors import ConfigurationError

if TYPE_CHECKING:
    from starlette.responses import Response

    from headway.api.call import Call

API = "/api/v1"
KIB = 1024
MIB = 1024 * KIB
BODY_LIMIT = MIB
BATCH_LIMIT = 32 * MIB
JSON = "application/json"


class Public(Enum):
    """The permission of routes that anybody may use, whoever they are."""

    PUBLIC = "public"


PUBLIC = Public.PUBLIC


class Audit(Enum):
    """When a route's line is written into the audit log."""

    FIRST = "first"
    """Before anything is changed: whatever dies, no change goes unrecorded."""
    AFTER = "after"
    """When the thing is made, and has a name."""
    SOON = "soon"
    """Within a second, lines of one caller as one: for what happens thousands of times, and is signed elsewhere."""
    OWN = "own"
    """By the handler, in the transaction that makes the change."""
    NEVER = "never"
    """It changes nothing."""


Handler = Callable[["Call"], Awaitable["Response"]]


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What a route takes: a struct, or data that the handler reads itself and `schema` describes."""

    form: type[msgspec.Struct] | None = None
    schema: Mapping[str, Any] | str | None = None
    """JSON Schema, or the name of one that `openapi.py` makes: `JobBody`, `BatchBody`, `ScheduleBody`."""
    content_type: str = JSON
    limit: int = BODY_LIMIT
    required: bool = True
    bytes: bool = False
    """The handler decodes it, where a whole document would be too much."""
    raw: bool = False
    """Left to the handler, which reads `call.request` (a stream, a form) and sees to the limit."""
    examples: Mapping[str, Any] = {}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a route answers."""

    status: int = 200
    words: str = "Done."
    form: Any = None
    """A struct (or a type made of structs); None: no content, or content that is no JSON."""
    content_type: str = JSON
    schema: Mapping[str, Any] | None = None
    example: Any = None


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the table. `path` is below /api/v1 unless `root` says otherwise."""

    method: str
    path: str
    handler: Handler
    permission: Permission | Public | None = None
    summary: str
    description: str | None = None
    tag: str = "Jobs"
    query: type[msgspec.Struct] | None = None
    body: Body | None = None
    answers: Sequence[Answer] = ()
    problems: Sequence[int] = ()
    """Statuses of refusals, beyond those that every such route has."""
    headers: Mapping[str, str] = {}
    """Request headers that it heeds, with their meaning."""
    secret: bool = False
    """Takes or shows credentials or scripts: refused where others could read them on their way."""
    audit: Audit | None = None
    """None: reading is not audited, making a thing `AFTER`, everything else `FIRST`."""
    told: Sequence[str] = ()
    """Fields of the body that its line repeats: what is to be changed. Never one that may hold a secret."""
    root: bool = False
    hidden: bool = False
    """Not in the document: for pages and their files."""

    @property
    def sensitive(self) -> bool:
        """Whether the line must be one that others can't read."""
        return self.secret or self.permission is Permission.READ_SCRIPTS

    @property
    def full_path(self) -> str:
        return self.path if self.root else f"{API}{self.path}"


def reading(path: str, handler: Handler, summary: str, **more: Any) -> Route:
    """An entry that shows something to all who may read."""
    return Route(method="GET", path=path, handler=handler, permission=Permission.READ, summary=summary, **more)


def check(routes: Sequence[Route]) -> None:
    """Refuse a table with a route that says not who may use it, or that is there twice."""
    seen: set[tuple[str, str]] = set()
    for route in routes:
        name = f"{route.method} {route.full_path}"
        if route.permission is None:
            raise ConfigurationError(
                f"the route {name} declares no permission: give it one of {', '.join(Permission)}, or PUBLIC"
            )
        if (route.method, route.full_path) in seen:
            raise ConfigurationError(f"the route {name} is in the table twice")
        seen.add((route.method, route.full_path))
