-- Since when a queue is paused, and by whose word.
alter table headway_queue add column paused_at integer;
alter table headway_queue add column paused_by text;
