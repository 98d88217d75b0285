-- name: still_view()
-- All statements of the transaction see the same moment.
set transaction isolation level repeatable read, read only;

-- name: count_waiting(; now)
-- All that is asked for stands in the index of waiting jobs: ended ones are not looked at.
select queue, count(*) as waiting, count(*) filter (where run_at <= coalesce(:now::timestamptz, now())) as due,
       min(run_at) as first_run_at
from headway.job where waiting = 1 group by queue;

-- name: count_held_back()
select queue, state, count(*) as number from headway.job where waiting = 2 group by queue, state;

-- name: count_held()
-- By the leases, since running jobs stand in no index. A lease lists what was claimed; some of it may have ended.
-- As an array, not as a join: the planner would turn that round and read every job to look for its lease.
select j.queue, j.worker_id, j.state, count(*) as number from headway.job j
where j.id = any(array(select unnest(l.jobs) from headway.lease l)) and j.state in ('running', 'cancelling')
group by j.queue, j.worker_id, j.state;

-- name: pauses()
select name, paused_at, paused_by from headway.queue where paused;

-- name: ids_between(; first_id, last_id, limit)
select id from headway.job where id between :first_id::uuid and :last_id::uuid order by id limit :limit::int;

-- name: take_queue(; name)
-- The queue's settings, which nobody else changes until the transaction ends.
insert into headway.queue as q (name) values (:name)
on conflict (name) do update set name = excluded.name
returning q.name, q.paused, q.max_running, q.rate, q.key_max_running, q.key_rate, q.keep_completed, q.keep_failed;
