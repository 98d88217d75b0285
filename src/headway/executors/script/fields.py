"""What a body of kind `script` says, and what the executor reads of it."""

from __future__ import annotations

import re
import shlex
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from headway.model.errors import InvalidJob, InvalidRequest
from headway.model.sealed import Credential
from headway.model.target import Target

SCRIPT_LIMIT = 1024 * 1024
FILES_LIMIT = 1024 * 1024
DEFAULT_INTERPRETER = ("/bin/sh",)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROGRAM = re.compile(r"/?[A-Za-z0-9._+-]+(/[A-Za-z0-9._+-]+)*")


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Content that is in the store already: an upload, or what an attachment of another job or schedule holds."""

    upload: UUID | None = None
    attachment: UUID | None = None

    @property
    def id(self) -> UUID | None:
        return self.upload or self.attachment


class Brought(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file to bring along."""

    text: str | None = None
    base64: str | None = None
    upload: UUID | None = None
    attachment: UUID | None = None


class SecretValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A named secret as the value of a variable."""

    secret: str
    prefix: str = ""


class InlineCredential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What opens a target that is only for this job."""

    password: str | None = None
    private_key: str | None = None
    passphrase: str | None = None
    attachment: UUID | None = None

    def __repr__(self) -> str:
        return "InlineCredential(…)"

    def credential(self) -> Credential:
        return Credential(password=self.password, private_key=self.private_key, passphrase=self.passphrase)


class InlineTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A target for this job alone; its credential is sealed, and gone with the job."""

    host: str
    user: str
    host_key: str
    port: Annotated[int, Meta(ge=1, le=65535)] = 22
    credential: InlineCredential | None = None
    directory: str = "~/.headway"
    connect_timeout: Annotated[float, Meta(gt=0, le=300)] = 10.0

    def target(self) -> Target:
        """Raises InvalidRequest."""
        return Target(
            id=_NO_ID,
            name="inline",
            host=self.host,
            port=self.port,
            user=self.user,
            host_key=self.host_key,
            directory=self.directory,
            connect_timeout=self.connect_timeout,
        )


_NO_ID = UUID(int=0)

Destination = str | InlineTarget
_TARGET = (
    'the name of a target, or an object such as {"host": "10.0.0.7", "user": "deploy", '
    '"host_key": "ssh-ed25519 AAAA…", "credential": {"password": "…"}}'
)
_FILES = (
    'an object of files by name, such as {"config.ini": "text", "logo.png": {"base64": "…"}, "a": {"upload": "id"}}'
)


class ScriptFields(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A script, as it is asked for."""

    target: Annotated[Destination, Meta(description=_TARGET)]
    script: Annotated[str | Kept | UnsetType, Meta(description='the text of a script, or {"upload": "id"}')] = UNSET
    script_from: Annotated[UUID | UnsetType, Meta(description="the id of a job whose script to use")] = UNSET
    interpreter: Annotated[
        str | list[str] | None,
        Meta(description='a program such as "/bin/bash" or "python3 -u"; by default the script\'s #! line, or /bin/sh'),
    ] = None
    args: Annotated[list[str], Meta(description='a list of texts, such as ["--fast", "a b"]')] = []
    env: Annotated[
        dict[str, str | SecretValue],
        Meta(description='an object such as {"MODE": "fast", "TOKEN": {"secret": "name"}}'),
    ] = {}
    secrets: Annotated[
        list[str], Meta(description="a list of names of secrets; each is a file in the directory $HEADWAY_SECRETS")
    ] = []
    files: Annotated[dict[str, str | Brought], Meta(description=_FILES)] = {}
    collect: Annotated[
        list[str], Meta(description='a list of patterns of files to keep, such as ["*.log", "/var/log/app/*.txt"]')
    ] = []
    cwd: Annotated[
        str | None, Meta(description="the directory to start in; by default a fresh one, where the files are")
    ] = None
    check_syntax: Annotated[bool, Meta(description="true to refuse a script that its interpreter can't parse")] = False
    probe: Annotated[
        bool, Meta(description="false to submit without asking a worker whether it reaches the target")
    ] = True


