-- The planner reads the gangs that have ended and hold tokens still.
create index admissions_holding on admissions (job_uid) where tokens_released_ms is null;
comment on table migrations is 'schema version 5';
