-- The vault: content that only holders of a key can read, and what it belongs to.

-- The keys that content was sealed with, by name; the keys themselves are never here. New content is sealed with the
-- current one. With a retired one nothing is sealed, and nothing may be any more.
create table headway.vault_key (
    key_id     text primary key,
    current    boolean not null default false,
    proof      bytea not null,
    made_at    timestamptz not null,
    retired_at timestamptz
);
create unique index vault_key_current on headway.vault_key (current) where current;

create table headway.sealed (
    id      uuid primary key,
    key_id  text not null,
    wrapped bytea not null,
    data    bytea not null
);
create index sealed_key on headway.sealed (key_id);

create table headway.secret (
    name       text primary key,
    sealed_id  uuid not null,
    note       text,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    updated_by text,
    used_at    timestamptz
);

-- Scripts, files and credentials of jobs. The content of an attachment is sealed under its own id.
create table headway.attachment (
    id         uuid primary key,
    size       bigint not null,
    sha256     text,
    created_at timestamptz not null
);

-- Who uses it: a job, or a schedule whose jobs will. Gone with the last one.
create table headway.attachment_use (
    owner_id      uuid not null,
    role          text not null,
    name          text not null,
    attachment_id uuid not null,
    primary key (owner_id, role, name)
);
create index attachment_use_attachment on headway.attachment_use (attachment_id);

create table headway.target (
    id         uuid primary key,
    name       text not null unique,
    record     json not null,
    sealed_id  uuid,
    credential text,
    version    bigint not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    updated_by text
);

-- Two steps: the lock waits for whoever is about to use the attachment too, and only then is it seen whether anybody
-- does.
create function headway.drop_unused_attachment() returns trigger
language plpgsql
as $$
begin
    perform 1 from headway.attachment where id = old.attachment_id for update;
    delete from headway.attachment
    where id = old.attachment_id
      and not exists (select from headway.attachment_use where attachment_id = old.attachment_id);
    return null;
end
$$;
create trigger attachment_use_gone after delete on headway.attachment_use
for each row execute function headway.drop_unused_attachment();

create function headway.drop_sealed() returns trigger
language plpgsql
as $$
begin
    delete from headway.sealed where id = old.id;
    return null;
end
$$;
create trigger attachment_gone after delete on headway.attachment
for each row execute function headway.drop_sealed();

create function headway.drop_sealed_of() returns trigger
language plpgsql
as $$
begin
    delete from headway.sealed where id = old.sealed_id;
    return null;
end
$$;
create trigger secret_gone after delete on headway.secret
for each row execute function headway.drop_sealed_of();
create trigger secret_replaced after update on headway.secret
for each row when (old.sealed_id is distinct from new.sealed_id) execute function headway.drop_sealed_of();
create trigger target_gone after delete on headway.target
for each row execute function headway.drop_sealed_of();
create trigger target_replaced after update on headway.target
for each row when (old.sealed_id is distinct from new.sealed_id) execute function headway.drop_sealed_of();
