-- For how long an observer that asked the cluster got no answer, in milliseconds. Silence that nobody saw adds nothing.
alter table clusters add column silence_ms bigint not null default 0;
-- Since when the cluster counts as lost. Null: it does not.
alter table clusters add column lost_ms bigint;
-- The last fence of an admission before that, as a number in text. Admissions with higher ones came after its return.
alter table clusters add column lost_fence text;
-- Since when the cluster answers again, while objects of gangs that have left it may be there: it takes no gangs
-- meanwhile. Null: there are none.
alter table clusters add column returning_ms bigint;

comment on table migrations is 'schema version 5';
