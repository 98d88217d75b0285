"""Output in a bucket of S3, or of a server that speaks like it: `HEADWAY_OUTPUT=s3://bucket/prefix`.

    <prefix>/<job>/<attempt>/output/<number of the first chunk>     what was added at once
    <prefix>/<job>/<attempt>/artifacts/<name>                       files that were collected

Objects are written whole, so a reader never sees half of one; chunks in a row that are added at once become one object.
Credentials, region and endpoint come from where Amazon's tools look for them (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL_S3,
roles …).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import msgspec
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError

from headway.model.errors import ConfigurationError, OutputUnavailable
from headway.model.job import CHUNK, Chunk, ChunkSize, Claim, Report
from headway.observe.logs import get_logger
from headway.output.contract import Exist
from headway.store.contract import Store

log = get_logger("headway.output")

PART = 8 * 1024 * 1024
"""Larger artifacts are sent in parts of this size, so that none has to fit into memory."""
BATCH = 200
MOST_AT_ONCE = 1000
"""Objects that one request may remove."""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """A chunk in an object."""

    seq: int
    stream: str
    at: datetime
    data: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Kept]).decode


def from_url(url: str, store: Store) -> S3Outputs:
    """s3://bucket/prefix"""
    parts = urlsplit(url)
    if not parts.hostname or parts.query or parts.fragment:
        raise ConfigurationError(f"{url!r} must look like s3://bucket or s3://bucket/prefix")
    return S3Outputs(parts.hostname, parts.path.strip("/"), store)


class S3Outputs:
    """Objects in a bucket. The store is asked whether a writer still holds its job."""

    def __init__(self, bucket: str, prefix: str, store: Store) -> None:
        self._bucket = bucket
        self._root = f"{prefix}/" if prefix else ""
        self._store = store
        self._stack = AsyncExitStack()
        self._opened: Any = None

    def location(self, job_id: UUID) -> str | None:
        return f"s3://{self._bucket}/{self._root}{job_id}/"

    async def append(self, claim: Claim, chunks: Sequence[Chunk]) -> bool:
        if not await self._held(claim):
            return False
        if chunks:
            now = await self._store.now()
            for kept in _runs([_Kept(chunk.seq, chunk.stream, now, chunk.data) for chunk in chunks]):
                await self._put(self._piece(claim.id, claim.attempt, kept[0].seq), kept)
        return True

    async def trim(self, claim: Claim, first: int, last: int) -> None:
        if not await self._held(claim):
            return
        for key in await self._pieces(claim.id, claim.attempt):
            if _number(key) > last:
                break
            kept = await self._get(key)
            left = [chunk for chunk in kept if not first <= chunk.seq <= last]
            if not left:
                await self._do("delete_object", Key=key)
            elif len(left) < len(kept):
                await self._put(key, left)

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]:
        keys = await self._pieces(job_id, attempt)
        # The object that begins last before the wanted chunks may hold some of them.
        begin = max((place for place, key in enumerate(keys) if _number(key) <= after_seq + 1), default=0)
        found: dict[int, _Kept] = {}
        for key in keys[begin:]:
            # One that comes later has the last word about a chunk.
            if len(found) >= limit and _number(key) > sorted(found)[limit - 1]:
                break
            for chunk in await self._get(key):
                if chunk.seq > after_seq and (stream is None or chunk.stream == stream):
                    found[chunk.seq] = chunk
        return [
            Chunk(seq=chunk.seq, stream=chunk.stream, data=chunk.data, at=chunk.at)
            for _, chunk in sorted(found.items())[:limit]
        ]

    async def sizes(self, job_id: UUID, attempt: int) -> list[ChunkSize]:
        # S3 knows the sizes of objects only; one that comes later has the last word about a chunk.
        keys = await self._pieces(job_id, attempt)
        found = {chunk.seq: chunk for key in keys for chunk in await self._get(key)}
        return [ChunkSize(seq=seq, stream=chunk.stream, size=len(chunk.data)) for seq, chunk in sorted(found.items())]

    async def save(self, claim: Claim, name: str, pieces: AsyncIterator[bytes]) -> bool:
        if not await self._held(claim):
            return False
        key = self._artifact(claim.id, claim.attempt, name)
        buffered = bytearray()
        upload: _Upload | None = None
        try:
            async for piece in pieces:
                buffered += piece
                if len(buffered) >= PART:
                    upload = upload or await _Upload.begin(self, key)
                    await upload.add(bytes(buffered))
                    buffered.clear()
            if upload is None:
                await self._do("put_object", Key=key, Body=bytes(buffered))
            else:
                await upload.finish(bytes(buffered))
        except BaseException:
            if upload is not None:
                await upload.abort()
            raise
        return True

    async def load(self, job_id: UUID, attempt: int, name: str, start: int = 0) -> AsyncIterator[bytes]:
        try:
            answer = await self._do("get_object", Key=self._artifact(job_id, attempt, name), Range=f"bytes={start}-")
        except _Missing:
            return
        async with answer["Body"] as body:
            async for piece in body.iter_chunks(CHUNK):
                yield piece

    async def sweep(self, exist: Exist) -> int:
        gone = 0
        ids = [job_id async for job_id in self._jobs()]
        for start in range(0, len(ids), BATCH):
            some = ids[start : start + BATCH]
            for job_id in set(some) - await exist(some):
                await self._remove(f"{self._root}{job_id}/")
                gone += 1
        return gone

    async def prove(self) -> None:
        key, content = f"{self._root}proof-{uuid4()}", uuid4().bytes
        await self._do("put_object", Key=key, Body=content)
        try:
            answer = await self._do("get_object", Key=key)
        except _Missing:
            raise OutputUnavailable(f"s3://{self._bucket} does not have what was just written to it") from None
        async with answer["Body"] as body:
            found = await body.read()
        await self._do("delete_object", Key=key)
        if found != content:
            raise OutputUnavailable(f"s3://{self._bucket} gave back something else than was written to it")

    async def close(self) -> None:
        self._opened = None
        await self._stack.aclose()

    async def _jobs(self) -> AsyncIterator[UUID]:
        async for page in self._list(Prefix=self._root, Delimiter="/"):
            for found in page.get("CommonPrefixes", ()):
                try:
                    yield UUID(found["Prefix"].removeprefix(self._root).rstrip("/"))
                except ValueError:
                    continue

    async def _remove(self, prefix: str) -> None:
        keys = [found["Key"] async for page in self._list(Prefix=prefix) for found in page.get("Contents", ())]
        for start in range(0, len(keys), MOST_AT_ONCE):
            some = [{"Key": key} for key in keys[start : start + MOST_AT_ONCE]]
            await self._do("delete_objects", Delete={"Objects": some, "Quiet": True})

    async def _held(self, claim: Claim) -> bool:
        return bool(await self._store.report([Report(job_id=claim.id, token=claim.token, ran=0.0)]))

    def _directory(self, job_id: UUID, attempt: int) -> str:
        return f"{self._root}{job_id}/{int(attempt)}"

    def _piece(self, job_id: UUID, attempt: int, number: int) -> str:
        # Of even length, so that S3's order is ours.
        return f"{self._directory(job_id, attempt)}/output/{number:012d}"

    def _artifact(self, job_id: UUID, attempt: int, name: str) -> str:
        if not name or "\0" in name or any(part in {"", ".", ".."} for part in name.split("/")):
            raise ConfigurationError(f"{name!r} is no name for an artifact")
        return f"{self._directory(job_id, attempt)}/artifacts/{name}"

    async def _pieces(self, job_id: UUID, attempt: int) -> list[str]:
        prefix = f"{self._directory(job_id, attempt)}/output/"
        return [found["Key"] async for page in self._list(Prefix=prefix) for found in page.get("Contents", ())]

    async def _put(self, key: str, kept: Sequence[_Kept]) -> None:
        await self._do("put_object", Key=key, Body=_encode(kept))

    async def _get(self, key: str) -> list[_Kept]:
        try:
            answer = await self._do("get_object", Key=key)
        except _Missing:
            # Taken out since it was listed.
            return []
        async with answer["Body"] as body:
            return _decode(await body.read())

    async def _list(self, **wanted: Any) -> AsyncIterator[dict[str, Any]]:
        """Pages of what the bucket holds, in order."""
        page = await self._do("list_objects_v2", **wanted)
        yield page
        while page.get("IsTruncated"):
            page = await self._do("list_objects_v2", **wanted, ContinuationToken=page["NextContinuationToken"])
            yield page

    async def _do(self, act: str, **given: Any) -> Any:
        """One request. Raises OutputUnavailable."""
        try:
            client = await self._client()
            return await getattr(client, act)(Bucket=self._bucket, **given)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in {"NoSuchKey", "404", "InvalidRange"}:
                raise _Missing from error
            raise OutputUnavailable(f"s3://{self._bucket} refused {act}: {error}") from error
        except (BotoCoreError, OSError) as error:
            raise OutputUnavailable(f"s3://{self._bucket} can't be reached: {error}") from error

    async def _client(self) -> Any:
        if self._opened is None:
            self._opened = await self._stack.enter_async_context(get_session().create_client("s3"))
        return self._opened


