-- Training runtimes of namespaces, and of the installation, whose namespace is the empty text. Names are ordered by
-- their bytes, as the program orders those that it ships. A namespace takes its runtimes with it when it is deleted.
create table training_runtimes (
  namespace text collate "C" not null,
  name text collate "C" not null check (name <> ''),
  labels json not null,
  spec json not null,
  version bigint not null default 1,
  create_ms bigint not null,
  primary key (namespace, name)
);

comment on table migrations is 'schema version 5';
