-- The pod policy of a namespace: its level, allowances and limits. Null: the installation's default holds.
alter table namespaces add column pod_policy jsonb;
comment on table migrations is 'schema version 4';
