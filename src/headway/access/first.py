"""The first start: an administrator's token that nobody else has, and a link to log in with."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from headway.access.secrets import new_secret, new_token
from headway.access.trail import Reach, entry
from headway.model.access import Caller, Fingerprint, Role, Subject, Token
from headway.model.errors import ConfigurationError, NameTaken
from headway.observe.logs import get_logger

ADMIN = "admin"
"""The name of the first token."""
FILE = "admin-token"
LINK_TTL = 900.0
SHORTEST = 8
SHORT = 20

_OWNER_ONLY = 0o600
_OTHERS = 0o077

log = get_logger("headway.access")


class Started(msgspec.Struct, frozen=True):
    """What came of the start."""

    first: bool
    """This start made the token."""
    file: Path | None = None
    """Where the token is kept."""


async def ensure_admin(reach: Reach, directory: Path, given: str | None) -> Started:
    """There is an administrator's token when this returns: the given one, or one that was there, or a new one."""
    if given is not None:
        return await _give(reach, given)
    if await _administered(reach):
        return Started(first=False)
    # The file first: a token that is stored and known to nobody would lock everybody out.
    file, secret = keep(directory)
    try:
        await _store(reach, secret, replace=False)
    except NameTaken:
        # Another process was quicker, on another machine: nobody can use this one.
        file.unlink()
        return Started(first=False)
    log.info("access.admin_token_made", file=str(file))
    return Started(first=True, file=file)


async def new_link(reach: Reach, subject: Subject, caller: Caller) -> str:
    """The code of a new login link; it can be exchanged once, within `LINK_TTL` seconds."""
    code = new_secret()
    thing = f"users/{subject.user}" if subject.user is not None else f"tokens/{subject.token}"
    line = entry(caller, "login-links.create", thing)
    await reach(lambda store: store.add_link(Fingerprint.of(code), subject, LINK_TTL, line))
    return code


def link(base: str, code: str) -> str:
    """In the fragment, which browsers send to nobody: no server and no log sees it on its way."""
    return f"{base.rstrip('/')}/#code={code}"


def keep(directory: Path) -> tuple[Path, str]:
    """A token in a file that only its owner may read; the one that is there, if there is."""
    file = prepare(directory) / FILE
    if file.exists():
        return file, read(file)
    secret, draft = new_token(), directory / f".{FILE}.{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(descriptor, "w") as out:
        out.write(f"{secret}\n")
        out.flush()
        os.fsync(out.fileno())
    try:
        # A link, not a rename: of two processes that start at once, the second takes over what the first has kept.
        os.link(draft, file)
    except FileExistsError:
        return file, read(file)
    finally:
        draft.unlink()
    return file, secret


def read(file: Path) -> str:
    """The token in the file. Raises ConfigurationError if others may read it, or may have written it."""
    status = file.stat()
    if status.st_mode & _OTHERS or status.st_uid not in (os.getuid(), 0):
        raise ConfigurationError(
            f"{file} is not this user's alone: chown and chmod 600 it, or remove it to be given a new token"
        )
    return file.read_text().strip()


def prepare(directory: Path) -> Path:
    """The data directory, made if it isn't there."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the data directory {directory} can't be made: {error.strerror}; name another with HEADWAY_DATA"
        ) from error
    return directory


async def _administered(reach: Reach) -> bool:
    """Whether somebody may administer already. Who removed the first token on purpose does not get another."""
    roles = {token.role for token in await reach(lambda store: store.tokens())}
    roles |= {user.role for user in await reach(lambda store: store.users()) if not user.disabled}
    return Role.ADMIN in roles


async def _give(reach: Reach, given: str) -> Started:
    if len(given) < SHORTEST:
        raise ConfigurationError(
            f"HEADWAY_ADMIN_TOKEN has less than {SHORTEST} characters: anybody could guess it; "
            "make one with: openssl rand -base64 32"
        )
    if len(given) < SHORT:
        log.warning("access.weak_admin_token", help="make one with: openssl rand -base64 32")
    await _store(reach, given, replace=True)
    return Started(first=False)


async def _store(reach: Reach, secret: str, *, replace: bool) -> None:
    line = entry(Caller("start"), "tokens.create", f"tokens/{ADMIN}")
    token = Token(name=ADMIN, role=Role.ADMIN)
    await reach(lambda store: store.create_token(token, Fingerprint.of(secret), line, replace=replace))
