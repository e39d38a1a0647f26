-- What a nominee lacks of a pool. Tokens that end, and that have it among their heirs, are turned over to it, up to this
-- amount. Exists as long as the nomination does. A program of the version before frees such tokens instead.
create table token_heirs (
  id bigint generated always as identity primary key,
  job_uid uuid not null,
  -- The number of the admission that the nominee is to get. It holds the tokens from the beginning.
  admission int not null check (admission >= 1),
  pool text not null,
  queue text not null,
  project text not null,
  namespace text not null,
  lacks bigint not null check (lacks >= 0),
  unique (job_uid, pool)
);

alter table allocations
  -- The heirs of this allocation, by their ids; the first goes first. Those that are gone do not count.
  add column heirs bigint[],
  -- Held for a nominee, whose admission does not exist yet.
  add column hold boolean not null default false,
  -- The allocation that this one was taken from, which has the same pool and fence; the amount that it kept then, and
  -- the amount of this one then.
  add column cut_token text,
  add column cut_kept bigint check (cut_kept >= 0),
  add column cut_amount bigint check (cut_amount >= 1),
  -- The counters have not been told yet that it was taken from that allocation.
  add column untold boolean not null default false,
  add constraint allocations_cut check (
    (cut_token is null) = (cut_kept is null) and (cut_token is null) = (cut_amount is null)
    and (cut_token is not null or not hold and not untold)
  );
create index allocations_holds on allocations (job_uid) where hold and released_ms is null;
create index allocations_untold on allocations (id) where untold;

comment on table migrations is 'schema version 5';
