-- name: count_lapsed(; now)
select count(*) as number, (:now - min(until)) / 1000000.0 as seconds from headway_lease where until <= :now;

-- name: stuck_cancels(; age, limit, now)
-- Only a cancel leaves a line `cancelling`.
with asked as (
    select j.id, j.name, j.worker_id,
           (select max(h.at) from headway_history h where h.job_id = j.id and h.what = 'cancelling') as since
    from headway_job j indexed by headway_job_open_key
    where j.finished_at is null and j.waiting = 0 and j.state = 'cancelling'
)
select asked.id, asked.name, w.name as worker, (:now - asked.since) / 1000000.0 as seconds
from asked left join headway_worker w on w.id = asked.worker_id
where asked.since < :now - cast(:age * 1000000 as integer)
order by asked.since limit :limit;

-- name: oldest_job()
select created_at from headway_job order by id limit 1;
