-- part: place
-- Where the furthest of the last claims ended, of those that go on from the latest look from the start.
select l.last_rank as rank, l.last_run_at as run_at, l.last_id as id, l.scanned_at from headway.lease l
where l.queue = asked.queue and l.scanned_at between clock.now - interval '15 s' and clock.now + interval '2 s'
order by l.scanned_at desc, l.last_rank desc, l.last_run_at desc, l.last_id desc limit 1

-- name: claim_due(; queue, limit, lease_id, worker_id, ttl, rescan, hush, now)
-- The most urgent due jobs of a queue, by (rank, run_at, id). Each rank is probed by itself, so that jobs due later
-- cost nothing. The walk starts where the furthest of the last claims ended, whoever made it, so that rows claimed before
-- cost nothing either, also while somebody's old snapshot keeps their remains. What was put before that place is seen by
-- a look from the start, which a claim makes 150 to 300 ms after the end of the last such one (by lot: one is enough, and
-- many may be about to claim), or with `rescan`. One at a time: where much remains to be walked over it takes long, and all
-- others, finding the last one too long ago, would join in. They go on from the old place meanwhile, for 15 s at most, lest
-- one that is stuck keeps everybody from what stands before it. For the same reason a long look counts as made later than
-- it was, by three times its time and 2 s at most; and later than the one before, whose place is out of date.
-- Places of the future were left by claims before the clock was set back.
-- The probe finds the first job that is there: what others have claimed before it is walked over once and not twice.
-- The lease is part of the statement: one round trip instead of four. `behind`: the walk was not from the start. Where
-- nothing was claimed, this stands in a row of its own.
-- There is no ORDER BY on the outer level: it would sort all ranks before the limit. The nested loop yields in order.
with recursive clock as materialized (
    select coalesce(:now::timestamptz, now()) as now, interval '150 ms' * (1 + random()) as patience
),
asked as (
    select :queue::text as queue
),
latest as materialized (
    select place.* from clock cross join asked cross join lateral (@place) place
),
walk as materialized (
    select case when latest.id is null then true
                when latest.scanned_at > clock.now - clock.patience and not :rescan::boolean then false
                else pg_try_advisory_xact_lock(hashtextextended('headway:' || asked.queue, 1)) end as whole
    from clock cross join asked left join latest on true
),
mark as materialized (
    select latest.rank, latest.run_at, latest.id, latest.scanned_at from walk cross join latest where not walk.whole
    union all
    select (-32768)::smallint, '-infinity', '00000000-0000-0000-0000-000000000000'::uuid, null from walk where walk.whole
),
ranks(rank, run_at, id) as (
    (
        select first.rank, first.run_at, first.id from mark cross join lateral (
            select j.rank, j.run_at, j.id from headway.job j
            where j.waiting = 1 and j.queue = :queue::text
              and (j.rank, j.run_at, j.id) > (mark.rank, mark.run_at, mark.id)
              and not exists (select from headway.queue q where q.name = :queue::text and q.paused)
            order by j.rank, j.run_at, j.id limit 1
        ) first
    )
    union all
    select next.rank, next.run_at, next.id from ranks r cross join lateral (
        select j.rank, j.run_at, j.id from headway.job j
        where j.waiting = 1 and j.queue = :queue::text and j.rank > r.rank
        order by j.rank, j.run_at, j.id limit 1
    ) next
),
due as materialized (
    select picked.id from ranks r cross join clock cross join lateral (
        select j.id from headway.job j
        where j.waiting = 1 and j.queue = :queue::text and j.rank = r.rank and j.run_at <= clock.now
          and (j.run_at, j.id) >= (r.run_at, r.id)
          and (j.expires_at is null or j.expires_at > clock.now)
        order by j.run_at, j.id
        limit :limit::int
        for update skip locked
    ) picked
    limit :limit::int
),
claimed as (
    update headway.job j
    set state = case when j.state = 'cancelling' then j.state else 'running' end, waiting = 0, token = j.token + 1, attempt = j.attempt + 1, lease_id = :lease_id::uuid,
        worker_id = :worker_id::uuid, claimed_at = clock.now, started_at = null, finished_at = null, outcome = null,
        wait_reason = null, progress = null
    from clock
    where j.id = any(array(select due.id from due))
    returning j.id, j.token, j.kind, j.name, j.payload, j.attempt, j.failures, j.losses, j.timeout,
              j.retry, j.correlation_id, j.traceparent, j.key, j.rank, j.run_at,
              date_part('epoch', j.run_at - clock.now) as due
),
-- Only a claim that got all it asked for has left more, which others go on with.
leased as (
    insert into headway.lease (id, worker_id, until, jobs, keys, queue, scanned_at, last_rank, last_run_at, last_id)
    select :lease_id::uuid, :worker_id::uuid, clock.now + :ttl::float8 * interval '1 second', taken.jobs, taken.keys,
           case when cardinality(taken.jobs) = :limit::int then :queue::text end,
           coalesce(mark.scanned_at, greatest(
               latest.scanned_at + interval '1 us',
               coalesce(:now::timestamptz,
                        clock_timestamp() + least(3 * (clock_timestamp() - statement_timestamp()), interval '2 s'))
           )),
           last.rank, last.run_at, last.id
    from clock cross join mark left join latest on true
    cross join (select array_agg(claimed.id) as jobs, array_agg(claimed.key) as keys from claimed) taken
    cross join (select rank, run_at, id from claimed order by rank desc, run_at desc, id desc limit 1) last
),
-- Whoever took the last one tells the others, who have heard the same ring and are about to ask. What may stand before the
-- place where it began, it looks for itself at once.
hushed as materialized (
    select count(pg_notify('headway_wake', :hush::text)) from (select count(*) as jobs from claimed) taken
    where :hush::text is not null and taken.jobs between 1 and :limit::int - 1
)
select claimed.id, token, kind, name, payload, attempt, failures, losses, timeout, retry, correlation_id, traceparent,
       null as key, claimed.rank, due, true as leased, mark.rank > -32768 as behind
