-- The uid of a cluster's namespace kube-system, which is the same under every address and for every account of the
-- cluster. A cluster without a row has not told its uid yet. The keys keep two registrations of one cluster apart.
create table cluster_uids (
  uid text primary key check (uid <> ''),
  cluster text not null unique references clusters (name) on delete cascade
);

comment on table migrations is 'schema version 5';
