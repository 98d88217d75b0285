-- name: outstanding_jobs(; limit, without, now)
-- Queue by queue and rank by rank, as in a claim: jobs due later cost nothing. The row without an id tells in how many
-- seconds the next of them is due.
with recursive queues(queue) as (
    select min(queue) from headway_job where waiting = 1
    union all
    select (select min(n.queue) from headway_job n where n.waiting = 1 and n.queue > q.queue)
    from queues q where q.queue is not null
),
lanes(queue, rank) as (
    select q.queue, (select min(j.rank) from headway_job j where j.waiting = 1 and j.queue = q.queue)
    from queues q where q.queue is not null
    union all
    select l.queue, (select min(j.rank) from headway_job j where j.waiting = 1 and j.queue = l.queue and j.rank > l.rank)
    from lanes l where l.rank is not null
)
select l.queue, l.rank, j.run_at, j.id, null as delay
from lanes l cross join headway_job j
where l.rank is not null
  and l.queue not in (select value from json_each(:without))
  and j.id in (
      select p.id from headway_job p indexed by headway_job_ready
      where p.waiting = 1 and p.queue = l.queue and p.rank = l.rank and p.run_at <= :now
      order by p.run_at, p.id limit :limit
  )
  and not exists (select 1 from headway_queue q where q.name = l.queue and q.paused)
union all
select null, null, null, null, (min((
    select min(j.run_at) from headway_job j
    where j.waiting = 1 and j.queue = l.queue and j.rank = l.rank and j.run_at > :now
)) - :now) / 1000000.0
from lanes l where l.rank is not null
order by 1, 2, 3, 4;
