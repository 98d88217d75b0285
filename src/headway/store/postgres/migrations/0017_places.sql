-- Claims go on from the furthest place of the latest look from the start, found by one probe. `scanned_at` is when that
-- look ended, or later where it took long. `marked_at` is written no more; it stays for workers of the release before.
create index lease_scanned on headway.lease (queue, scanned_at, last_rank, last_run_at, last_id) where queue is not null;
drop index headway.lease_marked;
