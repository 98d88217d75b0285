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
       (select json_agg(p.parent_id order by p.parent_id) from headway.parent p where p.child_id = j.id) as after,
       j.run_at <= coalesce(:now::timestamptz, now()) as due

-- part: asked
(:cursor::uuid is null or j.id < :cursor::uuid)
  and (:states::text[] is null or j.state = any(:states::text[])
       or (:pending::boolean and j.state = 'scheduled' and j.run_at <= coalesce(:now::timestamptz, now()))
       or (:retrying::boolean and j.state = 'scheduled' and j.failures > 0)
       or (:parked::boolean and j.state = 'scheduled' and j.wait_reason = 'no_code'))
  and (:kind::text is null or j.kind = :kind::text)
  and (:queue::text is null or j.queue = :queue::text)
  and (:name::text is null or j.name = :name::text)
  and (:name_prefix::text is null or starts_with(j.name, :name_prefix::text))
  and (:key::text is null or j.key = :key::text)
  and (:tagged::text[] is null or j.tags ?& :tagged::text[])
  and (:created_by::text is null or j.created_by = :created_by::text)
  and (:schedule_id::uuid is null or j.schedule_id = :schedule_id::uuid)
  and (:error_text::text is null or strpos(lower(j.error::text), lower(:error_text::text)) > 0)
  and (:since::timestamptz is null or :since::timestamptz <= case :time::text
        when 'created' then j.created_at when 'run' then j.run_at when 'started' then j.started_at
        else j.finished_at end)
  and (:until::timestamptz is null or :until::timestamptz > case :time::text
        when 'created' then j.created_at when 'run' then j.run_at when 'started' then j.started_at
        else j.finished_at end)

-- part: before
(:cursor::uuid is null or id < :cursor::uuid)

-- part: astray
substring(uuid_send(id) from 1 for 6) not between
    substring(int8send((date_part('epoch', created_at - '1970-01-01 00:00+00'::timestamptz) * 1000)::bigint - 60000) from 3)
    and substring(int8send((date_part('epoch', created_at - '1970-01-01 00:00+00'::timestamptz) * 1000)::bigint + 60000) from 3)

-- part: of_ids
select found.reach, found.last_id, j.* from found left join lateral (
    select @shown
    from headway.job j where j.id = any(array(select distinct id from candidate where @before)) and @asked
    order by j.id desc limit :limit::int
) j on true

-- part: sort
(:cursor::uuid is null or first_id < :cursor::uuid) and (:kind::text is null or kind = :kind::text)
and (:queue::text is null or queue = :queue::text) and (:name::text is null or name = :name::text)
and (:name_prefix::text is null or starts_with(name, :name_prefix::text))

-- part: in_ledger
ledger as materialized (
    select jobs, last_id, sum(cardinality(jobs)) over (order by last_id desc rows unbounded preceding) as total
    from picked
),
candidate as (select distinct unnest(jobs) as id from ledger where total - cardinality(jobs) < :depth::int),
found as (
    select coalesce(max(total), 0) as reach,
           (select last_id from ledger where total - cardinality(jobs) < :depth::int order by last_id limit 1) as last_id
    from ledger
)

-- part: in_order
found as (select count(*) as reach, (select id from candidate order by id limit 1) as last_id from candidate)

-- name: plan_afresh()
-- A plan for all filters at once sorts the whole table; one made for the filters given walks the newest jobs.
-- To compile such a plan takes longer than to carry it out.
select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true);

-- name: find_jobs(; @filters)
-- All there are: for conditions that no index helps with.
select @shown
from headway.job j where @asked
order by j.id desc limit :limit::int;

-- part: strays
stray as materialized (
    (select id from headway.job
     where @astray
     limit :strays::int)
    union
    (select id from headway.job
     where :time::text = 'run' and run_at <> created_at
       and (:since::timestamptz is null or run_at >= :since::timestamptz)
       and (:until::timestamptz is null or run_at < :until::timestamptz)
     limit :strays::int)
)

-- name: count_strays(; time, since, until, strays)
-- Jobs of which the id doesn't tell the time: those with an id of another time than they were made at, and, for the time
-- to run, those that were to wait.
with @strays
select count(*) as strays from stray;

