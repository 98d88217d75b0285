-- The core: jobs, leases, what hangs on a job's end, queues, workers, functions.

create schema if not exists headway;

-- `waiting` says in which index a row stands: 1 may be claimed, 2 held back (creating, blocked), 0 neither.
-- No column that a finish changes may stand in any index or index predicate: that keeps completions HOT.
create table headway.job (
    id                uuid primary key,
    schedule_id       uuid,
    lease_id          uuid,
    worker_id         uuid,
    token             bigint not null default 0,
    finished_token    bigint,
    run_at            timestamptz not null,
    desired_at        timestamptz not null,
    created_at        timestamptz not null,
    claimed_at        timestamptz,
    started_at        timestamptz,
    finished_at       timestamptz,
    expires_at        timestamptz,
    nominal_at        timestamptz,
    timeout           double precision,
    retain            double precision,
    attempt           integer not null default 0,
    failures          integer not null default 0,
    losses            integer not null default 0,
    rank              smallint not null,
    waiting           smallint not null check (waiting between 0 and 2),
    hold              boolean not null default false,
    waiters           boolean not null default false,
    gated             boolean not null default false,
    deduped           boolean not null default false,
    doomed            boolean not null default false,
    state             text not null check (state in ('creating', 'scheduled', 'blocked', 'running', 'cancelling',
                                                     'completed', 'failed', 'cancelled')),
    outcome           text,
    kind              text not null,
    name              text not null,
    key               text not null,
    queue             text not null,
    on_conflict       text not null,
    on_parent_failure text not null,
    gate              text,
    wait_reason       text,
    payload           json not null,
    retry             json,
    error             json,
    progress          json,
    tags              jsonb,
    metadata          json,
    created_by        text,
    correlation_id    text,
    traceparent       text,
    code_version      text,
    digest            bytea not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index job_ready on headway.job (queue, rank, run_at, id) where waiting = 1;
create index job_open_key on headway.job (key) where waiting > 0;
create index job_held_back on headway.job (gate, rank, run_at, id) where waiting = 2;
create index job_promoted on headway.job (queue, rank, run_at, id) where waiting = 1 and gate is not null;
create index job_retain on headway.job (retain) where retain is not null;
create index job_expiry on headway.job (expires_at) where waiting > 0 and expires_at is not null;

-- One row per claim batch; renewal touches these rows only. `jobs` and `keys` say what was claimed.
create table headway.lease (
    id        uuid primary key,
    worker_id uuid not null,
    until     timestamptz not null,
    jobs      uuid[] not null,
    keys      text[] not null,
    cancels   uuid[] not null default '{}'
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index lease_worker on headway.lease (worker_id);

-- Earlier attempts; the job row itself carries the last one.
create table headway.attempt (
    job_id      uuid not null,
    number      integer not null,
    outcome     text,
    error       json,
    claimed_at  timestamptz,
    started_at  timestamptz,
    finished_at timestamptz,
    worker_id   uuid,
    primary key (job_id, number)
);

-- Changes that no column of the job tells.
create table headway.history (
    job_id uuid not null,
    at     timestamptz not null,
    seq    bigint generated always as identity,
    what   text not null,
    by     text,
    detail text,
    primary key (job_id, seq)
);

create table headway.edge (
    parent_id uuid not null,
    child_id  uuid not null,
    kind      text not null check (kind in ('after', 'wait')),
    primary key (parent_id, child_id, kind)
);
create index edge_child on headway.edge (child_id);

-- What a job was asked to run after; kept when the edges are gone.
create table headway.parent (
    child_id  uuid not null,
    parent_id uuid not null,
    primary key (child_id, parent_id)
);

create table headway.dedupe (
    key        text primary key,
    job_id     uuid not null,
    expires_at timestamptz not null
);
create index dedupe_job on headway.dedupe (job_id);

create table headway.result (
    job_id       uuid primary key,
    content_type text not null,
    size         bigint not null,
    data         bytea
);

-- Large results and output, append-only; `stream` is result, log, stdout, stderr or artifact/<name>.
create table headway.chunk (
    job_id  uuid not null,
    attempt integer not null,
    stream  text not null,
    seq     integer not null,
    at      timestamptz not null,
    data    bytea not null,
    primary key (job_id, attempt, seq, stream)
);

create table headway.queue (
    name            text primary key,
    paused          boolean not null default false,
    max_running     integer,
    rate            text,
    key_max_running integer,
    key_rate        text,
    keep_completed  double precision,
    keep_failed     double precision
);

create table headway.key_limit (
    key         text primary key,
    max_running integer,
    rate        text
);

-- The state of a limit: `tat` is when its rate allows the next start. `closed` is a hint that jobs are blocked at it, by
-- which others needn't come in to learn that they must wait; the truth is the jobs themselves.
create table headway.gate (
    name   text primary key,
    tat    timestamptz,
    closed boolean not null default false,
    key    text
);
create index gate_closed on headway.gate (key) where closed;

create table headway.slot (
    gate   text not null,
    job_id uuid not null,
    primary key (gate, job_id)
);
create index slot_job on headway.slot (job_id);

create table headway.worker (
    id           uuid primary key,
    name         text not null,
    host         text not null,
    pid          integer not null,
    queues       json not null,
    slots        integer not null,
    code_version text,
    started_at   timestamptz not null,
    seen_at      timestamptz not null
);

create table headway.function (
    name         text primary key,
    queue        text not null,
    defaults     json not null,
    parameters   json not null,
    code_version text,
    announced_at timestamptz not null
);

-- Who carries out a duty that one process should do for all.
create table headway.duty (
    name   text primary key,
    holder uuid not null,
    until  timestamptz not null
);
