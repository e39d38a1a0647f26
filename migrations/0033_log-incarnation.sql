-- The database server and its timeline, and this database in it: another one after a fail-over or a restore. Null: the
-- server does not tell it.
create function server_identity() returns text language plpgsql as $$
begin
  return (select system_identifier from pg_control_system()) || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    || '/' || (select oid from pg_database where datname = current_database());
exception when insufficient_privilege or undefined_function or feature_not_supported then
  return null;
end
$$;

alter table job_log
  -- Names the history that gives the positions their meaning. Empty: the one that the upgrade has found, whose cursors
  -- keep their form.
  add column incarnation text not null default '' check (incarnation ~ '^[0-9a-f]{0,10}$'),
  -- The server that gave the last positions. Null: none has, or it is not known.
  add column server text;
-- Without positions there are no cursors to keep.
update job_log set incarnation = left(md5(gen_random_uuid()::text), 10) where head = 0;

comment on table migrations is 'schema version 5';
