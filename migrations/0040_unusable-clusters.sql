-- Why a cluster that answers cannot be used, such as credentials that it does not accept any more. Null: it can.
alter table clusters add column unusable text;

comment on table migrations is 'schema version 5';
