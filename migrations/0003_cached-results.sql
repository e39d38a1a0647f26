-- What a job asks for an earlier job's result under; null where it asks for none.
alter table jobs add column cache_key text check (cache_key <> '');
create index jobs_by_cache_key on jobs (namespace, kind, cache_key) where cache_key is not null;
