-- breaking: older code would not note what it completes.
-- So that jobs of any sort are found among millions, and neither claims nor completions pay for it: instead of indexes
-- over all jobs, which each claim would have to write to, two ledgers with a row for each batch. What they say may be
-- out of date (a retry, a delete); the job itself decides.

-- What came together: jobs of one sort, with the lowest and the highest of their ids.
create table headway.arrival (
    kind       text not null,
    queue      text not null,
    name       text collate "C" not null,
    created_at timestamptz not null,
    first_id   uuid not null,
    last_id    uuid not null,
    jobs       uuid[] not null
);
create index arrival_name on headway.arrival (name, last_id);
create index arrival_queue on headway.arrival (queue, last_id);
create index arrival_kind on headway.arrival (kind, last_id);
create index arrival_created on headway.arrival (created_at);

-- What ended together.
create table headway.ended (
    state    text not null,
    kind     text not null,
    queue    text not null,
    name     text collate "C" not null,
    at       timestamptz not null,
    first_id uuid not null,
    last_id  uuid not null,
    jobs     uuid[] not null
);
create index ended_state on headway.ended (state, last_id);
create index ended_name on headway.ended (name, state, last_id);
create index ended_queue on headway.ended (queue, state, last_id);
create index ended_at on headway.ended (at);

insert into headway.arrival (kind, queue, name, created_at, first_id, last_id, jobs)
select kind, queue, name, created_at, jobs[1], jobs[cardinality(jobs)], jobs from (
    select kind, queue, name, created_at, array_agg(id order by id) as jobs from (
        select *, row_number() over (partition by kind, queue, name, created_at order by id) / 1000 as number
        from headway.job
    ) one group by kind, queue, name, created_at, number
) batch;

insert into headway.ended (state, kind, queue, name, at, first_id, last_id, jobs)
select state, kind, queue, name, finished_at, jobs[1], jobs[cardinality(jobs)], jobs from (
    select state, kind, queue, name, finished_at, array_agg(id order by id) as jobs from (
        select *, row_number() over (partition by state, kind, queue, name, finished_at order by id) / 1000 as number
        from headway.job where state in ('completed', 'failed', 'cancelled')
    ) one group by state, kind, queue, name, finished_at, number
) batch;

create function headway.note_arrivals() returns trigger language plpgsql as $$
begin
    insert into headway.arrival (kind, queue, name, created_at, first_id, last_id, jobs)
    select kind, queue, name, created_at, jobs[1], jobs[cardinality(jobs)], jobs from (
        select kind, queue, name, created_at, array_agg(id order by id) as jobs
        from arrived group by kind, queue, name, created_at
    ) batch;
    insert into headway.ended (state, kind, queue, name, at, first_id, last_id, jobs)
    select state, kind, queue, name, finished_at, id, id, array[id] from arrived where finished_at is not null;
    return null;
end
$$;
create trigger note_arrivals after insert on headway.job
    referencing new table as arrived for each statement execute function headway.note_arrivals();

create function headway.note_move() returns trigger language plpgsql as $$
begin
    insert into headway.arrival (kind, queue, name, created_at, first_id, last_id, jobs)
    values (new.kind, new.queue, new.name, new.created_at, new.id, new.id, array[new.id]);
    return null;
end
$$;
create trigger note_move after update of queue on headway.job
    for each row when (old.queue <> new.queue) execute function headway.note_move();

-- Successes are noted by the statement that records them, for all of a batch at once.
create function headway.note_end() returns trigger language plpgsql as $$
begin
    insert into headway.ended (state, kind, queue, name, at, first_id, last_id, jobs)
    values (new.state, new.kind, new.queue, new.name, new.finished_at, new.id, new.id, array[new.id]);
    return null;
end
$$;
create trigger note_end after update of finished_at on headway.job
    for each row when (new.state in ('failed', 'cancelled')) execute function headway.note_end();

-- A row goes with the last of its jobs.
create function headway.forget_gone() returns trigger language plpgsql as $$
begin
    delete from headway.arrival a using (select distinct created_at from gone) g
    where a.created_at = g.created_at and not exists (select from headway.job j where j.id = any(a.jobs));
    delete from headway.ended e using (select distinct finished_at from gone) g
    where e.at = g.finished_at and not exists (select from headway.job j where j.id = any(e.jobs));
    return null;
end
$$;
create trigger forget_gone after delete on headway.job
    referencing old table as gone for each statement execute function headway.forget_gone();

-- No completion changes what stands in these.
create index job_delayed on headway.job (run_at) where run_at <> created_at;
create index job_error on headway.job (id) where error is not null;
-- Jobs whose id is of another time (by more than a minute) than they were stored at: given by others, or derived.
create index job_astray on headway.job (id) where
    substring(uuid_send(id) from 1 for 6) not between
    substring(int8send((date_part('epoch', created_at - '1970-01-01 00:00+00'::timestamptz) * 1000)::bigint - 60000) from 3)
    and substring(int8send((date_part('epoch', created_at - '1970-01-01 00:00+00'::timestamptz) * 1000)::bigint + 60000) from 3);
