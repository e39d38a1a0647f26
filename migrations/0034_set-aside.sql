-- When a bucket was last taken from a worker that had ended without handing it over. Null: never, or by a program of
-- the version before. `alone`: the jobs of the bucket are stepped one at a time.
alter table bucket_leases
  add column died_ms bigint,
  add column alone boolean not null default false;

-- The job that each worker steps alone. A worker writes it before the step.
create table alone_steps (
  worker text primary key,
  job_uid uuid not null,
  at_ms bigint not null
);

-- Notes of the watchdogs: the code of a step blocked a process, or filled its memory. They are kept for a day.
create table step_notes (
  id uuid primary key,
  job_uid uuid not null,
  worker text not null,
  at_ms bigint not null,
  what text not null check (what in ('blocked', 'filled')),
  plugin text check (plugin <> ''),
  alone boolean not null
);
create index step_notes_by_job on step_notes (job_uid);

-- Null: the job is not set aside. Workers read such a job without its templates.
alter table jobs add column set_aside_ms bigint;

comment on table migrations is 'schema version 5';
