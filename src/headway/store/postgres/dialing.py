"""Connections to PostgreSQL: straight to a server, or through a pooler that lends one for a transaction at a time.

|               | straight                   | through a pooler (PgBouncer with `pool_mode = transaction`)         |
|---------------|----------------------------|---------------------------------------------------------------------|
| our settings  | made with the connection   | made at the begin of each transaction                               |
| statements    | prepared once              | parsed each time                                                    |
| one statement | by itself                  | in a transaction too, or parsing and running may meet two servers   |
| wake-ups      | LISTEN                     | none: workers look every second                                     |

A pooler is known by its refusal of our settings. One that takes them in silence is named in the URL:
`postgresql://…/jobs?pooler=transaction`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

from headway.model.errors import ConfigurationError
from headway.observe.logs import get_logger

NAME = {"application_name": "headway"}

COMMAND_PATIENCE = 60.0
"""Seconds after which a connection that doesn't answer is taken for lost."""

# Plans made while the tables were empty must not stay sequential scans for ever, so scans and joins that read whole
# tables are ruled out, and a plan is made once for all parameters. Accepted means on disk, whatever the server says.
SETTINGS = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "synchronous_commit": "on",
    "lock_timeout": "250ms",
    "idle_in_transaction_session_timeout": "60s",
}

SERVER_SETTINGS = {**NAME, **SETTINGS}

# Array types that are part of PostgreSQL, with their elements: what stands here is the same on every server.
_ARRAYS = {
    199: (114, "json"),
    1000: (16, "bool"),
    1001: (17, "bytea"),
    1005: (21, "int2"),
    1007: (23, "int4"),
    1009: (25, "text"),
    1016: (20, "int8"),
    1022: (701, "float8"),
    1185: (1184, "timestamptz"),
    2951: (2950, "uuid"),
    3807: (3802, "jsonb"),
}
_BEGIN_POOLED = "; ".join(["begin", *(f"set local {name} = '{value}'" for name, value in SETTINGS.items())])
_REFUSAL = "unsupported startup parameter"

log = get_logger("headway.store")


class Connection(asyncpg.Connection):
    """One that knows the types of our statements. asyncpg asks each server for them on each new connection, by a query
    over the catalogs that takes longer than anything else a short-lived process does here."""

    async def _introspect_types(self, typeoids: set[int], timeout: float | None) -> tuple[Any, Any]:
        if typeoids <= _ARRAYS.keys():
            return [_array(oid, *_ARRAYS[oid]) for oid in typeoids], _NOT_ASKED
        asked: tuple[Any, Any] = await super()._introspect_types(typeoids, timeout)  # type: ignore[misc]  # not public
        return asked


class Dialer:
    """Makes connections to one address, and knows what may be done on them."""

    def __init__(self, url: str) -> None:
        self._url, self.pooled = without_pooler(url)

    @property
    def begin(self) -> str:
        """How a transaction begins here."""
        return _BEGIN_POOLED if self.pooled else "begin"

    async def dial(self, *, unhurried: bool = False) -> Connection:
        """A new connection. `unhurried`: its commands may take as long as they like."""
        patience = None if unhurried else COMMAND_PATIENCE
        if not self.pooled:
            try:
                return await self._straight(patience)
            except asyncpg.ProtocolViolationError as error:
                if _REFUSAL not in str(error):
                    raise
                log.info("store.pooler_found", help="no LISTEN through a pooler: workers look for jobs every second")
                self.pooled = True
        return await self._through_pooler(patience)

    async def _straight(self, patience: float | None) -> Connection:
        return await self._connect(patience, max_cached_statement_lifetime=0, server_settings=SERVER_SETTINGS)

    async def _through_pooler(self, patience: float | None) -> Connection:
        return await self._connect(patience, statement_cache_size=0, server_settings=NAME)

    async def _connect(self, patience: float | None, **options: Any) -> Connection:
        return await asyncpg.connect(
            self._url, timeout=10, command_timeout=patience, connection_class=Connection, **options
        )


_NOT_ASKED = SimpleNamespace(name="none")
"""In place of the statement that asks: nothing was sent, so none was lost for it."""


def _array(oid: int, element: int, name: str) -> dict[str, Any]:
    """As the server would tell of it."""
    array = {"oid": oid, "ns": "pg_catalog", "name": f"_{name}", "kind": b"b", "elemtype": element, "elemdelim": b","}
    return {**array, "elemtype_name": name, **dict.fromkeys(("basetype", "range_subtype", "attrtypoids", "attrnames"))}


def without_pooler(url: str) -> tuple[str, bool]:
    """The URL as the driver takes it, and whether it names a pooler."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    named = [value for name, value in query if name == "pooler"]
    if not named:
        return url, False
    if named != ["transaction"]:
        raise ConfigurationError(
            f"pooler={named[0]} in the store's URL: the only pooler to be named is pooler=transaction"
        )
    rest = urlencode([(name, value) for name, value in query if name != "pooler"], safe="/")
    return parts._replace(query=rest).geturl(), True
