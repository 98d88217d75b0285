-- name: why_job(; job_id, now)
select j.rank, j.gate, j.doomed, l.until as lease_until_at, w.name as worker, coalesce(:now::timestamptz, now()) as now_at
from headway.job j
left join headway.lease l on l.id = j.lease_id and j.state in ('running', 'cancelling')
left join headway.worker w on w.id = j.worker_id
where j.id = :job_id::uuid;

-- name: why_waits_for(; job_id)
select e.parent_id as id, p.name, p.state from headway.edge e left join headway.job p on p.id = e.parent_id
where e.child_id = :job_id::uuid order by e.parent_id;

-- name: why_failed_parents(; job_id)
select a.parent_id as id, p.name, p.state from headway.parent a left join headway.job p on p.id = a.parent_id
where a.child_id = :job_id::uuid and (p.state is null or p.state in ('failed', 'cancelled')) order by a.parent_id;

-- name: why_ahead(; queue, rank, run_at, job_id, limit, now)
-- Each rank by itself, as in `claim_due`; jobs due later are not looked at.
with recursive clock as materialized (select coalesce(:now::timestamptz, now()) as now),
ranks(rank) as (
    (select j.rank from headway.job j where j.waiting = 1 and j.queue = :queue order by j.rank limit 1)
    union all
    select next.rank from ranks r cross join lateral (
        select j.rank from headway.job j where j.waiting = 1 and j.queue = :queue and j.rank > r.rank
        order by j.rank limit 1
    ) next
)
select count(*) as ahead from (
    select 1 from ranks r cross join clock cross join lateral (
        select 1 from headway.job j
        where j.waiting = 1 and j.queue = :queue and j.rank = r.rank and j.run_at <= clock.now limit :limit::int
    ) before
    where r.rank < :rank::smallint
    union all
    select 1 from headway.job j cross join clock
    where j.waiting = 1 and j.queue = :queue and j.rank = :rank::smallint and j.run_at <= clock.now
      and (j.run_at, j.id) < (:run_at::timestamptz, :job_id::uuid)
    limit :limit::int
) ahead;

-- name: why_line(; gate, rank, run_at, job_id, limit)
-- Those blocked at a gate whose turn comes earlier.
select count(*) as ahead from (
    select 1 from headway.job j
    where j.waiting = 2 and j.gate = :gate
      and (j.rank, j.run_at, j.id) < (:rank::smallint, :run_at::timestamptz, :job_id::uuid)
    limit :limit::int
) ahead;

-- name: why_holders(; gate, limit)
select s.job_id as id, j.name, j.state from headway.slot s left join headway.job j on j.id = s.job_id
where s.gate = :gate order by s.job_id limit :limit::int;

-- name: why_function(; name)
select announced_at from headway.function where name = :name;
