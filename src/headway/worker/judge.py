"""How an attempt ended → what becomes of its job. Pure."""

from __future__ import annotations

from typing import assert_never

import msgspec

from headway.executors.contract import (
    Cancelled,
    Completed,
    Ending,
    Failed,
    Lost,
    NoCode,
    Snoozed,
    TimedOut,
    Unknown,
)
from headway.model.job import Claim, Finish, Release
from headway.model.retry import Failure, Random, Retry
from headway.model.states import Outcome

PARKED_WAIT = 15.0
"""Seconds after which a job whose code was missing is tried again."""

Move = Finish | Release

_decode_retry = msgspec.json.Decoder(Retry).decode


def judge(  # noqa: PLR0911 - one line per ending
    claim: Claim, ending: Ending, ran: float, default: Retry, random: Random
) -> Move:
    """The move that records this ending."""
    match ending:
        case Completed(result, about):
            return Finish.succeeded(claim, ran, result, about)
        case Failed() | TimedOut():
            return _retry_or_fail(claim, ending, ran, default, random)
        case Snoozed(delay):
            return Release.snooze(claim, ran, delay)
        case Cancelled(reason):
            return Finish.cancelled(claim, ran, reason)
        case Lost(error):
            # A suspect ran alone in a fresh process and took it down: proven.
            proven = claim.suspect
            return Finish.failed(claim, ran, error, Outcome.POISON) if proven else Release.lost(claim, ran, error)
        case Unknown(error):
            return Finish.failed(claim, ran, error, Outcome.UNKNOWN)
        case NoCode(missing):
            return Release.parked(claim, PARKED_WAIT, missing)
        case _:
            assert_never(ending)


def _retry_or_fail(claim: Claim, ending: Failed | TimedOut, ran: float, default: Retry, random: Random) -> Move:
    policy = _decode_retry(claim.retry) if claim.retry else default
    if isinstance(ending, TimedOut):
        outcome, failure = Outcome.TIMED_OUT, Failure(type="TimeoutError", message=ending.error.message)
    else:
        outcome, failure = Outcome.FAILED, ending.failure
    permanent = isinstance(ending, Failed) and ending.permanent
    wait = None if permanent else policy.next_wait(claim.failures + 1, failure, random)
    if wait is None:
        result = ending.result if isinstance(ending, Failed) else None
        return Finish.failed(claim, ran, ending.error, outcome, result)
    if isinstance(ending, Failed):
        wait = max(wait, ending.not_before)
    return Release.retry(claim, ran, wait, ending.error, outcome)
