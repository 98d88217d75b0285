-- So that jobs of any sort are found among millions: a condition, the order, and what else is asked for often. Claims write to none of these, and a success to one.
create index headway_job_name on headway_job (name, id, queue, kind);
create index headway_job_queue on headway_job (queue, id, kind);
-- Most jobs are calls; others are what one looks for.
create index headway_job_kind on headway_job (kind, id) where kind <> 'call';
create index headway_job_bad_end on headway_job (state, id, finished_at, name, queue, kind) where state in ('failed', 'cancelled');
create index headway_job_finished on headway_job (finished_at) where finished_at is not null;
create index headway_job_delayed on headway_job (run_at) where run_at <> created_at;
create index headway_job_error on headway_job (id) where error is not null;
-- Jobs whose id is of another time (by more than a minute) than they were stored at: given by others, or derived.
create index headway_job_astray on headway_job (id) where
    hex(substr(id, 1, 6)) not between printf('%012X', created_at / 1000 - 60000)
                                and printf('%012X', created_at / 1000 + 60000);
