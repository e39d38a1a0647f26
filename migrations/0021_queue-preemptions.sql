-- The jobs that were preempted for jobs of a queue lately: at least those of the last hour. A program of the version
-- before preempts without a budget, and records none.
create table queue_preemptions (
  queue text not null,
  at_ms bigint not null,
  victims integer not null check (victims > 0),
  primary key (queue, at_ms)
);

comment on table migrations is 'schema version 5';
