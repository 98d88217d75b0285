-- name: put_queue(; name, paused, max_running, rate, key_max_running, key_rate, keep_completed, keep_failed, by, now)
-- A pause is dated by the change that made it one.
insert into headway.queue as q (name, paused, max_running, rate, key_max_running, key_rate, keep_completed, keep_failed,
                                paused_at, paused_by)
values (:name, :paused::boolean, :max_running::int, :rate, :key_max_running::int, :key_rate, :keep_completed::float8,
        :keep_failed::float8, case when :paused::boolean then coalesce(:now::timestamptz, now()) end,
        case when :paused::boolean then :by::text end)
on conflict (name) do update
set paused = excluded.paused, max_running = excluded.max_running, rate = excluded.rate,
    key_max_running = excluded.key_max_running, key_rate = excluded.key_rate,
    keep_completed = excluded.keep_completed, keep_failed = excluded.keep_failed,
    paused_at = case when q.paused and excluded.paused then q.paused_at else excluded.paused_at end,
    paused_by = case when q.paused and excluded.paused then q.paused_by else excluded.paused_by end;

-- name: get_queues()
select name, paused, max_running, rate, key_max_running, key_rate, keep_completed, keep_failed
from headway.queue order by name;

-- name: put_key_limit(; key, max_running, rate)
insert into headway.key_limit (key, max_running, rate) values (:key, :max_running::int, :rate)
on conflict (key) do update set max_running = excluded.max_running, rate = excluded.rate;

-- name: drop_key_limit(; key)
delete from headway.key_limit where key = :key;

-- name: get_key_limits()
select key, max_running, rate from headway.key_limit order by key;

-- name: make_gates(name, key)
insert into headway.gate (name, key) select * from unnest(:name::text[], :key::text[]) on conflict do nothing;

-- name: lock_gates(name)
-- Apart from the reading: a statement that waits for the lock would count the slots as they were before it waited.
select name from headway.gate where name = any(:name::text[]) order by name for update;

-- name: read_gates(name; now)
-- `ahead`: how far the rate's starts run ahead of time; `running`: the slots taken; `settled_at`: all that was due by then
-- can be seen. Jobs carry the time at which their transaction began.
select name, closed, extract(epoch from tat - coalesce(:now::timestamptz, now()))::float8 as ahead,
       (select count(*) from headway.slot s where s.gate = g.name) as running,
       coalesce(:now::timestamptz, now()) as now_at,
       coalesce(:now::timestamptz, now()) - interval '1 second' as settled_at
from headway.gate g where name = any(:name::text[]);

-- name: move_gates(name, ahead; now)
-- `ahead`: seconds from now until the rate has made up for all starts so far.
update headway.gate g set tat = coalesce(:now::timestamptz, now()) + moved.ahead * interval '1 second'
from unnest(:name::text[], :ahead::float8[]) as moved(name, ahead) where g.name = moved.name;

-- name: close_gates(name)
update headway.gate set closed = true where name = any(:name::text[]) and not closed;

-- name: due_candidates(; queue, limit, closed, since, few, now)
-- The first due jobs promoted at a gate, and the first of those that became due after `since` and whose key isn't known
-- to be full. The promoted have an index of their own, since they may stand before `since`, among many whose turn hasn't come.
-- If, of all that is open, fewer than `few` jobs have a key that isn't full, they are found by their keys: there may be
-- many of full keys before them. Otherwise, and with `few` = 0, the queue is walked through in its order.
with recursive clock as materialized (select coalesce(:now::timestamptz, now()) as now),
full_ as materialized (select key, lead(key) over (order by key) as next from unnest(:closed::text[]) as key),
others as materialized (
    select other.id from (
        (
            select j.id from headway.job j
            where j.waiting + 0 > 0 and j.key < (select min(full_.key) from full_) order by j.key limit :few::int
        )
        union all
        (
            select j.id from headway.job j
            where j.waiting + 0 > 0 and j.key > (select max(full_.key) from full_) order by j.key limit :few::int
        )
        union all
        (
            select amid.id from full_ cross join lateral (
                select j.id from headway.job j
                where j.waiting + 0 > 0 and j.key > full_.key and j.key < full_.next order by j.key limit :few::int
            ) amid
            limit :few::int
        )
    ) other
    limit :few::int
),
counted as materialized (select count(*) < :few::int as few from others),
ranks(rank) as (
    (
        select j.rank from headway.job j
        where j.waiting = 1 and j.queue = :queue and not (select counted.few from counted)
          and not exists (select from headway.queue q where q.name = :queue and q.paused)
        order by j.rank limit 1
    )
    union all
    select next.rank from ranks r cross join lateral (
        select j.rank from headway.job j where j.waiting = 1 and j.queue = :queue and j.rank > r.rank
        order by j.rank limit 1
    ) next
),
promoted as materialized (
    select j.id, j.key, j.rank, j.run_at from headway.job j cross join clock
    where j.waiting = 1 and j.gate is not null and j.queue = :queue and j.run_at <= clock.now
      and (j.expires_at is null or j.expires_at > clock.now)
      and not exists (select from headway.queue q where q.name = :queue and q.paused)
    order by j.rank, j.run_at, j.id
    limit :limit::int
    for update of j skip locked
),
-- Not `waiting = 1`, nor `waiting + 0 = 1`: with an index for that, a planner that knows little of the table would walk
-- through all that waits.
found as materialized (
    select j.id, j.key, j.rank, j.run_at from headway.job j cross join clock
    where j.id = any(array(select others.id from others)) and (select counted.few from counted)
      and j.waiting - 1 = 0 and j.gate is null and j.queue = :queue and j.run_at <= clock.now
      and (j.expires_at is null or j.expires_at > clock.now)
      and not exists (select from headway.queue q where q.name = :queue and q.paused)
    for update of j skip locked
),
met as materialized (
    select picked.id, picked.key, r.rank, picked.run_at from ranks r cross join clock cross join lateral (
        select j.id, j.key, j.run_at from headway.job j
        where j.waiting = 1 and j.queue = :queue and j.rank = r.rank and j.run_at <= clock.now
          and j.run_at > :since::timestamptz
          and (j.expires_at is null or j.expires_at > clock.now)
          and j.gate is null and j.key <> all(:closed::text[])
        order by j.run_at, j.id
        limit :limit::int
        for update skip locked
    ) picked
    limit :limit::int
)
select id, key, rank, run_at from promoted
union all select id, key, rank, run_at from found
union all select id, key, rank, run_at from met;

