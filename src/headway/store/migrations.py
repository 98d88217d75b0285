"""The schema's steps: numbered files, forward only. A step marked `-- breaking` locks out older code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from headway.model.errors import SchemaError


class Migration(msgspec.Struct, frozen=True):
    """One step."""

    number: int
    name: str
    sql: str
    breaking: bool


@cache
def load(package: str) -> Sequence[Migration]:
    """The steps this code knows, in order."""
    found = [_read(file.name, file.read_text()) for file in files(package).iterdir() if file.name.endswith(".sql")]
    return tuple(sorted(found, key=lambda step: step.number))


def missing(known: Sequence[Migration], applied: Mapping[int, bool]) -> list[Migration]:
    """What is to be done. `applied` maps the numbers done so far to whether they are breaking.

    A store that is ahead of this code is fine as long as nothing it went through breaks older code.
    """
    latest = known[-1].number
    breaking = sorted(number for number, breaks in applied.items() if breaks and number > latest)
    if breaking:
        raise SchemaError(
            f"the store's schema is at step {max(applied)}, this code knows steps up to {latest}, and step "
            f"{breaking[0]} locks out older code: upgrade headway in this environment"
        )
    return [step for step in known if step.number not in applied]


def check(known: Sequence[Migration], applied: Mapping[int, bool]) -> None:
    """Whether this code may work with the store as it is."""
    lacking = missing(known, applied)
    if lacking:
        raise SchemaError(
            f"the store's schema lacks {len(lacking)} step(s), first {lacking[0].name}: run `headway migrate`"
        )


def _read(file_name: str, sql: str) -> Migration:
    name = file_name.removesuffix(".sql")
    return Migration(int(name.partition("_")[0]), name, sql, sql.startswith("-- breaking"))
