-- What callers may do: roles, which are sets of permissions, and bindings, which give a role to a subject or a group at
-- a scope. Versions are never given twice, so the newest version and the number of rows tell any change. A program of
-- the version before lets every known caller do everything.
create table access_roles (
  name text primary key check (name ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  permissions text[] not null check (cardinality(permissions) > 0),
  version bigint generated always as identity,
  create_ms bigint not null,
  created_by text not null
);

create table access_bindings (
  name text primary key check (name ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  to_kind text not null check (to_kind in ('subject', 'group')),
  to_name text not null check (to_name <> ''),
  -- A role of `access_roles`, one that is built in, or one of a file.
  role text not null,
  scope_kind text not null
    check (scope_kind in ('installation', 'project', 'namespace', 'queue', 'pool', 'cluster')),
  scope_name text not null check ((scope_name = '') = (scope_kind = 'installation')),
  version bigint generated always as identity,
  create_ms bigint not null,
  created_by text not null
);

comment on table migrations is 'schema version 5';
