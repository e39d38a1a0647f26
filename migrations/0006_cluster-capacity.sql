-- The capacity of a cluster, an entry for each node and for each foreign pod that is not bound, so that observers write and
-- planners read only what has changed. Numbers rise within a cluster; a complete report begins a new epoch.
-- A program of the version before writes clusters.capacity instead. While that is there, it is newer than the entries.
alter table clusters
  add column capacity_ms bigint,
  add column capacity_epoch bigint not null default 0 check (capacity_epoch >= 0),
  add column capacity_sequence bigint not null default 0 check (capacity_sequence >= 0),
  -- Removed entries up to this number are forgotten.
  add column capacity_floor bigint not null default 0 check (capacity_floor >= 0);

create table cluster_capacity (
  cluster text not null references clusters (name) on delete cascade,
  kind text not null check (kind in ('node', 'unbound')),
  name text not null,
  sequence bigint not null check (sequence >= 1),
  -- Null: removed.
  entry json,
  primary key (cluster, kind, name)
);
create unique index cluster_capacity_sequence on cluster_capacity (cluster, sequence);

comment on table migrations is 'schema version 5';
