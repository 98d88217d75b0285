-- Who may do what: users, tokens, sessions, login links, failed logins; and the audit log.

create table headway_account (
    name       text primary key,
    id         blob not null unique,
    role       text not null,
    password   text,
    disabled   integer not null default 0,
    created_at integer not null,
    created_by text,
    changed_at integer not null
) without rowid;

-- Of secrets only digests are kept: `lookup` finds the row, `digest` is compared in constant time.
create table headway_token (
    name       text primary key,
    lookup     text not null unique,
    digest     text not null,
    role       text not null,
    kinds      text,
    queues     text,
    created_at integer not null,
    created_by text,
    expires_at integer,
    used_at    integer
) without rowid;

-- A session and a login link are a user's or a token's.
create table headway_session (
    lookup     text primary key,
    digest     text not null,
    user_name  text,
    token_name text,
    address    text,
    created_at integer not null,
    expires_at integer not null
) without rowid;
create index headway_session_by_user on headway_session (user_name) where user_name is not null;
create index headway_session_by_token on headway_session (token_name) where token_name is not null;
create index headway_session_age on headway_session (expires_at);

create table headway_login_link (
    lookup     text primary key,
    digest     text not null,
    user_name  text,
    token_name text,
    expires_at integer not null
) without rowid;

-- How often logging in has failed since, by account and by address: one count for all API processes.
create table headway_login_failure (
    subject  text primary key,
    failures integer not null,
    since_at integer not null
) without rowid;

-- A chain: each digest covers its line and the digest before.
create table headway_audit (
    seq     integer primary key,
    id      blob not null unique,
    made_at integer not null,
    actor   text not null,
    action  text not null,
    object  text not null,
    address text,
    detail  text not null,
    count   integer not null,
    digest  text not null
) without rowid;
create index headway_audit_actor on headway_audit (actor, seq);
create index headway_audit_object on headway_audit (object, seq);
create index headway_audit_made_at on headway_audit (made_at);

-- `last`: the end of the chain. `pruned`: the last line that retention has removed.
create table headway_audit_mark (
    name   text primary key,
    seq    integer not null,
    digest text not null
) without rowid;
