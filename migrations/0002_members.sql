-- Every process of the service is a member with one row, whose counter it raises as long as it lives. A member that others take for dead
-- loses its row, and with it all that it held: a lease whose holder has no row is free.
-- Each says for how long others must see its counter stand still before they may do so.
alter table workers
  add column takes_buckets boolean not null default true,
  add column lease_ms int not null default 10000 check (lease_ms >= 1);
