-- A token that its holder released while nobody could say whether a grant of it was under way. The grant, if there is one, is not committed any more.
create table token_tombstones (
  domain text not null references quota_domains (name),
  pool text not null,
  token text not null check (token <> ''),
  -- The holder as text; project and namespace are empty where the release named none.
  holder text not null,
  project text not null,
  namespace text not null,
  at_ms bigint not null,
  primary key (pool, token, holder, project, namespace)
);
create index token_tombstones_by_age on token_tombstones (domain, at_ms);

-- Set while the domain has tombstones: who commits looks for them only then.
alter table quota_domains add column buried boolean not null default false;
