-- name: frozen_view()
-- A transaction that has read an older state is refused its first write by the engine itself.
select 0 as frozen;
