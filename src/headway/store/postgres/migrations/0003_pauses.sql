-- Since when a queue is paused, and by whose word.
alter table headway.queue add column paused_at timestamptz, add column paused_by text;
