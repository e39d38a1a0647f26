-- Since when the database is one that was restored, and nobody has adopted the cluster: objects there that the records
-- do not know are not deleted, and no cluster takes gangs. Null: it is adopted.
alter table clusters add column unadopted_ms bigint;

comment on table migrations is 'schema version 5';
