"""The composition root of processes: where settings come from, and which app they concern."""

from __future__ import annotations

import importlib
import logging
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway import settings as known
from headway.app import Headway
from headway.bus import make_bus
from headway.model.errors import ConfigurationError
from headway.observe.page import Address
from headway.plugins import redacted
from headway.settings import Settings
from headway.store import store_maker

if TYPE_CHECKING:
    from headway.api.process import Terms

STORE = "HEADWAY_STORE"


def settings(**given: Any) -> Settings:
    """What holds in this process: these flags (None: not given), else variables, else the TOML file, else defaults."""
    return known.load(given)


def load_app(reference: str) -> Headway:
    """The app at `module:attribute`, from the current directory or the installed packages."""
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ConfigurationError(f"--app {reference!r} must look like module:attribute, for example myproject.jobs:app")
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    app = _attribute(_import(module_name), attribute)
    if not isinstance(app, Headway):
        raise ConfigurationError(f"{reference} is {type(app).__name__}, not a Headway app")
    # A wrong URL is told at once, before anything is served.
    store_maker(app.url)
    app.reference = reference
    return app


def app_or_none(reference: str | None, store: str | None) -> Headway:
    """The app that is named; without one, an app without functions on the store that is."""
    if reference is None:
        url = store_url(store)
        store_maker(url)
        return Headway(url, name="headway")
    app = load_app(reference)
    if store is not None and store != app.url:
        raise ConfigurationError(
            f"{reference} has the store {redacted(app.url)}, --store (or {STORE}) says {redacted(store)}: "
            "leave the one out, or make it the same"
        )
    return app


def use_bus(app: Headway, url: str | None) -> None:
    """The bus by flag, variable or file; else the app's own. A wrong one is told at once, like a wrong store."""
    app.bus = url or app.bus
    if app.bus is not None:
        make_bus(app.bus)


def store_url(given: str | None) -> str:
    """The store by flag, variable or file; else an SQLite file in the current directory."""
    return settings(store=given).store


def metrics_address(held: Settings, default: int | None) -> Address | None:
    """Where the metrics are served: where somebody says, else at the default, which gives way to others."""
    port = default if held.metrics_port is None else held.metrics_port
    if port is None or not held.metrics:
        return None
    return Address(port=port, host=held.metrics_host, asked=held.metrics_port is not None)


def require_server() -> None:
    """Refuse to go on without what the service is made of."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"the API needs the package {missing[0]!r}: pip install 'headway[server]'")


def api_terms(held: Settings) -> Terms:
    """Where the API listens, and on which terms."""
    from headway.api.process import Terms
    from headway.api.server import Tls

    if (held.tls_cert is None) != (held.tls_key is None):
        raise ConfigurationError("HEADWAY_TLS_CERT and HEADWAY_TLS_KEY belong together: set both, or none")
    tls = Tls(held.tls_cert, held.tls_key) if held.tls_cert and held.tls_key else None
    return Terms(
        host=held.host,
        port=held.port,
        tls=tls,
        proxies=held.trusted_proxies,
        cors_origins=held.cors_origins,
    )


def configure_logs(level: str, *, as_json: bool) -> None:
    """Structured lines on standard error: JSON for machines, columns for people."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ConfigurationError(f"the log level must be debug, info, warning or error, not {level!r}")
    from headway.observe import rendering

    rendering.set_up(number, as_json=as_json)


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name or name.startswith(f"{error.name}."):
            raise ConfigurationError(
                f"there is no module {name!r} here or among the installed packages: "
                "start in the directory that contains it, or install it"
            ) from error
        raise ConfigurationError(
            f"{name} could not be imported: it needs the module {error.name!r}, which is missing"
        ) from error
    except Exception as error:
        raise ConfigurationError(f"{name} could not be imported: {type(error).__name__}: {error}") from error


def _attribute(module: object, path: str) -> object:
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise ConfigurationError(f"{getattr(module, '__name__', module)} has no {path!r}")
        found = getattr(found, part)
    return found
