/** Filters of requests, in the words of core. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { JobFilter } from "../../core/job/request/filter.ts";
import type * as servicePb from "../../gen/gangway/v1/job_service_pb.ts";
import type { JobReads } from "../ports.ts";
import type { CallAccess } from "../rpc/call-access.ts";
import { invalidFields } from "../rpc/rpc-error.ts";
import { phaseFromProto } from "./convert-enums.ts";

type SentFilter = servicePb.JobFilter | undefined;

/**
 * The filter of a request, on the jobs of the namespaces that are shown to its caller: null for all. Looks up the
 * queues below a queue, and the jobs on a node.
 */
export async function jobFilter(
  reads: Pick<JobReads, "queuesBelow" | "jobsOnNode">,
  sent: SentFilter,
  { shown, access }: { readonly shown: readonly string[] | null; readonly access: CallAccess },
): Promise<JobFilter> {
  const filter = watchedFilter(sent, shown);
  const { queueSubtree = "", reasons = [], flavor = "", node = "" } = sent ?? {};
  const subtree = queueSubtree === "" ? null : await seenSubtree(reads, queueSubtree, access);
  const uids = node === "" ? null : await reads.jobsOnNode({ node, cluster: filter.cluster ?? "" });
  return { ...filter, queues: both(filter.queues, subtree), reasons, flavor, uids };
}

/** A queue and those below it that the caller may see. The queue itself may be named as in any filter. */
async function seenSubtree(reads: Pick<JobReads, "queuesBelow">, queue: string, access: CallAccess) {
  const below = await reads.queuesBelow(queue);
  return [queue, ...below.filter((name) => access.may("queues.get", { kind: "queue", name }))];
}

/** The members of a filter that a watch can follow. */
const UNWATCHED = ["queueSubtree", "reasons", "flavor", "node"] as const;
const FIELDS = { queueSubtree: "queue_subtree", reasons: "reasons", flavor: "flavor", node: "node" } as const;

/** Throws for a filter by facts whose changes the event log does not have. */
export function requireWatchable(sent: SentFilter): void {
  const set = UNWATCHED.filter((member) => (sent?.[member] ?? "").length > 0);
  const message = `must not be set: a watch filters by none of ${Object.values(FIELDS).join(", ")}; use ListJobs`;
  if (set.length > 0) throw invalidFields(set.map((member) => ({ field: `filter.${FIELDS[member]}`, message })));
}

/** The part of a filter that a watch can follow. Here an empty namespace means all namespaces. */
export function watchedFilter(filter: SentFilter, shown: readonly string[] | null): JobFilter {
  return {
    namespace: filter?.namespace ?? "",
    namespaces: both(listed(filter?.namespaces), shown),
    names: filter?.names ?? [],
    namePrefix: filter?.namePrefix ?? "",
    kinds: filter?.kinds ?? [],
    phases: (filter?.phases ?? []).flatMap((phase) => phaseFromProto(phase) ?? []),
    queue: filter?.queue ?? "",
    queues: listed(filter?.queues),
    cluster: filter?.cluster || null,
    labels: filter?.labels ?? {},
    createdBy: filter?.createdBy ?? [],
    project: filter?.project ?? "",
    createdSinceMs: firstMs(filter?.createdSince),
    createdBeforeMs: firstMs(filter?.createdBefore),
    endedSinceMs: firstMs(filter?.endedSince),
  };
}

/** Null: an empty list selects everything. */
function listed(names: readonly string[] = []): readonly string[] | null {
  return names.length === 0 ? null : names;
}

/** The names that are in both lists. Null is the list of all names. */
function both(one: readonly string[] | null = null, other: readonly string[] | null): readonly string[] | null {
  if (one === null || other === null) return one ?? other;
  const others = new Set(other);
  return one.filter((name) => others.has(name));
}

/** The first whole millisecond of this time or later, as jobs are timed. */
function firstMs(time: Timestamp | undefined): number | null {
  return time === undefined ? null : Number(time.seconds) * 1_000 + Math.ceil(time.nanos / 1_000_000);
}
