-- Schedules: what they are, where they stand, and what became of each of their nominal times.

-- `next_at` is the first nominal time that nothing has been decided about; `due_at` is the same while the schedule is
-- active, and the only thing a tick looks for. `declared` is what the code said last, to tell operators' edits from it.
create table headway.schedule (
    id         uuid primary key,
    name       text not null unique,
    record     json not null,
    template   json not null,
    next_at    timestamptz,
    last_at    timestamptz,
    due_at     timestamptz,
    version    bigint not null default 1,
    source     text,
    declared   json,
    updated_at timestamptz not null,
    updated_by text
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index schedule_due on headway.schedule (due_at) where due_at is not null;
create index schedule_source on headway.schedule (source) where source is not null;

-- A fired occurrence has a job; skips that follow each other for one reason are one row, from `nominal_at` to `until_at`.
create table headway.occurrence (
    schedule_id uuid not null,
    nominal_at  timestamptz not null,
    until_at    timestamptz not null,
    recorded_at timestamptz not null,
    count       bigint not null,
    job_id      uuid,
    reason      text,
    detail      text,
    primary key (schedule_id, nominal_at)
);
create index occurrence_age on headway.occurrence (recorded_at);

create index job_schedule on headway.job (schedule_id, id) where schedule_id is not null;

-- Whether this process fires schedules; one that does nothing else serves no queues.
alter table headway.worker add column fires boolean not null default false;
