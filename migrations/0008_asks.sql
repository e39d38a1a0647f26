-- The planner reads a job as a gang, without the templates of its pods. Jobs with equal asks share one row of asks.
create table asks (
  hash text primary key check (hash <> ''),
  ask json not null
);

alter table jobs
  add column ask_hash text,
  -- The other facts of the specification and the status that a plan depends on.
  add column gang json,
  -- Rises with every change that a plan depends on.
  add column generation bigint not null default 0 check (generation >= 0),
  -- The version of the job for which the three columns above hold. A program of the version before writes none of them,
  -- so that they are of an older version, or null. Then the planner's process computes them again.
  add column gang_version bigint;
create index jobs_by_ask on jobs (ask_hash);
create index jobs_open on jobs (uid) where completion_ms is null;
create index jobs_outdated on jobs (uid) where completion_ms is null and gang_version is distinct from version;

comment on table migrations is 'schema version 5';
