-- name: look(; grace, now)
-- Whether the frequent duties have anything to do: one question instead of four.
select exists (select from headway.lease where until <= coalesce(:now::timestamptz, now())) as lapsed,
       exists (select from headway.job where waiting > 0 and expires_at is not null
               and expires_at <= coalesce(:now::timestamptz, now())) as expired,
       exists (select from headway.job where waiting = 2 and gate is not null)
           or exists (select from headway.gate where closed) as closed,
       exists (select from headway.job where waiting = 2 and wait_reason = 'created'
               and created_at < coalesce(:now::timestamptz, now()) - :grace::float8 * interval '1 second') as stray;

-- name: lapsed_leases(; limit, now)
select id, jobs from headway.lease where until <= coalesce(:now::timestamptz, now())
order by until, id limit :limit::int for update skip locked;

-- name: rescue_jobs(id, lease_id; suspect, unproven, outliving, error, now)
-- What outlives its worker is cancelled once it is seen stopped: its cancel waits for the next worker.
-- Only what is still held under the lapsed lease; its holder's token dies here. A suspect whose worker died again waits
-- a while: either it kills whole workers, or someone does, and it must not be taken for poison for that.
-- A row in other hands is left for later: one open transaction of somebody else must not stop the rescue of all others.
update headway.job j
set state = case when j.state = 'cancelling' and j.kind = :outliving::text then j.state
                 when j.state = 'cancelling' then 'cancelled' when j.losses + 1 >= :unproven::int then 'failed'
                 else 'scheduled' end,
    waiting = case when j.state = 'cancelling' and j.kind = :outliving::text then 1
                   when j.state = 'cancelling' or j.losses + 1 >= :unproven::int then 0 else 1 end,
    outcome = case when j.state = 'cancelling' and j.kind = :outliving::text then 'lost'
                   when j.state = 'cancelling' then 'cancelled' when j.losses + 1 >= :unproven::int then 'poison'
                   else 'lost' end,
    finished_at = case when j.state = 'cancelling' and j.kind = :outliving::text then null
                       when j.state = 'cancelling' or j.losses + 1 >= :unproven::int
                       then coalesce(:now::timestamptz, now()) end,
    expires_at = null,
    token = j.token + 1,
    losses = j.losses + 1,
    run_at = case when j.losses < :suspect::int then j.run_at
                  else coalesce(:now::timestamptz, now()) + 5 * 2 ^ least(j.losses - :suspect::int, 8) * interval '1 second' end,
    error = :error::json
from unnest(:id::uuid[], :lease_id::uuid[]) as lost(id, lease_id)
where j.id = lost.id and j.lease_id = lost.lease_id and j.state in ('running', 'cancelling') and j.waiting = 0
  and j.id = any(array(select free.id from headway.job free where free.id = any(:id::uuid[]) for update skip locked))
returning j.id, j.state, j.outcome, j.queue, j.attempt, j.error, j.claimed_at, j.started_at, j.worker_id, j.kind, j.name,
          j.correlation_id, (j.waiters or j.gated or j.deduped or j.doomed) as tied;

-- name: postpone_leases(id, lease_id; wait, now)
-- Those under which a job is held still, because its row is in other hands: they lapse once more, a moment later.
update headway.lease l
set until = coalesce(:now::timestamptz, now()) + :wait::float8 * interval '1 second'
where l.id = any(array(
    select j.lease_id from unnest(:id::uuid[], :lease_id::uuid[]) as lost(id, lease_id) join headway.job j on j.id = lost.id
    where j.lease_id = lost.lease_id and j.state in ('running', 'cancelling') and j.waiting = 0
))
returning l.id;

-- name: expired_jobs(; limit, now)
select id, state from headway.job
where waiting > 0 and expires_at is not null and expires_at <= coalesce(:now::timestamptz, now())
order by expires_at, id limit :limit::int for update skip locked;

-- name: orphan_parents(; limit)
-- Ended or vanished jobs that others still wait for: there should be none.
select distinct e.parent_id from headway.edge e left join headway.job j on j.id = e.parent_id
where j.id is null or j.state in ('completed', 'failed', 'cancelled')
order by e.parent_id limit :limit::int;

-- name: stray_jobs(; grace, limit, now)
select j.id from headway.job j
where j.waiting = 2 and j.wait_reason = 'created'
  and j.created_at < coalesce(:now::timestamptz, now()) - :grace::float8 * interval '1 second'
order by j.created_at, j.id limit :limit::int for update skip locked;

-- name: forgotten_jobs(; grace, limit, now)
-- Blocked though nothing is left to wait for.
select j.id from headway.job j
where j.waiting = 2 and j.state = 'blocked' and j.gate is null and (j.wait_reason is null or j.wait_reason <> 'parent_failed')
  and j.created_at < coalesce(:now::timestamptz, now()) - :grace::float8 * interval '1 second'
  and not exists (select from headway.edge e where e.child_id = j.id)
order by j.created_at, j.id limit :limit::int for update skip locked;

-- name: dead_workers(; age, now)
delete from headway.worker w
where w.seen_at < coalesce(:now::timestamptz, now()) - :age::float8 * interval '1 second'
returning id, name;

-- name: expired_dedupes(; limit, now)
delete from headway.dedupe where key = any(array(
    select key from headway.dedupe where expires_at <= coalesce(:now::timestamptz, now())
    order by expires_at, key limit :limit::int
));

-- name: shortest_retention()
select least(min(keep_completed), min(keep_failed), (select min(retain) from headway.job where retain is not null))
       as shortest
from headway.queue;

-- name: old_jobs(; after_id, limit, completed, failed, horizon, now)
-- One step of a walk through the oldest jobs: which are past their time, and whether the walk may stop here.
select j.id,
       j.created_at <= clock.now - :horizon::float8 * interval '1 second' as old,
       coalesce(j.state in ('completed', 'failed', 'cancelled') and j.finished_at <= clock.now - interval '1 second'
           * coalesce(j.retain, case when j.state = 'completed' then coalesce(q.keep_completed, :completed::float8)
                                     else coalesce(q.keep_failed, :failed::float8) end), false) as past
from (select coalesce(:now::timestamptz, now()) as now) clock,
     headway.job j left join headway.queue q on q.name = j.queue
where j.id > :after_id::uuid
order by j.id limit :limit::int;

-- name: take_duty(; name, holder, ttl, now)
insert into headway.duty as d (name, holder, until)
values (:name, :holder::uuid, coalesce(:now::timestamptz, now()) + :ttl::float8 * interval '1 second')
on conflict (name) do update set holder = excluded.holder, until = excluded.until
    where d.holder = excluded.holder or d.until <= coalesce(:now::timestamptz, now())
returning name;

-- name: store_time(; now)
select coalesce(:now::timestamptz, now()) as now_at;
