-- The audit log in partitions by time, so that old entries leave with the table that holds them. The table of the
-- entries so far becomes the first partition. A program of the version before goes on: it knows the log by its name.
-- The key of a partition is the id alone: ids of all partitions come from one sequence.
alter table audit_entries rename to audit_entries_first;
alter index audit_entries_pkey rename to audit_entries_first_pkey;
alter index audit_entries_by_subject rename to audit_entries_first_by_subject;
alter index audit_entries_by_action rename to audit_entries_first_by_action;
alter index audit_entries_by_time rename to audit_entries_first_by_time;
alter index audit_entries_by_actor rename to audit_entries_first_by_actor;

create table audit_entries (like audit_entries_first including defaults including constraints)
  partition by range (at_ms);
alter table audit_entries alter column id add generated always as identity;
create index audit_entries_by_subject on audit_entries (subject, id);
create index audit_entries_by_action on audit_entries (action, id);
create index audit_entries_by_time on audit_entries (at_ms, id);
create index audit_entries_by_actor on audit_entries (actor, id);

-- Ids go on where the first partition's end, also if its last entries were deleted.
select setval(pg_get_serial_sequence('audit_entries', 'id'), last_value, is_called) from audit_entries_id_seq;
alter table audit_entries_first alter column id drop identity;

-- The first partition ends at the end of a day (UTC), at least seven days from now: until then, processes have made the
-- next ones. PostgreSQL reads its entries once, to see that all are before that.
do $$
declare
  day constant bigint := 86400000;
  newest constant bigint := (select max(at_ms) from audit_entries_first);
  now_ms constant bigint := extract(epoch from now()) * 1000;
begin
  execute format(
    'alter table audit_entries attach partition audit_entries_first for values from (minvalue) to (%s)',
    (greatest(now_ms, newest) / day + 8) * day
  );
end $$;

-- Entries for whose time no partition was made.
create table audit_entries_default partition of audit_entries (primary key (id)) default;

comment on table migrations is 'schema version 5';
