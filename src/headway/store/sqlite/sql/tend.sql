-- name: look(; grace, now)
-- Whether the frequent duties have anything to do: one question instead of four.
select exists (select 1 from headway_lease where until <= :now) as lapsed,
       exists (select 1 from headway_job where waiting > 0 and expires_at is not null and expires_at <= :now) as expired,
       exists (select 1 from headway_job where waiting = 2 and gate is not null)
           or exists (select 1 from headway_gate where closed = 1) as closed,
       exists (select 1 from headway_job where waiting = 2 and wait_reason = 'created'
               and created_at < :now - cast(:grace * 1000000 as integer)) as stray;

-- name: lapsed_leases(; limit, now)
select id, jobs from headway_lease where until <= :now order by until, id limit :limit;

-- name: rescue_jobs(id, lease_id; suspect, unproven, outliving, error, now)
-- What outlives its worker is cancelled once it is seen stopped: its cancel waits for the next worker.
-- Only what is still held under the lapsed lease; its holder's token dies here. A suspect whose worker died again waits
-- a while: either it kills whole workers, or someone does, and it must not be taken for poison for that.
update headway_job
set state = case when state = 'cancelling' and kind = :outliving then state
                 when state = 'cancelling' then 'cancelled' when losses + 1 >= :unproven then 'failed'
                 else 'scheduled' end,
    waiting = case when state = 'cancelling' and kind = :outliving then 1
                   when state = 'cancelling' or losses + 1 >= :unproven then 0 else 1 end,
    outcome = case when state = 'cancelling' and kind = :outliving then 'lost'
                   when state = 'cancelling' then 'cancelled' when losses + 1 >= :unproven then 'poison'
                   else 'lost' end,
    finished_at = case when state = 'cancelling' and kind = :outliving then null
                       when state = 'cancelling' or losses + 1 >= :unproven then :now end,
    expires_at = null,
    token = token + 1,
    losses = losses + 1,
    run_at = case when losses < :suspect then run_at else :now + (5000000 << min(losses - :suspect, 8)) end,
    error = :error
where id = :id and lease_id = :lease_id and state in ('running', 'cancelling') and waiting = 0
returning id, state, outcome, queue, attempt, error, claimed_at, started_at, worker_id, kind, name, correlation_id,
          (waiters or gated or deduped or doomed) as tied;

-- name: postpone_leases(id, lease_id; wait, now)
-- Those under which a job is held still. There is one writer at a time: no row is in other hands.
update headway_lease set until = :now + cast(:wait * 1000000 as integer)
where id = :lease_id and exists (
    select 1 from headway_job j
    where j.id = :id and j.lease_id = :lease_id and j.state in ('running', 'cancelling') and j.waiting = 0
)
returning id;

-- name: expired_jobs(; limit, now)
select id, state from headway_job
where waiting > 0 and expires_at is not null and expires_at <= :now
order by expires_at, id limit :limit;

-- name: orphan_parents(; limit)
-- Ended or vanished jobs that others still wait for: there should be none.
select distinct e.parent_id from headway_edge e left join headway_job j on j.id = e.parent_id
where j.id is null or j.state in ('completed', 'failed', 'cancelled')
order by e.parent_id limit :limit;

-- name: stray_jobs(; grace, limit, now)
select id from headway_job
where waiting = 2 and wait_reason = 'created' and created_at < :now - cast(:grace * 1000000 as integer)
order by created_at, id limit :limit;

-- name: forgotten_jobs(; grace, limit, now)
-- Blocked though nothing is left to wait for.
select j.id from headway_job j
where j.waiting = 2 and j.state = 'blocked' and j.gate is null and (j.wait_reason is null or j.wait_reason <> 'parent_failed')
  and j.created_at < :now - cast(:grace * 1000000 as integer)
  and not exists (select 1 from headway_edge e where e.child_id = j.id)
order by j.created_at, j.id limit :limit;

-- name: dead_workers(; age, now)
delete from headway_worker where seen_at < :now - cast(:age * 1000000 as integer) returning id, name;

-- name: expired_dedupes(; limit, now)
delete from headway_dedupe
where key in (select key from headway_dedupe where expires_at <= :now order by expires_at, key limit :limit);

-- name: shortest_retention()
select min(seconds) as shortest from (
    select min(keep_completed) as seconds from headway_queue
    union all select min(keep_failed) from headway_queue
    union all select min(retain) from headway_job where retain is not null
);

-- name: old_jobs(; after_id, limit, completed, failed, horizon, now)
-- One step of a walk through the oldest jobs: which are past their time, and whether the walk may stop here.
select j.id,
       j.created_at <= :now - cast(:horizon * 1000000 as integer) as old,
       coalesce(j.state in ('completed', 'failed', 'cancelled') and j.finished_at <= :now - 1000000
           * coalesce(j.retain, case when j.state = 'completed' then coalesce(q.keep_completed, :completed)
                                     else coalesce(q.keep_failed, :failed) end), 0) as past
from headway_job j left join headway_queue q on q.name = j.queue
where j.id > :after_id
order by j.id limit :limit;

-- name: take_duty(; name, holder, ttl, now)
insert into headway_duty (name, holder, until) values (:name, :holder, :now + cast(:ttl * 1000000 as integer))
on conflict (name) do update set holder = excluded.holder, until = excluded.until
    where headway_duty.holder = excluded.holder or headway_duty.until <= :now
returning name;

-- name: store_time(; now)
select :now as now_at;
