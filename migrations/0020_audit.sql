-- What is known of the call behind an entry of the audit log. A program of the version before writes entries without
-- it.
alter table audit_entries
  add column method text not null default '',
  add column peer text not null default '',
  add column rpc text not null default '',
  add column request_id text not null default '',
  add column outcome text not null default 'OK';

create index audit_entries_by_time on audit_entries (at_ms, id);
create index audit_entries_by_actor on audit_entries (actor, id);

comment on table migrations is 'schema version 5';
