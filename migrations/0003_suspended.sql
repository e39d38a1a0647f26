-- A suspended job waits for nobody but its owner: it stands in no line.
alter table jobs drop constraint jobs_phase_check;
alter table jobs add constraint jobs_phase_check check (
  phase in ('WAITING', 'ADMITTED', 'STARTING', 'RUNNING', 'RESTARTING', 'SUSPENDED', 'SUCCEEDED', 'FAILED', 'CANCELLED')
);
-- The labels before a change of labels, so that a watch tells who left its filter by it; null for every other change.
alter table job_changes add column previous_labels jsonb;
