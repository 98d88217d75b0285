-- name: read_rows(; limit)
-- The rows that Headway has stored, with all the columns that it gave.
select id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
       payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id,
       traceparent, code_version, retain, digest
from headway_job order by run_at, id limit :limit;

-- name: insert_one(id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry, payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id, traceparent, code_version, retain, digest)
insert into headway_job (
    id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
    payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id,
    traceparent, code_version, retain, digest
) values (
    :id, :kind, :name, :key, :queue, :rank, :state, :waiting, :run_at, :desired_at, :created_at, :expires_at, :timeout,
    :retry, :payload, :hold, :on_conflict, :on_parent_failure, :deduped, :wait_reason, :tags, :metadata, :created_by,
    :correlation_id, :traceparent, :code_version, :retain, :digest
);

-- name: claim(; queue, limit, lease_id, worker_id, now)
update headway_job
set state = 'running', waiting = 0, token = token + 1, attempt = attempt + 1, lease_id = :lease_id,
    worker_id = :worker_id, claimed_at = :now
where id in (
    select id from headway_job
    where waiting = 1 and queue = :queue and run_at <= :now
    order by rank, run_at, id limit :limit
)
returning id, token, lease_id, kind, name, queue, payload, attempt, failures, losses, timeout, retry, correlation_id,
          traceparent, key, rank, run_at;

-- name: complete()
-- The nulls stand for as many rows as are completed at once, by one statement: each has its price.
with batch(token, id, now) as materialized (values (null, null, null))
update headway_job
set state = 'completed', outcome = 'succeeded', finished_token = batch.token, finished_at = batch.now,
    started_at = batch.now
from batch where headway_job.id = batch.id and headway_job.token = batch.token;

-- name: send(; id, payload, now)
-- One due job, for the floor of latency.
insert into headway_job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest)
values (:id, 'call', 'bench.stamp', 'bench.stamp', 'bench', 0, 'scheduled', 1, :now, :now, :now, :payload, 'allow',
        'cancel', x'00');

-- name: fill_future(; count, now)
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < :count)
insert into headway_job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest)
select cast(printf('%016d', n) as blob), 'call', 'bench.noop', 'bench.noop', 'bench', 0, 'scheduled', 1,
       :now + 86400000000 + n * 1000, :now, :now, '{"function":"bench.noop","kwargs":{"number":0}}', 'allow', 'cancel',
       cast(printf('%016d', n) as blob)
from numbers;

-- name: fill_finished(; count, now)
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < :count)
insert into headway_job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest, token, finished_token, attempt, claimed_at, started_at,
                         finished_at, outcome)
select cast(printf('%016d', n) as blob), 'call', 'bench.noop', 'bench.noop', 'bench', 0, 'completed', 0, :now, :now,
       :now, '{"function":"bench.noop","kwargs":{"number":0}}', 'allow', 'cancel', cast(printf('%016d', n) as blob),
       1, 1, 1, :now, :now, :now, 'succeeded'
from numbers;

-- name: fill_mixed(; count, now)
-- Ended jobs of many sorts, four a second: a hundred names, ten queues, three kinds, five submitters, one in fifty failed.
-- Ten of all are of a rare sort, and for ten minutes in the middle nothing was made.
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < :count),
made as (
    select n, n % max(:count / 10, 1) = 7 as rare,
           :now - (:count - n) * 250000 - case when n < :count / 2 then 600000000 else 0 end as at
    from numbers
)
insert into headway_job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest, token, finished_token, attempt, claimed_at, started_at,
                         finished_at, outcome, created_by, tags, error, schedule_id)
select id_at(at, n), case when rare then 'script' when n % 3 = 0 then 'call' when n % 3 = 1 then 'http' else 'fetch' end,
       case when rare then 'seldom' else 'job.' || (n % 100) end, 'job.' || (n % 100),
       case when rare then 'aside' else 'queue-' || (n % 10) end, 0,
       case when rare then 'cancelled' when n % 50 = 0 then 'failed' else 'completed' end, 0, at, at, at,
       '{"function":"bench.noop","kwargs":{"number":0}}', 'allow', 'cancel', cast(printf('%016d', n) as blob),
       1, 1, 1, at, at, at + 1000000,
       case when rare then 'cancelled' when n % 50 = 0 then 'failed' else 'succeeded' end, 'token:' || (n % 5),
       json_array('tag-' || (n % 20)),
       case when n % 50 = 0 then '{"type":"ConnectionError","message":"the far side did not answer"}' end,
       case when rare then x'018f0000000070008000000000000000' end
from made;

-- name: fill_full_key(; count, now)
-- Due jobs of one key, as a submission with `key="full"` leaves them.
with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < :count)
insert into headway_job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest)
select cast(printf('%016d', n) as blob), 'call', 'bench.hold', 'full', 'bench', 0, 'scheduled', 1, :now, :now, :now,
       '{"function":"bench.hold","kwargs":{}}', 'allow', 'cancel', cast(printf('%016d', n) as blob)
from numbers;

-- name: count_completed()
select count(*) as jobs from headway_job where state = 'completed';
