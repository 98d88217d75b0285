-- Jobs created by a message whose SCHEDULE has not come yet: few, and asked for every few seconds.
-- A finish doesn't touch wait_reason, so completions stay HOT.
create index job_created on headway.job (created_at) where waiting = 2 and wait_reason = 'created';
