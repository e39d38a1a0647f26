import type { Job } from "../../../core/job/job.ts";
import type { Registry } from "../../../core/kinds/registry.ts";
import { type HashedAsk, hashed, hashedAsk } from "../../../core/plan/model/ask.ts";
import { documentedFacts, gangChange } from "../../../core/plan/model/plan-gang.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { json } from "../db/db.ts";

/** The columns of a job that the planner reads instead of its spec and status. */
export type GangColumns = { readonly asked: HashedAsk; readonly documented: string };

/** `asked`: the job's ask, if it is known already. */
export function gangColumns(job: Job, kinds: Registry, asked = hashedAsk(job, kinds)): GangColumns {
  return { asked, documented: json(documentedFacts(job)) };
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
