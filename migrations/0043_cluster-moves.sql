-- What becomes of gangs that ran in a cluster that counts as lost: WAIT for it, or MOVE elsewhere after a while.
-- Namespaces that exist keep what they had, which is WAIT.
alter table namespaces add column on_cluster_lost text not null default 'WAIT'
  check (on_cluster_lost in ('WAIT', 'MOVE'));
alter table namespaces alter column on_cluster_lost set default 'MOVE';

comment on table migrations is 'schema version 5';
