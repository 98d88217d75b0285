-- Lists, newest first. Each statement looks at a few thousand jobs that some index finds, applies all conditions to them,
-- and says with every row (there is one at least) how many it had to look at (`reach`) and, if that was more than `depth`
-- and they came newest first, how far it got (`last_id`): jobs before that are not known.

-- part: filters
states, pending, retrying, parked, kind, queue, name, name_prefix, key, tagged, created_by, schedule_id, error_text, time, since, until, cursor, limit, now

-- part: shown
j.id, j.kind, j.name, j.key, j.queue, j.rank, j.state, j.outcome, j.payload, j.desired_at, j.run_at,
       j.created_at, j.claimed_at, j.started_at, j.finished_at, j.expires_at, j.attempt, j.failures, j.losses, j.token,
       j.timeout, j.retry, j.error, j.progress, j.wait_reason, j.hold, j.on_parent_failure, j.tags, j.metadata,
       j.created_by, j.correlation_id, j.traceparent, j.code_version, j.worker_id, j.schedule_id, j.nominal_at,
       (select json_group_array(hex(parent_id)) from
            (select p.parent_id from headway_parent p where p.child_id = j.id order by p.parent_id)) as after,
       j.run_at <= :now as due

-- part: asked
j.id < coalesce(:cursor, x'ffffffffffffffffffffffffffffffffff')
  and (:states is null or j.state in (select value from json_each(:states))
       or (:pending and j.state = 'scheduled' and j.run_at <= :now)
       or (:retrying and j.state = 'scheduled' and j.failures > 0)
       or (:parked and j.state = 'scheduled' and j.wait_reason = 'no_code'))
  and (:kind is null or j.kind = :kind)
  and (:queue is null or j.queue = :queue)
  and (:name is null or j.name = :name)
  and (:name_prefix is null or substr(j.name, 1, length(:name_prefix)) = :name_prefix)
  and (:key is null or j.key = :key)
  and (:tagged is null or not exists (select 1 from json_each(:tagged) asked where not exists (
           select 1 from json_each(j.tags) t where t.value = asked.value)))
  and (:created_by is null or j.created_by = :created_by)
  and (:schedule_id is null or j.schedule_id = :schedule_id)
  and (:error_text is null or instr(lower(j.error), lower(:error_text)) > 0)
  and (:since is null or :since <= case :time when 'created' then j.created_at when 'run' then j.run_at
                                              when 'started' then j.started_at else j.finished_at end)
  and (:until is null or :until > case :time when 'created' then j.created_at when 'run' then j.run_at
                                             when 'started' then j.started_at else j.finished_at end)

-- part: before
id < coalesce(:cursor, x'ffffffffffffffffffffffffffffffffff')

-- part: astray
hex(substr(id, 1, 6)) not between printf('%012X', created_at / 1000 - 60000)
                                and printf('%012X', created_at / 1000 + 60000)

-- part: of_queue
(:queue is null or queue = :queue)

-- part: of_kind
(:kind is null or kind = :kind)

-- part: of_ids
select found.reach, found.last_id, @shown
from found left join (
    select j.id as hit from candidate cross join headway_job j on j.id = candidate.id where @asked
    order by j.id desc limit :limit
) left join headway_job j on j.id = hit
order by j.id desc

-- part: in_order
found as (select count(*) as reach, min(id) as last_id from candidate)

-- part: unordered
found as (select count(*) as reach, null as last_id from candidate)

-- name: plan_afresh()
-- Every plan is.

-- name: find_jobs(; @filters)
-- All there are: for conditions that no index helps with.
select @shown
from headway_job j where @asked
order by j.id desc limit :limit;

-- part: strays
stray as materialized (
    select id from (
        select id from headway_job indexed by headway_job_astray
        where @astray limit :strays
    )
    union
    select id from (
        select id from headway_job indexed by headway_job_delayed
        where run_at <> created_at and :time = 'run'
          and run_at >= coalesce(:since, -9223372036854775808) and run_at < coalesce(:until, 9223372036854775807)
        limit :strays
    )
)

-- name: count_strays(; time, since, until, strays)
-- Jobs of which the id doesn't tell the time: those with an id of another time than they were made at, and, for the time
-- to run, those that were to wait.
with @strays
select count(*) as strays from stray;

