-- Pruning reads what it deletes, not what stays. A job's request ids leave with the log's entry of its deletion: an id
-- of a job that exists is not looked at.
create index request_ids_by_job on request_ids (job_uid);
drop index request_ids_by_create;
-- Ids of jobs whose entries have left the log.
delete from request_ids r
 where not exists (select from jobs where uid = r.job_uid)
   and not exists (select from job_changes where job_uid = r.job_uid and change = 'DELETED');

-- Asks that a job had and has no more, for the pruner. Triggers write them, so that programs of the version before do.
create table unused_asks (
  id bigint generated always as identity primary key,
  hash text not null,
  -- The pruner has deleted the ask. A job that was being written at that moment may have lost it.
  deleted boolean not null default false
);
insert into unused_asks (hash)
select hash from asks a where not exists (select from jobs where ask_hash = a.hash) order by hash;

create function note_asks_of_deleted_jobs() returns trigger language plpgsql as $$
begin
  insert into unused_asks (hash) select distinct ask_hash from gone where ask_hash is not null;
  return null;
end
$$;
create trigger note_asks_of_deleted_jobs
  after delete on jobs referencing old table as gone
  for each statement execute function note_asks_of_deleted_jobs();

create function note_former_ask() returns trigger language plpgsql as $$
begin
  insert into unused_asks (hash) values (old.ask_hash);
  return null;
end
$$;
create trigger note_former_ask
  after update on jobs
  for each row when (old.ask_hash is not null and new.ask_hash is distinct from old.ask_hash)
  execute function note_former_ask();

comment on table migrations is 'schema version 5';
