-- Lists of jobs by creator, project, the beginning of the name and the time of the end must not read every job.
create index jobs_by_creator on jobs (created_by, create_ms, uid);
create index jobs_by_project on jobs (project, create_ms, uid);
create index jobs_by_name_prefix on jobs (name text_pattern_ops);
create index jobs_by_end on jobs (completion_ms, uid) where completion_ms is not null;
create index jobs_by_phase_end on jobs (phase, completion_ms, uid) where completion_ms is not null;

comment on table migrations is 'schema version 5';
