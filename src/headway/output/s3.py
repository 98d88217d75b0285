"""Output in a bucket of S3, or of a server that speaks like it: `HEADWAY_OUTPUT=s3://bucket/prefix`.

    <prefix>/<job>/<attempt>/output/<number of the first chunk>-<what is in it>     see `pieces`
    <prefix>/<job>/<attempt>/artifacts/<name>                                       files that were collected

Objects are written whole, so a reader never sees half of one.
Credentials, region and endpoint come from where Amazon's tools look for them (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL_S3,
roles …).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError

from headway.model.errors import ConfigurationError, OutputUnavailable
from headway.model.job import CHUNK, Chunk, ChunkSize, Claim, Report
from headway.observe.logs import get_logger
from headway.output.contract import Exist
from headway.output.pieces import MOST, Piece, begin, content, current, runs
from headway.store.contract import Store

log = get_logger("headway.output")

PART = 8 * 1024 * 1024
"""Larger artifacts are sent in parts of this size, so that none has to fit into memory."""
BATCH = 200
MOST_AT_ONCE = 1000
"""Objects that one request may remove."""
TRIES = 5


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
            for run in runs(chunks):
                await self._put(claim, run, now)
        return True

    async def trim(self, claim: Claim, first: int, last: int) -> None:
        if not await self._held(claim):
            return
        pieces: list[Piece] = []
        async for page in self._pieces(claim.id, claim.attempt, first):
            pieces += page
            if page and page[-1].first > last:
                break
        where = current(pieces)
        for piece in pieces:
            left = {seq for seq in piece.seqs if where[seq] is piece and not first <= seq <= last}
            if len(left) < len(piece.seqs):
                await self._cut(claim, piece, left)

    async def chunks(
        self, job_id: UUID, attempt: int, *, stream: str | None = None, after_seq: int = -1, limit: int = 100
    ) -> list[Chunk]:
        tries = 0
        while True:
            wanted = await self._wanted(job_id, attempt, stream, after_seq, limit)
            found = await self._read(job_id, attempt, wanted)
            tries += 1
            # Some may have been taken out, or moved, since they were listed.
            if len(found) == len(wanted) or tries == TRIES:
                return found

    async def sizes(self, job_id: UUID, attempt: int) -> list[ChunkSize]:
        pieces = [piece async for page in self._pieces(job_id, attempt) for piece in page]
        return [piece.sizes_of()[seq - piece.first] for seq, piece in current(pieces).items()]

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

    def _piece(self, job_id: UUID, attempt: int, name: str = "") -> str:
        return f"{self._directory(job_id, attempt)}/output/{name}"

    def _artifact(self, job_id: UUID, attempt: int, name: str) -> str:
        if not name or "\0" in name or any(part in {"", ".", ".."} for part in name.split("/")):
            raise ConfigurationError(f"{name!r} is no name for an artifact")
        return f"{self._directory(job_id, attempt)}/artifacts/{name}"

    async def _wanted(
        self, job_id: UUID, attempt: int, stream: str | None, after_seq: int, limit: int
    ) -> dict[int, Piece]:
        """The next chunks, and where they are."""
        pieces: list[Piece] = []
        wanted: list[tuple[int, Piece]] = []
        async for page in self._pieces(job_id, attempt, after_seq + 1):
            pieces += page
            wanted = [
                (seq, piece)
                for seq, piece in current(pieces).items()
                if seq > after_seq and (stream is None or piece.streams[seq - piece.first] == stream)
            ][:limit]
            if len(wanted) == limit and pieces[-1].first > wanted[-1][0]:
                break
        return dict(wanted)

    async def _read(self, job_id: UUID, attempt: int, wanted: Mapping[int, Piece]) -> list[Chunk]:
        pieces = list(dict.fromkeys(wanted.values()))
        found = await asyncio.gather(*(self._get(job_id, attempt, piece) for piece in pieces))
        held = {
            (piece, chunk.seq): chunk for piece, chunks in zip(pieces, found, strict=True) for chunk in chunks or ()
        }
        return [held[piece, seq] for seq, piece in wanted.items() if (piece, seq) in held]

    async def _pieces(self, job_id: UUID, attempt: int, seq: int = 0) -> AsyncIterator[list[Piece]]:
        """In order; all that may hold this chunk or later ones."""
        place = self._piece(job_id, attempt)
        async for page in self._list(Prefix=place, StartAfter=place + begin(seq - MOST)):
            yield [Piece.named(found["Key"].removeprefix(place), found["Size"]) for found in page.get("Contents", ())]

    async def _cut(self, claim: Claim, piece: Piece, left: set[int]) -> None:
        """Only these stay. They get their new place first: whoever looks meanwhile finds them twice."""
        if left:
            kept = await self._get(claim.id, claim.attempt, piece) or []
            for run in runs(chunk for chunk in kept if chunk.seq in left):
                await self._put(claim, run, run[0].at or await self._store.now())
        await self._do("delete_object", Key=self._piece(claim.id, claim.attempt, piece.name))

    async def _put(self, claim: Claim, run: Sequence[Chunk], at: datetime) -> None:
        key = self._piece(claim.id, claim.attempt, Piece.of(run).name)
        await self._do("put_object", Key=key, Body=content(run, at))

    async def _get(self, job_id: UUID, attempt: int, piece: Piece) -> list[Chunk] | None:
        try:
            answer = await self._do("get_object", Key=self._piece(job_id, attempt, piece.name))
        except _Missing:
            return None
        async with answer["Body"] as body:
            return piece.chunks(await body.read())

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
