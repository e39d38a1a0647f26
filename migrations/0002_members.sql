-- Every process of the service is a member with one row, whose counter it raises as long as it lives. A member that others take for dead
-- loses its row, and with it all that it held: a lease whose holder has no row is free.
alter table workers add column takes_buckets boolean not null default true;
