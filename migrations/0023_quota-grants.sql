-- Nominal quotas of queues that are raised until a time. One that has ended has no row; the audit log has its history.
-- A program of the version before keeps these rows and does not count them.
create table quota_grants (
  queue text not null references queues (name) on delete cascade,
  flavor text not null,
  -- How much more the queue has.
  amount bigint not null check (amount between 1 and 9007199254740991),
  actor text not null,
  reason text not null,
  at_ms bigint not null,
  until_ms bigint not null check (until_ms > at_ms),
  primary key (queue, flavor)
);
create index quota_grants_by_end on quota_grants (until_ms);

comment on table migrations is 'schema version 5';
