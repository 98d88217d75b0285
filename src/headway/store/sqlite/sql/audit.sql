-- name: take_audit_mark(; name)
insert into headway_audit_mark as m (name, seq, digest) values (:name, 0, '')
on conflict (name) do update set name = excluded.name
returning seq, digest;

-- name: put_audit_mark(; name, seq, digest)
update headway_audit_mark set seq = :seq, digest = :digest where name = :name;

-- name: audit_marks()
select name, seq, digest from headway_audit_mark;

-- name: known_audit(id)
select id from headway_audit where id = :id;

-- name: put_audit(seq, id, made_at, actor, action, object, address, detail, count, digest)
insert into headway_audit (seq, id, made_at, actor, action, object, address, detail, count, digest)
values (:seq, :id, :made_at, :actor, :action, :object, :address, :detail, :count, :digest);

-- name: find_audit(; actor, action, action_prefix, object, since, until, before, limit)
select seq, id, made_at, actor, action, object, address, detail, count, digest from headway_audit
where (:actor is null or actor = :actor)
  and (:action is null or action = :action)
  and (:action_prefix is null or substr(action, 1, length(:action_prefix)) = :action_prefix)
  and (:object is null or object = :object)
  and (:since is null or made_at >= :since)
  and (:until is null or made_at < :until)
  and (:before is null or seq < :before)
order by seq desc limit :limit;

-- name: audit_after(; seq, limit)
select seq, id, made_at, actor, action, object, address, detail, count, digest from headway_audit
where seq > :seq order by seq limit :limit;

-- name: drop_audit(; seq)
delete from headway_audit where seq <= :seq;
