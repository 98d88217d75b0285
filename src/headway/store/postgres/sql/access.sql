-- name: insert_account(; id, name, role, password, by, now)
insert into headway.account (id, name, role, password, created_by, created_at, changed_at)
values (:id::uuid, :name, :role, :password, :by, coalesce(:now::timestamptz, now()), coalesce(:now::timestamptz, now()))
on conflict do nothing;

-- name: get_account(; name)
-- Nobody else changes it until the transaction ends.
select id, name, role, password, disabled, created_at, created_by, changed_at from headway.account
where name = :name for update;

-- name: list_accounts()
select id, name, role, password, disabled, created_at, created_by, changed_at from headway.account order by name;

-- name: update_account(; name, role, password, disabled, now)
update headway.account
set role = :role, password = :password, disabled = :disabled::boolean, changed_at = coalesce(:now::timestamptz, now())
where name = :name;

-- name: drop_account(; name)
delete from headway.account where name = :name;

-- name: insert_token(; name, lookup, digest, role, kinds, queues, expires_at, by, now)
insert into headway.token (name, lookup, digest, role, kinds, queues, expires_at, created_by, created_at)
values (:name, :lookup, :digest, :role, :kinds, :queues, :expires_at::timestamptz, :by,
        coalesce(:now::timestamptz, now()))
on conflict do nothing;

-- name: get_token(; name)
select name, digest, role, kinds, queues, created_at, created_by, expires_at, used_at from headway.token
where name = :name for update;

-- name: find_token(; lookup, now)
select name, digest, role, kinds, queues, created_at, created_by, expires_at, used_at from headway.token
where lookup = :lookup and (expires_at is null or expires_at > coalesce(:now::timestamptz, now()));

-- name: list_tokens()
select name, digest, role, kinds, queues, created_at, created_by, expires_at, used_at from headway.token order by name;

-- name: drop_token(; name)
delete from headway.token where name = :name;

-- name: touch_tokens(lookup; now)
update headway.token set used_at = coalesce(:now::timestamptz, now()) where lookup = any(:lookup::text[]);

-- name: insert_session(; lookup, digest, user_name, token_name, address, ttl, now)
insert into headway.session (lookup, digest, user_name, token_name, address, created_at, expires_at)
values (:lookup, :digest, :user_name, :token_name, :address, coalesce(:now::timestamptz, now()),
        coalesce(:now::timestamptz, now()) + :ttl::float8 * interval '1 second')
on conflict do nothing;

-- name: find_session(; lookup, now)
-- What its user or token may do is read anew each time; without either it has ended.
select s.digest, s.expires_at, s.user_name, s.token_name, u.role as user_role, t.role as token_role, t.kinds, t.queues
from headway.session s
left join headway.account u on u.name = s.user_name and not u.disabled
left join headway.token t on t.name = s.token_name
     and (t.expires_at is null or t.expires_at > coalesce(:now::timestamptz, now()))
where s.lookup = :lookup and s.expires_at > coalesce(:now::timestamptz, now());

-- name: drop_session(; lookup)
delete from headway.session where lookup = :lookup;

-- name: drop_user_sessions(; name)
delete from headway.session where user_name = :name;

-- name: drop_user_links(; name)
delete from headway.login_link where user_name = :name;

-- name: drop_token_sessions(; name)
delete from headway.session where token_name = :name;

-- name: drop_token_links(; name)
delete from headway.login_link where token_name = :name;

-- name: insert_link(; lookup, digest, user_name, token_name, ttl, now)
insert into headway.login_link (lookup, digest, user_name, token_name, expires_at)
values (:lookup, :digest, :user_name, :token_name,
        coalesce(:now::timestamptz, now()) + :ttl::float8 * interval '1 second')
on conflict do nothing;

-- name: get_link(; lookup, now)
-- Of two who come with the same code, one waits here and then finds nothing.
select digest, user_name, token_name from headway.login_link
where lookup = :lookup and expires_at > coalesce(:now::timestamptz, now()) for update;

-- name: drop_link(; lookup)
delete from headway.login_link where lookup = :lookup;

-- name: count_failures(subject; window, now)
-- Counted before the password is looked at, so that attempts made at once can't slip through together.
insert into headway.login_failure as f (subject, failures, since_at)
select new.subject, 1, coalesce(:now::timestamptz, now()) from unnest(:subject::text[]) as new(subject)
order by new.subject
on conflict (subject) do update
set failures = case when f.since_at <= excluded.since_at - :window::float8 * interval '1 second'
                    then 1 else f.failures + 1 end,
    since_at = case when f.since_at <= excluded.since_at - :window::float8 * interval '1 second'
                    then excluded.since_at else f.since_at end
returning f.subject, f.failures,
          (:window::float8 - extract(epoch from coalesce(:now::timestamptz, now()) - f.since_at))::float8 as seconds;

-- name: forget_failures(; subject)
delete from headway.login_failure where subject = :subject;

-- name: uncount_failure(; subject)
update headway.login_failure set failures = failures - 1 where subject = :subject and failures > 0;

-- name: drop_lapsed_sessions(; now)
delete from headway.session where expires_at <= coalesce(:now::timestamptz, now());

-- name: drop_lapsed_links(; now)
delete from headway.login_link where expires_at <= coalesce(:now::timestamptz, now());

-- name: drop_lapsed_failures(; window, now)
delete from headway.login_failure
where since_at <= coalesce(:now::timestamptz, now()) - :window::float8 * interval '1 second';
