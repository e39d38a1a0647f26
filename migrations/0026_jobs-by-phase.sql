-- Lists of one phase find the next page without a look at jobs of other phases.
create index jobs_by_phase on jobs (phase, create_ms, uid);
comment on table migrations is 'schema version 5';
