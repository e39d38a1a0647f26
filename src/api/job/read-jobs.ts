import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ShownEvent } from "../../core/job/event.ts";
import { concernsOf } from "../../core/job/request/concerns.ts";
import {
  type JobOrder,
  orderProblem,
  PAGE_BYTES_MAX,
  type ShownJob,
  type JobView as View,
} from "../../core/job/request/list.ts";
import { logLinks } from "../../core/kinds/log-links.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { LogTemplate } from "../../core/pods/pod-config.ts";
import {
  type GetJobRequest,
  JobView,
  type ListJobEventsRequest,
  type ListJobsRequest,
  ListJobsResponseSchema,
} from "../../gen/gangway/v1/job_service_pb.ts";
import type { JobReads } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { type CallAccess, namespacePlace } from "../rpc/call-access.ts";
import { badPageToken, invalidFields, notFound } from "../rpc/rpc-error.ts";
import { Encoded } from "../rpc/service-definition.ts";
import { toProtoJob } from "./convert-job.ts";
import { namespaceOf } from "./convert-sent.ts";
import { shownFailureLogs } from "./failure-logs.ts";
import { sightOf, withoutOthers, wordsFor } from "./hide-others.ts";
import { jobFilter } from "./job-filter.ts";
import { plannedNodesOf } from "./planned-nodes.ts";

const PAGE_SIZE_DEFAULT = 100;

export async function getJob(
  {
    reads,
    kinds,
    logTemplates,
  }: { readonly reads: JobReads; readonly kinds: Registry; readonly logTemplates: () => readonly LogTemplate[] },
  request: GetJobRequest,
  { access }: Pick<CallContext, "access">,
) {
  const namespace = namespaceOf(request);
  const which = request.uid === "" ? { namespace, name: request.name } : { uid: request.uid.toLowerCase() };
  const found = await reads.getJob(which);
  // A uid does not tell the namespace before.
  const isSeen = found !== null && access.may("jobs.get", namespacePlace(found.job.namespace));
  if (!isSeen) throw notFound({ type: "job", name: request.uid || `${namespace}/${request.name}` });
  const concerns = concernsOf(found.job, await reads.silentClusters());
  const shown = { ...found, concerns, job: withoutOthers(found.job, sightOf(access)) };
  const kind = kinds.kindOf(shown.job.spec.kind);
  const plan = await plannedNodesOf(reads, shown.job);
  const job = { ...shown, alone: { kind, plan, logs: logLinks(shown.job, kind, logTemplates()) } };
  const view = viewOf(request, shown.job.namespace, access);
  const failureLogs = view === "FULL" ? await shownFailureLogs(reads, shown.job, { access }) : {};
  return { job: toProtoJob(job, { view, kinds }), ...failureLogs };
}

/** Without the permission to see templates, FULL is refused if it is asked for, and else not the default. */
function viewOf({ view }: GetJobRequest, namespace: string, access: CallAccess): View {
  if (view === JobView.BASIC) return "BASIC";
  const at = namespacePlace(namespace);
  if (view === JobView.FULL) access.demand("jobs.secrets", at);
  return access.may("jobs.secrets", at) ? "FULL" : "BASIC";
}

/** The namespaces of the jobs that a list or a watch shows. A view with templates leaves out the others. */
export function shownNamespaces(view: View, access: CallAccess): readonly string[] | null {
  return view === "FULL" ? access.namespaces("jobs.get", "jobs.secrets") : access.namespaces("jobs.get");
}

export async function listJobs(
  { reads, kinds }: { readonly reads: JobReads; readonly kinds: Registry },
  request: ListJobsRequest,
  { access }: Pick<CallContext, "access">,
) {
  const view = request.view === JobView.FULL ? "FULL" : "BASIC";
  const query = {
    filter: await jobFilter(reads, request.filter, { shown: shownNamespaces(view, access), access }),
    order: (request.orderBy || "create_time") as JobOrder,
    after: request.pageToken || null,
  };
  const problem = orderProblem(query.order, query.filter);
  if (problem !== null) throw invalidFields([{ field: "order_by", message: problem }]);
  const page = await reads.listJobs({ ...query, view, pageSize: request.pageSize || PAGE_SIZE_DEFAULT });
  if (page === "badCursor") throw badPageToken();
  const sight = sightOf(access);
  const silent = await reads.silentClusters();
  const shown = page.jobs.map((one) => {
    return { ...one, concerns: concernsOf(one.job, silent), job: withoutOthers(one.job, sight) };
  });
  const jobs = firstThatFit(shown, { view, kinds });
  const next = jobs.length < page.jobs.length ? page.jobs[jobs.length - 1]?.cursor : page.next;
  const rest = { nextPageToken: next ?? "", totalEstimate: page.total };
  return Encoded.joined([...jobs, Encoded.of(ListJobsResponseSchema, rest)]);
}

/** Encodes the first of these jobs: as many as fit into one answer, and at least one. */
function firstThatFit(page: readonly ShownJob[], as: Parameters<typeof toProtoJob>[1]): readonly Encoded[] {
  const fitting: Encoded[] = [];
  let bytes = 0;
  for (const shown of page) {
    const encoded = Encoded.of(ListJobsResponseSchema, { jobs: [toProtoJob(shown, as)] });
    bytes += encoded.bytes.length;
    if (bytes > PAGE_BYTES_MAX && fitting.length > 0) break;
    fitting.push(encoded);
  }
  return fitting;
}

export async function listJobEvents(
  reads: JobReads,
  request: ListJobEventsRequest,
  { access }: Pick<CallContext, "access">,
) {
  const namespace = namespaceOf(request);
  const pageSize = request.pageSize || PAGE_SIZE_DEFAULT;
  const page = await reads.listEvents({ namespace, name: request.name, pageSize, after: request.pageToken || null });
  if (page === "badCursor") throw badPageToken();
  if (page === "notFound") throw notFound({ type: "job", name: `${namespace}/${request.name}` });
  const sight = sightOf(access);
  const hide = ({ message, ...event }: ShownEvent) => ({
    ...event,
    message: sight === null ? message : wordsFor(sight, message),
  });
  return { events: page.events.map(hide).map(toProtoEvent), nextPageToken: page.next ?? "" };
}

function toProtoEvent({ atMs, type, reason, message, version, jobUid }: ShownEvent) {
  return { time: timestampFromMs(atMs), type, reason, message, resourceVersion: String(version), uid: jobUid };
}
