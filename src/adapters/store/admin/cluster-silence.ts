/**
 * For how long clusters have not answered, and which of them count as lost. Only what an observer with its lease has
 * waited in vain adds to the silence: a service that is down, paused or cut off adds nothing.
 */
import { clusterState, type LossOutcome } from "../../../core/admin/cluster.ts";
import {
  clusterSizes,
  type JudgedCluster,
  judgeLosses,
  type Losses,
  type LossRule,
} from "../../../core/admin/lost-clusters.ts";
import type { Db, Executor } from "../db/db.ts";
import { holdsLease, observerLease } from "../fleet/leases.ts";
import { LAST_FENCE } from "../ledger/admission-fences.ts";
import { appendAudit } from "./audit.ts";
import { getCluster, listClusters } from "./clusters.ts";

export type CountedSilence = {
  readonly cluster: string;
  /** How long the observer has waited in vain since its last report, in milliseconds. */
  readonly ms: number;
  /** Of the observer's lease. */
  readonly leaseEpoch: number;
};

/** `counted` false: the record says that the cluster answers, or another process observes it. */
export type SilenceOutcome = Losses & { readonly counted: boolean };

/** Adds to the silence of a cluster. Returns which clusters count as lost from now on. */
export async function countSilence(
  db: Db,
  counted: CountedSilence,
  { rule, nowMs }: { readonly rule: LossRule; readonly nowMs: number },
): Promise<SilenceOutcome> {
  const silence = await addSilence(db, counted);
  if (silence === null) return { lost: [], held: [], counted: false };
  const { silenceMs, isLost } = silence;
  if (isLost || silenceMs < rule.lostAfterMs) return { lost: [], held: [], counted: true };
  return db.tx(async (tx) => {
    // Two observers judge one after the other, so that the second one sees what the first has lost.
    await tx.query(LOCK_CLUSTERS);
    const losses = judgeLosses(await judgedClusters(tx), rule);
    await markLost(tx, losses.lost, nowMs);
    for (const subject of losses.lost) {
      const details = { before: { state: "UNREACHABLE" }, after: { state: "LOST" }, silenceMs };
      await appendAudit(tx, { timeMs: nowMs, action: "LoseCluster", subject, details });
    }
    return { ...losses, counted: true };
  });
}

type Silence = { readonly silenceMs: number; readonly isLost: boolean };

/** Null: the record says that the cluster answers, or another process observes it. */
function addSilence(db: Db, { cluster, ms, leaseEpoch }: CountedSilence): Promise<Silence | null> {
  return db.tx(async (tx) => {
    if (!(await holdsLease(tx, { name: observerLease(cluster), epoch: leaseEpoch }))) return null;
    const [row] = await tx.query<Silence>(ADD_SILENCE, [cluster, ms]);
    return row ?? null;
  });
}

/** Once it is lost, only while another one of its kind answers: else the network of this service may be the fault. */
const ADD_SILENCE = `
update clusters c set silence_ms = silence_ms + $2
 where name = $1 and not reachable and unusable is null and forgotten_ms is null
   and (lost_ms is null or exists (
     select from clusters o where o.reachable and o.simulated = c.simulated and o.forgotten_ms is null
   ))
returning silence_ms as "silenceMs", lost_ms is not null as "isLost"`;

/** Notes that a process gets answers from a cluster that its observer does not reach: its silence counts anew. */
export async function noteAnswer(executor: Executor, cluster: string): Promise<void> {
  await executor.query(NOTE_ANSWER, [cluster]);
}

const NOTE_ANSWER = "update clusters set silence_ms = 0 where name = $1 and silence_ms > 0";

/** Counts a silent cluster as lost because an operator knows that it is. */
export function declareLost(db: Db, name: string, nowMs: number): Promise<LossOutcome> {
  return db.tx(async (tx): Promise<LossOutcome> => {
    await tx.query("select 1 from clusters where name = $1 for no key update", [name]);
    const before = await getCluster(tx, name);
    if (before === null) return { kind: "notFound" };
    const state = clusterState(before);
    if (state === "LOST") return { kind: "done", record: before };
    if (state !== "UNREACHABLE") return { kind: "answers", state };
    await markLost(tx, [name], nowMs);
    const details = { before: { state }, after: { state: "LOST" } };
    await appendAudit(tx, { timeMs: nowMs, action: "DeclareClusterLost", subject: name, details });
    return { kind: "done", record: (await getCluster(tx, name)) ?? before };
  });
}

async function markLost(tx: Executor, names: readonly string[], nowMs: number): Promise<void> {
  if (names.length > 0) await tx.query(MARK_LOST, [names, nowMs]);
}

const MARK_LOST = `
update clusters set lost_ms = $2, version = version + 1, lost_fence = (${LAST_FENCE}) where name = any ($1::text[])`;

const LOCK_CLUSTERS = "select 1 from clusters where forgotten_ms is null order by name for no key update";

async function judgedClusters(tx: Executor): Promise<readonly JudgedCluster[]> {
  const clusters = (await listClusters(tx)).filter(({ retired = false }) => !retired);
  const sizes = clusterSizes(clusters);
  const rows = await tx.query<{ name: string; silenceMs: number }>(SILENCES);
  const silences = new Map(rows.map(({ name, silenceMs }) => [name, silenceMs]));
  return clusters.map((cluster) => ({
    name: cluster.name,
    state: clusterState(cluster),
    silenceMs: silences.get(cluster.name) ?? 0,
    size: sizes.get(cluster.name) ?? 0,
    simulated: cluster.simulated,
  }));
}

const SILENCES = `select name, silence_ms as "silenceMs" from clusters where forgotten_ms is null`;
