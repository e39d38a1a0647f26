-- How many jobs of a queue may wait: those in phase WAITING or SUSPENDED. Null: any number. A program of the version
-- before creates jobs in spite of it.
alter table queues add column max_waiting_jobs integer check (max_waiting_jobs > 0);

-- Suspended jobs are counted with those that wait, for which there is an index already.
create index jobs_suspended on jobs (queue) where phase = 'SUSPENDED';

comment on table migrations is 'schema version 5';
