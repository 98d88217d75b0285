-- Jobs created by a message whose SCHEDULE has not come yet: few, and asked for every few seconds.
create index headway_job_created on headway_job (created_at) where waiting = 2 and wait_reason = 'created';
