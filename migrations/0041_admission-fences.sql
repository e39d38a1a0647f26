-- The lower part of the fences of admissions. The epoch of the queues' domain is the upper part.
create sequence admission_fences;

comment on table migrations is 'schema version 5';
