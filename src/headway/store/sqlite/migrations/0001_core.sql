-- The core: jobs, leases, what hangs on a job's end, queues, workers, functions.
-- Ids are the 16 bytes of a UUID, times are microseconds since 1970 in UTC, JSON is text, true is 1.
-- Every name begins with `headway_`: the tables may live in a file that belongs to somebody else's program.

-- `waiting` says in which index a row stands: 1 may be claimed, 2 held back (creating, blocked), 0 neither.
-- `finished_at` is null as long as the job is open.
-- No CHECKs, and a rowid: measured, CHECKs cost a sixth of the throughput of claim and finish, WITHOUT ROWID a tenth.
create table headway_job (
    id                blob not null primary key,
    schedule_id       blob,
    lease_id          blob,
    worker_id         blob,
    token             integer not null default 0,
    finished_token    integer,
    run_at            integer not null,
    desired_at        integer not null,
    created_at        integer not null,
    claimed_at        integer,
    started_at        integer,
    finished_at       integer,
    expires_at        integer,
    nominal_at        integer,
    timeout           real,
    retain            real,
    attempt           integer not null default 0,
    failures          integer not null default 0,
    losses            integer not null default 0,
    rank              integer not null,
    waiting           integer not null,
    hold              integer not null default 0,
    waiters           integer not null default 0,
    gated             integer not null default 0,
    deduped           integer not null default 0,
    doomed            integer not null default 0,
    state             text not null,
    outcome           text,
    kind              text not null,
    name              text not null,
    key               text not null,
    queue             text not null,
    on_conflict       text not null,
    on_parent_failure text not null,
    gate              text,
    wait_reason       text,
    payload           text not null,
    retry             text,
    error             text,
    progress          text,
    tags              text,
    metadata          text,
    created_by        text,
    correlation_id    text,
    traceparent       text,
    code_version      text,
    digest            blob not null
) strict;

-- `expires_at` and `waiting` stand in it so that a claim finds all it asks for in the index.
create index headway_job_ready on headway_job (queue, rank, run_at, id, expires_at, waiting, gate, key) where waiting = 1;
create index headway_job_open_key on headway_job (key) where finished_at is null;
create index headway_job_held_back on headway_job (gate, rank, run_at, id) where waiting = 2;
create index headway_job_promoted on headway_job (queue, rank, run_at, id) where waiting = 1 and gate is not null;
create index headway_job_retain on headway_job (retain) where retain is not null;
create index headway_job_expiry on headway_job (expires_at) where waiting > 0 and expires_at is not null;

-- One row per claim batch; renewal touches these rows only. `jobs` says what was claimed, `cancels` what of it is to
-- be cancelled: ids, one behind the other.
create table headway_lease (
    id        blob not null primary key,
    worker_id blob not null,
    until     integer not null,
    jobs      blob not null,
    cancels   blob not null default x''
) strict, without rowid;
create index headway_lease_worker on headway_lease (worker_id);

-- Earlier attempts; the job row itself carries the last one.
create table headway_attempt (
    job_id      blob not null,
    number      integer not null,
    outcome     text,
    error       text,
    claimed_at  integer,
    started_at  integer,
    finished_at integer,
    worker_id   blob,
    primary key (job_id, number)
) strict, without rowid;

-- Changes that no column of the job tells.
create table headway_history (
    seq    integer primary key,
    job_id blob not null,
    at     integer not null,
    what   text not null,
    by     text,
    detail text
) strict;
create index headway_history_job on headway_history (job_id);

create table headway_edge (
    parent_id blob not null,
    child_id  blob not null,
    kind      text not null check (kind in ('after', 'wait')),
    primary key (parent_id, child_id, kind)
) strict, without rowid;
create index headway_edge_child on headway_edge (child_id);

-- What a job was asked to run after; kept when the edges are gone.
create table headway_parent (
    child_id  blob not null,
    parent_id blob not null,
    primary key (child_id, parent_id)
) strict, without rowid;

create table headway_dedupe (
    key        text not null primary key,
    job_id     blob not null,
    expires_at integer not null
) strict, without rowid;
create index headway_dedupe_job on headway_dedupe (job_id);
create index headway_dedupe_expiry on headway_dedupe (expires_at);

create table headway_result (
    job_id       blob not null primary key,
    content_type text not null,
    size         integer not null,
    data         blob
) strict, without rowid;

-- Large results and output, append-only; `stream` is result, log, stdout, stderr or artifact/<name>.
create table headway_chunk (
    job_id  blob not null,
    attempt integer not null,
    stream  text not null,
    seq     integer not null,
    at      integer not null,
    data    blob not null,
    primary key (job_id, attempt, seq, stream)
) strict, without rowid;

create table headway_queue (
    name            text not null primary key,
    paused          integer not null default 0,
    max_running     integer,
    rate            text,
    key_max_running integer,
    key_rate        text,
    keep_completed  real,
    keep_failed     real
) strict, without rowid;

create table headway_key_limit (
    key         text not null primary key,
    max_running integer,
    rate        text
) strict, without rowid;

-- The state of a limit: `tat` is when its rate allows the next start. `closed` is a hint that jobs are blocked at it, by
-- which others needn't come in to learn that they must wait; the truth is the jobs themselves.
create table headway_gate (
    name   text not null primary key,
    tat    integer,
    closed integer not null default 0,
    key    text
) strict, without rowid;
create index headway_gate_closed on headway_gate (key) where closed = 1;

create table headway_slot (
    gate   text not null,
    job_id blob not null,
    primary key (gate, job_id)
) strict, without rowid;
create index headway_slot_job on headway_slot (job_id);

create table headway_worker (
    id           blob not null primary key,
    name         text not null,
    host         text not null,
    pid          integer not null,
    queues       text not null,
    slots        integer not null,
    code_version text,
    started_at   integer not null,
    seen_at      integer not null
) strict, without rowid;

create table headway_function (
    name         text not null primary key,
    queue        text not null,
    defaults     text not null,
    parameters   text not null,
    code_version text,
    announced_at integer not null
) strict, without rowid;

-- Who carries out a duty that one process should do for all.
create table headway_duty (
    name   text not null primary key,
    holder blob not null,
    until  integer not null
) strict, without rowid;

-- What belongs to a job goes with it. SQLite can't delete from several tables in one statement, a trigger can.
create trigger headway_job_gone after delete on headway_job begin
    delete from headway_attempt where job_id = old.id;
    delete from headway_history where job_id = old.id;
    delete from headway_parent where child_id = old.id;
    delete from headway_dedupe where job_id = old.id;
    delete from headway_result where job_id = old.id;
    delete from headway_chunk where job_id = old.id;
end;

-- A job that is stored as blocked at a closed gate leaves a line, as PostgreSQL's `insert_jobs` does by itself.
create trigger headway_job_shut_out after insert on headway_job when new.gate is not null begin
    insert into headway_history (job_id, at, what, by, detail)
    values (new.id, new.created_at, 'blocked', new.created_by, 'submitted at the full ' || new.gate);
end;

create trigger headway_result_gone after delete on headway_result begin
    delete from headway_chunk where job_id = old.job_id and stream = 'result';
end;
