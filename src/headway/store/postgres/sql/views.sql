-- name: get_jobs(id; now)
select j.id, j.kind, j.name, j.key, j.queue, j.rank, j.state, j.outcome, j.payload, j.desired_at, j.run_at,
       j.created_at, j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.attempt, j.failures, j.losses, j.token,
       j.timeout, j.retry, j.error, j.progress, j.wait_reason, j.hold, j.on_parent_failure, j.tags, j.metadata,
       j.created_by, j.correlation_id, j.traceparent, j.code_version, j.worker_id, j.schedule_id, j.nominal_at,
       (select json_agg(p.parent_id) from headway.parent p where p.child_id = j.id) as after,
       j.run_at <= coalesce(:now::timestamptz, now()) as due
from headway.job j where j.id = any(:id::uuid[]);

-- name: find_jobs(; states, pending, retrying, parked, kind, queue, name, name_prefix, key, tagged, created_by, time, since, until, cursor, limit, now)
select j.id, j.kind, j.name, j.key, j.queue, j.rank, j.state, j.outcome, j.payload, j.desired_at, j.run_at,
       j.created_at, j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.attempt, j.failures, j.losses, j.token,
       j.timeout, j.retry, j.error, j.progress, j.wait_reason, j.hold, j.on_parent_failure, j.tags, j.metadata,
       j.created_by, j.correlation_id, j.traceparent, j.code_version, j.worker_id, j.schedule_id, j.nominal_at,
       (select json_agg(p.parent_id) from headway.parent p where p.child_id = j.id) as after,
       j.run_at <= coalesce(:now::timestamptz, now()) as due
from headway.job j
where (:cursor::uuid is null or j.id < :cursor::uuid)
  and (:states::text[] is null or j.state = any(:states::text[])
       or (:pending::boolean and j.state = 'scheduled' and j.run_at <= coalesce(:now::timestamptz, now()))
       or (:retrying::boolean and j.state = 'scheduled' and j.failures > 0)
       or (:parked::boolean and j.state = 'scheduled' and j.wait_reason = 'no_code'))
  and (:kind::text is null or j.kind = :kind::text)
  and (:queue::text is null or j.queue = :queue::text)
  and (:name::text is null or j.name = :name::text)
  and (:name_prefix::text is null or starts_with(j.name, :name_prefix::text))
  and (:key::text is null or j.key = :key::text)
  and (:tagged::text[] is null or j.tags ?& :tagged::text[])
  and (:created_by::text is null or j.created_by = :created_by::text)
  and (:since::timestamptz is null or :since::timestamptz <= case :time::text
        when 'created' then j.created_at when 'run' then j.run_at when 'started' then j.started_at
        else j.finished_at end)
  and (:until::timestamptz is null or :until::timestamptz > case :time::text
        when 'created' then j.created_at when 'run' then j.run_at when 'started' then j.started_at
        else j.finished_at end)
order by j.id desc limit :limit::int;

-- name: get_attempts(; job_id)
select number, outcome, error, claimed_at, started_at, finished_at, worker_id
from headway.attempt where job_id = :job_id::uuid order by number;

-- name: get_history(; job_id)
select at as change_at, what, by, detail from headway.history where job_id = :job_id::uuid order by seq;

-- name: get_result(; job_id)
select content_type, size, data from headway.result where job_id = :job_id::uuid;

-- name: get_chunks(; job_id, attempt, stream, after_seq, limit)
select seq, stream, data from headway.chunk
where job_id = :job_id::uuid and attempt = :attempt::int and (:stream::text is null or stream = :stream::text)
  and (stream <> 'result' or :stream::text = 'result') and seq > :after_seq::int
order by seq limit :limit::int;

-- name: get_workers()
select id, name, host, pid, queues, slots, fires, code_version, started_at, seen_at from headway.worker order by name, id;

-- name: put_function(name, queue, defaults, parameters, code_version; now)
-- An older code version never overwrites a newer one.
insert into headway.function as f (name, queue, defaults, parameters, code_version, announced_at)
select name, queue, defaults, parameters, code_version, coalesce(:now::timestamptz, now())
from unnest(:name::text[], :queue::text[], :defaults::json[], :parameters::json[], :code_version::text[])
     as new(name, queue, defaults, parameters, code_version)
on conflict (name) do update
set queue = excluded.queue, defaults = excluded.defaults, parameters = excluded.parameters,
    code_version = excluded.code_version, announced_at = excluded.announced_at
where f.code_version is null or excluded.code_version >= f.code_version;

-- name: get_functions()
select name, queue, defaults, parameters, code_version, announced_at from headway.function order by name;

-- name: count_states()
select queue, state, count(*) as jobs from headway.job group by queue, state order by queue, state;
