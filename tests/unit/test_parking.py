"""What a worker says of jobs that it can't run."""

from __future__ import annotations

from uuid import uuid4

from headway.model.job import Claim
from headway.worker.parking import AGAIN_AFTER, DIFFERENT, Parking
from tests.logs import captured


def claim(name: str) -> Claim:
    return Claim(
        id=uuid4(),
        token=1,
        kind="call",
        name=name,
        payload="{}",
        attempt=0,
        failures=0,
        losses=0,
        timeout=None,
        retry=None,
        correlation_id=None,
        traceparent=None,
        lease_id=uuid4(),
        queue="default",
    )


def test_of_many_parked_jobs_each_name_and_reason_is_told_once_a_minute() -> None:
    parking = Parking()
    with captured() as lines:
        for second in range(0, int(2 * AGAIN_AFTER), 15):
            for name, why in (("a", "no code"), ("a", "no key"), ("b", "no code")):
                for _ in range(5):
                    parking.tell(claim(name), why, float(second))
    told = [(line["name"], line["why"], line["untold"]) for line in lines if line["event"] == "job.parked"]
    first = [("a", "no code", 0), ("a", "no key", 0), ("b", "no code", 0)]
    assert told == [*first, *((name, why, 19) for name, why, _ in first)]


def test_names_without_end_take_no_memory_without_end() -> None:
    parking = Parking()
    for number in range(3 * DIFFERENT):
        parking.tell(claim(f"job {number}"), "no code", 0.0)
    assert len(parking._told) <= DIFFERENT