class _Missing(Exception):
    pass


class _Upload:
    """A large artifact on its way; it can be seen when it is complete, and not before."""

    def __init__(self, outputs: S3Outputs, key: str, upload_id: str) -> None:
        self._outputs = outputs
        self._of = {"Key": key, "UploadId": upload_id}
        self._parts: list[dict[str, Any]] = []

    @classmethod
    async def begin(cls, outputs: S3Outputs, key: str) -> _Upload:
        answer = await outputs._do("create_multipart_upload", Key=key)
        return cls(outputs, key, answer["UploadId"])

    async def add(self, data: bytes) -> None:
        number = len(self._parts) + 1
        answer = await self._outputs._do("upload_part", **self._of, PartNumber=number, Body=data)
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})

    async def finish(self, rest: bytes) -> None:
        if rest:
            await self.add(rest)
        await self._outputs._do("complete_multipart_upload", **self._of, MultipartUpload={"Parts": self._parts})

    async def abort(self) -> None:
        """Its parts take up room that nobody sees."""
        try:
            await self._outputs._do("abort_multipart_upload", **self._of)
        except (OutputUnavailable, _Missing) as error:
            log.warning("output.upload_left", key=self._of["Key"], error=str(error))


def _runs(kept: Sequence[_Kept]) -> list[list[_Kept]]:
    """Split where numbers are left out. A chunk that is said again (what is missing) is followed by others each time:
    by its number alone, one object would take the place of another."""
    runs: list[list[_Kept]] = []
    for chunk in kept:
        if runs and chunk.seq == runs[-1][-1].seq + 1:
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    return runs


def _number(key: str) -> int:
    return int(key.rpartition("/")[2])
