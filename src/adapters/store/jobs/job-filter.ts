import type { JobFilter } from "../../../core/job/filter.ts";
import { json } from "../db/db.ts";

/** A filter as a condition on `jobs j`, with `filterParams` from $1 on. It must agree with core's `matchesFilter`. */
export const FILTER_CONDITION = `
  ($1 = '' or j.namespace = $1)
  and (cardinality($2::text[]) = 0 or j.name = any($2::text[]))
  and (cardinality($3::text[]) = 0 or j.kind = any($3::text[]))
  and (cardinality($4::text[]) = 0 or j.phase = any($4::text[]))
  and ($5 = '' or j.queue = $5)
  and ($6 = '' or j.cluster = $6)
  and j.labels @> $7::jsonb
  and ($8::text[] is null or j.namespace = any($8::text[]))`;

export const FILTER_PARAMS = 8;

export function filterParams(filter: JobFilter): readonly unknown[] {
  return [
    filter.namespace,
    filter.names,
    filter.kinds,
    filter.phases,
    filter.queue,
    filter.cluster ?? "",
    json(filter.labels),
    filter.namespaces ?? null,
  ];
}