from mark cross join hushed left join claimed on true;

-- name: hold_lease(; lease_id, worker_id, ttl, jobs, keys, now)
insert into headway.lease (id, worker_id, until, jobs, keys)
values (:lease_id::uuid, :worker_id::uuid, coalesce(:now::timestamptz, now()) + :ttl::float8 * interval '1 second',
        :jobs::uuid[], :keys::text[]);

-- name: claimed_under(; lease_id)
-- What a claim whose commit was left unknown has brought.
select id, token, kind, name, payload, attempt, failures, losses, timeout, retry, correlation_id,
       traceparent, key, rank, date_part('epoch', run_at - claimed_at) as due
from headway.job
where id = any(array(select unnest(jobs) from headway.lease where id = :lease_id::uuid))
  and lease_id = :lease_id::uuid and state in ('running', 'cancelling')
order by rank, run_at, id;

-- name: peek(queue; now)
-- For each queue the seconds until its first job is due (0 or less: now); no row for an empty or paused queue. A due job
-- behind the place where the last claim ended says enough: from the start the way leads past all that remains of claimed
-- rows.
with recursive clock as materialized (
    select coalesce(:now::timestamptz, now()) as now
),
near as materialized (
    select asked.queue, first.run_at from clock cross join unnest(:queue::text[]) as asked(queue)
    left join lateral (@place) place on true
    left join lateral (
        select j.run_at from headway.job j
        where j.waiting = 1 and j.queue = asked.queue and (j.rank, j.run_at, j.id) > (place.rank, place.run_at, place.id)
        order by j.rank, j.run_at, j.id limit 1
    ) first on first.run_at <= clock.now
    where not exists (select from headway.queue q where q.name = asked.queue and q.paused)
),
ranks(queue, rank) as (
    select near.queue, first.rank from near cross join lateral (
        select j.rank from headway.job j where j.waiting = 1 and j.queue = near.queue order by j.rank limit 1
    ) first
    where near.run_at is null
    union all
    select r.queue, next.rank from ranks r cross join lateral (
        select j.rank from headway.job j
        where j.waiting = 1 and j.queue = r.queue and j.rank > r.rank order by j.rank limit 1
    ) next
)
select found.queue, extract(epoch from min(found.run_at) - clock.now)::float8 as delay
from clock cross join (
    select near.queue, near.run_at from near where near.run_at is not null
    union all
    select r.queue, first.run_at from ranks r cross join lateral (
        select j.run_at from headway.job j
        where j.waiting = 1 and j.queue = r.queue and j.rank = r.rank order by j.run_at, j.id limit 1
    ) first
) found
group by found.queue, clock.now;

-- name: renew_leases(id; ttl, now)
-- A lapsed lease is not revived: its jobs may already be another worker's.
update headway.lease
set until = coalesce(:now::timestamptz, now()) + :ttl::float8 * interval '1 second'
where id = any(:id::uuid[]) and until > coalesce(:now::timestamptz, now())
returning id, cancels;

-- name: drop_leases(id)
delete from headway.lease where id = any(:id::uuid[]);

-- name: touch_worker(; worker_id, name, host, pid, queues, slots, fires, code_version, now)
insert into headway.worker (id, name, host, pid, queues, slots, fires, code_version, started_at, seen_at)
values (:worker_id::uuid, :name, :host, :pid::int, :queues::json, :slots::int, :fires::boolean, :code_version,
        coalesce(:now::timestamptz, now()), coalesce(:now::timestamptz, now()))
