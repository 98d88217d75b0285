-- name: get_jobs(id; now)
select j.id, j.kind, j.name, j.key, j.queue, j.rank, j.state, j.outcome, j.payload, j.desired_at, j.run_at,
       j.created_at, j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.attempt, j.failures, j.losses, j.token,
       j.timeout, j.retry, j.error, j.progress, j.wait_reason, j.hold, j.on_parent_failure, j.tags, j.metadata,
       j.created_by, j.correlation_id, j.traceparent, j.code_version, j.worker_id, j.schedule_id, j.nominal_at,
       (select json_group_array(hex(p.parent_id)) from headway_parent p where p.child_id = j.id) as after,
       j.run_at <= :now as due
from headway_job j where j.id = :id;

-- name: find_jobs(; states, pending, retrying, parked, kind, queue, name, name_prefix, key, tagged, created_by, time, since, until, cursor, limit, now)
select j.id, j.kind, j.name, j.key, j.queue, j.rank, j.state, j.outcome, j.payload, j.desired_at, j.run_at,
       j.created_at, j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.attempt, j.failures, j.losses, j.token,
       j.timeout, j.retry, j.error, j.progress, j.wait_reason, j.hold, j.on_parent_failure, j.tags, j.metadata,
       j.created_by, j.correlation_id, j.traceparent, j.code_version, j.worker_id, j.schedule_id, j.nominal_at,
       (select json_group_array(hex(p.parent_id)) from headway_parent p where p.child_id = j.id) as after,
       j.run_at <= :now as due
from headway_job j
where j.id < coalesce(:cursor, x'ffffffffffffffffffffffffffffffffff')
  and (:states is null or j.state in (select value from json_each(:states))
       or (:pending and j.state = 'scheduled' and j.run_at <= :now)
       or (:retrying and j.state = 'scheduled' and j.failures > 0)
       or (:parked and j.state = 'scheduled' and j.wait_reason = 'no_code'))
  and (:kind is null or j.kind = :kind)
  and (:queue is null or j.queue = :queue)
  and (:name is null or j.name = :name)
  and (:name_prefix is null or substr(j.name, 1, length(:name_prefix)) = :name_prefix)
  and (:key is null or j.key = :key)
  and (:tagged is null or not exists (select 1 from json_each(:tagged) asked
                                      where asked.value not in (select t.value from json_each(j.tags) t)))
  and (:created_by is null or j.created_by = :created_by)
  and (:since is null or :since <= case :time when 'created' then j.created_at when 'run' then j.run_at
                                              when 'started' then j.started_at else j.finished_at end)
  and (:until is null or :until > case :time when 'created' then j.created_at when 'run' then j.run_at
                                             when 'started' then j.started_at else j.finished_at end)
order by j.id desc limit :limit;

-- name: get_attempts(; job_id)
select number, outcome, error, claimed_at, started_at, finished_at, worker_id
from headway_attempt where job_id = :job_id order by number;

-- name: get_history(; job_id)
select at as change_at, what, by, detail from headway_history where job_id = :job_id order by seq;

-- name: get_result(; job_id)
select content_type, size, data from headway_result where job_id = :job_id;

-- name: get_chunks(; job_id, attempt, stream, after_seq, limit)
select seq, stream, data from headway_chunk
where job_id = :job_id and attempt = :attempt and (:stream is null or stream = :stream)
  and (stream <> 'result' or :stream = 'result') and seq > :after_seq
order by seq limit :limit;

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
