"""Users: people with a name, a role and a password."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from headway.access.managing import NAME, change_user, create_user
from headway.access.passwords import LONGEST, SHORTEST
from headway.access.trail import entry
from headway.api.call import Call, answer, nothing
from headway.api.table import Answer, Audit, Body, Route
from headway.model.access import Permission, Role, User
from headway.model.errors import UserNotFound

Password = Annotated[str, Meta(min_length=SHORTEST, max_length=LONGEST)]


class UserShape(msgspec.Struct, frozen=True, kw_only=True):
    """A user. The password is never shown."""

    name: str
    role: Role
    disabled: bool
    has_password: bool
    created_at: datetime | None
    created_by: str | None
    changed_at: datetime | None


class Users(msgspec.Struct, frozen=True):
    """All users, by name."""

    items: list[UserShape]
    cursor: str | None = None


class NewUser(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A user to be made. Without a password they come by login links only."""

    name: Annotated[str, Meta(pattern=NAME)]
    role: Role
    password: Password | None = None


class UserChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be changed; the rest stays."""

    role: Role | UnsetType = UNSET
    password: Password | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET


EXAMPLE = {
    "name": "ann",
    "role": "operator",
    "disabled": False,
    "has_password": True,
    "created_at": "2030-01-31T06:00:00Z",
    "created_by": "token:admin",
    "changed_at": "2030-01-31T06:00:00Z",
}


def shape(user: User) -> UserShape:
    return UserShape(
        name=user.name,
        role=user.role,
        disabled=user.disabled,
        has_password=user.password is not None,
        created_at=user.created_at,
        created_by=user.created_by,
        changed_at=user.changed_at,
    )


async def find(call: Call) -> Response:
    return answer(Users([shape(user) for user in await call.store(lambda store: store.users())]))


async def show(call: Call) -> Response:
    name = call.path("name")
    user = await call.store(lambda store: store.user(name))
    if user is None:
        raise UserNotFound(name)
    return answer(shape(user))


async def create(call: Call) -> Response:
    body: NewUser = call.body
    reach = call.service.app.client.call_patiently
    user = await create_user(reach, body.name, body.role, body.password, call.caller)
    return answer(shape(user), 201, {"Location": f"/api/v1/users/{user.name}"})


async def change(call: Call) -> Response:
    """Whatever is changed, the user's sessions end."""
    body: UserChange = call.body
    changes = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
    user = await change_user(call.service.app.client.call_patiently, call.path("name"), changes, call.caller)
    call.service.doorkeeper.forget()
    return answer(shape(user))


async def delete(call: Call) -> Response:
    name = call.path("name")
    line = entry(call.caller, "users.delete", f"users/{name}")
    await call.store(lambda store: store.delete_user(name, line))
    call.service.doorkeeper.forget()
    return nothing()


_reading = partial(Route, method="GET", tag="Access", permission=Permission.ADMINISTER)
_changing = partial(Route, tag="Access", permission=Permission.ADMINISTER, audit=Audit.OWN)

ROUTES = [
    _reading(
        path="/users",
        summary="All users",
        handler=find,
        answers=[Answer(form=Users, words="By name.", example={"items": [EXAMPLE], "cursor": None})],
    ),
    _changing(
        method="POST",
        path="/users",
        summary="Make a user",
        handler=create,
        secret=True,
        body=Body(
            form=NewUser,
            examples={"ann": {"name": "ann", "role": "operator", "password": "correct horse battery"}},
        ),
        answers=[Answer(status=201, form=UserShape, words="The new user.", example=EXAMPLE)],
        problems=[409],
    ),
    _reading(
        path="/users/{name}",
        summary="Look at a user",
        handler=show,
        answers=[Answer(form=UserShape, words="The user.", example=EXAMPLE)],
    ),
    _changing(
        method="PATCH",
        path="/users/{name}",
        summary="Change a user's role or password, or lock them out",
        handler=change,
        secret=True,
        description="Whatever is changed, the user's sessions end within five seconds.",
        body=Body(form=UserChange, examples={"role": {"role": "viewer"}, "lock": {"disabled": True}}),
        answers=[Answer(form=UserShape, words="The user as it is now.", example=EXAMPLE)],
        problems=[409],
    ),
    _changing(
        method="DELETE",
        path="/users/{name}",
        summary="Remove a user",
        handler=delete,
        answers=[Answer(status=204, words="The user and their sessions are gone.")],
    ),
]
