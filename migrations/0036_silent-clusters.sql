-- Since when a cluster does not answer. Null: it answers, or it has not answered yet.
alter table clusters add column silent_ms bigint;

comment on table migrations is 'schema version 5';
