-- name: outstanding_jobs(; limit, without, now)
-- Queue by queue and rank by rank, as in a claim: jobs due later cost nothing. The row without an id tells in how many
-- seconds the next of them is due.
with recursive lanes(queue, rank) as (
    (select j.queue, j.rank from headway.job j where j.waiting = 1 order by j.queue, j.rank limit 1)
    union all
    select next.queue, next.rank from lanes l cross join lateral (
        select j.queue, j.rank from headway.job j
        where j.waiting = 1 and (j.queue, j.rank) > (l.queue, l.rank) order by j.queue, j.rank limit 1
    ) next
)
select l.queue, l.rank, picked.run_at, picked.id, null::float8 as delay from lanes l cross join lateral (
    select j.id, j.run_at from headway.job j
    where j.waiting = 1 and j.queue = l.queue and j.rank = l.rank and j.run_at <= coalesce(:now::timestamptz, now())
    order by j.run_at, j.id limit :limit::int
) picked
where l.queue <> all(:without::text[])
  and not exists (select from headway.queue q where q.name = l.queue and q.paused)
union all
select null, null, null, null, extract(epoch from min(first.run_at) - coalesce(:now::timestamptz, now()))::float8
from lanes l cross join lateral (
    select j.run_at from headway.job j
    where j.waiting = 1 and j.queue = l.queue and j.rank = l.rank and j.run_at > coalesce(:now::timestamptz, now())
    order by j.run_at limit 1
) first
order by queue, rank, run_at, id;
