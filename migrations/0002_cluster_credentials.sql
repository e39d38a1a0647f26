-- How to reach a registered cluster: encrypted with a key that is not in the database, or a reference. Simulated clusters have none.
alter table clusters add column credentials json;
-- Set once a cluster was forgotten: whatever was placed there counts as gone. The row stays, so that every process hears of it.
alter table clusters add column forgotten_ms bigint;
alter table clusters add check (forgotten_ms is null or credentials is null);
