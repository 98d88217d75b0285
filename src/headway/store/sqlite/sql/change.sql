-- name: cancel_waiting(id, outcome, error; now)
update headway_job
set state = 'cancelled', waiting = 0, outcome = :outcome, error = :error, token = token + 1, finished_at = :now,
    wait_reason = null, gate = null
where id = :id and waiting > 0
returning id, (waiters or gated or deduped or doomed) as tied;

-- name: cancel_running(id)
update headway_job set state = 'cancelling' where id = :id and state = 'running' returning id, lease_id, worker_id;

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
returning id;

-- name: schedule_jobs(id, run_at)
-- Off hold, or out of `blocked` by a person's word; jobs that still wait for others stay blocked.
update headway_job
set state = case when exists (select 1 from headway_edge e where e.child_id = :id) then 'blocked' else 'scheduled' end,
    waiting = case when exists (select 1 from headway_edge e where e.child_id = :id) then 2 else 1 end,
    wait_reason = case when exists (select 1 from headway_edge e where e.child_id = :id) then 'after' end,
    hold = 0,
    run_at = coalesce(:run_at, run_at)
where id = :id and (state in ('creating', 'scheduled') or (state = 'blocked' and wait_reason = 'parent_failed'))
returning id, state, queue;

-- name: delete_jobs(id)
-- Triggers take along what belongs to the job.
delete from headway_job where id = :id and state not in ('running', 'cancelling') returning id;

-- name: drop_result(job_id)
-- A trigger takes along its chunks.
delete from headway_result where job_id = :job_id;

-- name: ties_of(id)
select id, queue, state, waiters, gated, deduped, doomed from headway_job where id = :id;

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
select id, queue, on_parent_failure, wait_reason,
       not exists (select 1 from headway_edge e where e.child_id = :id) as free
from headway_job where id = :id and waiting = 2 and gate is null;

-- name: promote_jobs(id)
update headway_job set state = 'scheduled', waiting = 1, wait_reason = null
where id = :id and state = 'blocked'
returning id, queue;

-- name: hold_back(id, wait_reason)
update headway_job set wait_reason = :wait_reason where id = :id and state = 'blocked';

-- name: free_dedupes(job_id)
delete from headway_dedupe where job_id = :job_id;
