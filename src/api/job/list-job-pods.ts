import type { Job } from "../../core/job/job.ts";
import { recordedPods, type ShownPod, seenPods, shownAdmission } from "../../core/kinds/job-pods.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { ListJobPodsRequest } from "../../gen/gangway/v1/job_service_pb.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { JobPods, JobReads } from "../ports.ts";
import { badPageToken, notFound } from "../rpc/rpc-error.ts";
import { toProtoPod } from "./convert-pods.ts";
import { namespaceOf } from "./convert-sent.ts";
import { plannedNodesOf } from "./planned-nodes.ts";

const PAGE_SIZE_DEFAULT = 100;

type Ports = {
  readonly reads: JobReads;
  readonly pods: JobPods;
  readonly kinds: Registry;
  readonly clock: Clock;
};

/** Lists the pods of a job as its cluster reports them; as they were recorded if the cluster does not answer. */
export async function listJobPods(ports: Ports, request: ListJobPodsRequest, signal: AbortSignal) {
  const which = { namespace: namespaceOf(request), name: request.name };
  // A token is the number of pods on the pages before.
  if (!/^(0|[1-9]\d{0,5})?$/.test(request.pageToken)) throw badPageToken();
  const shown = await ports.reads.getJob(which);
  if (shown === null) throw notFound({ type: "job", name: `${which.namespace}/${which.name}` });
  const { pods, cluster, staleReason } = await podsOf(ports, shown.job, signal);
  const from = Number(request.pageToken);
  const next = from + (request.pageSize || PAGE_SIZE_DEFAULT);
  const nextPageToken = next < pods.length ? String(next) : "";
  return { pods: pods.slice(from, next).map(toProtoPod), nextPageToken, cluster, staleReason };
}

type Listed = { readonly pods: readonly ShownPod[]; readonly cluster: string; readonly staleReason: string };

async function podsOf({ reads, pods, kinds, clock }: Ports, job: Job, signal: AbortSignal): Promise<Listed> {
  const cluster = shownAdmission(job)?.cluster ?? null;
  if (cluster === null) return { pods: [], cluster: "", staleReason: "" };
  const of = { job, kind: kinds.kindOf(job.spec.kind), plan: await plannedNodesOf(reads, job) };
  const seen = await pods.ofJob({ cluster, namespace: job.namespace, jobUid: job.uid }, signal);
  if (seen !== null) return { pods: seenPods(of, seen, clock.nowMs()), cluster, staleReason: "" };
  const staleReason = `cluster ${cluster} does not answer: these are the first pods as they were last recorded`;
  return { pods: recordedPods(of), cluster, staleReason };
}
