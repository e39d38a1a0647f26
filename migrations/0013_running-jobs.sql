-- How many jobs of a queue, and of the queues below it, may be admitted at the same time. Null: any number. A program
-- of the version before admits jobs in spite of it.
alter table queues add column max_running_jobs integer check (max_running_jobs > 0);

comment on table migrations is 'schema version 5';
