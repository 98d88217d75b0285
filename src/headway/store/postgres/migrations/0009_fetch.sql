-- What a result says of itself (status, headers, timings …), and what it is the content of: the next fetch of the same
-- looks here for the content it may still be good for.
alter table headway.result add column meta json;
alter table headway.result add column source text;
create index result_source on headway.result (source, job_id) where source is not null;
