-- Priority classes. A job copies the value and the preemption policy when it is created, so nothing refers to a class.
create table priority_classes (
  name text primary key,
  value integer not null,
  description text not null,
  preemption_policy text not null check (preemption_policy in ('LOWER_PRIORITY', 'NEVER')),
  version bigint not null default 1,
  create_ms bigint not null,
  update_ms bigint not null
);

-- The class of jobs that name neither a class nor a priority. One row at most, which every change of a class locks, so
-- there never are two defaults. Null: none is the default.
create table priority_class_default (
  one boolean primary key default true check (one),
  name text
);

comment on table migrations is 'schema version 5';
