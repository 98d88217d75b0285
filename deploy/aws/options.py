"""What the stack can be told: `make cfn CONTEXT="name=value …"`. Everything has a default."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from constructs import Node

ROOT = Path(__file__).resolve().parents[2]
"""The directory with the Dockerfile."""


@dataclass(frozen=True)
class Options:
    """How large it is, and who reaches it."""

    domain: str | None = None
    """The name of the API, such as jobs.example.com. Without one the API is reached from within the VPC only."""
    zone_id: str | None = None
    """The hosted zone of the domain: given, because a look-up would need the network."""
    zone_name: str | None = None
    certificate: str | None = None
    """The ARN of a certificate in ACM, where there is no domain; else the template asks for it when it is deployed."""
    app: str | None = None
    """Where the user's app is, `module:attribute`, in an image built on ours."""
    queues: str = "default"
    """The queues that workers serve, separated by commas."""
    workers_min: int = 1
    workers_max: int = 20
    backlog_per_worker: int = 100
    """Due jobs for each worker above which more are started."""
    grace: int = 110
    """Seconds that a worker has to end its jobs; Fargate kills two minutes after the signal at the latest."""
    database_class: str = "t4g.medium"
    multi_az: bool = True
    output: str = "store"
    """Where output and large results go: `store` or `s3`."""
    prometheus: bool = False
    """Whether to make a workspace of the managed Prometheus, and collectors that write to it."""
    alarm_mail: str | None = None

    @classmethod
    def of(cls, node: Node) -> Options:
        """The options in a construct's context. Values from the command line are texts."""
        given = {name: node.try_get_context(name) for name in cls.__dataclass_fields__}
        values = {name: _as(type(getattr(cls, name)), value) for name, value in given.items() if value is not None}
        options = cls(**values)
        options.check()
        return options

    def check(self) -> None:
        if self.domain and not (self.zone_id and self.zone_name):
            raise SystemExit("domain= needs zone_id= and zone_name= (of the hosted zone it lies in)")
        if self.output not in {"store", "s3"}:
            raise SystemExit(f"output= is store or s3, not {self.output!r}")
        if not 1 <= self.workers_min <= self.workers_max:
            raise SystemExit("workers_min= must be at least 1 and at most workers_max=")


def _as(kind: type, value: object) -> object:
    if kind is bool:
        return str(value).lower() in {"1", "true", "yes"}
    return int(str(value)) if kind is int else value
