-- What the record of an admission has beside its columns: its rule for a part of a gang, and how its members have ended.
-- Null: nothing, or a program of the version before wrote the row.
alter table admissions add column details json;
comment on table migrations is 'schema version 5';