-- name: find_near(; @filters, lower_id, upper_id, strays, depth)
-- The newest jobs; of a time frame, those whose ids are of that time, and the strays. Only how far to go is found out
-- beforehand, by ids alone: jobs are then looked at in order, and no more of them than it takes to fill the page.
with near as materialized (
    select id from headway_job
    where id >= coalesce(:lower_id, x'00') and id < coalesce(:upper_id, x'ffffffffffffffffffffffffffffffffff')
    order by id desc limit :depth + 1
),
found as materialized (
    select count(*) as reach, min(id) as last_id from near
),
@strays,
matching as materialized (
    select id from (
        select j.id from headway_job j
        where j.id >= (select last_id from found)
          and j.id < coalesce(:upper_id, x'ffffffffffffffffffffffffffffffffff') and @asked
        order by j.id desc limit :limit
    )
    union all
    select id from (
        select j.id from stray cross join headway_job j on j.id = stray.id
        where not (j.id >= coalesce(:lower_id, x'00')
                   and j.id < coalesce(:upper_id, x'ffffffffffffffffffffffffffffffffff')) and @asked
        order by j.id desc limit :limit
    )
)
select found.reach, found.last_id, @shown
from found left join (select id as hit from matching order by id desc limit :limit)
           left join headway_job j on j.id = hit
order by j.id desc;

-- name: find_of_schedule(; @filters, depth)
with candidate as materialized (
    select id from headway_job indexed by headway_job_schedule
    where schedule_id = :schedule_id and @before order by id desc limit :depth + 1
),
@in_order
@of_ids;

-- name: find_named(; @filters, depth)
with candidate as materialized (
    select id from headway_job indexed by headway_job_name
    where name = :name and @of_queue and @of_kind and @before
    order by id desc limit :depth + 1
),
@in_order
@of_ids;

-- name: find_prefixed(; @filters, depth)
with candidate as materialized (
    select id from headway_job indexed by headway_job_name
    where name >= :name_prefix and name < :name_prefix || char(1114111) and @of_queue and @of_kind and @before
    limit :depth + 1
),
@unordered
@of_ids;

-- name: find_of_kind(; @filters, depth)
-- Calls have no index of their own: most jobs are calls.
with candidate as materialized (
    select id from headway_job indexed by headway_job_kind
    where kind <> 'call' and kind = :kind and @before order by id desc limit :depth + 1
),
found as (
    select case when :kind = 'call' then :depth + 1 else count(*) end as reach, min(id) as last_id from candidate
)
@of_ids;

-- name: find_of_queue(; @filters, depth)
with candidate as materialized (
    select id from headway_job indexed by headway_job_queue
    where queue = :queue and @of_kind and @before
    order by id desc limit :depth + 1
),
@in_order
@of_ids;

-- part: badly
@before and @of_queue and @of_kind and (:name is null or name = :name)
          and (:since is null or :time = 'run' or finished_at >= :since)

-- name: find_ended(; @filters, depth)
-- Bad ends have an index of their own. Successes, if they are few, are found among all that have ended. A job ends after
-- it was made and started.
with failed as materialized (
    select id from headway_job indexed by headway_job_bad_end
    where state in ('failed', 'cancelled') and state = 'failed' and @badly
    order by id desc limit iif('failed' in (select value from json_each(:states)), :depth + 1, 0)
),
cancelled as materialized (
    select id from headway_job indexed by headway_job_bad_end
    where state in ('failed', 'cancelled') and state = 'cancelled' and @badly
    order by id desc limit iif('cancelled' in (select value from json_each(:states)), :depth + 1, 0)
),
completed as materialized (
    select id from headway_job indexed by headway_job_finished where finished_at is not null
    limit iif('completed' in (select value from json_each(:states)), :depth + 1, 0)
),
candidate as materialized (
    select id from failed union all select id from cancelled union all select id from completed
),
found as (
    select count(*) as reach,
           case when (select count(*) from completed) > 0 then null
                when (select count(*) from failed) > :depth and (select count(*) from cancelled) > :depth
                then max((select min(id) from failed), (select min(id) from cancelled))
                when (select count(*) from failed) > :depth then (select min(id) from failed)
                else (select min(id) from cancelled) end as last_id
    from candidate
)
@of_ids;

-- name: find_finished(; @filters, depth)
with candidate as materialized (
    select id from headway_job indexed by headway_job_finished
    where finished_at is not null and finished_at >= coalesce(:since, -9223372036854775808)
      and finished_at < coalesce(:until, 9223372036854775807) limit :depth + 1
),
@unordered
@of_ids;

-- name: find_open(; @filters, depth)
-- Jobs that wait, by their indexes, and those that workers hold, by their leases. In no order: only if there are few of
-- them is this an answer.
with recursive places(place, jobs) as (
    select 1, jobs from headway_lease where length(jobs) > 0
    union all
    select place + 16, jobs from places where place + 16 < length(jobs)
),
candidate as materialized (
    select id from (
        select id from headway_job indexed by headway_job_ready where waiting = 1 and @of_queue limit :depth + 1
    )
    union all
    select id from (select id from headway_job indexed by headway_job_held_back where waiting = 2 limit :depth + 1)
    union all
    select id from (select substr(jobs, place, 16) as id from places limit :depth + 1)
),
@unordered
@of_ids;

-- name: find_erring(; @filters, depth)
with candidate as materialized (
    select id from headway_job indexed by headway_job_error
    where error is not null and @before order by id desc limit :depth + 1
),
@in_order
@of_ids;
