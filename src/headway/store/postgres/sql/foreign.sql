-- name: frozen_view()
-- Whether this transaction goes on seeing the store as it was at its first statement.
select current_setting('transaction_isolation') in ('repeatable read', 'serializable') as frozen;
