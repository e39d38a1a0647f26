-- Lists and watches read the outline of a job: its specification without the templates of its pods, which may be
-- megabytes. A program of the version before writes neither column; then readers take both from the specification.
alter table jobs
  add column outline json,
  add column spec_bytes int check (spec_bytes >= 0);

-- SQL can take a document apart only without NUL and without halves of a character, so they are replaced here.
create function outline_of(spec json) returns json language sql stable as $$
  select json_object_agg(member.key, case when member.key = 'replicaSpecs' then (
      select coalesce(json_object_agg(role.key, (
        select json_object_agg(field.key, case when field.key = 'template' then '{}'::json else field.value end)
          from json_each(role.value) field where field.key <> 'uninterruptedTemplate'
      )), '{}') from json_each(member.value) role
    ) else member.value end)
    from json_each(regexp_replace(spec::text, '\\u(0000|d[89a-f][0-9a-f]{2})', '\\ufffd', 'gi')::json) member
$$;
update jobs set outline = outline_of(spec), spec_bytes = octet_length(spec::text);
drop function outline_of(json);

comment on table migrations is 'schema version 4';
