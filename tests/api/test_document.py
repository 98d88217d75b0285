"""The whole document against the service: what it promises must be so, whatever is sent. Inputs are made up from the
document itself, the same in every run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from headway import Headway
from headway.api.gate import TokenGate
from headway.api.process import AppApi
from tests.api.conftest import TOKEN

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    ignored_auth,
    unsupported_method,
]
STREAMS = {"/api/v1/events"}
"""They don't end; `test_results.py` looks at them."""
EXAMPLES = {"sqlite": 6, "postgres": 3}


class Ground:
    """A service on a thread of its own, and how often each of its operations is tried."""

    def __init__(self, store: str, examples: int) -> None:
        self.url = ""
        self.examples = examples
        self._store = store
        self._loop = asyncio.new_event_loop()
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    async def _serve(self) -> None:
        app = Headway(self._store)
        async with AppApi(app, TokenGate(TOKEN), port=0) as api:
            self.url = api.url
            self._ready.set()
            await self._stop.wait()
        await app.aclose()

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)
        self._loop.close()


@pytest.fixture(params=EXAMPLES)
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    store = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres_store_url")
    ground = Ground(store, EXAMPLES[request.param])
    ground.start()
    yield ground
    ground.stop()


@pytest.mark.filterwarnings("default")
def test_the_service_keeps_what_its_document_promises(ground: Ground) -> None:
    document = schemathesis.openapi.from_url(f"{ground.url}/api/openapi.json")
    tried = 0
    for found in document.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.path in STREAMS:
            continue
        tried += 1

        @given(case=operation.as_strategy())
        @settings(
            max_examples=ground.examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: schemathesis.Case) -> None:
            case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, checks=CHECKS, timeout=60)

        ask()
    assert tried > 40
