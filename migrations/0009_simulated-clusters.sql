-- How a simulated cluster lives beside real ones. until_real: it takes gangs until a real cluster is registered. kept: it
-- takes gangs beside real ones too. retired: it takes none, since a real one was registered, and may come back once there
-- is none. removed: an admin has deleted it, and it does not come back. A program of the version before writes null, which
-- counts as until_real.
alter table clusters
  add column simulation text check (simulation in ('until_real', 'kept', 'retired', 'removed'));
update clusters
   set simulation = case
         when exists (select from clusters where not simulated and forgotten_ms is null) then 'retired' else 'until_real'
       end
 where simulated;

-- True: the admission was to a simulated cluster. It stays true after the cluster is gone.
alter table admissions add column simulated boolean not null default false;
update admissions a set simulated = true from clusters c where c.name = a.cluster and c.simulated;

comment on table migrations is 'schema version 5';
