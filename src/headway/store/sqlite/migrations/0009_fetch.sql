-- What a result says of itself (status, headers, timings …), and what it is the content of: the next fetch of the same
-- looks here for the content it may still be good for.
alter table headway_result add column meta text;
alter table headway_result add column source text;
create index headway_result_source on headway_result (source, job_id) where source is not null;
