-- What queues did, minute by minute: one line for each process, later one for all, and longer steps.
create table headway.figures (
    from_at timestamptz not null,
    queue   text not null,
    id      uuid not null,
    step    integer not null,
    numbers json not null,
    primary key (from_at, queue, id)
);

-- Rules for telling people; `event` and `enabled` are in the record too, and stand here for those who ask in passing.
create table headway.alert_rule (
    id         uuid primary key,
    name       text not null unique,
    event      text not null,
    enabled    boolean not null,
    record     json not null,
    version    bigint not null default 1,
    changed_at timestamptz not null,
    changed_by text
);

-- What has happened and no rule has been asked about yet; written in the transaction in which it happens.
create table headway.alert_event (
    event       text not null,
    subject     text not null,
    number      bigint not null,
    happened_at timestamptz not null,
    name        text not null,
    queue       text,
    detail      text,
    primary key (event, subject, number)
);

-- How a rule stands with one of its subjects: since when something holds, when people were told, what they weren't yet.
create table headway.alert (
    rule_id  uuid not null references headway.alert_rule (id) on delete cascade,
    subject  text not null,
    since_at timestamptz,
    told_at  timestamptz,
    firing   boolean not null,
    pending  bigint not null,
    detail   json,
    primary key (rule_id, subject)
);

create table headway.notification (
    id           uuid primary key,
    rule_id      uuid not null references headway.alert_rule (id) on delete cascade,
    created_at   timestamptz not null,
    due_at       timestamptz,
    attempts     integer not null default 0,
    delivered_at timestamptz,
    error        text,
    body         json not null
);
create index notification_due on headway.notification (due_at) where due_at is not null;
create index notification_rule on headway.notification (rule_id, id);
