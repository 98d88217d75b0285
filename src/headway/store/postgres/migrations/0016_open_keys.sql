-- The index of open keys holds all that waits. A planner whose statistics are of a moment when nothing did takes it for an
-- empty one, and walks through the whole backlog to see whether a job has expired. `+ 0` keeps it for those who ask for it.
drop index headway.job_open_key;
create index job_open_key on headway.job (key) where waiting + 0 > 0;
