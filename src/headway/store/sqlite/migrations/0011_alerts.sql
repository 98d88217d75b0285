-- What queues did, minute by minute: one line for each process, later one for all, and longer steps.
create table headway_figures (
    from_at integer not null,
    queue   text not null,
    id      blob not null,
    step    integer not null,
    numbers text not null,
    primary key (from_at, queue, id)
) without rowid;

-- Rules for telling people; `event` and `enabled` are in the record too, and stand here for those who ask in passing.
create table headway_alert_rule (
    id         blob primary key,
    name       text not null unique,
    event      text not null,
    enabled    integer not null,
    record     text not null,
    version    integer not null default 1,
    changed_at integer not null,
    changed_by text
) without rowid;

-- What has happened and no rule has been asked about yet; written in the transaction in which it happens.
create table headway_alert_event (
    event       text not null,
    subject     text not null,
    number      integer not null,
    happened_at integer not null,
    name        text not null,
    queue       text,
    detail      text,
    primary key (event, subject, number)
) without rowid;

-- How a rule stands with one of its subjects: since when something holds, when people were told, what they weren't yet.
create table headway_alert (
    rule_id  blob not null,
    subject  text not null,
    since_at integer,
    told_at  integer,
    firing   integer not null,
    pending  integer not null,
    detail   text,
    primary key (rule_id, subject)
) without rowid;

create table headway_notification (
    id           blob primary key,
    rule_id      blob not null,
    created_at   integer not null,
    due_at       integer,
    attempts     integer not null default 0,
    delivered_at integer,
    error        text,
    body         text not null
) without rowid;
create index headway_notification_due on headway_notification (due_at) where due_at is not null;
create index headway_notification_rule on headway_notification (rule_id, id);
