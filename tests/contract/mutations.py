"""Deliberate faults in the SQL of a store: the contract suite proves its worth by catching each of them."""

from __future__ import annotations

import re

import msgspec

from headway.store.sql import SqlStore
from headway.store.statements import Statement

NOW = r"(?:coalesce\(\$\d+::timestamptz, now\(\)\)|\?\d+|clock\.now)"
"""The present, as either dialect says it."""
FENCE = r"and \S*\btoken = (?:\w+\.token|\?\d+)\s+and \S*finished_token is (?:distinct from|not) (?:\w+\.token|\?\d+)"
ALWAYS = r"(\g<0> or true)"
NEVER = r"(\g<0> and false)"


class Mutation(msgspec.Struct, frozen=True):
    """A change of some statements, and the file whose tests must notice it."""

    statements: tuple[str, ...]
    pattern: str
    replacement: str
    caught_in: str
    dialects: tuple[str, ...] = ("postgres", "sqlite-memory")
    """Where it makes a difference."""

    def apply(self, statements: dict[str, Statement]) -> None:
        for name in self.statements:
            statement = statements[name]
            text, count = re.subn(self.pattern, self.replacement, statement.text, flags=re.DOTALL)
            if not count or text == statement.text:
                raise ValueError(f"the mutation changes nothing in {name}: {statement.text}")
            statements[name] = msgspec.structs.replace(statement, text=text)


CLAIMS = ("claim_due", "claim_jobs")

