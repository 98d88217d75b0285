-- name: insert_account(; id, name, role, password, by, now)
insert into headway_account (id, name, role, password, created_by, created_at, changed_at)
values (:id, :name, :role, :password, :by, :now, :now)
on conflict do nothing;

-- name: get_account(; name)
select id, name, role, password, disabled, created_at, created_by, changed_at from headway_account
where name = :name;

-- name: list_accounts()
select id, name, role, password, disabled, created_at, created_by, changed_at from headway_account order by name;

-- name: update_account(; name, role, password, disabled, now)
update headway_account
set role = :role, password = :password, disabled = :disabled, changed_at = :now
where name = :name;

-- name: drop_account(; name)
delete from headway_account where name = :name;

-- name: insert_token(; name, lookup, digest, role, kinds, queues, expires_at, by, now)
insert into headway_token (name, lookup, digest, role, kinds, queues, expires_at, created_by, created_at)
values (:name, :lookup, :digest, :role, :kinds, :queues, :expires_at, :by,
        :now)
on conflict do nothing;

-- name: get_token(; name)
select name, digest, role, kinds, queues, created_at, created_by, expires_at, used_at from headway_token
where name = :name;

-- name: find_token(; lookup, now)
select name, digest, role, kinds, queues, created_at, created_by, expires_at, used_at from headway_token
where lookup = :lookup and (expires_at is null or expires_at > :now);

-- name: list_tokens()
select name, digest, role, kinds, queues, created_at, created_by, expires_at, used_at from headway_token order by name;

-- name: drop_token(; name)
delete from headway_token where name = :name;

-- name: touch_tokens(lookup; now)
update headway_token set used_at = :now where lookup = :lookup;

-- name: insert_session(; lookup, digest, user_name, token_name, address, ttl, now)
insert into headway_session (lookup, digest, user_name, token_name, address, created_at, expires_at)
values (:lookup, :digest, :user_name, :token_name, :address, :now,
        :now + cast(:ttl * 1000000 as integer))
on conflict do nothing;

-- name: find_session(; lookup, now)
-- What its user or token may do is read anew each time; without either it has ended.
select s.digest, s.expires_at, s.user_name, s.token_name, u.role as user_role, t.role as token_role, t.kinds, t.queues
from headway_session s
left join headway_account u on u.name = s.user_name and not u.disabled
left join headway_token t on t.name = s.token_name
     and (t.expires_at is null or t.expires_at > :now)
where s.lookup = :lookup and s.expires_at > :now;

-- name: drop_session(; lookup)
delete from headway_session where lookup = :lookup;

-- name: drop_user_sessions(; name)
delete from headway_session where user_name = :name;

-- name: drop_user_links(; name)
delete from headway_login_link where user_name = :name;

-- name: drop_token_sessions(; name)
delete from headway_session where token_name = :name;

-- name: drop_token_links(; name)
delete from headway_login_link where token_name = :name;

-- name: insert_link(; lookup, digest, user_name, token_name, ttl, now)
insert into headway_login_link (lookup, digest, user_name, token_name, expires_at)
values (:lookup, :digest, :user_name, :token_name,
        :now + cast(:ttl * 1000000 as integer))
on conflict do nothing;

-- name: get_link(; lookup, now)
select digest, user_name, token_name from headway_login_link
where lookup = :lookup and expires_at > :now;

-- name: drop_link(; lookup)
delete from headway_login_link where lookup = :lookup;

-- name: count_failures(subject; window, now)
-- Counted before the password is looked at, so that attempts made at once can't slip through together.
insert into headway_login_failure as f (subject, failures, since_at)
values (:subject, 1, :now)
on conflict (subject) do update
set failures = case when f.since_at <= excluded.since_at - cast(:window * 1000000 as integer)
                    then 1 else f.failures + 1 end,
    since_at = case when f.since_at <= excluded.since_at - cast(:window * 1000000 as integer)
                    then excluded.since_at else f.since_at end
returning subject, failures,
          :window - (:now - since_at) / 1000000.0 as seconds;

-- name: forget_failures(; subject)
delete from headway_login_failure where subject = :subject;

-- name: uncount_failure(; subject)
update headway_login_failure set failures = failures - 1 where subject = :subject and failures > 0;

-- name: drop_lapsed_sessions(; now)
delete from headway_session where expires_at <= :now;

-- name: drop_lapsed_links(; now)
delete from headway_login_link where expires_at <= :now;

-- name: drop_lapsed_failures(; window, now)
delete from headway_login_failure
where since_at <= :now - cast(:window * 1000000 as integer);
