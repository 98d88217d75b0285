-- name: add_figures(from_at, queue, id, step, numbers)
insert into headway.figures (from_at, queue, id, step, numbers)
select * from unnest(:from_at::timestamptz[], :queue::text[], :id::uuid[], :step::int[], :numbers::json[])
on conflict do nothing;

-- name: scattered_figures(; until_at, limit)
-- Those that have others beside them: lines of other processes, for the same queue and time.
select f.from_at, f.queue, f.id, f.numbers from headway.figures f
where f.from_at <= :until_at::timestamptz
  and exists (select from headway.figures o where o.from_at = f.from_at and o.queue = f.queue and o.id <> f.id)
order by f.from_at desc limit :limit::int for update;

-- name: fine_figures(; until_at, limit)
select from_at, queue, id, numbers from headway.figures
where step = 60 and from_at <= :until_at::timestamptz
order by from_at limit :limit::int for update;

-- name: drop_figures(from_at, queue, id)
delete from headway.figures f
using unnest(:from_at::timestamptz[], :queue::text[], :id::uuid[]) as gone(from_at, queue, id)
where f.from_at = gone.from_at and f.queue = gone.queue and f.id = gone.id;

-- name: drop_old_figures(; until_at)
delete from headway.figures where from_at < :until_at::timestamptz;

-- name: figures(; since, queue)
select from_at, queue, numbers from headway.figures
where from_at >= :since::timestamptz and (:queue::text is null or queue = :queue::text);