-- name: claim_jobs(id; lease_id, worker_id, gated, now)
update headway.job j
set state = case when j.state = 'cancelling' then j.state else 'running' end, waiting = 0, token = j.token + 1, attempt = j.attempt + 1, lease_id = :lease_id::uuid,
    worker_id = :worker_id::uuid, claimed_at = coalesce(:now::timestamptz, now()), started_at = null,
    finished_at = null, outcome = null, wait_reason = null, progress = null, gate = null, gated = :gated::boolean
where j.id = any(:id::uuid[]) and j.waiting = 1
returning j.id, j.token, j.kind, j.name, j.payload, j.attempt, j.failures, j.losses, j.timeout,
          j.retry, j.correlation_id, j.traceparent, j.key, j.rank,
          date_part('epoch', j.run_at - j.claimed_at) as due;

-- name: block_at_gates(id, gate)
update headway.job j set state = 'blocked', waiting = 2, wait_reason = 'limit', gate = full_.gate
from unnest(:id::uuid[], :gate::text[]) as full_(id, gate)
where j.id = full_.id and j.waiting = 1 and j.state <> 'cancelling'
returning j.id, j.kind, j.name, j.queue, j.state, j.outcome, j.attempt, j.correlation_id;

-- name: backlog_of_keys(; queue, keys, limit, to_rank, to_run_at)
-- The first of those whom a claim has just walked past; it got as far as (to_rank, to_run_at).
with recursive ranks(rank) as (
    (select j.rank from headway.job j where j.waiting = 1 and j.queue = :queue order by j.rank limit 1)
    union all
    select next.rank from ranks r cross join lateral (
        select j.rank from headway.job j where j.waiting = 1 and j.queue = :queue and j.rank > r.rank
        order by j.rank limit 1
    ) next
    where r.rank < :to_rank::smallint
)
select passed.id, passed.key from ranks r cross join lateral (
    select j.id, j.key from headway.job j
    where j.waiting = 1 and j.queue = :queue and j.rank = r.rank and r.rank <= :to_rank::smallint
      and j.run_at <= :to_run_at::timestamptz and j.gate is null and j.key = any(:keys::text[])
    order by j.run_at, j.id
    limit :limit::int
    for update skip locked
) passed
limit :limit::int;

-- name: take_slots(gate, job_id)
insert into headway.slot (gate, job_id) select * from unnest(:gate::text[], :job_id::uuid[]) on conflict do nothing;

-- name: free_slots(job_id)
delete from headway.slot where job_id = any(:job_id::uuid[]) returning gate;

-- name: promote_at_gate(; gate, room)
-- By (rank, run_at, id). The promoted keep `gate`, by which the claim knows that their turn has come.
update headway.job j set state = 'scheduled', waiting = 1, wait_reason = null
where j.id = any(array(
    select id from headway.job
    where waiting = 2 and gate = :gate and state = 'blocked'
    order by rank, run_at, id limit :room::int for update skip locked
))
returning j.id, j.kind, j.name, j.queue, j.state, j.outcome, j.attempt, j.correlation_id;

-- name: open_if_empty(name)
update headway.gate g set closed = false
where g.name = any(:name::text[]) and g.closed
  and not exists (select from headway.job j where j.waiting = 2 and j.gate = g.name);

-- name: closed_gates()
select name from headway.gate where closed order by name;

-- name: waiting_gates()
-- Where jobs wait (`held`), found in the index by one step per gate; and where none does, though it is marked as closed.
with recursive held(gate) as (
    (select j.gate from headway.job j where j.waiting = 2 and j.gate is not null order by j.gate limit 1)
    union all
    select next.gate from held cross join lateral (
        select j.gate from headway.job j where j.waiting = 2 and j.gate > held.gate order by j.gate limit 1
    ) next
)
select held.gate as name, true as held, coalesce(g.closed, false) as closed
from held left join headway.gate g on g.name = held.gate
union all
select g.name, false, true from headway.gate g
where g.closed and g.name not in (select held.gate from held);

-- name: stranded_gates()
-- Open gates at which jobs wait all the same: they were stored while the last one before them was let through.
with recursive held(gate) as (
    (select j.gate from headway.job j where j.waiting = 2 and j.gate is not null order by j.gate limit 1)
    union all
    select next.gate from held cross join lateral (
        select j.gate from headway.job j where j.waiting = 2 and j.gate > held.gate order by j.gate limit 1
    ) next
)
select g.name, true as held, g.closed from held join headway.gate g on g.name = held.gate where not g.closed;

-- name: stale_slots()
-- Slots whose job isn't held any more: there should be none.
delete from headway.slot s
where not exists (select from headway.job j where j.id = s.job_id and j.state in ('running', 'cancelling'))
returning gate;
