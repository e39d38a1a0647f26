-- How much the jobs of a namespace or of a project may take. Null: any amount. A program of the version before creates
-- and admits jobs in spite of it.
create table tenant_limits (
  kind text not null check (kind in ('namespace', 'project')),
  name text not null check (name <> ''),
  max_waiting_jobs bigint check (max_waiting_jobs > 0),
  max_running_jobs bigint check (max_running_jobs > 0),
  max_pods bigint check (max_pods > 0),
  max_template_bytes bigint check (max_template_bytes > 0),
  primary key (kind, name),
  check (coalesce(max_waiting_jobs, max_running_jobs, max_pods, max_template_bytes) is not null)
);

create index jobs_open_by_namespace on jobs (namespace) where completion_ms is null;
create index jobs_open_by_project on jobs (project) where completion_ms is null;

comment on table migrations is 'schema version 5';
