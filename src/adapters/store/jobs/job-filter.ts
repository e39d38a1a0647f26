import { ADMITTED_PHASES, type JobFilter } from "../../../core/job/request/filter.ts";
import { json } from "../db/db.ts";

/** Why a row of `jobs j` in phase WAITING waits, as `waitReason` says. */
export const WAIT_REASON = "coalesce(j.status->'waiting'->>'reason', 'NotEvaluated')";

const ADMITTED = `j.phase in (${ADMITTED_PHASES.map((phase) => `'${phase}'`).join(", ")})`;

/**
 * A filter as a condition on `jobs j`, with `filterParams` from $1 on. It must agree with core's `matchesFilter`. One
 * kind, one phase or one creator is compared by itself: an index then also gives the order of the rows. A part of the
 * filter that selects everything becomes true while the server plans, so that an index alone can count the rows. No
 * index has reasons and flavors, so these parts also name the phases of the jobs that have them.
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
  and ($10 = '' or j.phase = $10)
  and ($11::text[] is null or j.queue = any($11::text[]))
  and (cardinality($12::text[]) = 0 or j.created_by = any($12::text[]))
  and ($13 = '' or j.created_by = $13)
  and (cardinality($14::text[]) = 0 or (j.phase = 'WAITING' and ${WAIT_REASON} = any($14::text[])))
  and ($15 = '' or j.name like $15)
  and ($16 = '' or (${ADMITTED} and exists (
        select from admissions m, json_each_text(m.flavors) f
         where m.job_uid = j.uid and m.state = 'live' and f.value = $16)))
  and ($17::uuid[] is null or j.uid = any($17::uuid[]))
  and ($18 = '' or j.project = $18)
  and ($19::bigint is null or j.create_ms >= $19)
  and ($20::bigint is null or j.create_ms < $20)
  and ($21::bigint is null or j.completion_ms >= $21)`;

export const FILTER_PARAMS = 21;

export function filterParams(filter: JobFilter): readonly unknown[] {
  const namespaces = narrowed(filter.namespace, filter.namespaces);
  const queues = narrowed(filter.queue, filter.queues);
  const { createdBy = [], reasons = [], namePrefix = "" } = filter;
  return [
    namespaces.one,
    filter.names,
    several(filter.kinds),
    several(filter.phases),
    queues.one,
    filter.cluster ?? "",
    json(filter.labels),
    namespaces.several,
    single(filter.kinds),
    single(filter.phases),
    queues.several,
    several(createdBy),
    single(createdBy),
    reasons,
    namePrefix === "" ? "" : `${namePrefix.replace(/[\\%_]/g, "\\$&")}%`,
    filter.flavor ?? "",
    filter.uids ?? null,
    filter.project ?? "",
    filter.createdSinceMs ?? null,
    filter.createdBeforeMs ?? null,
    filter.endedSinceMs ?? null,
  ];
}

/** A name, and a list of names of which it must be one. A list of a single name is that name. */
function narrowed(one: string, list: readonly string[] | null = null) {
  return one === "" && list?.length === 1 ? { one: list[0] ?? "", several: null } : { one, several: list };
}

function single(values: readonly string[]): string {
  return values.length === 1 ? (values[0] ?? "") : "";
}

function several(values: readonly string[]): readonly string[] {
  return values.length === 1 ? [] : values;
}
