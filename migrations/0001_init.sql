-- Times are milliseconds since 1970, given by the caller: the database's clock is never read in a statement that decides.
-- Documents that no statement looks into are json, which keeps them as they were written; jsonb is for what is searched.

create table namespaces (
  name text primary key check (name <> ''),
  project text not null check (project <> ''),
  default_queue text not null check (default_queue <> ''),
  version bigint not null default 1 check (version >= 1),
  create_ms bigint not null
);

create table queues (
  name text primary key check (name <> ''),
  strategy text not null check (strategy in ('STRICT_FIFO', 'BEST_EFFORT_FIFO')),
  version bigint not null default 1 check (version >= 1),
  create_ms bigint not null,
  update_ms bigint not null
);

-- One flavor is one pool of one quota domain: what must be granted together is counted together.
create table quota_domains (
  name text primary key,
  epoch bigint not null check (epoch >= 0)
);
insert into quota_domains (name, epoch) values ('default', 0);

create table pools (
  name text primary key check (name <> ''),
  domain text not null references quota_domains (name)
);

-- The order of a queue's quotas is the order in which its flavors are tried.
create table queue_quotas (
  queue text not null references queues (name) on delete cascade,
  position int not null check (position >= 0),
  flavor text not null references pools (name),
  resource text not null check (resource <> ''),
  nominal bigint not null check (nominal between 0 and 9007199254740991),
  primary key (queue, position),
  unique (queue, flavor)
);

create table clusters (
  name text primary key check (name <> ''),
  labels jsonb not null,
  flavors json not null,
  simulated boolean not null,
  cordoned boolean not null default false,
  -- Raised by every admission to this cluster: two planners that saw the same room cannot both use it.
  admission_counter bigint not null default 0 check (admission_counter >= 0),
  capacity json,
  observed_ms bigint,
  reachable boolean not null default false,
  version bigint not null default 1 check (version >= 1),
  create_ms bigint not null,
  check ((capacity is null) = (observed_ms is null))
);

