"""Every setting there is: its name, what it means, what holds when nobody says otherwise, and where it comes from.

A flag counts more than a `HEADWAY_*` variable, that more than the TOML file, that more than the default. To add a
setting, add a field to `Settings` and a line to docs/settings.md; a test compares the two.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from headway.model.errors import ConfigurationError

PREFIX = "HEADWAY_"
CONFIG = "HEADWAY_CONFIG"
"""Names the TOML file; `--config` sets it, so that child processes find the same."""
FILE = "headway.toml"
SECRET = {"secret": True}
_HIDDEN = "***"

Port = Annotated[int, Meta(ge=0, le=65535)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What holds in this process. Secret ones are left out of its repr."""

    store: Annotated[str, Meta(description="where jobs are kept: sqlite:///path.db or postgresql://…")] = (
        "sqlite:///headway.db"
    )
    app: Annotated[str | None, Meta(description="where your app is, for processes: module:attribute")] = None
    bus: Annotated[str | None, Meta(description="amqp://… to be woken by RabbitMQ; else the store rings")] = None
    data: Annotated[str | None, Meta(description="the directory for keys and the first admin token")] = None
    host: Annotated[str, Meta(description="the address that the API listens on")] = "127.0.0.1"
    port: Annotated[Port, Meta(description="the port that the API listens on; 0: a free one")] = 8000
    public_url: Annotated[str | None, Meta(description="how people reach the page, for login links")] = None
    admin_token: Annotated[
        str | None, Meta(description="the token of the first administrator, for automation", extra=SECRET)
    ] = None
    secret_key: Annotated[
        str | None, Meta(description="the key that stored secrets are encrypted with", extra=SECRET)
    ] = None
    allow_private: Annotated[
        tuple[str, ...],
        Meta(description="addresses, networks or hosts that outgoing requests may reach although private"),
    ] = ()
    fetch_window: Annotated[
        Annotated[float, Meta(ge=0)], Meta(description="seconds in which a URL is not fetched again; 0: it always is")
    ] = 3600.0
    fetch_max_size: Annotated[
        Annotated[int, Meta(ge=1)], Meta(description="bytes that fetched content may have, if its job says nothing")
    ] = 10 * 1024 * 1024
    fetch_memory: Annotated[
        Annotated[int, Meta(ge=1)],
        Meta(description="bytes of fetched content that a worker holds at once; what is more waits"),
    ] = 256 * 1024 * 1024
    host_limits: Annotated[
        tuple[str, ...],
        Meta(description="requests that a worker sends to a host at once and in a time: api.example.com=5:10/s"),
    ] = ()
    tls_cert: Annotated[str | None, Meta(description="the API's certificate (chain), a PEM file")] = None
    tls_key: Annotated[str | None, Meta(description="the certificate's private key, a PEM file")] = None
    trusted_proxies: Annotated[
        tuple[str, ...], Meta(description="addresses or networks of proxies whose X-Forwarded-* headers count")
    ] = ()
    submit_rate: Annotated[
        str | None, Meta(description="jobs that one token or user may submit to a process of the API: 500/s")
    ] = None
    cors_origins: Annotated[tuple[str, ...], Meta(description="origins whose pages may call the API with a token")] = ()
    lease: Annotated[float, Meta(description="seconds until a dead worker's jobs are rescued")] = 30.0
    grace: Annotated[float, Meta(description="seconds running jobs get to end when a worker stops")] = 30.0
    output: Annotated[str | None, Meta(description="where output is kept: the store, file://… or s3://…")] = None
    local_target: Annotated[
        bool, Meta(description="whether scripts may run on this worker's own machine, as its user")
    ] = False
    metrics_port: Annotated[Port | None, Meta(description="where a worker or scheduler serves its metrics")] = None
    cloudwatch: Annotated[bool, Meta(description="schedulers write the backlog for CloudWatch on standard output")] = (
        False
    )
    metrics_host: Annotated[str, Meta(description="the address on which it does")] = "127.0.0.1"
    metrics: Annotated[bool, Meta(description="whether workers and schedulers serve metrics")] = True
    log_level: Annotated[str, Meta(description="debug, info, warning or error")] = "info"
    log_json: Annotated[bool, Meta(description="log lines as JSON")] = False
    url: Annotated[str | None, Meta(description="the server that client commands speak to")] = None
    token: Annotated[str | None, Meta(description="the token that client commands show", extra=SECRET)] = None

    @property
    def data_directory(self) -> Path:
        """The data directory; by default beside the SQLite file, else in the current directory."""
        if self.data is not None:
            return Path(self.data)
        scheme, _, rest = self.store.partition("://")
        file = rest.removeprefix("/") if scheme == "sqlite" else ""
        return Path(file or "headway.db").with_suffix(".data")

    def __repr__(self) -> str:
        secret = secret_names()
        told = {name: _HIDDEN if name in secret and value else value for name, value in _pairs(self)}
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in told.items())})"


def load(
    given: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """What holds; `given` are flags (None: not given). Raises ConfigurationError, which says what is wrong where."""
    environment = os.environ if environment is None else environment
    flags = {name: value for name, value in (given or {}).items() if value is not None}
    file, told = _file(environment, directory or Path.cwd())
    values: dict[str, Any] = {}
    for name, kind in _types().items():
        variable = PREFIX + name.upper()
        if name in flags:
            values[name] = _convert(flags[name], kind, f"--{name.replace('_', '-')}")
        elif environment.get(variable):
            values[name] = _convert(environment[variable], kind, variable)
        elif name in told:
            values[name] = _convert(told[name], kind, f"{name} in {file}")
    return Settings(**values)


def secret_names() -> set[str]:
    """Settings that must not be shown."""
    return {name for name, meta in _metas().items() if meta.extra == SECRET}


def descriptions() -> dict[str, str]:
    """What each setting means, in the order in which they are told."""
    return {name: meta.description or "" for name, meta in _metas().items()}


def _file(environment: Mapping[str, str], directory: Path) -> tuple[Path, Mapping[str, Any]]:
    named = environment.get(CONFIG)
    path = Path(named) if named else directory / FILE
    if not named and not path.exists():
        return path, {}
    try:
        told = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigurationError(f"the settings file {path} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the settings file {path} is no TOML: {error}") from error
    unknown = sorted(set(told) - set(_types()))
    if unknown:
        raise ConfigurationError(
            f"the settings file {path} has {unknown[0]!r}, which is no setting: use {', '.join(_types())}"
        )
    return path, told


def _convert(value: Any, kind: Any, source: str) -> Any:
    if isinstance(value, str) and kind.__origin__ == tuple[str, ...]:
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        # The value itself is not told: it may be a secret in the wrong place.
        wrong = str(error).partition(" - at")[0].replace("`", "")
        raise ConfigurationError(f"{source} ({kind.__metadata__[-1].description}): {wrong}") from None


def _pairs(settings: Settings) -> list[tuple[str, Any]]:
    return [(name, getattr(settings, name)) for name in settings.__struct_fields__]


def _types() -> dict[str, Any]:
    return get_type_hints(Settings, include_extras=True)


def _metas() -> dict[str, Meta]:
    return {name: kind.__metadata__[-1] for name, kind in _types().items()}
