-- The node labels of each resource's flavor, by resource. Null: a program of the version before wrote the admission,
-- and the labels of all flavors together are in node_labels.
alter table admissions add column flavor_labels json;
comment on table migrations is 'schema version 5';
