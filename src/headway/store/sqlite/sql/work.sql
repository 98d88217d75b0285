-- name: claim_due(; queue, limit, lease_id, worker_id, now)
-- The most urgent due jobs of a queue, by (rank, run_at, id). Each rank is probed by itself, so that jobs due later
-- cost nothing. There is no ORDER BY: it would sort all ranks before the limit. The nested loop yields in order,
-- because CROSS JOIN forbids to turn it round and INDEXED BY to read `j` in any other order.
-- `due` is in seconds from now: for the order of the rows, and for how long they have waited.
-- `finished_at` is not touched: it is null in every waiting job, and setting it would rewrite an index entry.
update headway_job
set state = case when state = 'cancelling' then state else 'running' end, waiting = 0, token = token + 1, attempt = attempt + 1, lease_id = :lease_id,
    worker_id = :worker_id, claimed_at = :now, started_at = null, outcome = null, wait_reason = null, progress = null
where id in (
    with recursive ranks(rank) as (
        select min(rank) from headway_job
        where waiting = 1 and queue = :queue
          and not exists (select 1 from headway_queue q where q.name = :queue and q.paused)
        union all
        select (select min(n.rank) from headway_job n where n.waiting = 1 and n.queue = :queue and n.rank > r.rank)
        from ranks r where r.rank is not null
    )
    select j.id from ranks r cross join headway_job j indexed by headway_job_ready
    where j.waiting = 1 and j.queue = :queue and j.rank = r.rank and j.run_at <= :now
      and (j.expires_at is null or j.expires_at > :now)
    limit :limit
)
returning id, token, kind, name, payload, attempt, failures, losses, timeout, retry, correlation_id,
          traceparent, key, rank, (run_at - :now) / 1e6 as due, 0 as leased, 0 as behind;

-- name: hold_lease(; lease_id, worker_id, ttl, jobs, now)
insert into headway_lease (id, worker_id, until, jobs)
values (:lease_id, :worker_id, :now + cast(:ttl * 1000000 as integer), :jobs);

-- name: claimed_under(; lease_id)
-- What a claim whose commit was left unknown has brought.
with recursive places(place, jobs) as (
    select 1, jobs from headway_lease where id = :lease_id
    union all
    select place + 16, jobs from places where place + 16 < length(jobs)
)
select j.id, j.token, j.kind, j.name, j.payload, j.attempt, j.failures, j.losses, j.timeout,
       j.retry, j.correlation_id, j.traceparent, j.key, j.rank,
       (j.run_at - j.claimed_at) / 1e6 as due
from places cross join headway_job j
where j.id = substr(places.jobs, places.place, 16) and j.lease_id = :lease_id and j.state in ('running', 'cancelling')
order by j.rank, j.run_at, j.id;

-- name: peek(queue; now)
-- The seconds until the queue's first job is due (0 or less: now); no row for an empty or paused queue.
with recursive ranks(rank) as (
    select min(rank) from headway_job
    where waiting = 1 and queue = :queue
      and not exists (select 1 from headway_queue q where q.name = :queue and q.paused)
    union all
    select (select min(n.rank) from headway_job n where n.waiting = 1 and n.queue = :queue and n.rank > r.rank)
    from ranks r where r.rank is not null
),
firsts(run_at) as (
    select (select min(j.run_at) from headway_job j where j.waiting = 1 and j.queue = :queue and j.rank = r.rank)
    from ranks r where r.rank is not null
)
select :queue as queue, (earliest.run_at - :now) / 1000000.0 as delay
from (select min(run_at) as run_at from firsts) earliest
where earliest.run_at is not null;

-- name: renew_leases(id; ttl, now)
-- A lapsed lease is not revived: its jobs may already be another worker's.
update headway_lease set until = :now + cast(:ttl * 1000000 as integer)
where id = :id and until > :now
returning id, cancels;

-- name: prolong_leases(; before, now)
-- The wall clock jumped forward from `before` to `now`: leases that lived before it, and that the jump has brought to
-- their end or near to it (20 s, two thirds of the usual lease), get back the time it took from them. Those of another
-- process that did the same already are past this condition.
update headway_lease set until = until + (:now - :before) where until > :before and until <= :now + 20000000;

-- name: shorten_leases(; before, now)
-- The wall clock jumped back from `before` to `now`: leases that lived until it, or nearly (5 s), would last longer by as
-- much. Where another process did the same already they don't reach as far; after a small jump (a minute, twice the
-- usual lease) that could not be told, so there they just last a little longer.
update headway_lease set until = until - (:before - :now)
where until > :before - 5000000 and :before - :now > 60000000;

-- name: drop_leases(id)
delete from headway_lease where id = :id;

-- name: touch_worker(; worker_id, name, host, pid, queues, slots, fires, code_version, now)
insert into headway_worker (id, name, host, pid, queues, slots, fires, code_version, started_at, seen_at)
values (:worker_id, :name, :host, :pid, :queues, :slots, :fires, :code_version, :now, :now)
on conflict (id) do update
set seen_at = excluded.seen_at, queues = excluded.queues, slots = excluded.slots, fires = excluded.fires
-- Rings have no order here, and few share a file: each worker acts as if it were alone.
returning 1 as crowd;

-- name: drop_worker(; worker_id)
delete from headway_worker where id = :worker_id;

-- name: report(id, token, ran, progress; now)
update headway_job
set started_at = coalesce(started_at, :now - cast(:ran * 1000000 as integer)),
    progress = coalesce(:progress, progress)
