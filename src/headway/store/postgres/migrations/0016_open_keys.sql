-- The index of open keys holds all that waits. A planner whose statistics are of a moment when nothing did takes it for an
-- empty one, and walks through the whole backlog to see whether a job has expired. `+ 0` keeps it for those who ask for it.
-- Workers of the release before look for keys without an index until they are replaced.
create index job_open_key_only on headway.job (key) where waiting + 0 > 0;
drop index headway.job_open_key;
alter index headway.job_open_key_only rename to job_open_key;
