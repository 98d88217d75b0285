"""Scripts and files: bring them, and read a script again."""

from __future__ import annotations

from uuid import UUID

import msgspec
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response

from headway.access.trail import entry
from headway.api.call import NO_CACHE, Call, answer
from headway.api.content import GUARD
from headway.api.examples import JOB_ID
from headway.api.table import MIB, Answer, Audit, Body, Route
from headway.components.status import get_job
from headway.executors.script.fields import FILES_LIMIT, SCRIPT_LIMIT, check_script
from headway.model.access import Permission
from headway.model.errors import InvalidRequest, Malformed, NotFound, TooLarge
from headway.model.sealed import FILE, SCRIPT, Enclosed

TAG = "Scripts"
ROLES = (SCRIPT, FILE)


class Uploaded(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was brought. Jobs refer to it as `{"upload": id}`; unused it is gone after a day."""

    id: UUID
    role: str
    name: str
    size: int
    sha256: str | None


class Uploads(msgspec.Struct, frozen=True):
    """What was brought, in the order of the form."""

    items: list[Uploaded]


async def upload(call: Call) -> Response:
    """Each part of the form is named `script` or `file`, and has a file name."""
    form = await _form(call)
    try:
        enclosed = [await _enclosed(role, part) for role, part in _parts(form)]
    finally:
        await form.close()
    if not enclosed:
        raise InvalidRequest("the form has no part named script or file", field="file")
    vault = call.service.app.vault
    kept = [await vault.upload(each) for each in enclosed]
    items = [Uploaded(id=each.id, role=each.role, name=each.name, size=each.size, sha256=each.sha256) for each in kept]
    return answer(Uploads(items), 201)


async def script(call: Call) -> Response:
    """The script of a job, as it was brought. That it was read is written down before it is shown."""
    job = await call.store(lambda store: get_job(store, call.job_id))
    vault = call.service.app.vault
    found = [each for each in await vault.attachments(job.id) if each.role == SCRIPT]
    if not found:
        raise NotFound(f"job {job.id} ({job.name}) has no script: it is of kind {job.kind}")
    await call.service.trail.write(entry(call.caller, "scripts.read", f"jobs/{job.id}"))
    headers = {**GUARD, "Cache-Control": NO_CACHE, "Content-Disposition": f"attachment; filename={job.id}-script.txt"}
    return Response(await vault.content(found[0]), headers=headers, media_type="text/plain; charset=utf-8")


class _Parser(MultiPartParser):
    # Scripts are secret: none of it is ever written to a disk on its way.
    spool_max_size = 64 * MIB


async def _form(call: Call) -> FormData:
    kind = call.headers.get("content-type", "")
    if not kind.startswith("multipart/form-data"):
        raise Malformed("an upload is a form of the type multipart/form-data")
    parser = _Parser(call.request.headers, _limited(call), max_files=50, max_fields=0)
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise Malformed(f"the form can't be read: {error.message}") from None
    except (KeyError, ValueError):
        raise Malformed("the form can't be read") from None


def _parts(form: FormData) -> list[tuple[str, UploadFile]]:
    named = [(role, part) for role, part in form.multi_items() if isinstance(part, UploadFile)]
    for role, _ in named:
        if role not in ROLES:
            raise InvalidRequest(f"the form has a part named {role[:60]!r}: use script or file", field=role[:60])
    return named


async def _limited(call: Call):  # type: ignore[no-untyped-def] # an async generator of bytes
    size = 0
    async for piece in call.request.stream():
        size += len(piece)
        if size > UPLOAD_LIMIT:
            raise TooLarge(f"the form takes more than {UPLOAD_LIMIT:,} bytes", field="body")
        yield piece


async def _enclosed(role: str, part: UploadFile) -> Enclosed:
    content = await part.read()
    name = (part.filename or role).replace("\\", "/").rpartition("/")[2][:200] or role
    if role == SCRIPT:
        check_script(content)
        name = SCRIPT
    elif len(content) > FILES_LIMIT:
        raise TooLarge(f"the file {name!r} takes {len(content):,} bytes, the limit is {FILES_LIMIT:,}", field="file")
    return Enclosed(role=role, name=name, content=content)


UPLOAD_LIMIT = 8 * MIB
_EXAMPLE = {"id": JOB_ID, "role": "script", "name": "script", "size": 42, "sha256": "9f86d081884c7d659a2feaa0c55ad015"}
_FORM = {
    "type": "object",
    "properties": {
        "script": {"type": "string", "format": "binary", "description": f"at most {SCRIPT_LIMIT:,} bytes"},
        "file": {"type": "string", "format": "binary", "description": f"at most {FILES_LIMIT:,} bytes"},
    },
}

_FORMS = {"script": {"script": "#!/bin/sh\necho hello\n"}}

ROUTES = [
    Route(
        method="POST",
        path="/uploads",
        handler=upload,
        permission=Permission.SUBMIT,
        summary="Bring a script or files for jobs to come",
        description='Parts named script and file. Jobs refer to what came of them as {"upload": id}.',
        tag=TAG,
        secret=True,
        audit=Audit.AFTER,
        body=Body(schema=_FORM, content_type="multipart/form-data", limit=UPLOAD_LIMIT, raw=True, examples=_FORMS),
        answers=[Answer(status=201, form=Uploads, words="What was brought.", example={"items": [_EXAMPLE]})],
        problems=[413, 415, 422, 503],
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/script",
        handler=script,
        permission=Permission.READ_SCRIPTS,
        summary="Read the script of a job",
        description="Who reads one stands in the audit log.",
        tag=TAG,
        secret=True,
        audit=Audit.OWN,
        answers=[Answer(words="The script.", content_type="text/plain", schema={"type": "string"})],
        problems=[404, 503],
    ),
]
