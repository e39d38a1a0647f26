-- The last lines of containers that failed. They go with their job; the oldest of a namespace go when it has too many.
-- `problem`: why there are no lines. Null: they were read. No plan, list or watch reads this table.
create table failure_logs (
  id bigint generated always as identity,
  job_uid uuid not null references jobs (uid) on delete cascade,
  namespace text not null,
  replica text not null check (replica <> ''),
  attempt int not null check (attempt > 0),
  admission int not null,
  cluster text not null,
  pod text not null,
  pod_uid text not null,
  container text not null,
  restarts int not null check (restarts >= 0),
  exit_code int not null,
  reason text not null,
  read_ms bigint not null,
  lines text not null check (octet_length(lines) <= 16384),
  cut boolean not null,
  problem text check (problem <> ''),
  message text not null,
  bytes int not null check (bytes = octet_length(lines)),
  primary key (job_uid, pod_uid, container, restarts),
  check (problem is null or lines = '')
);
create index failure_logs_by_age on failure_logs (namespace, id) include (bytes);

-- False: a namespace keeps no lines. A program of the version before keeps none anyway.
alter table namespaces add column keep_failure_logs boolean not null default true;

comment on table migrations is 'schema version 5';
