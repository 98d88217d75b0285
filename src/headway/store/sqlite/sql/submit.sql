-- name: insert_jobs(id, kind, name, key, queue, rank, state, waiting, run_at, delay, expires_at, expires_in, timeout, retry, payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id, traceparent, code_version, retain, schedule_id, nominal_at, digest; wake, now)
-- `batch` is given many rows at a time: RETURNING has a price per statement. Those without an id fill it up.
-- A due job whose gate is closed is blocked there from the start. If two are closed, its row comes twice, and is stored
-- once.
with batch(
    id, kind, name, key, queue, rank, state, waiting, run_at, delay, expires_at, expires_in, timeout, retry, payload,
    hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id,
    traceparent, code_version, retain, schedule_id, nominal_at, digest
) as materialized (values (
    :id, :kind, :name, :key, :queue, :rank, :state, :waiting, :run_at, :delay, :expires_at, :expires_in, :timeout,
    :retry, :payload, :hold, :on_conflict, :on_parent_failure, :deduped, :wait_reason, :tags, :metadata, :created_by,
    :correlation_id, :traceparent, :code_version, :retain, :schedule_id, :nominal_at, :digest
))
insert into headway_job (
    id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
    payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, gate, tags, metadata, created_by,
    correlation_id, traceparent, code_version, retain, schedule_id, nominal_at, digest
)
select
    batch.id, batch.kind, batch.name, batch.key, batch.queue, batch.rank,
    case when shut.name is null then batch.state else 'blocked' end,
    case when shut.name is null then batch.waiting else 2 end,
    coalesce(run_at, :now + cast(delay * 1000000 as integer)),
    coalesce(run_at, :now + cast(delay * 1000000 as integer)),
    :now,
    coalesce(expires_at, :now + cast(expires_in * 1000000 as integer)),
    timeout, retry, payload, hold, on_conflict, on_parent_failure, deduped,
    case when shut.name is null then wait_reason else 'limit' end, shut.name, tags, metadata, created_by,
    correlation_id, traceparent, code_version, retain, schedule_id, nominal_at, digest
from batch left join headway_gate shut indexed by headway_gate_closed
    on shut.closed = 1 and shut.key = batch.key
   and shut.name in ('key:' || batch.key, 'queue:' || batch.queue || char(9) || batch.key)
   and batch.waiting = 1 and coalesce(batch.run_at, :now + cast(batch.delay * 1000000 as integer)) <= :now
where batch.id is not null
on conflict (id) do nothing
returning id, state, run_at, created_at;

-- name: existing_jobs(id)
select id, digest, state, run_at, created_at from headway_job where id = :id;

-- name: try_keys(key)
-- There is one writer at a time: whoever asks has every key.
select :key as key;

-- name: take_dedupes(key, job_id, window; now)
insert into headway_dedupe (key, job_id, expires_at)
values (:key, :job_id, :now + cast(:window * 1000000 as integer))
on conflict (key) do update set job_id = excluded.job_id, expires_at = excluded.expires_at
    where headway_dedupe.expires_at <= :now or headway_dedupe.job_id = excluded.job_id
returning key;

-- name: read_dedupes(key)
select d.key, j.id, j.state, j.run_at, j.created_at
from headway_dedupe d join headway_job j on j.id = d.job_id
where d.key = :key;

-- name: one_open(key)
select key, id, state, run_at, created_at, wait_reason
from headway_job where key = :key and finished_at is null limit 1;

-- name: all_open(key)
select key, id, state, run_at, created_at, wait_reason
from headway_job where key = :key and finished_at is null
order by created_at, id;

-- name: waited_for(parent_id)
-- Those for whom another open job of their key waits. An edge may outlive the job that waited.
select distinct e.parent_id from headway_edge e join headway_job c on c.id = e.child_id
where e.parent_id = :parent_id and e.kind = 'wait' and c.waiting > 0;

-- name: lock_jobs(id)
-- There is one writer at a time: to read is to lock.
select id, state, outcome from headway_job where id = :id;

-- name: mark_waiters(id)
update headway_job set waiters = 1 where id = :id and not waiters;

-- name: insert_edges(parent_id, child_id, kind)
insert into headway_edge (parent_id, child_id, kind) values (:parent_id, :child_id, :kind) on conflict do nothing;

-- name: insert_parents(child_id, parent_id)
insert into headway_parent (child_id, parent_id) values (:child_id, :parent_id) on conflict do nothing;

-- name: wake(; wake)
-- Nothing to do in the database: the driver rings when the transaction is committed.

-- name: tell(; told, now)
-- The same: those who watch are told by the driver.

-- name: keep_watch(; holder, ttl, now)
-- Whoever watches is known by its socket.

-- name: add_history(job_id, what, by, detail; now)
insert into headway_history (job_id, at, what, by, detail) values (:job_id, :now, :what, :by, :detail);

-- name: stamp_history(job_id, at, what, by, detail)
-- Of what happened earlier and would be forgotten with the columns that tell it.
insert into headway_history (job_id, at, what, by, detail) values (:job_id, :at, :what, :by, :detail);
