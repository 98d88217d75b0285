"""What came out: lines with their ceilings and targets, as a table for people and as JSON for machines."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from rich.table import Table

Unit = Literal["jobs/s", "ms", "µs", "MB", "queries/s", "requests/s", "%"]


class Target(msgspec.Struct, frozen=True):
    """What was promised, and whether it holds."""

    text: str
    reached: bool


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One thing measured: medians over the runs."""

    what: str
    unit: Unit
    runs: tuple[float, ...]
    ceiling_runs: tuple[float, ...] = ()
    targets: tuple[Target, ...] = ()
    note: str | None = None

    @property
    def value(self) -> float:
        return statistics.median(self.runs)

    @property
    def ceiling(self) -> float | None:
        return statistics.median(self.ceiling_runs) if self.ceiling_runs else None

    @property
    def ratio(self) -> float | None:
        """How much of the ceiling is reached; where less is better, how much more time it takes."""
        return self.value / self.ceiling if self.ceiling else None

    def aiming(
        self, *, at_least: float | None = None, at_most: float | None = None, share: float | None = None
    ) -> Line:
        """The line with its targets; `share` is of the ceiling."""
        targets = list(self.targets)
        if at_least is not None:
            targets.append(Target(f"≥ {shown(at_least, self.unit)}", self.value >= at_least))
        if at_most is not None:
            targets.append(Target(f"≤ {shown(at_most, self.unit)}", self.value <= at_most))
        if share is not None and self.ratio is not None:
            targets.append(Target(f"≥ {share:.0%} of the ceiling", self.ratio >= share))
        return msgspec.structs.replace(self, targets=tuple(targets))


class Chapter(msgspec.Struct, frozen=True):
    """All lines of one store."""

    store: str
    settings: Mapping[str, str]
    lines: Sequence[Line]


def table(chapter: Chapter) -> Table:
    """A chapter as people read it."""
    settings = ", ".join(f"{name} {value}" for name, value in chapter.settings.items() if name != "version")
    made = Table(title=f"{chapter.store} {chapter.settings['version']}", caption=settings, title_justify="left")
    made.add_column("measured")
    for heading in ("Headway", "bare driver", "Headway/bare"):
        made.add_column(heading, justify="right")
    made.add_column("target")
    for line in chapter.lines:
        ceiling = "" if line.ceiling is None else shown(line.ceiling, line.unit)
        made.add_row(_named(line), shown(line.value, line.unit), ceiling, _ratio(line), _marks(line))
    return made


def shown(value: float, unit: Unit) -> str:
    """A figure as people read it, with as many digits as it deserves."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{'' if unit == '%' else ' '}{unit}"


def milliseconds(seconds: Sequence[float]) -> tuple[float, ...]:
    return tuple(1000 * one for one in seconds)


def percentile(seconds: Sequence[float], percent: int) -> float:
    """In milliseconds."""
    return 1000 * statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]


def as_json(chapters: Sequence[Chapter], header: Mapping[str, object]) -> bytes:
    """Everything, with the single runs."""
    found = {
        **header,
        "stores": [
            {"store": chapter.store, "settings": chapter.settings, "lines": [_as_dict(line) for line in chapter.lines]}
            for chapter in chapters
        ],
    }
    return msgspec.json.format(msgspec.json.encode(found))


def _as_dict(line: Line) -> dict[str, object]:
    figures = {"value": line.value, "ceiling": line.ceiling, "ratio": line.ratio}
    return {**figures, **msgspec.to_builtins(line)}


def _named(line: Line) -> str:
    return f"{line.what}\n[dim]{line.note}[/]" if line.note else line.what


def _ratio(line: Line) -> str:
    if line.ratio is None:
        return ""
    return f"{line.ratio:.0%}" if line.unit in {"jobs/s", "requests/s"} else f"{line.ratio:.1f}x"


def _marks(line: Line) -> str:
    return "\n".join(
        f"{target.text} [green]reached[/]" if target.reached else f"{target.text} [red]not reached[/]"
        for target in line.targets
    )
