-- What places a gang's pods together in a cluster.
alter table clusters
  add column gang_scheduler text not null default 'none' check (gang_scheduler in ('none', 'volcano', 'scheduler-plugins'));
