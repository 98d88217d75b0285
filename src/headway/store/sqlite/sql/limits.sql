-- name: put_queue(; name, paused, max_running, rate, key_max_running, key_rate, keep_completed, keep_failed, by, now)
-- A pause is dated by the change that made it one.
insert into headway_queue (name, paused, max_running, rate, key_max_running, key_rate, keep_completed, keep_failed,
                           paused_at, paused_by)
values (:name, :paused, :max_running, :rate, :key_max_running, :key_rate, :keep_completed, :keep_failed,
        case when :paused then :now end, case when :paused then :by end)
on conflict (name) do update
set paused = excluded.paused, max_running = excluded.max_running, rate = excluded.rate,
    key_max_running = excluded.key_max_running, key_rate = excluded.key_rate,
    keep_completed = excluded.keep_completed, keep_failed = excluded.keep_failed,
    paused_at = case when headway_queue.paused and excluded.paused then headway_queue.paused_at
                     else excluded.paused_at end,
    paused_by = case when headway_queue.paused and excluded.paused then headway_queue.paused_by
                     else excluded.paused_by end;

-- name: get_queues()
select name, paused, max_running, rate, key_max_running, key_rate, keep_completed, keep_failed
from headway_queue order by name;

-- name: put_key_limit(; key, max_running, rate)
insert into headway_key_limit (key, max_running, rate) values (:key, :max_running, :rate)
on conflict (key) do update set max_running = excluded.max_running, rate = excluded.rate;

-- name: drop_key_limit(; key)
delete from headway_key_limit where key = :key;

-- name: get_key_limits()
select key, max_running, rate from headway_key_limit order by key;

-- name: make_gates(name, key)
insert into headway_gate (name, key) values (:name, :key) on conflict do nothing;

-- name: lock_gates(name)
-- The one writer needs no lock.
select name from headway_gate where name = :name;

-- name: read_gates(name; now)
-- `ahead`: how far the rate's starts run ahead of time; `running`: the slots taken; `settled_at`: all that was due by then
-- can be seen. Time is read behind the write lock, once for all that share a commit.
select name, closed, (tat - :now) / 1000000.0 as ahead,
       (select count(*) from headway_slot s where s.gate = :name) as running, :now as now_at, :now - 1 as settled_at
from headway_gate where name = :name;

-- name: move_gates(name, ahead; now)
-- `ahead`: seconds from now until the rate has made up for all starts so far.
update headway_gate set tat = :now + cast(:ahead * 1000000 as integer) where name = :name;

-- name: close_gates(name)
update headway_gate set closed = 1 where name = :name and not closed;

-- name: due_candidates(; queue, limit, closed, since, few, now)
-- The first due jobs promoted at a gate, and the first of those that became due after `since` and whose key isn't known
-- to be full. The promoted have an index of their own, since they may stand before `since`, among many whose turn hasn't come.
-- If, of all that is open, fewer than `few` jobs have a key that isn't full, they are found by their keys: there may be
-- many of full keys before them. Otherwise, and with `few` = 0, the queue is walked through in its order, which is that
-- of the nested loop, as in `claim_due`.
with recursive full_ as materialized (
    select value as key, lead(value) over (order by value) as next from json_each(:closed)
),
others as materialized (
    select id from (
        select j.id from headway_job j indexed by headway_job_open_key
        where j.finished_at is null and j.key < (select min(key) from full_)
        union all
        select j.id from headway_job j indexed by headway_job_open_key
        where j.finished_at is null and j.key > (select max(key) from full_)
        union all
        select j.id from full_ cross join headway_job j indexed by headway_job_open_key
        where j.finished_at is null and j.key > full_.key and j.key < full_.next
    )
    limit :few
),
counted as materialized (select count(*) < :few as few from others),
ranks(rank) as (
    select min(rank) from headway_job
    where waiting = 1 and queue = :queue and not (select few from counted)
      and not exists (select 1 from headway_queue q where q.name = :queue and q.paused)
    union all
    select (select min(n.rank) from headway_job n where n.waiting = 1 and n.queue = :queue and n.rank > r.rank)
    from ranks r where r.rank is not null
),
promoted as materialized (
    select j.id, j.key, j.rank, j.run_at from headway_job j indexed by headway_job_promoted
    where j.waiting = 1 and j.gate is not null and j.queue = :queue and j.run_at <= :now
      and (j.expires_at is null or j.expires_at > :now)
      and not exists (select 1 from headway_queue q where q.name = :queue and q.paused)
    order by j.rank, j.run_at, j.id limit :limit
),
-- Not `waiting = 1`: with an index for that, the planner would walk through the queue.
found as materialized (
    select j.id, j.key, j.rank, j.run_at from others cross join headway_job j on j.id = others.id
    where (select few from counted) and +j.waiting = 1 and j.gate is null and +j.queue = :queue and j.run_at <= :now
      and (j.expires_at is null or j.expires_at > :now)
      and not exists (select 1 from headway_queue q where q.name = :queue and q.paused)
),
met as materialized (
    select j.id, j.key, j.rank, j.run_at from ranks r cross join headway_job j indexed by headway_job_ready
    where j.waiting = 1 and j.queue = :queue and j.rank = r.rank and j.run_at <= :now and j.run_at > :since
      and (j.expires_at is null or j.expires_at > :now)
      and j.gate is null and j.key not in (select value from json_each(:closed))
    limit :limit
)
select id, key, rank, run_at from promoted
union all select id, key, rank, run_at from found
union all select id, key, rank, run_at from met;

