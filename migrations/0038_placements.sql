-- The nodes that an admission's members are planned on. Null: none is planned, or a planner of the version before has
-- admitted the gang; its pods go by the labels of their flavors alone. A worker of the version before does not read it.
alter table admissions add column placement json;
comment on table migrations is 'schema version 5';
