-- Who has frozen a queue or a pool, as the type Freeze. Null: nobody. A program of the version before keeps it and does
-- not obey it.
alter table queues add column frozen jsonb check (jsonb_typeof(frozen) = 'object' and frozen ? 'by');
alter table pools add column frozen jsonb check (jsonb_typeof(frozen) = 'object' and frozen ? 'by');

comment on table migrations is 'schema version 5';
