-- Lists and watches with a filter must not read every job that ever ended. The phases of jobs_live and jobs_not_succeeded
-- are conditions that PostgreSQL finds in a filter of phases by itself.
create index jobs_by_namespace on jobs (namespace, create_ms, uid);
create index jobs_by_queue on jobs (queue, create_ms, uid);
create index jobs_by_kind on jobs (kind, create_ms, uid);
create index jobs_by_cluster on jobs (cluster, create_ms, uid) where cluster <> '';
create index jobs_live on jobs (create_ms, uid)
 where phase in ('WAITING', 'ADMITTED', 'STARTING', 'RUNNING', 'RESTARTING', 'SUSPENDED');
create index jobs_not_succeeded on jobs (create_ms, uid) where phase in ('FAILED', 'CANCELLED');
create index jobs_by_label on jobs using gin (labels jsonb_path_ops);

comment on table migrations is 'schema version 5';
