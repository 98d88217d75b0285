-- Where a claim has ended, so that others go on there: the walk that it continues began at `scanned_at`, from the start.
-- Part of the lease, which is written anyway. `queue` is null where a claim has taken all that was due.
alter table headway.lease
    add column queue       text,
    add column marked_at   timestamptz,
    add column scanned_at  timestamptz,
    add column last_rank   smallint,
    add column last_run_at timestamptz,
    add column last_id     uuid;
create index lease_marked on headway.lease (queue, marked_at) where queue is not null;
