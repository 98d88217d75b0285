"""The composition root of processes: where settings come from, and which app they concern."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import Path

from headway.app import Headway
from headway.bus.contract import redacted
from headway.model.errors import ConfigurationError
from headway.observe import rendering

STORE = "HEADWAY_STORE"
LEASE = "HEADWAY_LEASE"


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
    app.reference = reference
    return app


def app_or_none(reference: str | None, store: str | None) -> Headway:
    """The app that is named; without one, an app without functions on the store that is."""
    if reference is None:
        return Headway(store_url(store), name="headway")
    app = load_app(reference)
    if store is not None and store != app.url:
        raise ConfigurationError(
            f"{reference} has the store {redacted(app.url)}, --store (or {STORE}) says {redacted(store)}: "
            "leave the one out, or make it the same"
        )
    return app


def store_url(given: str | None) -> str:
    """The store by flag, else by variable, else a file in the current directory."""
    return given or os.environ.get(STORE) or "sqlite:///headway.db"


def lease(given: float | None) -> float:
    """Seconds a worker's claim lasts without renewal."""
    text = os.environ.get(LEASE, "30")
    try:
        return given if given is not None else float(text)
    except ValueError:
        raise ConfigurationError(f"{LEASE} must be a number of seconds, not {text!r}") from None


def configure_logs(level: str, *, as_json: bool) -> None:
    """Structured lines on standard error: JSON for machines, columns for people."""
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ConfigurationError(f"the log level must be debug, info, warning or error, not {level!r}")
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