MUTATIONS = {
    "a success is matched by the id alone": Mutation(("complete_jobs",), FENCE, "", "test_store_fencing"),
    "a success without ties is matched by the id alone": Mutation(
        ("complete_untied",), FENCE, "", "test_store_fencing"
    ),
    "a success with ties is recorded without them": Mutation(
        ("complete_untied",), r"and not \([^)]*\)", "", "test_store_after"
    ),
    "a finish is matched by the id alone": Mutation(("finish_jobs",), FENCE, "", "test_store_fencing"),
    "a release is matched by the id alone": Mutation(("release_jobs",), FENCE, "", "test_store_fencing"),
    "a report is matched by the id alone": Mutation(("report",), FENCE, "", "test_store_fencing"),
    "output is matched by the id alone": Mutation(("append_chunks",), FENCE, "", "test_store_fencing"),
    "a claim ignores run_at": Mutation(
        ("claim_due", "due_candidates"), rf"j\.run_at <= {NOW}", ALWAYS, "test_store_claim"
    ),
    "a claim takes expired jobs": Mutation(
        ("claim_due", "due_candidates"), rf"j\.expires_at > {NOW}", ALWAYS, "test_store_claim"
    ),
    "a claim starts behind the first job that it finds": Mutation(
        ("claim_due",), r">= \(r\.run_at", "> (r.run_at", "test_store_claim", dialects=("postgres",)
    ),
    "a claim never looks from the start again": Mutation(
        ("claim_due",),
        r"latest\.scanned_at > clock\.now - clock\.patience",
        "true",
        "test_marks",
        dialects=("postgres",),
    ),
    "many claims look from the start at once": Mutation(
        ("claim_due",), r"pg_try_advisory_xact_lock\(.+?, 1\)\)", "true", "test_marks", dialects=("postgres",)
    ),
    "whether a job is due is asked from the start": Mutation(
        ("peek",), r"on first\.run_at <= clock\.now", "on false", "test_marks", dialects=("postgres",)
    ),
    "who is stuck keeps all others from the start": Mutation(
        ("claim_due",), r"interval '15 s'", "interval '15 h'", "test_marks", dialects=("postgres",)
    ),
    "an earlier look counts more than the latest": Mutation(
        ("claim_due",), r"latest\.scanned_at \+ interval '1 us'", "null", "test_marks", dialects=("postgres",)
    ),
    "a long look from the start is followed by the next": Mutation(
        ("claim_due",), r"least\(3 \* ", "least(0 * ", "test_marks", dialects=("postgres",)
    ),
    "a claim goes on from a place of the future": Mutation(
        ("claim_due",), r"and clock\.now \+ interval '2 s'", "and 'infinity'", "test_marks", dialects=("postgres",)
    ),
    "a claim that goes on from a place makes it a new one": Mutation(
        ("claim_due",), r"coalesce\(mark\.scanned_at, ", "coalesce(null, ", "test_marks", dialects=("postgres",)
    ),
    "a claim goes on where one of another queue ended": Mutation(
        ("claim_due",), r"l\.queue = asked\.queue and", "", "test_marks", dialects=("postgres",)
    ),
    "a claim that has taken all leaves a place behind": Mutation(
        ("claim_due",),
        r"case when cardinality\(taken\.jobs\) = \S+ then (\S+) end",
        r"\1",
        "test_marks",
        dialects=("postgres",),
    ),
    "a claim does not say that it has not looked from the start": Mutation(
        ("claim_due",), r"mark\.rank > -32768 as", "false as", "test_marks", dialects=("postgres",)
    ),
    "a claim ignores that the queue is paused": Mutation(("claim_due",), r"q\.paused", "false", "test_store_claim"),
    "a claim under limits ignores that the queue is paused": Mutation(
        ("due_candidates",), r"q\.paused", "false", "test_store_claim"
    ),
    "a claim does not move the token on": Mutation(
        CLAIMS, r"token = (\S*)token \+ 1", r"token = \1token", "test_store_fencing"
    ),
    "a release does not move the token on": Mutation(
        ("release_jobs",), r"token = (\S*)token \+ 1", r"token = \1token", "test_store_fencing"
    ),
    "a rescue does not move the token on": Mutation(
        ("rescue_jobs",), r"token = (\S*)token \+ 1", r"token = \1token", "test_store_fencing"
    ),
    "a person's retry resets the token": Mutation(
        ("reopen_jobs",), r"token = (\S*)token \+ 1", "token = 0", "test_store_fencing"
    ),
    "an attempt is not charged": Mutation(
        CLAIMS, r"attempt = (\S*)attempt \+ 1", r"attempt = \1attempt", "test_store_leases"
    ),
    "a job given back is charged": Mutation(("release_jobs",), r"'give_back', ", "", "test_store_leases"),
    "a rescue ignores the lease's time": Mutation(("lapsed_leases",), rf"until <= {NOW}", ALWAYS, "test_store_leases"),
    "a rescue ignores whose lease the job is under": Mutation(
        ("rescue_jobs",), r"\S*lease_id = (?:lost\.lease_id|\?\d+)", ALWAYS, "test_store_leases"
    ),
    "a loss is not counted": Mutation(
        ("rescue_jobs",), r"losses = (\S*)losses \+ 1", r"losses = \1losses", "test_store_leases"
    ),
    "a renewal revives lapsed leases": Mutation(("renew_leases",), rf"until > {NOW}", ALWAYS, "test_store_leases"),
    "a finish ignores that the job is being cancelled": Mutation(
        ("finish_jobs",), "'cancelling'", "'nothing'", "test_store_leases"
    ),
    "a release ignores that the job is being cancelled": Mutation(
        ("release_jobs",), "'cancelling'", "'nothing'", "test_store_leases"
    ),
    "a person's retry keeps the failures": Mutation(
        ("reopen_jobs",), "failures = 0", "failures = failures", "test_store_leases"
    ),
    "a window never ends": Mutation(("take_dedupes",), rf"\S*expires_at <= {NOW}", NEVER, "test_store_dedupe"),
    "a duplicate takes the window over": Mutation(
        ("take_dedupes",), rf"\S*expires_at <= {NOW}", ALWAYS, "test_store_dedupe"
    ),
    "a failed job keeps its window": Mutation(("free_dedupes",), "where ", "where false and ", "test_store_dedupe"),
    "edges are not cut": Mutation(("cut_edges",), "where ", "where false and ", "test_store_after"),
    "a child goes on without a look at its other parents": Mutation(
        ("free_children",), r"not exists \(.*?\) as free", "true as free", "test_store_after"
    ),
    "parents are not told that somebody waits": Mutation(
        ("mark_waiters",), "where ", "where false and ", "test_store_after"
    ),
    "a place in the line is not inherited": Mutation(
        ("inherit_edges",), "kind = 'wait'", "kind = 'nothing'", "test_store_conflicts"
    ),
    "running jobs are not counted at a limit": Mutation(
        ("read_gates",), r"\(select count\(\*\).*?\) as running", "0 as running", "test_limits"
    ),
    "those blocked at a limit are promoted out of order": Mutation(
        ("promote_at_gate",), "order by rank, run_at, id", "order by id", "test_limits"
    ),
    "a submission to a full key walks in": Mutation(("insert_jobs",), r"shut\.name is null", ALWAYS, "test_full_keys"),
    "those who wait at an open gate are forgotten": Mutation(
        # With one writer at a time nobody comes to wait at the moment the gate opens.
        ("waiting_gates", "stranded_gates"),
        "waiting = 2",
        "waiting = 3",
        "test_full_keys",
        dialects=("postgres",),
    ),
    "gates are not locked": Mutation(("lock_gates",), "for update", "", "test_limits", dialects=("postgres",)),
    "those promoted at a gate have no way past a backlog": Mutation(
        ("due_candidates",), r"j\.gate is not null", NEVER, "test_limits"
    ),
    "some of the others behind a backlog are taken for all": Mutation(
        ("due_candidates",), r"count\(\*\) < ", "count(*) <= ", "test_full_keys"
    ),
    "others behind a backlog are not looked for between full keys": Mutation(
        ("due_candidates",), r"> full_\.key", r"\g<0> and false", "test_full_keys"
    ),
    "slots are not freed": Mutation(("free_slots",), "where ", "where false and ", "test_limits"),
    "a queue's retention is ignored": Mutation(("old_jobs",), r"q\.keep_completed", "null", "test_tending"),
    "a duty is taken from its holder": Mutation(("take_duty",), rf"\S*until <= {NOW}", ALWAYS, "test_tending"),
    "jobs being cancelled are not counted": Mutation(("count_held",), ", 'cancelling'", "", "test_overview"),
    "jobs due later count as due": Mutation(("count_waiting",), rf"run_at <= {NOW}", ALWAYS, "test_overview"),
    "a pause is dated anew by every change": Mutation(
        ("put_queue",), r"case when \S+paused and excluded\.paused\s+then", "case when false then", "test_why"
    ),
    "those behind a job count as before it": Mutation(("why_ahead", "why_line"), r"j\.id\) < ", "j.id) > ", "test_why"),
    "more urgent jobs do not count as before a job": Mutation(("why_ahead",), r"r\.rank < \S+", NEVER, "test_why"),
    "a job waits for its children": Mutation(("why_waits_for",), r"e\.child_id = ", "e.parent_id = ", "test_why"),
    "older code overwrites newer": Mutation(("put_function",), r"excluded\.code_version >= \S+", ALWAYS, "test_views"),
    "a tick fires what is not due yet": Mutation(("due_schedules",), rf"due_at <= {NOW}", ALWAYS, "test_fire"),
    "a tick takes those first that are due last": Mutation(
        ("due_schedules",), "order by due_at", "order by due_at desc", "test_fire"
    ),
    "a schedule that has fired stays where it was": Mutation(
        ("advance_schedules",), r"where (?:s\.id = new\.id|id = \?\d+)", r"\g<0> and false", "test_fire"
    ),
    "the next schedule is taken to be the last": Mutation(
        ("next_due_schedule",), r"min\(due_at\)", "max(due_at)", "test_fire"
    ),
    "each skip is a line of its own": Mutation(("fold_skips",), r"\S*until_at < \S+", NEVER, "test_fire"),
    "a skip goes on for whatever reason": Mutation(
        ("fold_skips",), r"\S*reason = (?:new\.reason|\?\d+)", ALWAYS, "test_fire"
    ),
    "a skip goes on over the jobs behind it": Mutation(
        ("fold_skips",), r"and \S*nominal_at = \(select max\([^)]*\)[^)]*\)", "", "test_fire_overlap"
    ),
    "the ledger is pruned whatever its age": Mutation(
        ("prune_occurrences",), r"recorded_at < .*?(?=\s+order)", ALWAYS, "test_fire"
    ),
    "the ledger is read from its beginning": Mutation(
        ("get_occurrences",), "order by nominal_at desc", "order by nominal_at", "test_fire"
    ),
    "what has fired before the clock was set back is forgotten": Mutation(
        ("fired_times",), r"\S*job_id is not null", NEVER, "test_fire_clock"
    ),
    "schedules ahead of the clock are not seen": Mutation(
        ("ahead_schedules",), rf"last_at > {NOW}", NEVER, "test_fire_clock"
    ),
    "schedules that a wrong clock has ended are not seen": Mutation(
        ("ahead_schedules",), "next_at is null", NEVER, "test_fire_clock"
    ),
    "skips of times that are still to come are kept": Mutation(
        ("drop_future_skips",), rf"until_at > {NOW}", NEVER, "test_fire_clock"
    ),
    "a change leaves the version as it was": Mutation(
        ("update_schedule",), r"version = version \+ 1", "version = version", "test_schedules"
    ),
    "a deleted schedule leaves its ledger behind": Mutation(
        ("delete_occurrences",), "where ", "where false and ", "test_schedules"
    ),
    "the schedules of all apps are taken for one's own": Mutation(
        ("declared_schedules",), r"source = \S+", ALWAYS, "test_declare"
    ),
}


def mutate(store: SqlStore, name: str) -> None:
    """Give this store, before it is first used, one fault."""
    MUTATIONS[name].apply(store._driver._statements)  # type: ignore[attr-defined]
