-- name: cancel_waiting(id, outcome, error; now)
update headway.job j
set state = 'cancelled', waiting = 0, outcome = gone.outcome, error = gone.error, token = j.token + 1,
    finished_at = coalesce(:now::timestamptz, now()), wait_reason = null, gate = null
from unnest(:id::uuid[], :outcome::text[], :error::json[]) as gone(id, outcome, error)
where j.id = gone.id and j.waiting > 0 and j.state <> 'cancelling'
returning j.id, (j.waiters or j.gated or j.deduped or j.doomed) as tied, j.kind, j.name, j.queue, j.state, j.outcome, j.attempt, j.correlation_id;

-- name: cancel_outliving(id; outliving, now)
-- It waits, but an earlier attempt was lost or given back, and what that began may still run: the next worker looks.
update headway.job j
set state = 'cancelling', waiting = 1, run_at = least(j.run_at, coalesce(:now::timestamptz, now())), expires_at = null,
    wait_reason = null, gate = null
where j.id = any(:id::uuid[]) and j.waiting > 0 and j.kind = :outliving::text and j.state in ('scheduled', 'blocked')
  and j.claimed_at is not null and (j.outcome is null or j.outcome = 'lost')
returning j.id, j.kind, j.name, j.queue, j.state, j.outcome, j.attempt, j.correlation_id;

-- name: cancel_running(id)
update headway.job set state = 'cancelling'
where id = any(:id::uuid[]) and state = 'running'
returning id, lease_id, worker_id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: tell_leases(lease_id, job_id)
-- The worker hears of it at its next renewal, or at once through `wake`.
update headway.lease l
set cancels = l.cancels || told.jobs
from (
    select lease_id, array_agg(job_id) as jobs
    from unnest(:lease_id::uuid[], :job_id::uuid[]) as t(lease_id, job_id) group by lease_id
) told
where l.id = told.lease_id;

-- name: doom_jobs(id)
update headway.job set doomed = true where id = any(:id::uuid[]);

-- name: ended_jobs(id)
-- What a person's retry needs to know, under lock.
select id, key, queue, state, outcome, on_conflict, attempt, error, claimed_at, started_at, worker_id, finished_at
from headway.job where id = any(:id::uuid[]) order by id for update;

-- name: reopen_jobs(id, state, waiting, wait_reason; now)
update headway.job j
set state = again.state, waiting = again.waiting, wait_reason = again.wait_reason, outcome = null, failures = 0,
    losses = 0, token = j.token + 1, run_at = coalesce(:now::timestamptz, now()), started_at = null,
    claimed_at = null, finished_at = null, expires_at = null, progress = null, gate = null
from unnest(:id::uuid[], :state::text[], :waiting::smallint[], :wait_reason::text[])
     as again(id, state, waiting, wait_reason)
where j.id = again.id and j.state in ('completed', 'failed', 'cancelled')
returning j.id, j.kind, j.name, j.queue, j.state, j.outcome, j.attempt, j.correlation_id;

-- name: schedule_jobs(id, run_at)
-- Off hold, or out of `blocked` by a person's word; jobs that still wait for others stay blocked.
update headway.job j
set state = case when exists (select from headway.edge e where e.child_id = j.id) then 'blocked' else 'scheduled' end,
    waiting = case when exists (select from headway.edge e where e.child_id = j.id) then 2 else 1 end,
    wait_reason = case when exists (select from headway.edge e where e.child_id = j.id) then 'after' end,
    hold = false,
    run_at = coalesce(go.run_at, j.run_at)
from unnest(:id::uuid[], :run_at::timestamptz[]) as go(id, run_at)
where j.id = go.id
  and (j.state = 'creating' or (j.state = 'blocked' and j.wait_reason = 'parent_failed') or j.state = 'scheduled')
returning j.id, j.kind, j.name, j.queue, j.state, j.outcome, j.attempt, j.correlation_id;

