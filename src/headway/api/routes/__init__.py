"""The table: every route of the service. To add some, write a module with a list `ROUTES` and name it here."""

from __future__ import annotations

from importlib import import_module

from headway.api.table import Route, check

MODULES = (
    "headway.api.routes.batch",
    "headway.api.routes.acts",
    "headway.api.routes.jobs",
    "headway.api.routes.scripts",
    "headway.api.routes.results",
    "headway.api.routes.schedules",
    "headway.api.routes.timetables",
    "headway.api.routes.queues",
    "headway.api.routes.secrets",
    "headway.api.routes.targets",
    "headway.api.routes.events",
    "headway.api.routes.history",
    "headway.api.routes.digests",
    "headway.api.routes.session",
    "headway.api.routes.users",
    "headway.api.routes.tokens",
    "headway.api.routes.audit",
    "headway.api.routes.alerts",
    "headway.api.routes.health",
    "headway.api.routes.metrics",
    "headway.api.routes.documents",
    "headway.api.routes.kin",
    "headway.api.routes.demo",
    "headway.api.routes.page",
)
"""The busiest first: paths are tried in this order."""


def all_routes() -> tuple[Route, ...]:
    """Every route. Raises ConfigurationError for one that doesn't say who may use it."""
    routes = tuple(route for module in MODULES for route in import_module(module).ROUTES)
    check(routes)
    return routes
