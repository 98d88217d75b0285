"""Claims and contexts for tests of the `call` executor."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from headway.executors.call.functions import Function, Options
from headway.executors.contract import Context, Written
from headway.model.job import Claim, Progress


class Listener:
    """Takes what a job says."""

    def __init__(self) -> None:
        self.output = b""
        self.progress: list[Progress] = []

    def __call__(self, news: Progress | Written) -> None:
        if isinstance(news, Progress):
            self.progress.append(news)
        else:
            self.output += news.data


def a_function(target: Any, **options: Any) -> Function:
    return Function.of(target, options=Options.of(**options))


def a_claim(payload: str = "{}", name: str = "job") -> Claim:
    return Claim(
        id=uuid4(),
        token=1,
        lease_id=uuid4(),
        kind="call",
        name=name,
        queue="default",
        payload=payload,
        attempt=1,
        failures=0,
        losses=0,
        timeout=None,
        retry=None,
        correlation_id=None,
        traceparent=None,
    )


def a_call(function: Function, *args: Any, **kwargs: Any) -> Claim:
    return a_claim(function.arguments.pack(args, kwargs), function.name)


def a_context(
    claim: Claim, *, timeout: float | None = None, listener: Listener | None = None, alone: bool = False
) -> Context:
    return Context(claim, timeout=timeout, emit=listener or Listener(), alone=alone)