on conflict (id) do update
set seen_at = excluded.seen_at, queues = excluded.queues, slots = excluded.slots, fires = excluded.fires
-- Who serves none of the same queues is in nobody's way.
returning (select 1 + count(*) from headway.worker w where w.slots > 0 and w.id <> :worker_id::uuid
           and w.seen_at > coalesce(:now::timestamptz, now()) - interval '60 seconds'
           and exists (select from json_array_elements_text(w.queues) as served(name)
                       where served.name in (select json_array_elements_text(:queues::json)))) as crowd;

-- name: drop_worker(; worker_id)
delete from headway.worker where id = :worker_id::uuid;

-- name: report(id, token, ran, progress; now)
update headway.job j
set started_at = coalesce(j.started_at, coalesce(:now::timestamptz, now()) - news.ran * interval '1 second'),
    progress = coalesce(news.progress, j.progress)
from unnest(:id::uuid[], :token::bigint[], :ran::float8[], :progress::json[]) as news(id, token, ran, progress)
where j.id = news.id and j.token = news.token and j.finished_token is distinct from news.token
returning j.id;

-- name: append_chunks(job_id, token, stream, seq, data; now)
insert into headway.chunk (job_id, attempt, stream, seq, at, data)
select j.id, j.attempt, new.stream, new.seq, coalesce(:now::timestamptz, now()), new.data
from unnest(:job_id::uuid[], :token::bigint[], :stream::text[], :seq::int[], :data::bytea[])
     as new(job_id, token, stream, seq, data)
join headway.job j on j.id = new.job_id and j.token = new.token and j.finished_token is distinct from new.token
on conflict (job_id, attempt, seq, stream) do update set data = excluded.data
returning job_id;

-- name: complete_untied(id, token, ran; now)
-- The quickest way for the most usual end: how many it was tells whether all of them are done. Fenced as below. Other ends
-- are put down in `ended` by a trigger; these by the batch, which costs next to nothing.
with done as (
update headway.job j
set state = 'completed', outcome = 'succeeded', finished_token = j.token, finished_at = coalesce(:now::timestamptz, now()),
    started_at = coalesce(j.started_at, coalesce(:now::timestamptz, now()) - ended.ran * interval '1 second'),
    error = null, losses = 0
from unnest(:id::uuid[], :token::bigint[], :ran::float8[]) as ended(id, token, ran)
where j.id = ended.id and j.token = ended.token and j.finished_token is distinct from ended.token
  and not (j.waiters or j.gated or j.deduped or j.doomed)
returning j.id, j.kind, j.queue, j.name
),
batch as (
    select kind, queue, name, array_agg(id order by id) as jobs from done group by kind, queue, name
),
noted as (
    insert into headway.ended (state, kind, queue, name, at, first_id, last_id, jobs)
    select 'completed', kind, queue, name, coalesce(:now::timestamptz, now()), jobs[1], jobs[cardinality(jobs)], jobs
    from batch
)
select coalesce(sum(cardinality(jobs)), 0)::int as taken from batch;

-- name: complete_jobs(id, token, ran; now)
-- A success is one even if a cancel was on its way. Fenced and put down as above.
with done as (
update headway.job j
set state = 'completed', outcome = 'succeeded', finished_token = j.token, finished_at = coalesce(:now::timestamptz, now()),
    started_at = coalesce(j.started_at, coalesce(:now::timestamptz, now()) - ended.ran * interval '1 second'),
    error = null, losses = 0
from unnest(:id::uuid[], :token::bigint[], :ran::float8[]) as ended(id, token, ran)
where j.id = ended.id and j.token = ended.token and j.finished_token is distinct from ended.token
returning j.id, j.token, (j.waiters or j.gated or j.deduped or j.doomed) as tied, j.kind, j.queue, j.name
),
noted as (
    insert into headway.ended (state, kind, queue, name, at, first_id, last_id, jobs)
    select 'completed', kind, queue, name, coalesce(:now::timestamptz, now()), jobs[1], jobs[cardinality(jobs)], jobs
    from (select kind, queue, name, array_agg(id order by id) as jobs from done group by kind, queue, name) batch
)
select id, token, tied from done;

-- name: finish_jobs(id, token, state, outcome, ran, error; now)
-- Fenced by token. Deliberately no condition on `state`: with stale statistics the planner would walk the wrong index.
update headway.job j
set state = case when j.state = 'cancelling' then 'cancelled' else ended.state end,
    outcome = case when j.state = 'cancelling' then 'cancelled' else ended.outcome end,
    finished_token = j.token,
    finished_at = coalesce(:now::timestamptz, now()),
    started_at = coalesce(j.started_at, coalesce(:now::timestamptz, now()) - ended.ran * interval '1 second'),
    error = ended.error,
    losses = 0,
    failures = j.failures + (ended.state = 'failed')::int
