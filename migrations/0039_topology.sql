-- The levels of the cluster's nodes, coarse to fine: objects with name and label. Empty: none, as before.
alter table clusters add column topology jsonb not null default '[]'
  check (jsonb_typeof(topology) = 'array' and jsonb_array_length(topology) <= 16);

comment on table migrations is 'schema version 5';
