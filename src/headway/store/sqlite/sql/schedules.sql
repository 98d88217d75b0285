-- name: due_schedules(; limit, now)
select id, record, template, next_at, last_at, :now as now_at
from headway_schedule where due_at <= :now order by due_at limit :limit;

-- name: due_schedule(; id, now)
select id, next_at, last_at, :now as now_at from headway_schedule where id = :id and due_at <= :now;

-- name: ahead_schedules(; after_id, limit, now)
-- The clock was set back: these have had their turn at a time that is still to come. Those that have ended since (no
-- `next_at`) may go on; paused ones (no `due_at` only) are seen to when they are resumed.
select id, record, template, next_at, last_at, :now as now_at
from headway_schedule
where last_at > :now and id > :after_id and (next_at is null or due_at > :now)
order by id limit :limit;

-- name: fired_times(schedule_id, since_at; now)
select schedule_id, nominal_at from headway_occurrence
where schedule_id = :schedule_id and nominal_at >= :since_at and nominal_at <= :now and job_id is not null;

-- name: advance_schedules(id, next_at, last_at, due_at)
update headway_schedule set next_at = :next_at, last_at = :last_at, due_at = :due_at where id = :id;

-- name: fold_skips(schedule_id, nominal_at, until_at, count, reason, detail; now)
-- A skip for the same reason as the one right before it makes that row longer.
update headway_occurrence
set until_at = :until_at, count = count + :count, detail = :detail, recorded_at = :now
where schedule_id = :schedule_id and job_id is null and reason = :reason and until_at < :nominal_at
  and nominal_at = (select max(l.nominal_at) from headway_occurrence l where l.schedule_id = :schedule_id)
returning schedule_id;

-- name: put_occurrences(schedule_id, nominal_at, until_at, count, job_id, reason, detail; now)
-- The key is the promise: a nominal time of a schedule is recorded once. A job counts more than a skip.
insert into headway_occurrence as o (schedule_id, nominal_at, until_at, count, job_id, reason, detail, recorded_at)
values (:schedule_id, :nominal_at, :until_at, :count, :job_id, :reason, :detail, :now)
on conflict (schedule_id, nominal_at) do update
set until_at = excluded.until_at, count = excluded.count, job_id = excluded.job_id, reason = null, detail = null
where o.job_id is null and excluded.job_id is not null;

-- name: drop_future_skips(schedule_id; now)
delete from headway_occurrence where schedule_id = :schedule_id and job_id is null and until_at > :now
returning schedule_id, nominal_at, count, reason, detail;

-- name: next_due_schedule(; now)
select (min(due_at) - :now) / 1000000.0 as delay, :now as now_at from headway_schedule where due_at is not null;

-- name: count_schedulers(; age, now)
select count(*) as number from headway_worker where fires and seen_at > :now - cast(:age * 1000000 as integer);

-- name: count_schedules(; now)
-- Reads every schedule there is: for people who look after it all.
select count(*) as schedules, count(due_at) as active, (:now - min(due_at)) / 1000000.0 as late
from headway_schedule;

-- name: insert_schedule(; id, name, record, template, next_at, due_at, source, declared, by, now)
insert into headway_schedule (id, name, record, template, next_at, due_at, source, declared, updated_by, updated_at)
values (:id, :name, :record, :template, :next_at, :due_at, :source, :declared, :by, :now)
on conflict do nothing
returning id;

-- name: update_schedule(; id, name, record, template, next_at, last_at, due_at, declared, by, now)
update headway_schedule
set name = :name, record = :record, template = :template, next_at = :next_at, last_at = :last_at, due_at = :due_at,
    declared = :declared, version = version + 1, updated_by = :by, updated_at = :now
where id = :id;

-- name: lock_schedule(; id, name, now)
-- By its id, or by its name.
select id, name, record, template, next_at, last_at, due_at, version, source, declared, updated_at, updated_by, :now as now_at
from headway_schedule where id = :id or (:id is null and name = :name);

-- name: declared_schedules(; source, now)
select id, name, record, template, next_at, last_at, due_at, version, source, declared, updated_at, updated_by,
       :now as now_at
from headway_schedule where source = :source order by name;

-- name: get_schedules(id)
select id, name, record, template, next_at, last_at, version, source, updated_at, updated_by
from headway_schedule where id = :id;

-- name: find_schedules(; name, name_prefix, tag, paused, source, after_name, limit)
select id, name, record, template, next_at, last_at, version, source, updated_at, updated_by
from headway_schedule
where name > :after_name
  and (:name is null or name = :name)
  and (:name_prefix is null or substr(name, 1, length(:name_prefix)) = :name_prefix)
  and (:tag is null or exists (select 1 from json_each(record, '$.tags') where value = :tag))
  and (:paused is null or coalesce(json_extract(record, '$.paused'), 0) = :paused)
  and (:source is null or source = :source)
order by name limit :limit;

-- name: delete_schedule(; id)
delete from headway_schedule where id = :id returning id;

-- name: delete_occurrences(; schedule_id)
delete from headway_occurrence where schedule_id = :schedule_id;

-- name: get_occurrences(; schedule_id, before_at, limit)
select nominal_at, until_at, recorded_at, count, job_id, reason, detail
from headway_occurrence
where schedule_id = :schedule_id and (:before_at is null or nominal_at < :before_at)
order by nominal_at desc limit :limit;

-- name: count_occurrences(; schedule_id, limit)
-- What became of the same day's times in the same way is one line. The limit bounds what one look costs.
select min(nominal_at) as nominal_at, max(until_at) as until_at, sum(count) as count, max(job_id) as job_id, reason,
       null as detail
from (
    select * from headway_occurrence where schedule_id = :schedule_id order by nominal_at desc limit :limit
)
group by nominal_at / 86400000000, until_at / 86400000000, job_id is null, reason
order by 1 desc, reason;

-- name: prune_occurrences(; age, limit, now)
delete from headway_occurrence
where (schedule_id, nominal_at) in (
    select schedule_id, nominal_at from headway_occurrence
    where recorded_at < :now - cast(:age * 1000000 as integer)
    order by recorded_at limit :limit
)
returning schedule_id;
