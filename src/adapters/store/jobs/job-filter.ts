import type { JobFilter } from "../../../core/job/request/filter.ts";
import { json } from "../db/db.ts";

/**
 * A filter as a condition on `jobs j`, with `filterParams` from $1 on. It must agree with core's `matchesFilter`. One
 * kind or one phase is compared by itself: an index then also gives the order of the rows. A part of the filter that
 * selects everything becomes true while the server plans, so that an index alone can count the rows.
 */
export const FILTER_CONDITION = `
  ($1 = '' or j.namespace = $1)
  and (cardinality($2::text[]) = 0 or j.name = any($2::text[]))
  and (cardinality($3::text[]) = 0 or j.kind = any($3::text[]))
  and (cardinality($4::text[]) = 0 or j.phase = any($4::text[]))
  and ($5 = '' or j.queue = $5)
  and ($6 = '' or j.cluster = $6)
  and ($7::jsonb = '{}' or j.labels @> $7::jsonb)
  and ($8::text[] is null or j.namespace = any($8::text[]))
  and ($9 = '' or j.kind = $9)
  and ($10 = '' or j.phase = $10)`;

export const FILTER_PARAMS = 10;

export function filterParams(filter: JobFilter): readonly unknown[] {
  return [
    filter.namespace,
    filter.names,
    several(filter.kinds),
    several(filter.phases),
    filter.queue,
    filter.cluster ?? "",
    json(filter.labels),
    filter.namespaces ?? null,
    single(filter.kinds),
    single(filter.phases),
  ];
}

function single(values: readonly string[]): string {
  return values.length === 1 ? (values[0] ?? "") : "";
}

function several(values: readonly string[]): readonly string[] {
  return values.length === 1 ? [] : values;
}
