-- Decision time minus the database's time, as the holder of the lease "clock" last noted it, and the database's time
-- then. Processes decide by the database's time plus this. 0: no process has noted one yet.
create table decision_clock (
  is_only boolean primary key default true check (is_only),
  correction_ms bigint not null default 0,
  noted_ms bigint not null default 0
);
insert into decision_clock default values;

comment on table migrations is 'schema version 5';
