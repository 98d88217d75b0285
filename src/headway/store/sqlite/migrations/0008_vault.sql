-- The vault: content that only holders of a key can read, and what it belongs to.

-- The keys that content was sealed with, by name; the keys themselves are never here. New content is sealed with the
-- current one. With a retired one nothing is sealed, and nothing may be any more.
create table headway_vault_key (
    key_id     text not null primary key,
    current    integer not null default 0,
    proof      blob not null,
    made_at    integer not null,
    retired_at integer
) strict, without rowid;
create unique index headway_vault_key_current on headway_vault_key (current) where current = 1;

create table headway_sealed (
    id      blob not null primary key,
    key_id  text not null,
    wrapped blob not null,
    data    blob not null
) strict;
create index headway_sealed_key on headway_sealed (key_id);

create table headway_secret (
    name       text not null primary key,
    sealed_id  blob not null,
    note       text,
    created_at integer not null,
    updated_at integer not null,
    updated_by text,
    used_at    integer
) strict, without rowid;

-- Scripts, files and credentials of jobs. The content of an attachment is sealed under its own id.
create table headway_attachment (
    id         blob not null primary key,
    size       integer not null,
    sha256     text,
    created_at integer not null
) strict, without rowid;

-- Who uses it: a job, or a schedule whose jobs will. Gone with the last one.
create table headway_attachment_use (
    owner_id      blob not null,
    role          text not null,
    name          text not null,
    attachment_id blob not null,
    primary key (owner_id, role, name)
) strict, without rowid;
create index headway_attachment_use_attachment on headway_attachment_use (attachment_id);

create table headway_target (
    id         blob not null primary key,
    name       text not null unique,
    record     text not null,
    sealed_id  blob,
    credential text,
    version    integer not null default 1,
    created_at integer not null,
    updated_at integer not null,
    updated_by text
) strict, without rowid;

create trigger headway_job_uses_gone after delete on headway_job begin
    delete from headway_attachment_use where owner_id = old.id;
end;

create trigger headway_attachment_use_gone after delete on headway_attachment_use begin
    delete from headway_attachment
    where id = old.attachment_id
      and not exists (select 1 from headway_attachment_use where attachment_id = old.attachment_id);
end;

create trigger headway_attachment_gone after delete on headway_attachment begin
    delete from headway_sealed where id = old.id;
end;

create trigger headway_secret_gone after delete on headway_secret begin
    delete from headway_sealed where id = old.sealed_id;
end;

create trigger headway_secret_replaced after update on headway_secret when old.sealed_id is not new.sealed_id begin
    delete from headway_sealed where id = old.sealed_id;
end;

create trigger headway_target_gone after delete on headway_target begin
    delete from headway_sealed where id = old.sealed_id;
end;

create trigger headway_target_replaced after update on headway_target when old.sealed_id is not new.sealed_id begin
    delete from headway_sealed where id = old.sealed_id;
end;
