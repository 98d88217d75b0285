-- name: insert_jobs(id, kind, name, key, queue, rank, state, waiting, run_at, delay, expires_at, expires_in, timeout, retry, payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by, correlation_id, traceparent, code_version, retain, schedule_id, nominal_at, digest; wake, now)
-- One statement stores a batch and rings for it: the notification travels with the commit.
-- A due job whose gate is closed is blocked there from the start. The gate may open at this very moment, which is why
-- the flag is but a hint: `stranded_gates` and `waiting_gates` find whoever waits at an open one.
with clock as materialized (select coalesce(:now::timestamptz, now()) as now),
rung as materialized (select count(pg_notify('headway_wake', queue)) from unnest(:wake::text[]) as queue),
inserted as (
    insert into headway.job (
        id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
        payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, gate, tags, metadata, created_by,
        correlation_id, traceparent, code_version, retain, schedule_id, nominal_at, digest
    )
    select
        new.id, new.kind, new.name, new.key, new.queue, new.rank,
        case when shut.name is null then new.state else 'blocked' end,
        case when shut.name is null then new.waiting else 2 end,
        coalesce(new.run_at, clock.now + new.delay * interval '1 second'),
        coalesce(new.run_at, clock.now + new.delay * interval '1 second'),
        clock.now,
        coalesce(new.expires_at, clock.now + new.expires_in * interval '1 second'),
        new.timeout, new.retry, new.payload, new.hold, new.on_conflict, new.on_parent_failure, new.deduped,
        case when shut.name is null then new.wait_reason else 'limit' end, shut.name, new.tags, new.metadata, new.created_by, new.correlation_id, new.traceparent,
        new.code_version, new.retain, new.schedule_id, new.nominal_at, new.digest
    from clock, unnest(
        :id::uuid[], :kind::text[], :name::text[], :key::text[], :queue::text[], :rank::smallint[], :state::text[],
        :waiting::smallint[], :run_at::timestamptz[], :delay::float8[], :expires_at::timestamptz[],
        :expires_in::float8[], :timeout::float8[], :retry::json[], :payload::json[], :hold::boolean[],
        :on_conflict::text[], :on_parent_failure::text[], :deduped::boolean[], :wait_reason::text[], :tags::jsonb[],
        :metadata::json[], :created_by::text[], :correlation_id::text[], :traceparent::text[],
        :code_version::text[], :retain::float8[], :schedule_id::uuid[], :nominal_at::timestamptz[],
        :digest::bytea[]
    ) as new(
        id, kind, name, key, queue, rank, state, waiting, run_at, delay, expires_at, expires_in, timeout, retry,
        payload, hold, on_conflict, on_parent_failure, deduped, wait_reason, tags, metadata, created_by,
        correlation_id, traceparent, code_version, retain, schedule_id, nominal_at, digest
    )
    left join lateral (
        select g.name from headway.gate g
        where (select exists (select from headway.gate where closed))
          and new.waiting = 1 and coalesce(new.run_at, clock.now + new.delay * interval '1 second') <= clock.now
          and g.closed and g.key = new.key
          and g.name in ('key:' || new.key, 'queue:' || new.queue || E'\t' || new.key)
        limit 1
    ) shut on true
    on conflict (id) do nothing
    returning id, state, run_at, created_at, created_by, gate, kind, name, queue, correlation_id
),
told as (
    insert into headway.history (job_id, at, what, by, detail)
    select id, created_at, 'blocked', created_by, 'submitted at the full ' || gate from inserted where gate is not null
),
-- For those who watch the store, if there are any. A notification that would be too long is left out: it is a hint.
news as materialized (
    select count(pg_notify('headway_news', page.message)) from (
        select json_agg(json_build_object('job_id', new.id, 'kind', new.kind, 'name', new.name, 'queue', new.queue,
                                          'state', new.state, 'correlation_id', new.correlation_id))::text as message
        from (select *, (row_number() over ()) / 10 as number from inserted) new
        where exists (select from headway.duty d where d.name = 'watch' and d.until > (select clock.now from clock))
        group by new.number
    ) page where octet_length(page.message) < 7900
)
select inserted.id, inserted.state, inserted.run_at, inserted.created_at from inserted, rung, news;

-- name: existing_jobs(id)
select id, digest, state, run_at, created_at from headway.job where id = any(:id::uuid[]);

-- name: try_keys(key)
-- Serialises decisions about a key without ever waiting: a key that a foreign transaction holds is left out.
select key from unnest(:key::text[]) as key where pg_try_advisory_xact_lock(hashtextextended('headway:' || key, 0));

