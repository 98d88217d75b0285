-- name: trim_chunks(; job_id, token, first_seq, last_seq)
-- Output out of the middle of what a job has written; artifacts have numbers of their own.
delete from headway_chunk
where job_id = :job_id and seq between :first_seq and :last_seq and stream not like 'artifact/%'
  and attempt = (select attempt from headway_job
                 where id = :job_id and token = :token and finished_token is not :token);

-- name: put_artifacts(job_id, token, name, size, hash, note; now)
insert into headway_artifact (job_id, attempt, name, size, sha256, note, at)
select id, attempt, :name, :size, :hash, :note, :now
from headway_job where id = :job_id and token = :token and finished_token is not :token
on conflict (job_id, attempt, name) do update
set size = excluded.size, sha256 = excluded.sha256, note = excluded.note, at = excluded.at
returning job_id;

-- name: get_artifacts(; job_id)
select name, size, sha256, note, attempt, at as stored_at
from headway_artifact where job_id = :job_id order by attempt desc, name;
