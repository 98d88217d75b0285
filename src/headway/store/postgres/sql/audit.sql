-- name: take_audit_mark(; name)
-- Whoever writes to the log, or prunes it, holds this until the transaction ends: there is one chain.
insert into headway.audit_mark as m (name, seq, digest) values (:name, 0, '')
on conflict (name) do update set name = excluded.name
returning m.seq, m.digest;

-- name: put_audit_mark(; name, seq, digest)
update headway.audit_mark set seq = :seq::bigint, digest = :digest where name = :name;

-- name: audit_marks()
select name, seq, digest from headway.audit_mark;

-- name: known_audit(id)
select id from headway.audit where id = any(:id::uuid[]);

-- name: put_audit(seq, id, made_at, actor, action, object, address, detail, count, digest)
insert into headway.audit (seq, id, made_at, actor, action, object, address, detail, count, digest)
select * from unnest(:seq::bigint[], :id::uuid[], :made_at::timestamptz[], :actor::text[], :action::text[],
                     :object::text[], :address::text[], :detail::text[], :count::bigint[], :digest::text[]);

-- name: find_audit(; actor, action, action_prefix, object, since, until, before, limit)
select seq, id, made_at, actor, action, object, address, detail, count, digest from headway.audit
where (:actor::text is null or actor = :actor)
  and (:action::text is null or action = :action)
  and (:action_prefix::text is null or starts_with(action, :action_prefix))
  and (:object::text is null or object = :object)
  and (:since::timestamptz is null or made_at >= :since)
  and (:until::timestamptz is null or made_at < :until)
  and (:before::bigint is null or seq < :before)
order by seq desc limit :limit::int;

-- name: audit_after(; seq, limit)
select seq, id, made_at, actor, action, object, address, detail, count, digest from headway.audit
where seq > :seq::bigint order by seq limit :limit::int;

-- name: drop_audit(; seq)
delete from headway.audit where seq <= :seq::bigint;