-- name: find_near(; @filters, lower_id, upper_id, strays, depth)
-- The newest jobs; of a time frame, those whose ids are of that time, and the strays.
with near as materialized (
    select id from headway.job
    where (:lower_id::uuid is null or id >= :lower_id::uuid) and (:upper_id::uuid is null or id < :upper_id::uuid)
    order by id desc limit :depth::int + 1
),
@strays,
found as (
    select count(*) as reach, (select id from near order by id limit 1) as last_id from near
)
select found.reach, found.last_id, j.* from found left join lateral (
    select @shown
    from (
        (select * from headway.job
         where (:lower_id::uuid is null or id >= :lower_id::uuid)
           and (:upper_id::uuid is null or id < :upper_id::uuid)
         order by id desc limit :depth::int + 1)
        union all
        (select * from headway.job
         where id = any(array(select id from stray where @before))
           and not (coalesce(id >= :lower_id::uuid, true) and coalesce(id < :upper_id::uuid, true)))
    ) j where @asked
    order by j.id desc limit :limit::int
) j on true;

-- name: find_of_schedule(; @filters, depth)
with candidate as materialized (
    select id from headway.job where schedule_id = :schedule_id::uuid and @before order by id desc limit :depth::int + 1
),
@in_order
@of_ids;

-- name: find_named(; @filters, depth)
with picked as (
    select jobs, last_id from headway.arrival where name = :name::text and @sort
    order by last_id desc limit :depth::int + 1
),
@in_ledger
@of_ids;

-- name: find_prefixed(; @filters, depth)
-- In the order of their names: only if there are few of them is this an answer.
with picked as (
    select jobs from headway.arrival
    where name >= :name_prefix::text and name < :name_prefix::text || chr(1114111) and @sort
    limit :depth::int + 1
),
candidate as materialized (select id from picked cross join unnest(jobs) as id limit :depth::int + 1),
found as (select count(*) as reach, null::uuid as last_id from candidate)
@of_ids;

-- name: find_of_kind(; @filters, depth)
with picked as (
    select jobs, last_id from headway.arrival where kind = :kind::text and @sort
    order by last_id desc limit :depth::int + 1
),
@in_ledger
@of_ids;

-- name: find_of_queue(; @filters, depth)
with picked as (
    select jobs, last_id from headway.arrival where queue = :queue::text and @sort
    order by last_id desc limit :depth::int + 1
),
@in_ledger
@of_ids;

-- part: since_then
@sort and (:since::timestamptz is null or :time::text = 'run' or at >= :since::timestamptz)
     and (:until::timestamptz is null or :time::text <> 'finished' or at < :until::timestamptz)

-- name: find_ended(; @filters, depth)
-- State by state, since each by itself is in order; written out, so that the planner knows which. A job ends after it was
-- made and started.
with picked as (
    select jobs, last_id from (
        (select jobs, last_id from headway.ended where state = (:states::text[])[1] and @since_then
         order by last_id desc limit :depth::int + 1)
        union all
        (select jobs, last_id from headway.ended where state = (:states::text[])[2] and @since_then
         order by last_id desc limit :depth::int + 1)
        union all
        (select jobs, last_id from headway.ended where state = (:states::text[])[3] and @since_then
         order by last_id desc limit :depth::int + 1)
    ) part
    order by last_id desc limit :depth::int + 1
),
@in_ledger
@of_ids;

-- name: find_finished(; @filters, depth)
with picked as (
    select jobs, last_id from headway.ended
    where (:since::timestamptz is null or at >= :since::timestamptz)
      and (:until::timestamptz is null or at < :until::timestamptz) and @sort
    order by last_id desc limit :depth::int + 1
),
@in_ledger
@of_ids;

-- name: find_open(; @filters, depth)
-- Jobs that wait, by their indexes, and those that workers hold, by their leases. In no order: only if there are few of
-- them is this an answer.
with candidate as materialized (
    (select id from headway.job where waiting = 1 and (:queue::text is null or queue = :queue::text)
     limit :depth::int + 1)
    union all
    (select id from headway.job where waiting = 2 limit :depth::int + 1)
    union all
    (select unnest(jobs) as id from headway.lease limit :depth::int + 1)
),
found as (select count(*) as reach, null::uuid as last_id from candidate)
@of_ids;

-- name: find_erring(; @filters, depth)
with candidate as materialized (
    select id from headway.job where error is not null and @before order by id desc limit :depth::int + 1
),
@in_order
@of_ids;
