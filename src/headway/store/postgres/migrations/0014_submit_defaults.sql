-- headway.submit(…) takes what isn't given from what a worker has announced of the function, as the library does: queue,
-- priority, timeout, retry, key, tags, expires, retain. Its jobs stay plain ones: conflicts are not judged (`allow`), and
-- nothing is de-duplicated, whatever `@app.job` says of that.

create or replace function headway.submit(
    function       text,
    kwargs         json             default '{}',
    queue          text             default null,
    run_at         timestamptz      default null,
    priority       integer          default null,
    key            text             default null,
    delay          double precision default 0,
    timeout        double precision default null,
    tags           text[]           default '{}',
    created_by     text             default null,
    correlation_id text             default null,
    notify         boolean          default true
) returns uuid
language plpgsql volatile
as $$
declare
    new_id  uuid := headway.uuid7();
    payload json;
    field   text;
    given   text;
    known   headway.function;
    lane    text;
    urgency integer;
    job_key text;
    shut    text;
    due_at  timestamptz := coalesce(submit.run_at, now() + coalesce(submit.delay, 0) * interval '1 second');
begin
    if coalesce(submit.function, '') = '' then
        raise invalid_parameter_value using
            message = 'headway.submit: function must not be empty',
            hint = 'Give the name under which a worker knows the function, such as ''mail.welcome''.';
    end if;
    if json_typeof(submit.kwargs) is distinct from 'object' then
        raise invalid_parameter_value using
            message = format('headway.submit: kwargs must be a JSON object, not %s',
                             coalesce(json_typeof(submit.kwargs), 'null')),
            hint = 'Name the arguments, as in kwargs => ''{"user_id": 42}''.';
    end if;
    select * into known from headway.function f where f.name = submit.function;
    lane := coalesce(submit.queue, known.queue, 'default');
    urgency := coalesce(submit.priority, (known.defaults ->> 'priority')::integer, 0);
    job_key := coalesce(nullif(submit.key, ''), known.defaults ->> 'key', submit.function);
    if urgency not between -100 and 100 then
        raise invalid_parameter_value using
            message = format('headway.submit: priority must be from -100 to 100, not %s', urgency);
    end if;
    -- The same rule as the library's. Names that begin with a control character address workers, not queues.
    foreach field in array array['function', 'queue', 'key'] loop
        given := case field when 'function' then submit.function when 'queue' then lane
                 else job_key end;
        if given is null or given !~ '^[^\x01-\x1f\x7f]{1,200}$' then
            raise invalid_parameter_value using
                message = format('headway.submit: %s must be 1 to 200 characters without control characters, not %L',
                                 field, left(given, 250));
        end if;
    end loop;
    if submit.run_at is not null and coalesce(submit.delay, 0) <> 0 then
        raise invalid_parameter_value using message = 'headway.submit: give run_at or delay, not both';
    end if;

    payload := json_build_object('function', submit.function, 'kwargs', submit.kwargs);
    if octet_length(payload::text) > 256 * 1024 then
        raise invalid_parameter_value using
            message = format('headway.submit: the arguments of %L take %s bytes, the limit is %s',
                             submit.function, octet_length(payload::text), 256 * 1024),
            hint = 'Store the data elsewhere and pass a reference to it.';
    end if;

    -- As there, a due job whose gate is closed is blocked at it from the start.
    if due_at <= now() then
        select g.name into shut from headway.gate g
        where g.closed and g.key = job_key
          and g.name in ('key:' || job_key, 'queue:' || lane || E'\t' || job_key)
        limit 1;
    end if;
    insert into headway.job (
        id, kind, name, key, queue, rank, state, waiting, run_at, desired_at, created_at, expires_at, timeout, retry,
        retain, payload, on_conflict, on_parent_failure, wait_reason, gate, tags, created_by, correlation_id,
        code_version, digest
    )
    values (
        new_id, 'call', submit.function, job_key, lane, -urgency,
        case when shut is null then 'scheduled' else 'blocked' end, case when shut is null then 1 else 2 end,
        due_at, due_at, now(), now() + (known.defaults ->> 'expires')::double precision * interval '1 second',
        coalesce(submit.timeout, (known.defaults ->> 'timeout')::double precision), known.defaults -> 'retry',
        (known.defaults ->> 'retain')::double precision, payload, 'allow',
        coalesce(known.defaults ->> 'on_parent_failure', 'cancel'), case when shut is not null then 'limit' end, shut,
        coalesce(to_jsonb(nullif(submit.tags, '{}')), (known.defaults -> 'tags')::jsonb), submit.created_by,
        submit.correlation_id, known.code_version,
        decode(md5(concat_ws(E'\x01', 'call', submit.function, submit.key, lane, urgency, payload)), 'hex')
    );
    if shut is not null then
        insert into headway.history (job_id, at, what, by, detail)
        values (new_id, now(), 'blocked', submit.created_by, 'submitted at the full ' || shut);
    end if;
    if submit.notify and submit.run_at is null and coalesce(submit.delay, 0) = 0 then
        perform pg_notify('headway_wake', lane);
    end if;
    return new_id;
end
$$;

comment on function headway.submit is
    'Stores a call of a function as a job, in this transaction: select headway.submit(''mail.welcome'', kwargs => ''{"user_id": 42}'')';
