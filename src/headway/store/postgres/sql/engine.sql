-- name: server_facts()
select current_setting('server_version') as version, pg_is_in_recovery() as standby,
       current_setting('transaction_read_only') = 'on' as read_only, current_setting('fsync') = 'on' as fsync,
       current_setting('full_page_writes') = 'on' as full_page_writes,
       current_setting('autovacuum') = 'on' as autovacuum,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most,
       (select count(*) from pg_stat_activity where datid is not null) as connections,
       (select count(*) from headway.worker) as workers,
       has_database_privilege(current_database(), 'temp') as temp, current_user::text as user_name,
       pg_has_role('pg_read_all_stats', 'member') as sees_all;

-- name: lacking_rights()
select c.relname::text as table_name, wanted.privilege
from pg_class c join pg_namespace n on n.oid = c.relnamespace
cross join (values ('select'), ('insert'), ('update'), ('delete')) as wanted(privilege)
where n.nspname = 'headway' and c.relkind = 'r' and c.relname <> 'migration'
  and not has_table_privilege(c.oid, wanted.privilege)
order by 1, 2;

-- name: long_transactions(; age)
-- Those that keep vacuum from clearing away what they might still see.
select pid, usename::text as user_name, application_name, state,
       extract(epoch from now() - xact_start)::float8 as seconds
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and xact_start < now() - :age::float8 * interval '1 second'
  and (backend_xmin is not null or backend_xid is not null) and backend_type is distinct from 'autovacuum worker'
order by xact_start;

-- name: table_sizes()
select c.relname::text as table_name, pg_total_relation_size(c.oid) as octets, coalesce(s.n_live_tup, 0) as live,
       coalesce(s.n_dead_tup, 0) as dead,
       extract(epoch from now() - greatest(s.last_vacuum, s.last_autovacuum))::float8 as vacuumed
from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_stat_all_tables s on s.relid = c.oid
where n.nspname = 'headway' and c.relkind = 'r'
order by octets desc;
