"""Kinds `script` and `probe`: a script on a target, and a look at a target."""

from __future__ import annotations

import asyncio
import base64
import binascii
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from headway.executors.script.fields import (
    FILES_LIMIT,
    Brought,
    Destination,
    InlineTarget,
    ProbeFields,
    ScriptFields,
    ScriptPayload,
    SecretValue,
    check_file_name,
    check_script,
    check_text,
    check_variable,
    command_of,
    given_interpreter,
    inline,
)
from headway.kinds.contract import Functions, Prepared
from headway.model.errors import InvalidJob
from headway.model.sealed import CREDENTIAL, FILE, SCRIPT, SECRET_NAME, Enclosed, Shared
from headway.model.submission import OnConflict

TIMEOUT = 3600.0
PROBE_TIMEOUT = 15.0
PROBE_KEPT = 600.0
SYNTAX_WITHIN = 10.0

Attached = Enclosed | Shared
Check = Callable[[bytes], Awaitable[None]]


class ScriptKind:
    """Scripts. Never two of a name at once, unless that is asked for."""

    name = "script"
    fields: type[msgspec.Struct] | None = ScriptFields
    private: frozenset[str] = frozenset({"script", "files"})

    async def prepare(self, fields: ScriptFields, functions: Functions) -> Prepared:
        interpreter = given_interpreter(fields.interpreter)
        script = _script(fields)
        target, credential = _target(fields.target)
        _check_words(fields)
        syntax = partial(_check_syntax, interpreter=interpreter) if fields.check_syntax else None
        if isinstance(script, Enclosed) and syntax is not None:
            await syntax(script.content)
        payload = ScriptPayload(
            target=target,
            interpreter=interpreter,
            args=tuple(fields.args),
            env=fields.env,
            secrets=tuple(fields.secrets),
            collect=tuple(fields.collect),
            cwd=fields.cwd,
        )
        return Prepared(
            payload=msgspec.json.encode(payload).decode(),
            name=None,
            fields={"timeout": TIMEOUT, "on_conflict": OnConflict.REJECT},
            attachments=(script, *(_file(name, said) for name, said in fields.files.items()), *credential),
            files_limit=FILES_LIMIT,
            check=_later(script, syntax),
            target=target if isinstance(target, str) else None,
            secrets=(*fields.secrets, *(each.secret for each in fields.env.values() if isinstance(each, SecretValue))),
        )


class ProbeKind:
    """Looks at targets: short, urgent, soon forgotten."""

    name = "probe"
    fields: type[msgspec.Struct] | None = ProbeFields
    private: frozenset[str] = frozenset()

    async def prepare(self, fields: ProbeFields, functions: Functions) -> Prepared:
        target, credential = _target(fields.target)
        named = target if isinstance(target, str) else target.host
        return Prepared(
            payload=msgspec.json.encode(ProbeFields(target=target)).decode(),
            name=f"probe {named}"[:200],
            fields={"timeout": PROBE_TIMEOUT, "priority": 100, "retain": PROBE_KEPT, "expires_in": PROBE_TIMEOUT},
            attachments=credential,
            target=target if isinstance(target, str) else None,
        )


def _script(fields: ScriptFields) -> Attached:
    if (fields.script is UNSET) == (fields.script_from is UNSET):
        raise InvalidJob("give either script or script_from, the id of a job whose script to use", field="script")
    if fields.script_from is not UNSET:
        return Shared(role=SCRIPT, name=SCRIPT, job=fields.script_from)
    if isinstance(fields.script, str):
        check_text(fields.script, "script")
        content = fields.script.encode()
        check_script(content)
        return Enclosed(role=SCRIPT, name=SCRIPT, content=content, at=("script",))
    assert fields.script is not UNSET
    if fields.script.id is None:
        raise InvalidJob('script must be a text, or {"upload": "id"}', field="script")
    return Shared(role=SCRIPT, name=SCRIPT, attachment=fields.script.id, at=("script",))


