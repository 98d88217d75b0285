-- name: get_jobs(id; now)
select j.id, j.kind, j.name, j.key, j.queue, j.rank, j.state, j.outcome, j.payload, j.desired_at, j.run_at,
       j.created_at, j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.attempt, j.failures, j.losses, j.token,
       j.timeout, j.retry, j.error, j.progress, j.wait_reason, j.hold, j.on_parent_failure, j.tags, j.metadata,
       j.created_by, j.correlation_id, j.traceparent, j.code_version, j.worker_id, j.schedule_id, j.nominal_at,
       (select json_agg(p.parent_id order by p.parent_id) from headway.parent p where p.child_id = j.id) as after,
       j.run_at <= coalesce(:now::timestamptz, now()) as due
from headway.job j where j.id = any(:id::uuid[]);

-- name: get_attempts(; job_id)
select number, outcome, error, claimed_at, started_at, finished_at, worker_id
from headway.attempt where job_id = :job_id::uuid order by number;

-- name: get_children(; job_id, limit)
select child_id as id from headway.parent where parent_id = :job_id::uuid order by child_id limit :limit::int;

-- name: get_history(; job_id)
select at as change_at, what, by, detail from headway.history where job_id = :job_id::uuid order by seq;

-- name: get_result(; job_id)
select content_type, size, data, meta from headway.result where job_id = :job_id::uuid;

-- name: get_result_metas(job_id)
select job_id, content_type, size, meta from headway.result where job_id = any(:job_id::uuid[]);

-- name: latest_result_of(; source)
-- Ids are in the order of time.
select job_id, content_type, size, meta from headway.result
where source = :source::text order by job_id desc limit 1;

-- name: get_chunks(; job_id, attempt, stream, after_seq, limit)
select seq, stream, data, at as stored_at from headway.chunk
where job_id = :job_id::uuid and attempt = :attempt::int and seq > :after_seq::int
  and (stream = :stream::text or (:stream::text is null and stream <> 'result' and stream not like 'artifact/%'))
order by seq, stream limit :limit::int;

-- name: get_chunk_sizes(; job_id, attempt)
select seq, stream, length(data) as size from headway.chunk
where job_id = :job_id::uuid and attempt = :attempt::int order by seq, stream;

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
