-- name: count_lapsed(; now)
select count(*) as number, extract(epoch from coalesce(:now::timestamptz, now()) - min(until))::float8 as seconds
from headway.lease where until <= coalesce(:now::timestamptz, now());

-- name: stuck_cancels(; age, limit, now)
-- Held jobs are found by their leases. Only a cancel leaves a line `cancelling`.
select j.id, j.name, w.name as worker, extract(epoch from coalesce(:now::timestamptz, now()) - asked.at)::float8 as seconds
from headway.job j left join headway.worker w on w.id = j.worker_id
cross join lateral (select max(h.at) as at from headway.history h where h.job_id = j.id and h.what = 'cancelling') asked
where j.id = any(array(select unnest(l.cancels) from headway.lease l)) and j.state = 'cancelling'
  and asked.at < coalesce(:now::timestamptz, now()) - :age::float8 * interval '1 second'
order by asked.at, j.id limit :limit::int;

-- name: oldest_job()
select created_at from headway.job order by id limit 1;
