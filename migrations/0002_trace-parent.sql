-- The W3C trace context of the call that made the job; null where that call was not traced.
alter table jobs add column trace_parent text check (trace_parent <> '');
