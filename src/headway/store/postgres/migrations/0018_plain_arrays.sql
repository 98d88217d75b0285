-- Ids hardly get smaller by compression, which takes its time in every claim and every batch of ends. Keys do: they repeat.
alter table headway.lease alter column jobs set storage external;
alter table headway.ended alter column jobs set storage external;
