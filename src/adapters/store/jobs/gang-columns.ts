import type { Job } from "../../../core/job/job.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import { type Ask, askOf } from "../../../core/plan/ask.ts";
import { documentedFacts, gangChange } from "../../../core/plan/plan-gang.ts";
import { contentHash } from "../../../runtime/content-hash.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { json } from "../db/db.ts";

/** An ask, and the hash by which jobs name it. */
export type HashedAsk = { readonly hash: string; readonly ask: Ask };

/** The columns of a job that the planner reads instead of its spec and status. */
export type GangColumns = { readonly asked: HashedAsk; readonly documented: string };

export function gangColumns(job: Job, kinds: Registry): GangColumns {
  return { asked: hashed(askOf(job, kinds)), documented: json(documentedFacts(job)) };
}

/** The columns of a job after a change. `asked` null: the ask stays. `raises`: the change begins a new generation. */
export function changedGangColumns(before: Job, after: Job, kinds: Registry) {
  const { changed, ask } = gangChange(before, after, kinds);
  return { asked: ask && hashed(ask), documented: json(documentedFacts(after)), raises: changed };
}

/** Each ask once, in the order of the hashes, as parameters of `WRITE_ASKS`: hashes and documents. */
export function askParameters(asks: readonly (HashedAsk | null)[]): readonly [readonly string[], readonly string[]] {
  const byHash = new Map(asks.flatMap((asked) => (asked === null ? [] : [[asked.hash, asked.ask]])));
  const hashes = [...byHash.keys()].sort();
  return [hashes, hashes.map((hash) => canonicalJson(byHash.get(hash)))];
}

/** Inserts the asks of these two parameters that are not known. It is part of the statement that writes their jobs. */
export function writeAsks(hashes: string, documents: string): string {
  return `
  insert into asks (hash, ask)
  select hash, ask::json from unnest(${hashes}::text[], ${documents}::text[]) as a (hash, ask) order by hash
  on conflict (hash) do nothing`;
}

function hashed(ask: Ask): HashedAsk {
  return { hash: contentHash(ask), ask };
}
