-- name: cancel_waiting(id, outcome, error; now)
update headway_job
set state = 'cancelled', waiting = 0, outcome = :outcome, error = :error, token = token + 1, finished_at = :now,
    wait_reason = null, gate = null
where id = :id and waiting > 0 and state <> 'cancelling'
returning id, kind, name, queue, state, outcome, attempt, correlation_id, (waiters or gated or deduped or doomed) as tied;

-- name: cancel_outliving(id; outliving, now)
-- It waits, but an earlier attempt was lost or given back, and what that began may still run: the next worker looks.
update headway_job
set state = 'cancelling', waiting = 1, run_at = min(run_at, :now), expires_at = null, wait_reason = null, gate = null
where id = :id and waiting > 0 and kind = :outliving and state in ('scheduled', 'blocked')
  and claimed_at is not null and (outcome is null or outcome = 'lost')
returning id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: cancel_running(id)
update headway_job set state = 'cancelling' where id = :id and state = 'running'
returning id, lease_id, worker_id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: tell_leases(lease_id, job_id)
-- The worker hears of it at its next renewal, or at once through `wake`. `||` makes text of blobs, hence the cast.
update headway_lease set cancels = cast(cancels || :job_id as blob) where id = :lease_id;

-- name: doom_jobs(id)
update headway_job set doomed = 1 where id = :id;

-- name: ended_jobs(id)
-- What a person's retry needs to know.
select id, key, queue, state, outcome, on_conflict, attempt, error, claimed_at, started_at, worker_id, finished_at
from headway_job where id = :id;

-- name: reopen_jobs(id, state, waiting, wait_reason; now)
update headway_job
set state = :state, waiting = :waiting, wait_reason = :wait_reason, outcome = null, failures = 0, losses = 0,
    token = token + 1, run_at = :now, started_at = null, claimed_at = null, finished_at = null, expires_at = null,
    progress = null, gate = null
where id = :id and state in ('completed', 'failed', 'cancelled')
returning id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: schedule_jobs(id, run_at)
-- Off hold, or out of `blocked` by a person's word; jobs that still wait for others stay blocked.
update headway_job
set state = case when exists (select 1 from headway_edge e where e.child_id = :id) then 'blocked' else 'scheduled' end,
    waiting = case when exists (select 1 from headway_edge e where e.child_id = :id) then 2 else 1 end,
    wait_reason = case when exists (select 1 from headway_edge e where e.child_id = :id) then 'after' end,
    hold = 0,
    run_at = coalesce(:run_at, run_at)
where id = :id and (state in ('creating', 'scheduled') or (state = 'blocked' and wait_reason = 'parent_failed'))
returning id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: edit_job(; job_id, run_at, rank, queue, payload)
-- The gate is one of the old queue; who stood at it goes back to be claimed.
update headway_job
set run_at = coalesce(:run_at, run_at),
    rank = coalesce(:rank, rank),
    queue = coalesce(:queue, queue),
    payload = coalesce(:payload, payload),
    state = case when :queue is not null and gate is not null then 'scheduled' else state end,
    waiting = case when :queue is not null and gate is not null then 1 else waiting end,
    wait_reason = case when :queue is not null and gate is not null then null else wait_reason end,
    gate = case when :queue is null then gate end
where id = :job_id and waiting > 0;

-- name: delete_jobs(id)
-- Only what has ended. Triggers take along what belongs to the job.
delete from headway_job where id = :id and state in ('completed', 'failed', 'cancelled') returning id;

-- name: drop_result(job_id)
-- A trigger takes along its chunks.
delete from headway_result where job_id = :job_id;

-- name: ties_of(id)
select id, kind, name, queue, state, outcome, attempt, correlation_id, waiters, gated, deduped, doomed from headway_job where id = :id;

-- name: children_of(parent_id)
select child_id from headway_edge where parent_id = :parent_id;

-- name: inherit_edges(parent_id)
-- A job that ends while it still stands in its key's line hands its place to those that queued up behind it.
insert into headway_edge (parent_id, child_id, kind)
select up.parent_id, down.child_id, 'wait'
from headway_edge down join headway_edge up on up.child_id = down.parent_id
where down.parent_id = :parent_id and down.kind = 'wait' and up.kind = 'wait'
on conflict do nothing;

-- name: cut_edges(parent_id)
delete from headway_edge where parent_id = :parent_id returning parent_id, child_id, kind;

-- name: drop_edges_to(child_id)
delete from headway_edge where child_id = :child_id;

-- name: free_children(id)
-- Those that wait for nobody any more, with what their parents' failure means to them.
select id, state, on_parent_failure, wait_reason,
       not exists (select 1 from headway_edge e where e.child_id = :id) as free
from headway_job where id = :id and waiting = 2 and gate is null;

-- name: promote_jobs(id)
update headway_job set state = 'scheduled', waiting = 1, wait_reason = null
where id = :id and state = 'blocked'
returning id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: hold_back(id, wait_reason)
update headway_job set wait_reason = :wait_reason where id = :id and state = 'blocked';

-- name: free_dedupes(job_id)
delete from headway_dedupe where job_id = :job_id;
