"""When a failed job is tried again, and when not."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypeGuard, get_args

import msgspec

from headway.model.errors import InvalidJob

LONGEST = 100 * 366 * 86_400.0
Backoff = Literal["fixed", "linear", "exponential"]
Ground = Literal["exception", "status", "exit", "message"]
_BACKOFFS = get_args(Backoff)
_GROUNDS = get_args(Ground)
Random = Callable[[], float]
"""A source of numbers in [0, 1)."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule can look at: the facts of one failed attempt."""

    type: str = ""
    """The exception's qualified name, e.g. `ConnectionError` or `httpx.ReadTimeout`."""
    bases: tuple[str, ...] = ()
    """Names of the exception's base classes, so that a rule may name a family."""
    message: str = ""
    status: int | None = None
    exit: int | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`on` what kind of failure `then` does what: the first rule that matches decides.

    `on` is one of `exception`, `status`, `exit`, `message`; `match` an exception name, a number or a range of
    numbers like `"500-599"`, or for `message` a regular expression. `then` is `"permanent"`, or a wait in seconds.
    """

    on: Ground
    match: str
    then: Literal["permanent"] | float = "permanent"

    def __post_init__(self) -> None:
        _require(self.on in _GROUNDS, "rules", f"on one of {', '.join(_GROUNDS)}", self.on)
        _require(isinstance(self.match, str), "rules", 'rules whose match is a text like "500-599"', self.match)
        waits = is_number(self.then) and 0 <= self.then <= LONGEST
        _require(waits or self.then == "permanent", "rules", 'rules with then "permanent" or a wait', self.then)
        match self.on:
            case "message":
                _check_pattern(self.match)
            case "status" | "exit":
                _number_range(self.match)
            case "exception":
                pass

    def matches(self, failure: Failure) -> bool:
        match self.on:
            case "exception":
                return any(_same_name(self.match, name) for name in (failure.type, *failure.bases))
            case "message":
                return re.search(self.match, failure.message) is not None
            case "status":
                return failure.status is not None and failure.status in _number_range(self.match)
            case "exit":
                return failure.exit is not None and failure.exit in _number_range(self.match)


class Retry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often, and after which waits, a job that failed is tried again.

    `wait` is the wait before the second attempt; `backoff` says how it grows: stays (`fixed`), by itself each time
    (`linear`), or doubling (`exponential`), never beyond `max_wait`. `jitter` spreads each wait by that share in
    both directions, so that jobs that failed together don't come back together.
    """

    max_attempts: int = 1
    wait: float = 1.0
    backoff: Backoff = "exponential"
    max_wait: float = 3600.0
    jitter: float = 0.1
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        whole = isinstance(self.max_attempts, int) and is_number(self.max_attempts)
        _require(
            whole and 1 <= self.max_attempts <= 10_000, "max_attempts", "a number from 1 to 10,000", self.max_attempts
        )
        for field, value in (("wait", self.wait), ("max_wait", self.max_wait)):
            _require(is_number(value) and 0 <= value <= 366 * 86_400, field, "seconds, at most a year", value)
        _require(is_number(self.jitter) and 0 <= self.jitter <= 1, "jitter", "a share from 0 to 1", self.jitter)
        _require(self.backoff in _BACKOFFS, "backoff", "fixed, linear or exponential", self.backoff)
        rules = isinstance(self.rules, tuple | list) and all(isinstance(rule, Rule) for rule in self.rules)
        _require(rules, "rules", "a tuple of Rule(on=, match=, then=)", self.rules)

    def next_wait(self, failures: int, failure: Failure, random: Random) -> float | None:
        """Seconds until the next attempt after the `failures`-th failure; None when there is none."""
        then = next((rule.then for rule in self.rules if rule.matches(failure)), None)
        if then == "permanent" or failures >= self.max_attempts:
            return None
        base = self._grown(failures) if then is None else then
        return max(0.0, base * (1 + self.jitter * (2 * random() - 1)))

    def _grown(self, failures: int) -> float:
        growth = {"fixed": 1.0, "linear": float(failures), "exponential": 2.0 ** min(failures - 1, 1000)}
        return min(self.wait * growth[self.backoff], self.max_wait)


def seconds(value: float | timedelta, field: str) -> float:
    """A duration given as seconds or timedelta, as seconds."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if not is_number(number) or not 0 <= number <= LONGEST:
        raise InvalidJob(f"{field} must be seconds or a timedelta, up to a hundred years, not {value!r}", field=field)
    return float(number)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(holds: bool, field: str, form: str, value: object) -> None:
    if not holds:
        raise InvalidJob(f"retry: {field} must be {form}, not {value!r}", field=f"retry.{field}")


def _same_name(asked: str, name: str) -> bool:
    return asked == name or name.endswith("." + asked)


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidJob(
            f"retry: the message rule {pattern!r} is no regular expression: {error}", field="retry.rules"
        ) from error


def _number_range(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        return range(int(first), int(last or first) + 1)
    except ValueError as error:
        raise InvalidJob(
            f"retry: {text!r} must be a number like 503 or a range like 500-599", field="retry.rules"
        ) from error
