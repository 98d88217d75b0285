-- name: read_rows(; limit)
-- The rows that Headway has stored, with all the columns that it gave.
select id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
       payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id,
       traceparent, code_version, retain, digest
from headway.job order by run_at, id limit :limit::int;

-- name: insert_one(; id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry, payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id, traceparent, code_version, retain, digest)
insert into headway.job (
    id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
    payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id,
    traceparent, code_version, retain, digest
) values (
    :id, :kind, :name, :key, :queue, :rank, :state, :waiting, :run_at, :desired_at, :created_at, :expires_at, :timeout,
    :retry, :payload, :hold, :on_conflict, :on_parent_failure, :deduped, :wait_reason, :tags, :metadata, :created_by,
    :correlation_id, :traceparent, :code_version, :retain, :digest
);

-- name: insert_many(id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry, payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id, traceparent, code_version, retain, digest)
insert into headway.job (
    id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
    payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id,
    traceparent, code_version, retain, digest
)
select * from unnest(
    :id::uuid[], :kind::text[], :name::text[], :key::text[], :queue::text[], :rank::smallint[], :state::text[],
    :waiting::smallint[], :run_at::timestamptz[], :desired_at::timestamptz[], :created_at::timestamptz[],
    :expires_at::timestamptz[], :timeout::float8[], :retry::json[], :payload::json[], :hold::boolean[],
    :on_conflict::text[], :on_parent_failure::text[], :deduped::boolean[], :wait_reason::text[], :tags::jsonb[],
    :metadata::json[], :created_by::text[], :correlation_id::text[], :traceparent::text[], :code_version::text[],
    :retain::float8[], :digest::bytea[]
);

-- name: claim(; queue, limit, lease_id, worker_id, after_rank, after_run_at, after_id)
-- The best known: behind a watermark, so that rows claimed before are not walked over again.
update headway.job j
set state = 'running', waiting = 0, token = j.token + 1, attempt = j.attempt + 1, lease_id = :lease_id::uuid,
    worker_id = :worker_id::uuid, claimed_at = now()
where j.id = any(array(
    select id from headway.job
    where waiting = 1 and queue = :queue::text and run_at <= now()
      and (rank, run_at, id) > (:after_rank::smallint, :after_run_at::timestamptz, :after_id::uuid)
    order by rank, run_at, id limit :limit::int for update skip locked
))
returning j.id, j.token, j.rank, j.run_at, j.lease_id, j.kind, j.name, j.queue, j.payload, j.attempt, j.failures,
          j.losses, j.timeout, j.retry, j.correlation_id, j.traceparent, j.key;

-- name: complete(id, token)
update headway.job j
set state = 'completed', outcome = 'succeeded', finished_token = j.token, finished_at = now(), started_at = now()
from unnest(:id::uuid[], :token::bigint[]) as ended(id, token)
where j.id = ended.id and j.token = ended.token;

-- name: send(; id, payload)
-- One due job and the call that wakes the other side, for the floor of latency.
insert into headway.job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest)
values (:id, 'call', 'bench.stamp', 'bench.stamp', 'bench', 0, 'scheduled', 1, now(), now(), now(), :payload::json,
        'allow', 'cancel', '\x00')
returning pg_notify('headway_bench', queue);

-- name: fill_future(; count)
insert into headway.job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest)
select lpad(to_hex(n), 32, '0')::uuid, 'call', 'bench.noop', 'bench.noop', 'bench', 0, 'scheduled', 1,
       now() + interval '1 day' + n * interval '1 ms', now(), now(), '{"function":"bench.noop","kwargs":{"number":0}}',
       'allow', 'cancel', decode(md5(n::text), 'hex')
from generate_series(1, :count::int) as n;

-- name: fill_finished(; count)
insert into headway.job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest, token, finished_token, attempt, claimed_at, started_at,
                         finished_at, outcome)
select lpad(to_hex(n), 32, '0')::uuid, 'call', 'bench.noop', 'bench.noop', 'bench', 0, 'completed', 0,
       now(), now(), now(), '{"function":"bench.noop","kwargs":{"number":0}}', 'allow', 'cancel',
       decode(md5(n::text), 'hex'), 1, 1, 1, now(), now(), now(), 'succeeded'
from generate_series(1, :count::int) as n;

-- name: fill_mixed(; count)
-- Ended jobs of many sorts, four a second: a hundred names, ten queues, three kinds, five submitters, one in fifty failed.
-- Ten of all are of a rare sort, and for ten minutes in the middle nothing was made.
insert into headway.job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest, token, finished_token, attempt, claimed_at, started_at,
                         finished_at, outcome, created_by, tags, error, schedule_id)
select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid,
       case when rare then 'script' else (array['call', 'http', 'fetch'])[1 + n % 3] end,
       case when rare then 'seldom' else 'job.' || n % 100 end, 'job.' || n % 100,
       case when rare then 'aside' else 'queue-' || n % 10 end, 0,
       case when rare then 'cancelled' when n % 50 = 0 then 'failed' else 'completed' end, 0,
       at, at, at, '{"function":"bench.noop","kwargs":{"number":0}}', 'allow', 'cancel',
       decode(md5(n::text), 'hex'), 1, 1, 1, at, at, at + interval '1 second',
       case when rare then 'cancelled' when n % 50 = 0 then 'failed' else 'succeeded' end, 'token:' || n % 5,
       jsonb_build_array('tag-' || n % 20),
       case when n % 50 = 0 then '{"type":"ConnectionError","message":"the far side did not answer"}'::json end,
       case when rare then '018f0000-0000-7000-8000-000000000000'::uuid end
from (
    select n, n % greatest(:count::int / 10, 1) = 7 as rare,
           now() - (:count::int - n) * interval '0.25 second'
           - case when n < :count::int / 2 then interval '10 minutes' else interval '0' end as at
    from generate_series(1, :count::int) as n
) as made;

-- name: fill_full_key(; count)
-- Due jobs of one key, as a submission with `key="full"` leaves them.
insert into headway.job (id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, payload,
                         on_conflict, on_parent_failure, digest)
select lpad(to_hex(n), 32, '0')::uuid, 'call', 'bench.hold', 'full', 'bench', 0, 'scheduled', 1,
       now(), now(), now(), '{"function":"bench.hold","kwargs":{}}', 'allow', 'cancel', decode(md5(n::text), 'hex')
from generate_series(1, :count::int) as n;

-- name: count_completed()
select count(*) as jobs from headway.job where state = 'completed';
