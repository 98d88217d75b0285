-- name: trim_chunks(; job_id, token, first_seq, last_seq)
-- Output out of the middle of what a job has written; artifacts have numbers of their own.
delete from headway.chunk c
using headway.job j
where j.id = :job_id::uuid and j.token = :token::bigint and j.finished_token is distinct from :token::bigint
  and c.job_id = j.id and c.attempt = j.attempt and c.seq between :first_seq::int and :last_seq::int
  and c.stream not like 'artifact/%';

-- name: put_artifacts(job_id, token, name, size, hash, note; now)
insert into headway.artifact (job_id, attempt, name, size, sha256, note, at)
select j.id, j.attempt, new.name, new.size, new.sha256, new.note, coalesce(:now::timestamptz, now())
from unnest(:job_id::uuid[], :token::bigint[], :name::text[], :size::bigint[], :hash::text[], :note::text[])
     as new(job_id, token, name, size, sha256, note)
join headway.job j on j.id = new.job_id and j.token = new.token and j.finished_token is distinct from new.token
on conflict (job_id, attempt, name) do update
set size = excluded.size, sha256 = excluded.sha256, note = excluded.note, at = excluded.at
returning job_id;

-- name: get_artifacts(; job_id)
select name, size, sha256, note, attempt, at as stored_at
from headway.artifact where job_id = :job_id::uuid order by attempt desc, name;
