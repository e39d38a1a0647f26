-- The tokens of robots: callers that are programs. The secret is kept as its SHA-256 alone. A row stays after it was
-- revoked, so that no other robot ever gets the name, and with it the rights that the name may still have.
create table robot_tokens (
  name text primary key check (name ~ '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$'),
  hash text not null unique check (hash ~ '^[0-9a-f]{64}$'),
  owner text not null,
  create_ms bigint not null,
  expires_ms bigint not null check (expires_ms > create_ms),
  -- When the token was last shown, to within a minute.
  last_use_ms bigint,
  revoked_ms bigint
);

comment on table migrations is 'schema version 5';