where id = :id and token = :token and finished_token is not :token
returning id;

-- name: append_chunks(job_id, token, stream, seq, data; now)
insert into headway_chunk (job_id, attempt, stream, seq, at, data)
select id, attempt, :stream, :seq, :now, :data
from headway_job where id = :job_id and token = :token and finished_token is not :token
on conflict (job_id, attempt, seq, stream) do update set data = excluded.data
returning job_id;

-- name: complete_untied(id, token, ran; now)
-- The quickest way for the most usual end: without RETURNING, and many rows at a time. Each statement has its price, and
-- while one runs the jobs of this process go on. How many rows it changed tells whether all are done. Fenced as below.
with batch(id, token, ran) as materialized (values (:id, :token, :ran))
update headway_job
set state = 'completed', outcome = 'succeeded', finished_token = headway_job.token, finished_at = :now,
    started_at = coalesce(started_at, :now - cast(batch.ran * 1000000 as integer)), error = null, losses = 0
from batch
where headway_job.id = batch.id and headway_job.token = batch.token and finished_token is not batch.token
  and not (waiters or gated or deduped or doomed);

-- name: complete_jobs(id, token, ran; now)
-- A success is one even if a cancel was on its way. Fenced as below.
-- `batch` is given many rows at a time: RETURNING has a price per statement that exceeds the update's.
with batch(id, token, ran) as materialized (values (:id, :token, :ran))
update headway_job
set state = 'completed', outcome = 'succeeded', finished_token = headway_job.token, finished_at = :now,
    started_at = coalesce(started_at, :now - cast(batch.ran * 1000000 as integer)), error = null, losses = 0
from batch
where headway_job.id = batch.id and headway_job.token = batch.token and finished_token is not batch.token
returning id, token, (waiters or gated or deduped or doomed) as tied;

-- name: finish_jobs(id, token, state, outcome, ran, error; now)
-- Fenced by token.
with batch(id, token, state, outcome, ran, error) as materialized (values (:id, :token, :state, :outcome, :ran, :error))
update headway_job
set state = case when headway_job.state = 'cancelling' then 'cancelled' else batch.state end,
    outcome = case when headway_job.state = 'cancelling' then 'cancelled' else batch.outcome end,
    finished_token = headway_job.token,
    finished_at = :now,
    started_at = coalesce(started_at, :now - cast(batch.ran * 1000000 as integer)),
    error = batch.error,
    losses = 0,
    failures = failures + (batch.state = 'failed')
from batch
where headway_job.id = batch.id and headway_job.token = batch.token and finished_token is not batch.token
returning id, token, (waiters or gated or deduped or doomed) as tied, state, outcome;

-- name: release_jobs(id, token, reason, wait, ran, outcome, error; outliving, now)
-- Back to waiting. `token` moves on, so that the worker that gives the job back has no further say in it. Unless it has
-- ended, what outlives its worker keeps a cancel that waits for the next one. What has begun expires no more.
update headway_job
set state = case when state <> 'cancelling' then 'scheduled'
                 when kind = :outliving and :reason <> 'retry' then state else 'cancelled' end,
    waiting = case when state = 'cancelling' and not (kind = :outliving and :reason <> 'retry') then 0 else 1 end,
    outcome = case when state = 'cancelling' and not (kind = :outliving and :reason <> 'retry') then 'cancelled'
                   else :outcome end,
    finished_at = case when state = 'cancelling' and not (kind = :outliving and :reason <> 'retry') then :now end,
    expires_at = case when kind = :outliving or :ran is not null or started_at is not null then null else expires_at end,
    finished_token = :token,
    token = token + 1,
    run_at = case when :reason in ('retry', 'snooze', 'parked') then :now + cast(:wait * 1000000 as integer)
                  else run_at end,
    started_at = case when :ran is not null then coalesce(started_at, :now - cast(:ran * 1000000 as integer)) end,
    error = coalesce(:error, error),
    attempt = attempt - (:reason in ('snooze', 'give_back', 'parked')),
    failures = failures + (:reason = 'retry'),
    losses = case :reason when 'lost' then losses + 1 when 'retry' then 0 when 'snooze' then 0 else losses end,
    wait_reason = case when :reason = 'parked' then 'no_code' end
where id = :id and token = :token and finished_token is not :token
returning id, :token as token, state, outcome, queue, attempt, error, claimed_at, started_at, worker_id, :reason as reason, run_at,
          (waiters or gated or deduped or doomed) as tied;

-- name: read_states(id)
-- Where these jobs are, and which attempt at them ended last.
select id, finished_token as token, state, outcome from headway_job where id = :id;

-- name: archive_attempts(job_id, number, outcome, error, claimed_at, started_at, finished_at, worker_id; now)
insert into headway_attempt (job_id, number, outcome, error, claimed_at, started_at, finished_at, worker_id)
values (:job_id, :number, :outcome, :error, :claimed_at, :started_at, coalesce(:finished_at, :now), :worker_id)
on conflict do nothing;

-- name: put_results(job_id, content_type, size, data, meta, source)
insert into headway_result (job_id, content_type, size, data, meta, source)
values (:job_id, :content_type, :size, :data, :meta, :source)
on conflict (job_id) do update
set content_type = excluded.content_type, size = excluded.size, data = excluded.data, meta = excluded.meta,
    source = excluded.source;

-- name: put_result_chunks(job_id, seq, data; now)
insert into headway_chunk (job_id, attempt, stream, seq, at, data) values (:job_id, 0, 'result', :seq, :now, :data)
on conflict do nothing;
