-- A pool may have a quota of its own, and defaults for the projects and namespaces that use it. Pools that queues made have none.
alter table pools
  add column quota bigint check (quota between 0 and 9007199254740991),
  add column project_default bigint check (project_default between 0 and 9007199254740991),
  add column namespace_default bigint check (namespace_default between 0 and 9007199254740991),
  -- Charged where a call names no queue.
  add column queue text references queues (name),
  -- Null: tokens of the pool do not lapse unless a call asks for a lease.
  add column default_lease_ms bigint default 3600000 check (default_lease_ms >= 1),
  add column max_lease_ms bigint check (max_lease_ms >= 1),
  -- REDIS: its counters alone decide, and nothing of it is in allocations.
  add column durability text not null default 'LEDGER' check (durability in ('LEDGER', 'REDIS')),
  add column version bigint not null default 1 check (version >= 1),
  add column create_ms bigint not null default 0,
  add column update_ms bigint not null default 0,
  add check (default_lease_ms <= max_lease_ms),
  -- Queues are counted in one domain, with the pools that they have quotas for.
  add constraint pools_of_queues check (queue is null or (domain = 'default' and durability = 'LEDGER'));
update pools p set create_ms = made.at_ms, update_ms = made.at_ms
  from (select flavor, min(create_ms) as at_ms from queue_quotas join queues on name = queue group by flavor) made
 where made.flavor = p.name;
create index pools_by_domain on pools (domain);
create index pools_by_queue on pools (queue) where queue is not null;

alter table quota_domains
  -- Raised by every change of a limit, in its transaction.
  add column limits_version bigint not null default 0 check (limits_version >= 0),
  -- The highest fence of an allocation that was forgotten: a grant up to here that has no row is long over.
  add column pruned_fence bigint not null default 0 check (pruned_fence >= 0);

alter table queues add column parent text references queues (name) check (parent <> name);
create index queues_by_parent on queues (parent) where parent is not null;
alter table queue_quotas
  -- Null: whatever the queues above it have left.
  add column borrowing_limit bigint check (borrowing_limit between 0 and 9007199254740991),
  -- Null: all that it does not use.
  add column lending_limit bigint check (lending_limit between 0 and 9007199254740991);
create index queue_quotas_by_flavor on queue_quotas (flavor);

-- A token is held by a job's admission or by an external caller. A job's tokens do not lapse.
alter table allocations
  alter column queue drop not null,
  alter column job_uid drop not null,
  alter column admission drop not null,
  add column caller text check (caller <> ''),
  add column lease_ms bigint check (lease_ms >= 1),
  add column release_reason text check (release_reason in ('released', 'expired', 'voided', 'forced', 'reconciled')),
  add constraint allocations_holder check (
    (job_uid is null) = (admission is null) and (job_uid is null) <> (caller is null)
  ),
  add constraint allocations_lease check (lease_ms is null or caller is not null),
  add constraint allocations_reason check (release_reason is null or released_ms is not null);
-- One fence names one grant: what was voided under it, or released, is never written again.
create unique index allocations_grant on allocations (pool, token, fence);
create index allocations_by_age on allocations (granted_ms, id) where released_ms is null;
create index allocations_by_pool on allocations (pool, granted_ms, id) where released_ms is null;
create index allocations_by_project on allocations (project, granted_ms, id) where released_ms is null;
create index allocations_by_namespace on allocations (namespace, granted_ms, id) where released_ms is null;
create index allocations_by_caller on allocations (caller, granted_ms, id) where released_ms is null and caller is not null;
create index allocations_history on allocations (released_ms, id) where confirmed;

-- The ledger's own sums of its live lines. The name of a namespace's sum is ["project","namespace"]; a queue's own lines alone are in its sum.
alter table allocation_sums
  drop constraint allocation_sums_scope_check,
  add constraint allocation_sums_scope_check check (scope in ('pool', 'queue', 'project', 'namespace'));
insert into allocation_sums (pool, scope, name, used)
select pool, 'project', project, sum(amount)::bigint from allocations where released_ms is null group by pool, project
union all
select pool, 'namespace', '[' || to_json(project)::text || ',' || to_json(namespace)::text || ']', sum(amount)::bigint
  from allocations where released_ms is null group by pool, project, namespace;

-- What admins did, for those who ask later.
create table audit_entries (
  id bigint generated always as identity primary key,
  at_ms bigint not null,
  actor text not null check (actor <> ''),
  action text not null check (action <> ''),
  subject text not null,
  reason text not null,
  details json not null
);
create index audit_entries_by_subject on audit_entries (subject, id);
create index audit_entries_by_action on audit_entries (action, id);
