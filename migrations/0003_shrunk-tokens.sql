-- A part of the token was given back, and the counters have not been told yet what is left of it.
alter table allocations add column shrunk boolean not null default false;
create index allocations_shrunk on allocations (fence) where shrunk and released_ms is null;
