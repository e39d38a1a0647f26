-- How a queue shares and preempts, as the type QueuePolicy. Null: the default policy. A program of the version before
-- keeps it and does not obey it.
alter table queues add column policy jsonb check (jsonb_typeof(policy) = 'object');

comment on table migrations is 'schema version 5';
