-- Files that jobs have left; their content is chunks of the stream artifact/<name>, or lies elsewhere.
create table headway_artifact (
    job_id  blob not null,
    attempt integer not null,
    name    text not null,
    size    integer not null,
    sha256  text,
    note    text,
    at      integer not null,
    primary key (job_id, attempt, name)
) strict, without rowid;

create trigger headway_job_artifacts_gone after delete on headway_job begin
    delete from headway_artifact where job_id = old.id;
end;
