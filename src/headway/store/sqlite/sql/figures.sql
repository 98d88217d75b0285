-- name: add_figures(from_at, queue, id, step, numbers)
insert into headway_figures (from_at, queue, id, step, numbers) values (:from_at, :queue, :id, :step, :numbers)
on conflict do nothing;

-- name: scattered_figures(; until_at, limit)
-- Those that have others beside them: lines of other processes, for the same queue and time.
select f.from_at, f.queue, f.id, f.numbers from headway_figures f
where f.from_at <= :until_at
  and exists (select 1 from headway_figures o where o.from_at = f.from_at and o.queue = f.queue and o.id <> f.id)
order by f.from_at desc limit :limit;

-- name: fine_figures(; until_at, limit)
select from_at, queue, id, numbers from headway_figures
where step = 60 and from_at <= :until_at
order by from_at limit :limit;

-- name: drop_figures(from_at, queue, id)
delete from headway_figures where from_at = :from_at and queue = :queue and id = :id;

-- name: drop_old_figures(; until_at)
delete from headway_figures where from_at < :until_at;

-- name: figures(; since, queue)
select from_at, queue, numbers from headway_figures
where from_at >= :since and (:queue is null or queue = :queue);
