-- Lists by several filters: how often their values come together, so that PostgreSQL does not look through the jobs of a
-- large namespace for a phase that none of them has.
create statistics jobs_filtered (mcv) on namespace, queue, kind, phase from jobs;

comment on table migrations is 'schema version 5';
