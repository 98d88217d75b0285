-- name: due_schedules(; limit, now)
-- Whoever ticks takes some: a schedule is in one hand at a time, and nobody waits for another.
select id, record, template, next_at, last_at, coalesce(:now::timestamptz, now()) as now_at
from headway.schedule
where due_at <= coalesce(:now::timestamptz, now())
order by due_at limit :limit::int for update skip locked;

-- name: due_schedule(; id, now)
select id, next_at, last_at, coalesce(:now::timestamptz, now()) as now_at
from headway.schedule
where id = :id::uuid and due_at <= coalesce(:now::timestamptz, now())
for update skip locked;

-- name: ahead_schedules(; after_id, limit, now)
-- The clock was set back: these have had their turn at a time that is still to come. Those that have ended since (no
-- `next_at`) may go on; paused ones (no `due_at` only) are seen to when they are resumed.
select id, record, template, next_at, last_at, coalesce(:now::timestamptz, now()) as now_at
from headway.schedule
where last_at > coalesce(:now::timestamptz, now()) and id > :after_id::uuid
  and (next_at is null or due_at > coalesce(:now::timestamptz, now()))
order by id limit :limit::int for update skip locked;

-- name: fired_times(schedule_id, since_at; now)
select o.schedule_id, o.nominal_at
from unnest(:schedule_id::uuid[], :since_at::timestamptz[]) as asked(schedule_id, since_at)
join headway.occurrence o on o.schedule_id = asked.schedule_id and o.nominal_at >= asked.since_at
where o.job_id is not null and o.nominal_at <= coalesce(:now::timestamptz, now());

-- name: advance_schedules(id, next_at, last_at, due_at)
update headway.schedule s set next_at = new.next_at, last_at = new.last_at, due_at = new.due_at
from unnest(:id::uuid[], :next_at::timestamptz[], :last_at::timestamptz[], :due_at::timestamptz[])
     as new(id, next_at, last_at, due_at)
where s.id = new.id;

-- name: fold_skips(schedule_id, nominal_at, until_at, count, reason, detail; now)
-- A skip for the same reason as the one right before it makes that row longer.
update headway.occurrence o
set until_at = new.until_at, count = o.count + new.count, detail = new.detail,
    recorded_at = coalesce(:now::timestamptz, now())
from unnest(:schedule_id::uuid[], :nominal_at::timestamptz[], :until_at::timestamptz[], :count::bigint[],
            :reason::text[], :detail::text[])
     as new(schedule_id, nominal_at, until_at, count, reason, detail)
where o.schedule_id = new.schedule_id and o.job_id is null and o.reason = new.reason and o.until_at < new.nominal_at
  and o.nominal_at = (select max(l.nominal_at) from headway.occurrence l where l.schedule_id = new.schedule_id)
returning o.schedule_id;

-- name: put_occurrences(schedule_id, nominal_at, until_at, count, job_id, reason, detail; now)
-- The key is the promise: a nominal time of a schedule is recorded once. A job counts more than a skip.
insert into headway.occurrence as o (schedule_id, nominal_at, until_at, count, job_id, reason, detail, recorded_at)
select new.*, coalesce(:now::timestamptz, now())
from unnest(:schedule_id::uuid[], :nominal_at::timestamptz[], :until_at::timestamptz[], :count::bigint[],
            :job_id::uuid[], :reason::text[], :detail::text[])
     as new(schedule_id, nominal_at, until_at, count, job_id, reason, detail)
on conflict (schedule_id, nominal_at) do update
set until_at = excluded.until_at, count = excluded.count, job_id = excluded.job_id, reason = null, detail = null
where o.job_id is null and excluded.job_id is not null;

-- name: drop_future_skips(schedule_id; now)
delete from headway.occurrence
where schedule_id = any(:schedule_id::uuid[]) and job_id is null and until_at > coalesce(:now::timestamptz, now())
returning schedule_id, nominal_at, count, reason, detail;

-- name: next_due_schedule(; now)
select extract(epoch from min(due_at) - coalesce(:now::timestamptz, now()))::float8 as delay,
       coalesce(:now::timestamptz, now()) as now_at
