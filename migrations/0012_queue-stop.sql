-- Whether a queue, and all queues below it, admit jobs. NONE: they do. HOLD: no job is admitted, and no gang grows.
-- HOLD_AND_DRAIN: admissions are undone too. A program of the version before admits jobs in spite of it.
alter table queues
  add column stop_policy text not null default 'NONE' check (stop_policy in ('NONE', 'HOLD', 'HOLD_AND_DRAIN'));

comment on table migrations is 'schema version 5';
