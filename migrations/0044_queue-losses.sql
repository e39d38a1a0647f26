-- Whether gangs of the queue, and of queues below it, that ran in a lost cluster WAIT for it, or MOVE elsewhere after a
-- while. Null: the queue does not say; the nearest queue above it that says something decides, else the namespace.
alter table queues add column on_cluster_lost text check (on_cluster_lost in ('WAIT', 'MOVE'));

comment on table migrations is 'schema version 5';
