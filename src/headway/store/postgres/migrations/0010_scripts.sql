-- Files that jobs have left; their content is chunks of the stream artifact/<name>, or lies elsewhere.
create table headway.artifact (
    job_id  uuid not null,
    attempt integer not null,
    name    text not null,
    size    bigint not null,
    sha256  text,
    note    text,
    at      timestamptz not null,
    primary key (job_id, attempt, name)
);