-- name: take_dedupes(key, job_id, window; now)
insert into headway.dedupe as d (key, job_id, expires_at)
select new.key, new.job_id, coalesce(:now::timestamptz, now()) + new.window * interval '1 second'
from unnest(:key::text[], :job_id::uuid[], :window::float8[]) as new(key, job_id, "window")
on conflict (key) do update set job_id = excluded.job_id, expires_at = excluded.expires_at
    where d.expires_at <= coalesce(:now::timestamptz, now()) or d.job_id = excluded.job_id
returning key;

-- name: read_dedupes(key)
select d.key, j.id, j.state, j.run_at, j.created_at
from headway.dedupe d join headway.job j on j.id = d.job_id
where d.key = any(:key::text[]);

-- name: one_open(key)
-- Any open job of each key: waiting ones by index, held ones by what the leases say they hold, gone through once.
select distinct on (found.key) found.key, found.id, found.state, found.run_at, found.created_at, found.wait_reason
from (
    select w.key, w.id, w.state, w.run_at, w.created_at, w.wait_reason
    from unnest(:key::text[]) as asked(key) cross join lateral (
        select * from headway.job j where j.key = asked.key and j.waiting + 0 > 0 limit 1
    ) w
    union all
    select h.key, h.id, h.state, h.run_at, h.created_at, h.wait_reason
    from headway.lease l
    cross join lateral unnest(l.jobs, l.keys) as held(job_id, key)
    join headway.job h on h.id = held.job_id and h.lease_id = l.id
    where held.key = any(:key::text[]) and h.state in ('running', 'cancelling')
) found
order by found.key, found.created_at, found.id;

-- name: all_open(key)
select j.key, j.id, j.state, j.run_at, j.created_at, j.wait_reason
from headway.job j where j.key = any(:key::text[]) and j.waiting + 0 > 0
union all
select j.key, j.id, j.state, j.run_at, j.created_at, j.wait_reason
from headway.lease l
cross join lateral unnest(l.jobs, l.keys) as h(job_id, key)
join headway.job j on j.id = h.job_id and j.lease_id = l.id
where h.key = any(:key::text[]) and j.state in ('running', 'cancelling')
order by created_at, id;

-- name: waited_for(parent_id)
-- Those for whom another open job of their key waits. An edge may outlive the job that waited.
select distinct e.parent_id from headway.edge e join headway.job c on c.id = e.child_id
where e.parent_id = any(:parent_id::uuid[]) and e.kind = 'wait' and c.waiting > 0;

-- name: lock_jobs(id)
-- In the order of ids, as everywhere, so that two transactions never wait for each other in a circle.
select id, state, outcome from headway.job where id = any(:id::uuid[]) order by id for update;

-- name: mark_waiters(id)
update headway.job set waiters = true where id = any(:id::uuid[]) and not waiters;

-- name: insert_edges(parent_id, child_id, kind)
insert into headway.edge (parent_id, child_id, kind)
select * from unnest(:parent_id::uuid[], :child_id::uuid[], :kind::text[])
on conflict do nothing;

-- name: insert_parents(child_id, parent_id)
insert into headway.parent (child_id, parent_id)
select * from unnest(:child_id::uuid[], :parent_id::uuid[])
on conflict do nothing;

-- name: wake(; wake)
select count(pg_notify('headway_wake', queue)) from unnest(:wake::text[]) as queue;

-- name: tell(; told, now)
-- For those who watch the store, if there are any.
select count(pg_notify('headway_news', message)) from unnest(:told::text[]) as message
where exists (select from headway.duty d where d.name = 'watch' and d.until > coalesce(:now::timestamptz, now()));

-- name: keep_watch(; holder, ttl, now)
-- Somebody watches. Of several, each keeps the row alive.
insert into headway.duty as d (name, holder, until)
values ('watch', :holder::uuid, coalesce(:now::timestamptz, now()) + :ttl::float8 * interval '1 second')
on conflict (name) do update set holder = excluded.holder, until = greatest(d.until, excluded.until);

-- name: add_history(job_id, what, by, detail; now)
insert into headway.history (job_id, at, what, by, detail)
select job_id, coalesce(:now::timestamptz, now()), what, by, detail
from unnest(:job_id::uuid[], :what::text[], :by::text[], :detail::text[]) as new(job_id, what, by, detail);

-- name: stamp_history(job_id, at, what, by, detail)
-- Of what happened earlier and would be forgotten with the columns that tell it.
insert into headway.history (job_id, at, what, by, detail)
select * from unnest(:job_id::uuid[], :at::timestamptz[], :what::text[], :by::text[], :detail::text[]);