from headway.schedule where due_at is not null;

-- name: count_schedulers(; age, now)
select count(*) as number from headway.worker
where fires and seen_at > coalesce(:now::timestamptz, now()) - :age::float8 * interval '1 second';

-- name: count_schedules(; now)
-- Reads every schedule there is: for people who look after it all.
select count(*) as schedules, count(due_at) as active, extract(epoch from coalesce(:now::timestamptz, now()) - min(due_at))::float8 as late
from headway.schedule;

-- name: insert_schedule(; id, name, record, template, next_at, due_at, source, declared, by, now)
insert into headway.schedule (id, name, record, template, next_at, due_at, source, declared, updated_by, updated_at)
values (:id::uuid, :name, :record::json, :template::json, :next_at::timestamptz, :due_at::timestamptz, :source,
        :declared::json, :by, coalesce(:now::timestamptz, now()))
on conflict do nothing
returning id;

-- name: update_schedule(; id, name, record, template, next_at, last_at, due_at, declared, by, now)
update headway.schedule
set name = :name, record = :record::json, template = :template::json, next_at = :next_at::timestamptz,
    last_at = :last_at::timestamptz, due_at = :due_at::timestamptz, declared = :declared::json,
    version = version + 1, updated_by = :by, updated_at = coalesce(:now::timestamptz, now())
where id = :id::uuid;

-- name: lock_schedule(; id, name, now)
-- By its id, or by its name.
select id, name, record, template, next_at, last_at, due_at, version, source, declared, updated_at, updated_by,
       coalesce(:now::timestamptz, now()) as now_at
from headway.schedule
where id = :id::uuid or (:id::uuid is null and name = :name::text)
for update;

-- name: declared_schedules(; source, now)
select id, name, record, template, next_at, last_at, due_at, version, source, declared, updated_at, updated_by,
       coalesce(:now::timestamptz, now()) as now_at
from headway.schedule
where source = :source::text
order by name for update;

-- name: get_schedules(id)
select id, name, record, template, next_at, last_at, version, source, updated_at, updated_by
from headway.schedule where id = any(:id::uuid[]);

-- name: find_schedules(; name, name_prefix, tag, paused, source, after_name, limit)
select id, name, record, template, next_at, last_at, version, source, updated_at, updated_by
from headway.schedule
where name > :after_name::text
  and (:name::text is null or name = :name::text)
  and (:name_prefix::text is null or starts_with(name, :name_prefix::text))
  and (:tag::text is null or (record -> 'tags')::jsonb ? :tag::text)
  and (:paused::boolean is null or coalesce((record ->> 'paused')::boolean, false) = :paused::boolean)
  and (:source::text is null or source = :source::text)
order by name limit :limit::int;

-- name: delete_schedule(; id)
delete from headway.schedule where id = :id::uuid returning id;

-- name: delete_occurrences(; schedule_id)
delete from headway.occurrence where schedule_id = :schedule_id::uuid;

-- name: get_occurrences(; schedule_id, before_at, limit)
select nominal_at, until_at, recorded_at, count, job_id, reason, detail
from headway.occurrence
where schedule_id = :schedule_id::uuid and (:before_at::timestamptz is null or nominal_at < :before_at::timestamptz)
order by nominal_at desc limit :limit::int;

-- name: count_occurrences(; schedule_id, limit)
-- What became of the same day's times in the same way is one line. The limit bounds what one look costs.
select min(nominal_at) as nominal_at, max(until_at) as until_at, sum(count)::int8 as count,
       max(job_id::text)::uuid as job_id, reason, null::text as detail
from (
    select * from headway.occurrence where schedule_id = :schedule_id::uuid order by nominal_at desc limit :limit::int
) line
group by (nominal_at at time zone 'UTC')::date, (until_at at time zone 'UTC')::date, job_id is null, reason
order by 1 desc, reason;

-- name: prune_occurrences(; age, limit, now)
delete from headway.occurrence
where ctid = any(array(
    select ctid from headway.occurrence
    where recorded_at < coalesce(:now::timestamptz, now()) - :age::float8 * interval '1 second'
    order by recorded_at limit :limit::int
))
returning schedule_id;
