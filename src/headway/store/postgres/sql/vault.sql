-- name: vault_keys()
select k.key_id, k.current, k.proof, k.made_at, k.retired_at, coalesce(used.number, 0) as uses
from headway.vault_key k
left join (select key_id, count(*) as number from headway.sealed group by key_id) used on used.key_id = k.key_id
order by k.made_at, k.key_id;

-- name: current_key()
select key_id, current, proof, made_at, retired_at, 0 as uses from headway.vault_key where current;

-- name: add_key(; key_id, proof, now)
-- The first key ever is the current one; of two that come at once, one is.
insert into headway.vault_key (key_id, current, proof, made_at)
select :key_id::text, not exists (select from headway.vault_key where current), :proof::bytea, coalesce(:now::timestamptz, now())
on conflict do nothing;

-- name: step_down(; key_id)
update headway.vault_key set current = false where current and key_id <> :key_id::text;

-- name: step_up(; key_id)
update headway.vault_key set current = true, retired_at = null where key_id = :key_id::text and not current;

-- name: hold_keys(key_id)
-- Those that may still be sealed with; none of them is retired before this transaction ends.
select key_id from headway.vault_key where key_id = any(:key_id::text[]) and retired_at is null order by key_id for share;

-- name: hold_old_keys()
-- Waits for those who are sealing with one.
select key_id from headway.vault_key where not current and retired_at is null order by key_id for update;

-- name: retire_keys(; now)
update headway.vault_key k set retired_at = coalesce(:now::timestamptz, now())
where not k.current and k.retired_at is null and not exists (select from headway.sealed s where s.key_id = k.key_id)
returning k.key_id;

-- name: stale_sealed(; key_id, limit)
select id, key_id, wrapped from headway.sealed where key_id <> :key_id::text order by id limit :limit::int for update;

-- name: rewrap_sealed(id, key_id, wrapped)
update headway.sealed s set key_id = new.key_id, wrapped = new.wrapped
from unnest(:id::uuid[], :key_id::text[], :wrapped::bytea[]) as new(id, key_id, wrapped)
where s.id = new.id;

-- name: insert_sealed(id, key_id, wrapped, data)
insert into headway.sealed (id, key_id, wrapped, data)
select * from unnest(:id::uuid[], :key_id::text[], :wrapped::bytea[], :data::bytea[])
on conflict do nothing;

-- name: put_secret(; name, sealed_id, note, by, now)
insert into headway.secret (name, sealed_id, note, created_at, updated_at, updated_by)
select :name::text, :sealed_id::uuid, :note::text, coalesce(:now::timestamptz, now()), coalesce(:now::timestamptz, now()), :by::text
on conflict (name) do update
set sealed_id = excluded.sealed_id, note = coalesce(excluded.note, headway.secret.note),
    updated_at = excluded.updated_at, updated_by = excluded.updated_by
returning name, note, created_at, updated_at, updated_by, used_at;

-- name: open_secrets(name)
select c.name, s.id, s.key_id, s.wrapped, s.data
from headway.secret c join headway.sealed s on s.id = c.sealed_id
where c.name = any(:name::text[]);

-- name: touch_secrets(name; now)
-- To the minute: a secret in constant use must not cost a write each time.
update headway.secret set used_at = coalesce(:now::timestamptz, now())
where name = any(:name::text[])
  and (used_at is null or used_at < coalesce(:now::timestamptz, now()) - interval '1 minute');

-- name: list_secrets(; after_name, limit)
select name, note, created_at, updated_at, updated_by, used_at from headway.secret
where name > :after_name::text order by name limit :limit::int;

-- name: delete_secret(; name)
delete from headway.secret where name = :name::text returning name;

-- name: hold_attachments(id)
-- Whoever is about to use them too: none of them goes before this transaction ends.
select id, size, sha256 from headway.attachment where id = any(:id::uuid[]) order by id for key share;

-- name: insert_attachments(id, size, digest; now)
insert into headway.attachment (id, size, sha256, created_at)
select new.id, new.size, new.digest, coalesce(:now::timestamptz, now())
from unnest(:id::uuid[], :size::bigint[], :digest::text[]) as new(id, size, digest)
on conflict do nothing;

-- name: insert_uses(owner_id, role, name, attachment_id)
insert into headway.attachment_use (owner_id, role, name, attachment_id)
select * from unnest(:owner_id::uuid[], :role::text[], :name::text[], :attachment_id::uuid[])
on conflict do nothing;

-- name: drop_uses(owner_id)
-- A trigger takes along what nobody else uses.
delete from headway.attachment_use where owner_id = any(:owner_id::uuid[]);

-- name: list_attachments(owner_id)
select u.owner_id, a.id, u.role, u.name, a.size, a.sha256
from headway.attachment_use u join headway.attachment a on a.id = u.attachment_id
where u.owner_id = any(:owner_id::uuid[])
order by u.owner_id, u.role, u.name;

-- name: open_attachments(id)
select id, key_id, wrapped, data from headway.sealed where id = any(:id::uuid[]);

-- name: prune_uploads(; age, limit, now)
-- What was uploaded and never used, and what two users let go of at the same moment.
delete from headway.attachment where id = any(array(
    select a.id from headway.attachment a
    where a.created_at < coalesce(:now::timestamptz, now()) - :age::float8 * interval '1 second'
      and not exists (select from headway.attachment_use u where u.attachment_id = a.id)
    limit :limit::int for update skip locked
))
returning id;

-- name: insert_target(; id, name, record, by, now)
insert into headway.target (id, name, record, created_at, updated_at, updated_by)
select :id::uuid, :name::text, :record::json, coalesce(:now::timestamptz, now()), coalesce(:now::timestamptz, now()), :by::text
on conflict do nothing
returning id;

-- name: lock_target(; id, name)
select id, name, record, sealed_id, credential, version, created_at, updated_at, updated_by
from headway.target where id = :id::uuid or name = :name::text for update;

-- name: update_target(; id, name, record, sealed_id, credential, by, now)
update headway.target
set name = :name::text, record = :record::json, sealed_id = :sealed_id::uuid, credential = :credential::text,
    version = version + 1, updated_at = coalesce(:now::timestamptz, now()), updated_by = :by::text
where id = :id::uuid;

-- name: get_target(; id, name)
select t.id, t.name, t.record, t.credential, t.version, t.created_at, t.updated_at, t.updated_by, t.sealed_id,
       s.key_id, s.wrapped, s.data
from headway.target t left join headway.sealed s on s.id = t.sealed_id
where t.id = :id::uuid or t.name = :name::text;

-- name: find_targets(; after_name, limit)
select id, name, record, credential, version, created_at, updated_at, updated_by from headway.target
where name > :after_name::text order by name limit :limit::int;

-- name: jobs_of_target(; name, kind, limit)
-- Waiting ones, and those that somebody holds, which are found by their leases.
select j.id from (
    select id from headway.job where waiting + 0 > 0 and kind = :kind::text and payload->>'target' = :name::text
    union
    select id from headway.job
    where id = any(array(select unnest(jobs) from headway.lease)) and state in ('running', 'cancelling')
      and kind = :kind::text and payload->>'target' = :name::text
) j
order by j.id limit :limit::int;

-- name: delete_target(; id)
delete from headway.target where id = :id::uuid returning id;
