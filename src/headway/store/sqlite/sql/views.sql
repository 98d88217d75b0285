-- name: get_jobs(id; now)
select j.id, j.kind, j.name, j.key, j.queue, j.rank, j.state, j.outcome, j.payload, j.desired_at, j.run_at,
       j.created_at, j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.attempt, j.failures, j.losses, j.token,
       j.timeout, j.retry, j.error, j.progress, j.wait_reason, j.hold, j.on_parent_failure, j.tags, j.metadata,
       j.created_by, j.correlation_id, j.traceparent, j.code_version, j.worker_id, j.schedule_id, j.nominal_at,
       (select json_group_array(hex(parent_id)) from
            (select p.parent_id from headway_parent p where p.child_id = j.id order by p.parent_id)) as after,
       j.run_at <= :now as due
from headway_job j where j.id = :id;

-- name: get_attempts(; job_id)
select number, outcome, error, claimed_at, started_at, finished_at, worker_id
from headway_attempt where job_id = :job_id order by number;

-- name: get_children(; job_id, limit)
select child_id as id from headway_parent where parent_id = :job_id order by child_id limit :limit;

-- name: get_history(; job_id)
select at as change_at, what, by, detail from headway_history where job_id = :job_id order by seq;

-- name: get_result(; job_id)
select content_type, size, data, meta from headway_result where job_id = :job_id;

-- name: get_result_metas(job_id)
select job_id, content_type, size, meta from headway_result where job_id = :job_id;

-- name: latest_result_of(; source)
-- Ids are in the order of time.
select job_id, content_type, size, meta from headway_result
where source = :source order by job_id desc limit 1;

-- name: get_chunks(; job_id, attempt, stream, after_seq, limit)
select seq, stream, data, at as stored_at from headway_chunk
where job_id = :job_id and attempt = :attempt and seq > :after_seq
  and (stream = :stream or (:stream is null and stream <> 'result' and stream not like 'artifact/%'))
order by seq limit :limit;

-- name: get_chunk_sizes(; job_id, attempt)
select seq, stream, length(data) as size from headway_chunk
where job_id = :job_id and attempt = :attempt order by seq, stream;

-- name: get_workers()
select id, name, host, pid, queues, slots, fires, code_version, started_at, seen_at from headway_worker order by name, id;

-- name: put_function(name, queue, defaults, parameters, code_version; now)
-- An older code version never overwrites a newer one.
insert into headway_function (name, queue, defaults, parameters, code_version, announced_at)
values (:name, :queue, :defaults, :parameters, :code_version, :now)
on conflict (name) do update
set queue = excluded.queue, defaults = excluded.defaults, parameters = excluded.parameters,
    code_version = excluded.code_version, announced_at = excluded.announced_at
where headway_function.code_version is null or excluded.code_version >= headway_function.code_version;

-- name: get_functions()
select name, queue, defaults, parameters, code_version, announced_at from headway_function order by name;

-- name: count_states()
select queue, state, count(*) as jobs from headway_job group by queue, state order by queue, state;