from unnest(:id::uuid[], :token::bigint[], :state::text[], :outcome::text[], :ran::float8[], :error::json[])
     as ended(id, token, state, outcome, ran, error)
where j.id = ended.id and j.token = ended.token and j.finished_token is distinct from ended.token
returning j.id, j.token, (j.waiters or j.gated or j.deduped or j.doomed) as tied, j.state, j.outcome;

-- name: release_jobs(id, token, reason, wait, ran, outcome, error; outliving, now)
-- Back to waiting. `token` moves on, so that the worker that gives the job back has no further say in it. Unless it has
-- ended, what outlives its worker keeps a cancel that waits for the next one. What has begun expires no more.
update headway.job j
set state = case when j.state <> 'cancelling' then 'scheduled'
                 when j.kind = :outliving::text and back.reason <> 'retry' then j.state else 'cancelled' end,
    waiting = case when j.state = 'cancelling' and not (j.kind = :outliving::text and back.reason <> 'retry')
                   then 0 else 1 end,
    outcome = case when j.state = 'cancelling' and not (j.kind = :outliving::text and back.reason <> 'retry')
                   then 'cancelled' else back.outcome end,
    finished_at = case when j.state = 'cancelling' and not (j.kind = :outliving::text and back.reason <> 'retry')
                       then coalesce(:now::timestamptz, now()) end,
    expires_at = case when j.kind = :outliving::text or back.ran is not null or j.started_at is not null then null
                      else j.expires_at end,
    finished_token = back.token,
    token = j.token + 1,
    run_at = case when back.reason in ('retry', 'snooze', 'parked')
                  then coalesce(:now::timestamptz, now()) + back.wait * interval '1 second' else j.run_at end,
    started_at = case when back.ran is null then null else
                 coalesce(j.started_at, coalesce(:now::timestamptz, now()) - back.ran * interval '1 second') end,
    error = coalesce(back.error, j.error),
    attempt = j.attempt - (back.reason in ('snooze', 'give_back', 'parked'))::int,
    failures = j.failures + (back.reason = 'retry')::int,
    losses = case back.reason when 'lost' then j.losses + 1 when 'retry' then 0 when 'snooze' then 0 else j.losses end,
    wait_reason = case when back.reason = 'parked' then 'no_code' end
from unnest(:id::uuid[], :token::bigint[], :reason::text[], :wait::float8[], :ran::float8[], :outcome::text[],
            :error::json[]) as back(id, token, reason, wait, ran, outcome, error)
where j.id = back.id and j.token = back.token and j.finished_token is distinct from back.token
returning j.id, back.token, j.state, j.outcome, j.queue, j.attempt, j.error, j.claimed_at, j.started_at, j.worker_id, back.reason,
          j.run_at, (j.waiters or j.gated or j.deduped or j.doomed) as tied;

-- name: read_states(id)
-- Where these jobs are, and which attempt at them ended last.
select id, finished_token as token, state, outcome from headway.job where id = any(:id::uuid[]);

-- name: archive_attempts(job_id, number, outcome, error, claimed_at, started_at, finished_at, worker_id; now)
insert into headway.attempt (job_id, number, outcome, error, claimed_at, started_at, finished_at, worker_id)
select job_id, number, outcome, error, claimed_at, started_at, coalesce(finished_at, :now::timestamptz, now()), worker_id
from unnest(:job_id::uuid[], :number::int[], :outcome::text[], :error::json[], :claimed_at::timestamptz[],
            :started_at::timestamptz[], :finished_at::timestamptz[], :worker_id::uuid[])
     as new(job_id, number, outcome, error, claimed_at, started_at, finished_at, worker_id)
on conflict do nothing;

-- name: put_results(job_id, content_type, size, data, meta, source)
insert into headway.result (job_id, content_type, size, data, meta, source)
select * from unnest(:job_id::uuid[], :content_type::text[], :size::bigint[], :data::bytea[], :meta::json[],
                     :source::text[])
on conflict (job_id) do update
set content_type = excluded.content_type, size = excluded.size, data = excluded.data, meta = excluded.meta,
    source = excluded.source;

-- name: put_result_chunks(job_id, seq, data; now)
insert into headway.chunk (job_id, attempt, stream, seq, at, data)
select new.job_id, 0, 'result', new.seq, coalesce(:now::timestamptz, now()), new.data
from unnest(:job_id::uuid[], :seq::int[], :data::bytea[]) as new(job_id, seq, data)
on conflict do nothing;
