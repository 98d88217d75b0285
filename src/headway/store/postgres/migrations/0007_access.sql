-- Who may do what: users, tokens, sessions, login links, failed logins; and the audit log.

create table headway.account (
    name       text primary key,
    id         uuid not null unique,
    role       text not null,
    password   text,
    disabled   boolean not null default false,
    created_at timestamptz not null,
    created_by text,
    changed_at timestamptz not null
);

-- Of secrets only digests are kept: `lookup` finds the row, `digest` is compared in constant time.
create table headway.token (
    name       text primary key,
    lookup     text not null unique,
    digest     text not null,
    role       text not null,
    kinds      text,
    queues     text,
    created_at timestamptz not null,
    created_by text,
    expires_at timestamptz,
    used_at    timestamptz
);

-- A session and a login link are a user's or a token's.
create table headway.session (
    lookup     text primary key,
    digest     text not null,
    user_name  text,
    token_name text,
    address    text,
    created_at timestamptz not null,
    expires_at timestamptz not null
);
create index session_by_user on headway.session (user_name) where user_name is not null;
create index session_by_token on headway.session (token_name) where token_name is not null;
create index session_age on headway.session (expires_at);

create table headway.login_link (
    lookup     text primary key,
    digest     text not null,
    user_name  text,
    token_name text,
    expires_at timestamptz not null
);

-- How often logging in has failed since, by account and by address: one count for all API processes.
create table headway.login_failure (
    subject  text primary key,
    failures bigint not null,
    since_at timestamptz not null
);

-- A chain: each digest covers its line and the digest before.
create table headway.audit (
    seq     bigint primary key,
    id      uuid not null unique,
    made_at timestamptz not null,
    actor   text not null,
    action  text not null,
    object  text not null,
    address text,
    detail  text not null,
    count   bigint not null,
    digest  text not null
);
create index audit_actor on headway.audit (actor, seq);
create index audit_object on headway.audit (object, seq);
create index audit_made_at on headway.audit (made_at);

-- `last`: the end of the chain. `pruned`: the last line that retention has removed.
create table headway.audit_mark (
    name   text primary key,
    seq    bigint not null,
    digest text not null
);
