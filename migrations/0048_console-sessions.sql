-- Logins of browsers. The secret of a session's cookie is kept as its SHA-256 alone, and its tokens are encrypted with a
-- key of credentials: a reader of the table can use neither. Times are of the machine's clock, as those of robots.
create table console_sessions (
  id_hash text primary key check (id_hash ~ '^[0-9a-f]{64}$'),
  subject text not null,
  tokens json not null,
  create_ms bigint not null,
  expires_ms bigint not null check (expires_ms > create_ms),
  -- When the tokens are renewed next. Null: never.
  renew_ms bigint
);
create index console_sessions_by_subject on console_sessions (subject, create_ms);
create index console_sessions_by_expiry on console_sessions (expires_ms);
create index console_sessions_to_renew on console_sessions (renew_ms) where renew_ms is not null;

comment on table migrations is 'schema version 5';
