"""Lists that are long: brief, and compressed on their way."""

from __future__ import annotations

import gzip

from headway import Headway
from headway.api.squeezing import LEAST
from tests.api.conftest import Site, serving

PLAIN = {"Accept-Encoding": "identity"}


async def test_a_long_list_is_compressed_for_who_can_read_it(memory_site: Site) -> None:
    for index in range(20):
        await memory_site.submit(metadata={"number": index})
    plain = await memory_site.get("/jobs", headers=PLAIN)
    assert "content-encoding" not in plain.headers
    assert (plain.headers["vary"], len(plain.content) > LEAST) == ("Accept-Encoding", True)
    async with memory_site.client.stream("GET", "/api/v1/jobs", headers={"Accept-Encoding": "gzip, br"}) as squeezed:
        raw = b"".join([piece async for piece in squeezed.aiter_raw()])
    assert (squeezed.headers["content-encoding"], squeezed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(squeezed.headers["content-length"]) == len(raw) < len(plain.content) / 3
    assert gzip.decompress(raw) == plain.content
    # Other bytes have another tag; either is known again, in whatever form the answer would come.
    tags = {squeezed.headers["etag"], plain.headers["etag"]}
    assert len(tags) == 2
    for tag in tags:
        for headers in (PLAIN, {"Accept-Encoding": "gzip"}):
            same = await memory_site.get("/jobs", headers={**headers, "If-None-Match": tag})
            assert (same.status_code, same.content) == (304, b"")


async def test_what_is_short_is_sent_as_it_is(memory_site: Site) -> None:
    short = await memory_site.get("/jobs", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in short.headers


async def test_a_brief_list_leaves_out_what_is_long() -> None:
    app = Headway("sqlite://")

    @app.job(name="breaks")
    def breaks() -> None:
        raise ValueError("x" * 2000)

    async with serving(app) as site, app.worker(queues=["default"]):
        job = await site.submit(function="breaks", metadata={"a": "b" * 1000})
        while not (await site.get(f"/jobs/{job['id']}?wait=60")).json()["finished_at"]:
            pass
        [whole] = (await site.get("/jobs")).json()["items"]
        [brief] = (await site.get("/jobs?brief=true")).json()["items"]
    assert (whole["error"]["traceback"][:9], len(whole["error"]["message"])) == ("Traceback", 2000)
    assert brief["error"] == {"type": "ValueError", "message": "x" * 500}
    assert brief["metadata"] is None
    assert {**brief, "error": 0, "metadata": 0} == {**whole, "error": 0, "metadata": 0}
