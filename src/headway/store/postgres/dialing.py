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

from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

from headway.model.errors import ConfigurationError
from headway.observe.logs import get_logger

Connection = asyncpg.Connection

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

_BEGIN_POOLED = "; ".join(["begin", *(f"set local {name} = '{value}'" for name, value in SETTINGS.items())])
_REFUSAL = "unsupported startup parameter"

log = get_logger("headway.store")


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
        connection: Connection = await asyncpg.connect(
            self._url,
            timeout=10,
            command_timeout=patience,
            max_cached_statement_lifetime=0,
            server_settings=SERVER_SETTINGS,
        )
        return connection

    async def _through_pooler(self, patience: float | None) -> Connection:
        connection: Connection = await asyncpg.connect(
            self._url, timeout=10, command_timeout=patience, statement_cache_size=0, server_settings=NAME
        )
        return connection


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
