"""The components that one process runs: all four, or some of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headway.clock import Clock
from headway.components.announced import Announced
from headway.components.cancel import CancelJob
from headway.components.create import CreateJob
from headway.components.identity import Names
from headway.components.messages import Component, Handled, Message, Reach
from headway.components.schedule import ScheduleJob
from headway.components.shapes import ErrorShape
from headway.components.status import GetJobs
from headway.kinds.bodies import Bodies
from headway.kinds.contract import Kind, Safe
from headway.model.errors import ConfigurationError, NotServed
from headway.observe import trail

ALL = ("create", "schedule", "cancel", "status")
TYPES = (CreateJob.handles, ScheduleJob.handles, CancelJob.handles, GetJobs.handles)


class Components:
    """Hands each message to the component whose type it is."""

    def __init__(self, components: Sequence[Component]) -> None:
        self._components = {component.handles: component for component in components}

    async def handle(self, message: Message) -> Handled:
        """What came of a message. One that another process is to act on raises `NotServed`: it has to go back to where
        it came from, untouched."""
        component = self._components.get(message.type)
        handled = await component.handle(message) if component else None
        if handled is not None:
            return handled
        if message.type in TYPES:
            raise NotServed(f"this process runs no component for {message.type}: {', '.join(self._components)} only")
        trail.received(self.named(message.type), type=message.type, job_id=None, correlation_id=message.correlation_id)
        return Handled({"ok": False, "error": _unknown(message.type)})

    def named(self, type_: str) -> str:
        """What the component that acts on this type is called in the log."""
        component = self._components.get(type_)
        return component.name if component else "none"


def components_of(names: str | None) -> tuple[str, ...]:
    """Components as a flag names them, one behind the other; all of them if it is not given."""
    return ALL if names is None else tuple(name.strip() for name in names.split(","))


def assemble(  # noqa: PLR0913 - all that a process lends its components
    reach: Reach,
    kinds: Mapping[str, Kind],
    clock: Clock,
    only: Collection[str] = ALL,
    *,
    safe: Safe | None = None,
    output: str | None = None,
) -> Components:
    """The components with these names, over this way to a store. `output` is where output is kept, if not there.
    Raises ConfigurationError."""
    unknown = sorted(set(only).difference(ALL))
    if unknown or not only:
        wrong = f"there is no component {unknown[0]!r}" if unknown else "no component is named"
        raise ConfigurationError(f"{wrong}: use some of {', '.join(ALL)}")
    announced = Announced(lambda: reach.call(lambda store: store.functions()), clock)
    every: dict[str, Component] = {
        "create": CreateJob(reach, Bodies(kinds, announced, safe), Names(reach, clock)),
        "schedule": ScheduleJob(reach),
        "cancel": CancelJob(reach),
        "status": GetJobs(reach, output),
    }
    return Components([every[name] for name in ALL if name in only])


def _unknown(type_: str) -> ErrorShape:
    return ErrorShape(
        type="unknown_type", message=f"no message is of type {type_!r}: use {', '.join(TYPES)}", field="type"
    )
