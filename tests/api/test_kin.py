"""Around a job: what it was asked to do, without what must not be shown; who waits for it; where it stands."""

from __future__ import annotations

from tests.api.conftest import Site


async def test_a_payload_is_shown_without_what_was_written_out_in_it(site: Site) -> None:
    written = {"Authorization": "Bearer letmein", "X-Api-Key": "k3y", "Accept": "text/plain"}
    named = {"Cookie": {"secret": "biscuit"}}
    job = await site.submit(function="f", kwargs={"headers": {**written, **named}, "password": "hunter2", "n": [1]})
    answer = await site.get(f"/jobs/{job['id']}/payload")

    assert answer.status_code == 200
    shown = answer.json()["kwargs"]
    assert shown["headers"] == {"Authorization": "•••", "X-Api-Key": "•••", "Accept": "text/plain", **named}
    assert shown["n"] == [1]
    assert not {"letmein", "k3y", "hunter2"} & set(answer.text.replace('"', " ").split())
    assert (await site.get(f"/jobs/{job['id'][:-4]}ffff/payload")).status_code == 404


async def test_the_children_of_a_job_are_those_that_wait_for_it_or_did(site: Site) -> None:
    parent = await site.submit(name="parent", hold=True)
    children = [await site.submit(name=f"child {n}", after=[parent["id"]]) for n in range(2)]
    grandchild = await site.submit(after=[children[0]["id"]])

    found = (await site.get(f"/jobs/{parent['id']}/children")).json()
    assert sorted(child["id"] for child in found["items"]) == sorted(child["id"] for child in children)
    assert {child["state"] for child in found["items"]} == {"blocked"}
    assert (await site.get(f"/jobs/{grandchild['id']}/children")).json() == {"items": [], "cursor": None}


async def test_a_place_counts_the_due_jobs_of_the_same_queue_before_a_job(site: Site) -> None:
    jobs = [await site.submit(queue="line") for _ in range(3)]
    await site.submit(queue="elsewhere", priority=50)
    urgent = await site.submit(queue="line", priority=9)
    later = await site.submit(queue="line", delay=3600)

    places = [(await site.get(f"/jobs/{job['id']}/place")).json()["ahead"] for job in [urgent, *jobs, later]]
    assert places == [0, 1, 2, 3, None]
