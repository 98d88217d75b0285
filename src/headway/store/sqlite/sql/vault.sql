-- name: vault_keys()
select k.key_id, k.current, k.proof, k.made_at, k.retired_at, coalesce(used.number, 0) as uses
from headway_vault_key k
left join (select key_id, count(*) as number from headway_sealed group by key_id) used on used.key_id = k.key_id
order by k.made_at, k.key_id;

-- name: current_key()
select key_id, current, proof, made_at, retired_at, 0 as uses from headway_vault_key where current = 1;

-- name: add_key(; key_id, proof, now)
-- The first key ever is the current one.
insert into headway_vault_key (key_id, current, proof, made_at)
values (:key_id, not exists (select 1 from headway_vault_key where current = 1), :proof, :now)
on conflict do nothing;

-- name: step_down(; key_id)
update headway_vault_key set current = 0 where current = 1 and key_id <> :key_id;

-- name: step_up(; key_id)
update headway_vault_key set current = 1, retired_at = null where key_id = :key_id and current = 0;

-- name: hold_keys(key_id)
-- Those that may still be sealed with. There is one writer at a time: to read is to lock.
select key_id from headway_vault_key where key_id = :key_id and retired_at is null;

-- name: hold_old_keys()
select key_id from headway_vault_key where current = 0 and retired_at is null;

-- name: retire_keys(; now)
update headway_vault_key set retired_at = :now
where current = 0 and retired_at is null
  and not exists (select 1 from headway_sealed s where s.key_id = headway_vault_key.key_id)
returning key_id;

-- name: stale_sealed(; key_id, limit)
select id, key_id, wrapped from headway_sealed where key_id <> :key_id order by id limit :limit;

-- name: rewrap_sealed(id, key_id, wrapped)
update headway_sealed set key_id = :key_id, wrapped = :wrapped where id = :id;

-- name: insert_sealed(id, key_id, wrapped, data)
insert into headway_sealed (id, key_id, wrapped, data) values (:id, :key_id, :wrapped, :data) on conflict do nothing;

-- name: put_secret(; name, sealed_id, note, by, now)
insert into headway_secret (name, sealed_id, note, created_at, updated_at, updated_by)
values (:name, :sealed_id, :note, :now, :now, :by)
on conflict (name) do update
set sealed_id = excluded.sealed_id, note = coalesce(excluded.note, headway_secret.note),
    updated_at = excluded.updated_at, updated_by = excluded.updated_by
returning name, note, created_at, updated_at, updated_by, used_at;

-- name: open_secrets(name)
select c.name, s.id, s.key_id, s.wrapped, s.data
from headway_secret c join headway_sealed s on s.id = c.sealed_id
where c.name = :name;

-- name: touch_secrets(name; now)
-- To the minute: a secret in constant use must not cost a write each time.
update headway_secret set used_at = :now where name = :name and (used_at is null or used_at < :now - 60000000);

-- name: list_secrets(; after_name, limit)
select name, note, created_at, updated_at, updated_by, used_at from headway_secret
where name > :after_name order by name limit :limit;

-- name: delete_secret(; name)
delete from headway_secret where name = :name returning name;

-- name: hold_attachments(id)
select id, size, sha256 from headway_attachment where id = :id;

-- name: insert_attachments(id, size, digest; now)
insert into headway_attachment (id, size, sha256, created_at) values (:id, :size, :digest, :now) on conflict do nothing;

-- name: insert_uses(owner_id, role, name, attachment_id)
insert into headway_attachment_use (owner_id, role, name, attachment_id)
values (:owner_id, :role, :name, :attachment_id) on conflict do nothing;

-- name: drop_uses(owner_id)
-- A trigger takes along what nobody else uses.
delete from headway_attachment_use where owner_id = :owner_id;

-- name: list_attachments(owner_id)
select u.owner_id, a.id, u.role, u.name, a.size, a.sha256
from headway_attachment_use u join headway_attachment a on a.id = u.attachment_id
where u.owner_id = :owner_id
order by u.owner_id, u.role, u.name;

-- name: open_attachments(id)
select id, key_id, wrapped, data from headway_sealed where id = :id;

-- name: prune_uploads(; age, limit, now)
-- What was uploaded and never used.
delete from headway_attachment where id in (
    select a.id from headway_attachment a
    where a.created_at < :now - cast(:age * 1000000 as integer)
      and not exists (select 1 from headway_attachment_use u where u.attachment_id = a.id)
    limit :limit
)
returning id;

-- name: insert_target(; id, name, record, by, now)
insert into headway_target (id, name, record, created_at, updated_at, updated_by)
values (:id, :name, :record, :now, :now, :by)
on conflict do nothing
returning id;

-- name: lock_target(; id, name)
select id, name, record, sealed_id, credential, version, created_at, updated_at, updated_by
from headway_target where id = :id or name = :name;

-- name: update_target(; id, name, record, sealed_id, credential, by, now)
update headway_target
set name = :name, record = :record, sealed_id = :sealed_id, credential = :credential, version = version + 1,
    updated_at = :now, updated_by = :by
where id = :id;

-- name: get_target(; id, name)
select t.id, t.name, t.record, t.credential, t.version, t.created_at, t.updated_at, t.updated_by, t.sealed_id,
       s.key_id, s.wrapped, s.data
from headway_target t left join headway_sealed s on s.id = t.sealed_id
where t.id = :id or t.name = :name;

-- name: find_targets(; after_name, limit)
select id, name, record, credential, version, created_at, updated_at, updated_by from headway_target
where name > :after_name order by name limit :limit;

-- name: jobs_of_target(; name, kind, limit)
select id from headway_job
where finished_at is null and kind = :kind and json_extract(payload, '$.target') = :name
order by id limit :limit;

-- name: delete_target(; id)
delete from headway_target where id = :id returning id;
