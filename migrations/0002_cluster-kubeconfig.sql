-- How to connect to a cluster; null where that is said elsewhere.
alter table clusters add column if not exists kubeconfig text;