-- name: edit_job(; job_id, run_at, rank, queue, payload)
-- The gate is one of the old queue; who stood at it goes back to be claimed.
update headway.job
set run_at = coalesce(:run_at::timestamptz, run_at),
    rank = coalesce(:rank::smallint, rank),
    queue = coalesce(:queue::text, queue),
    payload = coalesce(:payload::json, payload),
    state = case when :queue::text is not null and gate is not null then 'scheduled' else state end,
    waiting = case when :queue::text is not null and gate is not null then 1 else waiting end,
    wait_reason = case when :queue::text is not null and gate is not null then null else wait_reason end,
    gate = case when :queue::text is null then gate end
where id = :job_id::uuid and waiting > 0;

-- name: delete_jobs(id)
-- Only what has ended: a job that was looked at without a lock may have been retried meanwhile.
with gone as (
    delete from headway.job where id = any(:id::uuid[]) and state in ('completed', 'failed', 'cancelled') returning id
), attempts as (delete from headway.attempt where job_id in (select id from gone)),
history as (delete from headway.history where job_id in (select id from gone)),
parents as (delete from headway.parent where child_id in (select id from gone)),
dedupes as (delete from headway.dedupe where job_id in (select id from gone)),
results as (delete from headway.result where job_id in (select id from gone)),
chunks as (delete from headway.chunk where job_id in (select id from gone)),
uses as (delete from headway.attachment_use where owner_id in (select id from gone)),
artifacts as (delete from headway.artifact where job_id in (select id from gone))
select id from gone;

-- name: drop_result(job_id)
with results as (delete from headway.result where job_id = any(:job_id::uuid[]))
delete from headway.chunk where job_id = any(:job_id::uuid[]) and stream = 'result';

-- name: ties_of(id)
select id, kind, name, queue, state, outcome, attempt, correlation_id, waiters, gated, deduped, doomed
from headway.job where id = any(:id::uuid[]) order by id;

-- name: children_of(parent_id)
select distinct child_id from headway.edge where parent_id = any(:parent_id::uuid[]);

-- name: inherit_edges(parent_id)
-- A job that ends while it still stands in its key's line hands its place to those that queued up behind it.
-- Several of one line may end at once: what the first waited for goes to those behind the last.
with recursive waited(ended_id, parent_id) as (
    select e.child_id, e.parent_id from headway.edge e
    where e.child_id = any(:parent_id::uuid[]) and e.kind = 'wait'
    union
    select w.ended_id, e.parent_id
    from waited w join headway.edge e on e.child_id = w.parent_id
    where w.parent_id = any(:parent_id::uuid[]) and e.kind = 'wait'
)
insert into headway.edge (parent_id, child_id, kind)
select distinct w.parent_id, down.child_id, 'wait'
from headway.edge down join waited w on w.ended_id = down.parent_id
where down.parent_id = any(:parent_id::uuid[]) and down.kind = 'wait'
on conflict do nothing;

-- name: cut_edges(parent_id)
delete from headway.edge where parent_id = any(:parent_id::uuid[]) returning parent_id, child_id, kind;

-- name: drop_edges_to(child_id)
delete from headway.edge where child_id = any(:child_id::uuid[]);

-- name: free_children(id)
-- Those that wait for nobody any more, with what their parents' failure means to them.
select j.id, j.state, j.on_parent_failure, j.wait_reason,
       not exists (select from headway.edge e where e.child_id = j.id) as free
from headway.job j where j.id = any(:id::uuid[]) and j.waiting = 2 and j.gate is null
order by j.id;

-- name: promote_jobs(id)
update headway.job set state = 'scheduled', waiting = 1, wait_reason = null
where id = any(:id::uuid[]) and state = 'blocked'
returning id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: hold_back(id, wait_reason)
update headway.job j set wait_reason = held.wait_reason
from unnest(:id::uuid[], :wait_reason::text[]) as held(id, wait_reason)
where j.id = held.id and j.state = 'blocked';

-- name: free_dedupes(job_id)
delete from headway.dedupe where job_id = any(:job_id::uuid[]);
