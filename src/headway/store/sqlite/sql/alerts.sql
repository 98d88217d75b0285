-- name: note_alerts(event, subject, number, name, queue, detail; now)
-- Only where somebody wants to know.
insert into headway_alert_event (event, subject, number, happened_at, name, queue, detail)
select :event, :subject, :number, :now, :name, :queue, :detail
where exists (select 1 from headway_alert_rule r where r.event = :event and r.enabled)
on conflict do nothing;

-- name: note_failures(id; now)
insert into headway_alert_event (event, subject, number, happened_at, name, queue, detail)
select 'job_failed', lower(hex(j.id)), j.token, :now, j.name, j.queue, j.error
from headway_job j
where j.id = :id and j.state = 'failed'
  and exists (select 1 from headway_alert_rule r where r.event = 'job_failed' and r.enabled)
on conflict do nothing;

-- name: put_alert_rule(; id, name, event, enabled, record, by, now)
insert into headway_alert_rule (id, name, event, enabled, record, changed_at, changed_by)
values (:id, :name, :event, :enabled, :record, :now, :by)
on conflict (id) do update
set name = excluded.name, event = excluded.event, enabled = excluded.enabled, record = excluded.record,
    version = version + 1, changed_at = excluded.changed_at, changed_by = excluded.changed_by
returning id, record, version, changed_at, changed_by;

-- name: alert_rule_named(; name)
select id from headway_alert_rule where name = :name;

-- name: alert_rules(; id)
-- All, or the one.
select id, record, version, changed_at, changed_by from headway_alert_rule
where (:id is null or id = :id) order by name;

-- name: drop_alert_rule(; id)
delete from headway_alert_rule where id = :id returning id;

-- name: drop_alerts_of(; id)
delete from headway_alert where rule_id = :id;

-- name: drop_notifications_of(; id)
delete from headway_notification where rule_id = :id;

-- name: take_alert_events(; limit)
delete from headway_alert_event where (event, subject, number) in (
    select event, subject, number from headway_alert_event
    order by happened_at, event, subject, number limit :limit
)
returning event, subject, number, happened_at, name, queue, detail;

-- name: alerts()
select rule_id, subject, since_at, told_at, firing, pending, detail from headway_alert
order by rule_id, subject;

-- name: put_alerts(rule_id, subject, since_at, told_at, firing, pending, detail)
insert into headway_alert (rule_id, subject, since_at, told_at, firing, pending, detail)
select :rule_id, :subject, :since_at, :told_at, :firing, :pending, :detail
where exists (select 1 from headway_alert_rule r where r.id = :rule_id)
on conflict (rule_id, subject) do update
set since_at = excluded.since_at, told_at = excluded.told_at, firing = excluded.firing, pending = excluded.pending,
    detail = excluded.detail;

-- name: drop_alerts(rule_id, subject)
delete from headway_alert where rule_id = :rule_id and subject = :subject;

-- name: add_notifications(id, rule_id, body; now)
insert into headway_notification (id, rule_id, created_at, due_at, body)
select :id, :rule_id, :now, :now, :body
where exists (select 1 from headway_alert_rule r where r.id = :rule_id)
on conflict do nothing;

-- name: due_notifications(; limit, now)
select id, rule_id, created_at, due_at, attempts, delivered_at, error, body
from headway_notification where due_at <= :now
order by due_at, id limit :limit;

-- name: note_delivery(; id, error, wait, now)
-- `wait`: seconds until the next try; without, it is over.
update headway_notification
set attempts = attempts + 1, error = :error, delivered_at = case when :error is null then :now end,
    due_at = :now + cast(:wait * 1000000 as integer)
where id = :id;

-- name: notifications(; id, limit)
select id, rule_id, created_at, due_at, attempts, delivered_at, error, body
from headway_notification where rule_id = :id order by id desc limit :limit;

-- name: drop_old_notifications(; until_at)
delete from headway_notification where due_at is null and created_at < :until_at;
