-- A robot may belong to a namespace and the project that it had then, or to a project alone. Neither: it belongs to the
-- installation, as do robots that a program of the version before makes.
alter table robot_tokens
  add column namespace text check (namespace <> ''),
  add column project text check (project <> ''),
  add constraint robot_tokens_scope check (namespace is null or project is not null);
create index robot_tokens_by_namespace on robot_tokens (namespace) where revoked_ms is null;
create index robot_tokens_by_project on robot_tokens (project) where revoked_ms is null;

-- Null: any number.
alter table tenant_limits
  add column max_robot_tokens bigint check (max_robot_tokens > 0),
  drop constraint tenant_limits_check,
  add constraint tenant_limits_check check (
    coalesce(max_waiting_jobs, max_running_jobs, max_pods, max_template_bytes, max_robot_tokens) is not null
  );

comment on table migrations is 'schema version 5';