-- name: claim_jobs(id; lease_id, worker_id, gated, now)
-- `finished_at` is not touched: it is null in every waiting job.
update headway_job
set state = case when state = 'cancelling' then state else 'running' end, waiting = 0, token = token + 1, attempt = attempt + 1, lease_id = :lease_id,
    worker_id = :worker_id, claimed_at = :now, started_at = null, outcome = null, wait_reason = null, progress = null,
    gate = null, gated = :gated
where id = :id and waiting = 1
returning id, token, kind, name, payload, attempt, failures, losses, timeout, retry, correlation_id,
          traceparent, key, rank, (run_at - :now) / 1e6 as due;

-- name: block_at_gates(id, gate)
update headway_job set state = 'blocked', waiting = 2, wait_reason = 'limit', gate = :gate
where id = :id and waiting = 1 and state <> 'cancelling'
returning id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: backlog_of_keys(; queue, keys, limit, to_rank, to_run_at)
-- The first of those whom a claim has just walked past; it got as far as (to_rank, to_run_at).
with recursive ranks(rank) as (
    select min(rank) from headway_job where waiting = 1 and queue = :queue
    union all
    select (select min(n.rank) from headway_job n where n.waiting = 1 and n.queue = :queue and n.rank > r.rank)
    from ranks r where r.rank < :to_rank
)
select j.id, j.key from ranks r cross join headway_job j indexed by headway_job_ready
where j.waiting = 1 and j.queue = :queue and j.rank = r.rank and r.rank <= :to_rank and j.run_at <= :to_run_at
  and j.gate is null and j.key in (select value from json_each(:keys))
limit :limit;

-- name: take_slots(gate, job_id)
insert into headway_slot (gate, job_id) values (:gate, :job_id) on conflict do nothing;

-- name: free_slots(job_id)
delete from headway_slot where job_id = :job_id returning gate;

-- name: promote_at_gate(; gate, room)
-- By (rank, run_at, id). The promoted keep `gate`, by which the claim knows that their turn has come.
update headway_job set state = 'scheduled', waiting = 1, wait_reason = null
where id in (
    select id from headway_job
    where waiting = 2 and gate = :gate and state = 'blocked'
    order by rank, run_at, id limit :room
)
returning id, kind, name, queue, state, outcome, attempt, correlation_id;

-- name: open_if_empty(name)
update headway_gate set closed = 0
where name = :name and closed
  and not exists (select 1 from headway_job j where j.waiting = 2 and j.gate = :name);

-- name: closed_gates()
select name from headway_gate where closed = 1 order by name;

-- name: waiting_gates()
-- Where jobs wait (`held`), found in the index by one step per gate; and where none does, though it is marked as closed.
with recursive held(gate) as (
    select min(gate) from headway_job where waiting = 2 and gate is not null
    union all
    select (select min(j.gate) from headway_job j where j.waiting = 2 and j.gate > held.gate)
    from held where held.gate is not null
)
select held.gate as name, 1 as held, coalesce(g.closed, 0) as closed
from held left join headway_gate g on g.name = held.gate
where held.gate is not null
union all
select g.name, 0, 1 from headway_gate g
where g.closed = 1 and g.name not in (select gate from held where gate is not null);

-- name: stranded_gates()
-- Open gates at which jobs wait all the same. With one writer at a time there should be none.
with recursive held(gate) as (
    select min(gate) from headway_job where waiting = 2 and gate is not null
    union all
    select (select min(j.gate) from headway_job j where j.waiting = 2 and j.gate > held.gate)
    from held where held.gate is not null
)
select g.name, 1 as held, g.closed from held join headway_gate g on g.name = held.gate where not g.closed;

-- name: stale_slots()
-- Slots whose job isn't held any more: there should be none.
delete from headway_slot
where not exists (
    select 1 from headway_job j where j.id = headway_slot.job_id and j.state in ('running', 'cancelling')
)
returning gate;