class ScriptPayload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is stored with the job; scripts, files and credentials are attachments."""

    target: Destination
    interpreter: tuple[str, ...] | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str | SecretValue] = {}
    secrets: tuple[str, ...] = ()
    collect: tuple[str, ...] = ()
    cwd: str | None = None


class ProbeFields(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A look at a target from a worker."""

    target: Annotated[Destination, Meta(description=_TARGET)]


def given_interpreter(said: str | list[str] | None) -> tuple[str, ...] | None:
    """The words of an interpreter. Raises InvalidJob."""
    if said is None:
        return None
    try:
        words = tuple(shlex.split(said)) if isinstance(said, str) else tuple(said)
    except ValueError as error:
        raise InvalidJob(f"interpreter can't be read: {error}", field="interpreter") from None
    if not words or not _PROGRAM.fullmatch(words[0]):
        raise InvalidJob(
            f"interpreter must be a program such as /bin/bash or python3, not {str(said)[:100]!r}", field="interpreter"
        )
    for word in words:
        check_text(word, "interpreter")
    return words


def command_of(script: bytes, given: tuple[str, ...] | None) -> tuple[str, ...]:
    """What runs a script: what is said, else its first line, as the kernel reads it. Raises InvalidJob."""
    if given is not None:
        return given
    if not script.startswith(b"#!"):
        return DEFAULT_INTERPRETER
    line = script[2:].partition(b"\n")[0].decode(errors="replace")
    if line.endswith("\r"):
        raise InvalidJob("the script has the line ends of Windows: save it with those of Unix (LF)", field="script")
    program, _, argument = line.strip().partition(" ")
    if not program.startswith("/") or not _PROGRAM.fullmatch(program):
        raise InvalidJob(
            f"the script's first line must name a program by its whole path, such as #!/bin/bash, not {line[:80]!r}",
            field="script",
        )
    return (program, argument.strip()) if argument.strip() else (program,)


def check_script(content: bytes) -> None:
    """Not empty, text, not too long, with a sensible first line. Raises InvalidJob."""
    if not content.strip():
        raise InvalidJob("the script is empty", field="script")
    if len(content) > SCRIPT_LIMIT:
        raise InvalidJob(f"the script takes {len(content):,} bytes, the limit is {SCRIPT_LIMIT:,}", field="script")
    if b"\0" in content:
        raise InvalidJob("the script is no text: it contains NUL bytes", field="script")
    command_of(content, None)


def check_text(text: str, field: str) -> None:
    """Whether it can be handed to a program. Raises InvalidJob."""
    if "\0" in text:
        raise InvalidJob(f"{field} must not contain NUL characters", field=field)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJob(f"{field} contains half of a surrogate pair, which is no character", field=field) from None


def check_variable(name: str) -> None:
    """Whether it can be the name of a variable. Raises InvalidJob."""
    if not _VARIABLE.fullmatch(name) or name.startswith("HEADWAY_"):
        raise InvalidJob(
            f"env.{name[:60]} must be letters, digits and '_', not begin with a digit, and not with HEADWAY_",
            field=f"env.{name[:60]}",
        )


def check_file_name(name: str) -> None:
    """A path below the directory in which the script starts. Raises InvalidJob."""
    parts = name.split("/")
    if not name or len(name) > 200 or any(part in ("", ".", "..") for part in parts) or not name.isprintable():
        raise InvalidJob(
            f"files.{name[:60]} must be a relative path without '.' and '..', such as conf/app.ini",
            field=f"files.{name[:60]}",
        )


def inline(target: Destination) -> InlineTarget | None:
    """Checks it. Raises InvalidJob."""
    if isinstance(target, str):
        return None
    try:
        target.target()
    except InvalidRequest as error:
        raise InvalidJob(str(error), field=f"target.{error.field}") from None
    return target
