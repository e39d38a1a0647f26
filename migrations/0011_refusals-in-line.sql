-- The gang that stands in waiting lines of pools, beside callers: a few rows at most. An explanation of a gang that
-- leaves room for it reads what the lines keep.
create index refusals_in_line on refusals (job_uid) where refusal#>>'{cause,inLine,0,pool}' is not null;

comment on table migrations is 'schema version 5';
