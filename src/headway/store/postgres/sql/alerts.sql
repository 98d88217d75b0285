-- name: note_alerts(event, subject, number, name, queue, detail; now)
-- Only where somebody wants to know.
insert into headway.alert_event (event, subject, number, happened_at, name, queue, detail)
select new.event, new.subject, new.number, coalesce(:now::timestamptz, now()), new.name, new.queue, new.detail
from unnest(:event::text[], :subject::text[], :number::bigint[], :name::text[], :queue::text[], :detail::text[])
     as new(event, subject, number, name, queue, detail)
where exists (select from headway.alert_rule r where r.event = new.event and r.enabled)
on conflict do nothing;

-- name: note_failures(id; now)
insert into headway.alert_event (event, subject, number, happened_at, name, queue, detail)
select 'job_failed', j.id::text, j.token, coalesce(:now::timestamptz, now()), j.name, j.queue, j.error::text
from headway.job j
where j.id = any(:id::uuid[]) and j.state = 'failed'
  and exists (select from headway.alert_rule r where r.event = 'job_failed' and r.enabled)
on conflict do nothing;

-- name: put_alert_rule(; id, name, event, enabled, record, by, now)
insert into headway.alert_rule as r (id, name, event, enabled, record, changed_at, changed_by)
values (:id::uuid, :name, :event, :enabled::boolean, :record::json, coalesce(:now::timestamptz, now()), :by::text)
on conflict (id) do update
set name = excluded.name, event = excluded.event, enabled = excluded.enabled, record = excluded.record,
    version = r.version + 1, changed_at = excluded.changed_at, changed_by = excluded.changed_by
returning id, record, version, changed_at, changed_by;

-- name: alert_rule_named(; name)
select id from headway.alert_rule where name = :name;

-- name: alert_rules(; id)
-- All, or the one.
select id, record, version, changed_at, changed_by from headway.alert_rule
where (:id::uuid is null or id = :id::uuid) order by name;

-- name: drop_alert_rule(; id)
delete from headway.alert_rule where id = :id::uuid returning id;

-- name: drop_alerts_of(; id)
delete from headway.alert where rule_id = :id::uuid;

-- name: drop_notifications_of(; id)
delete from headway.notification where rule_id = :id::uuid;

-- name: take_alert_events(; limit)
delete from headway.alert_event where (event, subject, number) in (
    select event, subject, number from headway.alert_event
    order by happened_at, event, subject, number limit :limit::int for update skip locked
)
returning event, subject, number, happened_at, name, queue, detail;

-- name: alerts()
select rule_id, subject, since_at, told_at, firing, pending, detail from headway.alert
order by rule_id, subject for update;

-- name: put_alerts(rule_id, subject, since_at, told_at, firing, pending, detail)
insert into headway.alert (rule_id, subject, since_at, told_at, firing, pending, detail)
select new.* from unnest(:rule_id::uuid[], :subject::text[], :since_at::timestamptz[], :told_at::timestamptz[],
                     :firing::boolean[], :pending::bigint[], :detail::json[])
    as new(rule_id, subject, since_at, told_at, firing, pending, detail)
where exists (select from headway.alert_rule r where r.id = new.rule_id)
on conflict (rule_id, subject) do update
set since_at = excluded.since_at, told_at = excluded.told_at, firing = excluded.firing, pending = excluded.pending,
    detail = excluded.detail;

-- name: drop_alerts(rule_id, subject)
delete from headway.alert a
using unnest(:rule_id::uuid[], :subject::text[]) as gone(rule_id, subject)
where a.rule_id = gone.rule_id and a.subject = gone.subject;

-- name: add_notifications(id, rule_id, body; now)
insert into headway.notification (id, rule_id, created_at, due_at, body)
select new.id, new.rule_id, coalesce(:now::timestamptz, now()), coalesce(:now::timestamptz, now()), new.body
from unnest(:id::uuid[], :rule_id::uuid[], :body::json[]) as new(id, rule_id, body)
where exists (select from headway.alert_rule r where r.id = new.rule_id)
on conflict do nothing;

-- name: due_notifications(; limit, now)
select n.id, n.rule_id, n.created_at, n.due_at, n.attempts, n.delivered_at, n.error, n.body
from headway.notification n
where n.due_at <= coalesce(:now::timestamptz, now())
order by n.due_at, n.id limit :limit::int;

-- name: note_delivery(; id, error, wait, now)
-- `wait`: seconds until the next try; without, it is over.
update headway.notification
set attempts = attempts + 1, error = :error::text,
    delivered_at = case when :error::text is null then coalesce(:now::timestamptz, now()) end,
    due_at = coalesce(:now::timestamptz, now()) + :wait::float8 * interval '1 second'
where id = :id::uuid;

-- name: notifications(; id, limit)
select n.id, n.rule_id, n.created_at, n.due_at, n.attempts, n.delivered_at, n.error, n.body
from headway.notification n where n.rule_id = :id::uuid order by n.id desc limit :limit::int;

-- name: drop_old_notifications(; until_at)
delete from headway.notification where due_at is null and created_at < :until_at::timestamptz;
