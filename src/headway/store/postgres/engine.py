"""What a PostgreSQL server and its settings mean for our promises."""

from __future__ import annotations

from collections.abc import Sequence

from headway.model.findings import Finding, fine, problem, warning
from headway.model.words import count, duration, listed, size
from headway.store.statements import Row, Script, one

LONG_OPEN = 300.0
"""Seconds after which an open transaction of somebody is worth a warning."""
DEAD_SHARE = 0.2
DEAD_ROWS = 20_000
"""So many dead rows, and such a share of them, slow down claims."""
CONNECTIONS_PER_WORKER = 3


def examine(long_open: float) -> Script[list[Finding]]:
    """One finding for each thing that could hurt."""
    [facts] = yield one("server_facts")
    lacking = yield one("lacking_rights")
    transactions = yield one("long_transactions", age=long_open)
    tables = yield one("table_sizes")
    return [
        server(facts),
        durability(facts),
        connections(facts),
        rights(facts, lacking),
        open_transactions(facts, transactions, long_open),
        dead_rows(facts, [row for row in tables if row["table_name"] == "job"]),
        stored(tables),
    ]


def server(facts: Row) -> Finding:
    if facts["standby"] or facts["read_only"]:
        what = "is a standby" if facts["standby"] else "opens transactions as read-only"
        return problem(
            "server",
            f"PostgreSQL {facts['version']} {what}: no job can be stored",
            "name the primary server, or switch default_transaction_read_only off",
        )
    return fine("server", f"PostgreSQL {facts['version']}")


def durability(facts: Row) -> Finding:
    """Accepted means on disk."""
    wrong = [f"{name} is off" for name in ("fsync", "full_page_writes") if not facts[name]]
    if not wrong:
        return fine("durability", "fsync on; our connections commit with synchronous_commit on")
    return problem(
        "durability",
        f"{listed(wrong)}: jobs that were accepted can be lost when the machine fails",
        "switch it on in postgresql.conf",
    )


def connections(facts: Row) -> Finding:
    used, most, workers = facts["connections"], facts["most"], facts["workers"]
    text = f"{used} of {most} connections are in use"
    if used < 0.8 * most and most >= CONNECTIONS_PER_WORKER * workers + 10:
        return fine("connections", text)
    return warning(
        "connections",
        f"{text}; {count(workers, 'worker')} may need up to {CONNECTIONS_PER_WORKER * workers}",
        "raise max_connections in postgresql.conf, or let workers connect through PgBouncer",
    )


def rights(facts: Row, lacking: Sequence[Row]) -> Finding:
    user = facts["user_name"]
    if lacking:
        missing = listed([f"{row['privilege']} on headway.{row['table_name']}" for row in lacking])
        return problem(
            "rights",
            f"the user {user} lacks {missing}",
            f"grant select, insert, update, delete on all tables in schema headway to {user}",
        )
    if not facts["temp"]:
        return warning(
            "rights",
            f"the user {user} may not make temporary tables in this database",
            f"grant temporary on database … to {user}",
        )
    return fine("rights", f"the user {user} may read and write all tables, and make temporary ones")


def open_transactions(facts: Row, found: Sequence[Row], long_open: float) -> Finding:
    check = "open transactions"
    if not found:
        blind = "" if facts["sees_all"] else " among those this user may see (grant pg_read_all_stats to see all)"
        return fine(check, f"none is open for longer than {duration(long_open)}{blind}")
    first = found[0]
    who = f"process {first['pid']} ({first['application_name'] or first['user_name'] or 'unknown'}, {first['state']})"
    return warning(
        check,
        f"{count(len(found), 'transaction')} open for long; {who} for {duration(first['seconds'])}: vacuum can't clear "
        "dead rows away meanwhile, and claims slow down",
        f"end it in its program, or by: select pg_terminate_backend({first['pid']})",
    )


def dead_rows(facts: Row, tables: Sequence[Row]) -> Finding:
    check = "dead rows"
    if not facts["autovacuum"]:
        return warning(check, "autovacuum is off: tables grow and slow down", "switch autovacuum on in postgresql.conf")
    dead, live = sum(row["dead"] for row in tables), sum(row["live"] for row in tables)
    share = dead / (dead + live) if dead else 0.0
    text = f"{dead:,} dead rows beside {live:,} live ones in headway.job ({share:.0%})"
    if dead < DEAD_ROWS or share < DEAD_SHARE:
        return fine(check, text)
    last = next((f", last vacuumed {duration(row['vacuumed'])} ago" for row in tables if row["vacuumed"]), "")
    return warning(check, text + last, "see that a worker runs (it vacuums), or: vacuum headway.job")


def stored(tables: Sequence[Row]) -> Finding:
    largest = [f"{row['table_name']} {size(row['octets'])}" for row in tables[:3]]
    total = sum(row["octets"] for row in tables)
    jobs = next((row["live"] for row in tables if row["table_name"] == "job"), 0)
    return fine("size", f"about {jobs:,} jobs; {size(total)} in all tables: {', '.join(largest)}")