def _file(name: str, said: str | Brought) -> Attached:
    check_file_name(name)
    place = ("files", name)
    if isinstance(said, str):
        return Enclosed(role=FILE, name=name, content=_encoded(said, name), at=place)
    given = [part for part in (said.text, said.base64, said.upload, said.attachment) if part is not None]
    if len(given) != 1:
        raise InvalidJob(f"files.{name} must have one of text, base64, upload", field=f"files.{name}")
    if said.text is not None:
        return Enclosed(role=FILE, name=name, content=_encoded(said.text, name), at=place)
    if said.base64 is not None:
        try:
            content = base64.b64decode(said.base64, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidJob(f"files.{name}.base64 is no base64", field=f"files.{name}") from None
        return Enclosed(role=FILE, name=name, content=content, at=place)
    return Shared(role=FILE, name=name, attachment=said.upload or said.attachment, at=place)


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidJob(f"files.{name} contains half of a surrogate pair", field=f"files.{name}") from None


def _target(said: Destination) -> tuple[Destination, tuple[Attached, ...]]:
    """The target without what opens it, and that."""
    given: InlineTarget | None = inline(said)
    if given is None or given.credential is None:
        return said, ()
    bare = msgspec.structs.replace(given, credential=None)
    place = ("target", "credential")
    if given.credential.attachment is not None:
        return bare, (Shared(role=CREDENTIAL, name="target", attachment=given.credential.attachment, at=place),)
    credential = given.credential.credential()
    if (credential.password is None) == (credential.private_key is None):
        raise InvalidJob("target.credential must have a password or a private_key", field="target.credential")
    content = msgspec.json.encode(credential)
    address = bare.target().address
    return bare, (Enclosed(role=CREDENTIAL, name="target", content=content, at=place, address=address),)


def _check_words(fields: ScriptFields) -> None:
    for number, word in enumerate(fields.args):
        check_text(word, f"args[{number}]")
    for name, value in fields.env.items():
        check_variable(name)
        if isinstance(value, str):
            check_text(value, f"env.{name}")
    for name in fields.secrets:
        if not SECRET_NAME.fullmatch(name):
            raise InvalidJob(f"{name[:60]!r} is no name of a secret", field="secrets")
    for pattern in fields.collect:
        _check_pattern(pattern)
    if fields.cwd is not None:
        check_text(fields.cwd, "cwd")
        if "\n" in fields.cwd or not fields.cwd.startswith(("/", "~")):
            raise InvalidJob("cwd must be an absolute path, or begin with ~/", field="cwd")


def _check_pattern(pattern: str) -> None:
    parts = pattern.split("/")
    if not pattern or ".." in parts or "\0" in pattern or pattern.startswith("~"):
        raise InvalidJob(
            f"collect: {pattern[:60]!r} must be a pattern such as *.log or /var/log/app/*.txt, without '..'",
            field="collect",
        )


def _later(script: Attached, syntax: Check | None) -> Check | None:
    """What is still to be looked at when a script is in the store already: one that was uploaded may be anything, that
    of another job was looked at when it came."""
    if isinstance(script, Enclosed) or (script.attachment is None and syntax is None):
        return None

    async def check(content: bytes) -> None:
        check_script(content)
        if syntax is not None:
            await syntax(content)

    return check


async def _check_syntax(content: bytes, interpreter: tuple[str, ...] | None) -> None:
    """As far as the interpreter can be told from here, and is here."""
    words = command_of(content, interpreter)
    program = words[-1] if words[0].endswith("/env") and len(words) > 1 else words[0]
    named = program.rpartition("/")[2]
    command = _checker(named)
    if command is None:
        raise InvalidJob(
            f"check_syntax knows sh, bash, dash and python, not {named!r}: leave it out", field="check_syntax"
        )
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
    except FileNotFoundError:
        raise InvalidJob(f"check_syntax: there is no {named} on this machine", field="check_syntax") from None
    try:
        said, _ = await asyncio.wait_for(process.communicate(content), SYNTAX_WITHIN)
    except TimeoutError:
        process.kill()
        await process.wait()
        raise InvalidJob(f"check_syntax: {named} took longer than {SYNTAX_WITHIN:g} s", field="script") from None
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines() or [f"{named} refuses it"]
        raise InvalidJob(f"the script can't be parsed: {lines[-1][:300]}", field="script")


def _checker(program: str) -> list[str] | None:
    if program in {"sh", "bash", "dash", "ksh", "zsh"}:
        return [program, "-n"]
    if program.startswith("python"):
        compiling = "import ast, sys; compile(sys.stdin.buffer.read(), 'script', 'exec', ast.PyCF_ONLY_AST)"
        return [sys.executable, "-I", "-c", compiling]
    return None


def probe_wanted(body: Mapping[str, Any]) -> bool:
    """Whether whoever submits this wants a worker to look at the target first."""
    return body.get("kind") == "script" and body.get("probe", True) is True
