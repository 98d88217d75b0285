-- name: still_view()
-- Every transaction sees one moment here.

-- name: count_waiting(; now)
-- All that is asked for stands in the index of waiting jobs: ended ones are not looked at.
select queue, count(*) as waiting, count(*) filter (where run_at <= :now) as due, min(run_at) as first_run_at
from headway_job indexed by headway_job_ready where waiting = 1 group by queue;

-- name: count_held_back()
select queue, state, count(*) as number from headway_job indexed by headway_job_held_back
where waiting = 2 group by queue, state;

-- name: count_held()
-- Among the open jobs, which stand in an index here; those that don't wait are held.
select j.queue, j.worker_id, j.state, count(*) as number from headway_job j indexed by headway_job_open_key
where j.finished_at is null and j.waiting = 0 and j.state in ('running', 'cancelling')
group by j.queue, j.worker_id, j.state;

-- name: pauses()
select name, paused_at, paused_by from headway_queue where paused;

-- name: ids_between(; first_id, last_id, limit)
select id from headway_job where id between :first_id and :last_id order by id limit :limit;

-- name: take_queue(; name)
insert into headway_queue (name) values (:name)
on conflict (name) do update set name = excluded.name
returning name, paused, max_running, rate, key_max_running, key_rate, keep_completed, keep_failed;
