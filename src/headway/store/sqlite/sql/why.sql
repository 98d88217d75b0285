-- name: why_job(; job_id, now)
select j.rank, j.gate, j.doomed, l.until as lease_until_at, w.name as worker, :now as now_at
from headway_job j
left join headway_lease l on l.id = j.lease_id and j.state in ('running', 'cancelling')
left join headway_worker w on w.id = j.worker_id
where j.id = :job_id;

-- name: why_waits_for(; job_id)
select e.parent_id as id, p.name, p.state from headway_edge e left join headway_job p on p.id = e.parent_id
where e.child_id = :job_id order by e.parent_id;

-- name: why_failed_parents(; job_id)
select a.parent_id as id, p.name, p.state from headway_parent a left join headway_job p on p.id = a.parent_id
where a.child_id = :job_id and (p.state is null or p.state in ('failed', 'cancelled')) order by a.parent_id;

-- name: why_ahead(; queue, rank, run_at, job_id, limit, now)
-- Each rank by itself, as in `claim_due`; jobs due later are not looked at.
with recursive ranks(rank) as (
    select min(rank) from headway_job where waiting = 1 and queue = :queue
    union all
    select (select min(n.rank) from headway_job n where n.waiting = 1 and n.queue = :queue and n.rank > r.rank)
    from ranks r where r.rank is not null
)
select count(*) as ahead from (
    select 1 from ranks r cross join headway_job j indexed by headway_job_ready
    where r.rank < :rank and j.waiting = 1 and j.queue = :queue and j.rank = r.rank and j.run_at <= :now
    union all
    select 1 from headway_job j indexed by headway_job_ready
    where j.waiting = 1 and j.queue = :queue and j.rank = :rank and j.run_at <= :now
      and (j.run_at, j.id) < (:run_at, :job_id)
    limit :limit
);

-- name: why_line(; gate, rank, run_at, job_id, limit)
-- Those blocked at a gate whose turn comes earlier.
select count(*) as ahead from (
    select 1 from headway_job j indexed by headway_job_held_back
    where j.waiting = 2 and j.gate = :gate and (j.rank, j.run_at, j.id) < (:rank, :run_at, :job_id)
    limit :limit
);

-- name: why_holders(; gate, limit)
select s.job_id as id, j.name, j.state from headway_slot s left join headway_job j on j.id = s.job_id
where s.gate = :gate order by s.job_id limit :limit;

-- name: why_function(; name)
select announced_at from headway_function where name = :name;