-- phase and completion_ms are the two facts of a status that the database itself holds true; the rest of it is the document.
create table jobs (
  uid uuid primary key,
  namespace text not null references namespaces (name),
  name text not null check (name <> ''),
  project text not null,
  kind text not null check (kind <> ''),
  queue text not null,
  priority int not null,
  phase text not null check (
    phase in ('WAITING', 'ADMITTED', 'STARTING', 'RUNNING', 'RESTARTING', 'SUCCEEDED', 'FAILED', 'CANCELLED')
  ),
  completion_ms bigint,
  -- The cluster of the current admission; empty while there is none.
  cluster text not null,
  labels jsonb not null,
  annotations json not null,
  created_by text not null,
  create_ms bigint not null,
  delete_ms bigint,
  cancel json,
  version bigint not null check (version >= 1),
  bucket smallint not null check (bucket between 0 and 1023),
  recheck_at_ms bigint,
  sent json not null,
  spec json not null,
  status json not null,
  constraint jobs_name unique (namespace, name),
  constraint jobs_terminal_has_ended check ((phase in ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (completion_ms is not null))
);
create index jobs_due on jobs (recheck_at_ms) where recheck_at_ms is not null;
create index jobs_waiting on jobs (queue, priority desc, create_ms, uid) where phase = 'WAITING';
create index jobs_by_create on jobs (create_ms, uid);
create index jobs_by_priority on jobs (priority desc, create_ms, uid);

-- Without a foreign key to jobs: what is left of an admission outlives the record of its job.
create table admissions (
  job_uid uuid not null,
  number int not null check (number >= 1),
  cluster text not null,
  state text not null check (state in ('live', 'ended', 'undone')),
  members json not null,
  flavors json not null,
  node_labels json not null,
  admit_ms bigint not null,
  tokens_released_ms bigint,
  gone_ms bigint,
  below_min_since_ms bigint,
  -- Undone, and nothing of it is left, neither in its cluster nor in the ledger: it is history. The one that a job ended under is shown on.
  finished boolean generated always as (state = 'undone' and tokens_released_ms is not null and gone_ms is not null) stored,
  primary key (job_uid, number)
);
create unique index admissions_one_live on admissions (job_uid) where state = 'live';

-- Written with the admission and removed only when an observer has seen nothing left of it in that cluster.
create table admission_clusters (
  job_uid uuid not null,
  admission int not null,
  cluster text not null,
  primary key (job_uid, admission, cluster)
);

-- The ledger: every line that was ever granted and not yet forgotten.
create table allocations (
  id bigint generated always as identity primary key,
  pool text not null,
  token text not null check (token <> ''),
  queue text not null,
  project text not null,
  namespace text not null,
  amount bigint not null check (amount between 1 and 9007199254740991),
  -- epoch * 2^32 + counter: names the grant for ever; its lines share it.
  fence bigint not null,
  job_uid uuid not null,
  admission int not null,
  granted_ms bigint not null,
  released_ms bigint,
  -- The counters have freed it.
  confirmed boolean not null default false,
  check (not confirmed or released_ms is not null)
);
create unique index allocations_live on allocations (pool, token) where released_ms is null;
create index allocations_held on allocations (job_uid, admission) where released_ms is null;
create index allocations_unconfirmed on allocations (fence) where released_ms is not null and not confirmed;

-- The ledger's own sum of its live lines; name is empty for the pool itself.
create table allocation_sums (
  pool text not null,
  scope text not null check (scope in ('pool', 'queue')),
  name text not null,
  used bigint not null check (used >= 0),
  primary key (pool, scope, name),
  check ((scope = 'pool') = (name = ''))
);

-- The unique keys make a take-over change a key column, so that it waits for records that hold the row for key share.
create table leases (
  name text primary key,
  holder text not null,
  epoch bigint not null check (epoch >= 1),
  unique (name, epoch)
);

create table workers (
  name text primary key,
  counter bigint not null default 0 check (counter >= 0)
);

create table bucket_leases (
  bucket smallint primary key check (bucket between 0 and 1023),
  worker text not null,
  epoch bigint not null check (epoch >= 0),
  unique (bucket, epoch)
);
insert into bucket_leases (bucket, worker, epoch) select bucket, '', 0 from generate_series(0, 1023) bucket;

create table refusals (
  job_uid uuid primary key references jobs (uid) on delete cascade,
  refusal json not null,
  at_ms bigint not null
);

-- What made a create exactly-once; kept longer than the job it names.
create table request_ids (
  namespace text not null,
  request_id text not null check (request_id <> ''),
  sent json not null,
  job_uid uuid not null,
  create_ms bigint not null,
  primary key (namespace, request_id)
);
create index request_ids_by_create on request_ids (create_ms);

-- What people read of a job's life; kept when the job is gone.
create table job_events (
  id bigint generated always as identity primary key,
  job_uid uuid not null,
  namespace text not null,
  name text not null,
  version bigint not null check (version >= 1),
  type text not null check (type in ('Normal', 'Warning')),
  reason text not null,
  message text not null,
  at_ms bigint not null
);
create index job_events_by_name on job_events (namespace, name, id);
create index job_events_by_age on job_events (at_ms);

-- The log that watches follow: one row for each version of a job. Rows are written without a position, in the transaction
-- that makes the change; the sequencer gives committed ones the next positions, in the order of their ids.
create table job_changes (
  id bigint generated always as identity primary key,
  position bigint unique,
  job_uid uuid not null,
  version bigint not null check (version >= 1),
  change text not null check (change in ('ADDED', 'MODIFIED', 'DELETED')),
  -- The job without replica templates, after the change (before it, for DELETED).
  job json not null,
  previous_phase text,
  previous_cluster text,
  at_ms bigint not null,
  unique (job_uid, version),
  check ((change = 'ADDED') = (previous_phase is null)),
  check ((previous_phase is null) = (previous_cluster is null))
);
create index job_changes_unpositioned on job_changes (id) where position is null;

create table job_log (
  only_row boolean primary key default true check (only_row),
  -- The newest position given.
  head bigint not null check (head >= pruned_to),
  -- Entries up to here are gone: a cursor before it has a gap.
  pruned_to bigint not null check (pruned_to >= 0)
);
insert into job_log (head, pruned_to) values (0, 0);

-- Names this database in the labels of everything that it makes in clusters; made once, with it.
create table installation (
  id uuid not null default gen_random_uuid(),
  only_row boolean primary key default true check (only_row)
);
insert into installation default values;
