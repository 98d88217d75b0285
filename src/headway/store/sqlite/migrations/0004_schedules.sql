-- Schedules: what they are, where they stand, and what became of each of their nominal times.

-- `next_at` is the first nominal time that nothing has been decided about; `due_at` is the same while the schedule is
-- active, and the only thing a tick looks for. `declared` is what the code said last, to tell operators' edits from it.
create table headway_schedule (
    id         blob primary key,
    name       text not null unique,
    record     text not null,
    template   text not null,
    next_at    integer,
    last_at    integer,
    due_at     integer,
    version    integer not null default 1,
    source     text,
    declared   text,
    updated_at integer not null,
    updated_by text
) without rowid;
create index headway_schedule_due on headway_schedule (due_at) where due_at is not null;
create index headway_schedule_source on headway_schedule (source) where source is not null;

-- A fired occurrence has a job; skips that follow each other for one reason are one row, from `nominal_at` to `until_at`.
create table headway_occurrence (
    schedule_id blob not null,
    nominal_at  integer not null,
    until_at    integer not null,
    recorded_at integer not null,
    count       integer not null,
    job_id      blob,
    reason      text,
    detail      text,
    primary key (schedule_id, nominal_at)
) without rowid;
create index headway_occurrence_age on headway_occurrence (recorded_at);

create index headway_job_schedule on headway_job (schedule_id, id) where schedule_id is not null;

-- Whether this process fires schedules; one that does nothing else serves no queues.
alter table headway_worker add column fires integer not null default 0;
