import type { MessageInitShape } from "@bufbuild/protobuf";
import type { WatchItem } from "../../core/job/request/event-log.ts";
import type { JobView as View } from "../../core/job/request/list.ts";
import {
  JobView,
  type WatchJobsRequest,
  WatchJobsResponse_Type,
  type WatchJobsResponseSchema,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import type { JobWatch } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { invalidFields, tooSlow } from "../rpc/rpc-error.ts";
import type { Encoded } from "../rpc/service-definition.ts";
import type { EncodedChanges } from "./encoded-changes.ts";
import { sightOf, withoutOthers } from "./hide-others.ts";
import { requireWatchable, watchedFilter } from "./job-filter.ts";
import { shownNamespaces } from "./read-jobs.ts";

type WatchPorts = { readonly watch: JobWatch; readonly encoded: EncodedChanges };
type Response = MessageInitShape<typeof WatchJobsResponseSchema> | Encoded;

/**
 * Streams the jobs that pass the filter and their changes until the caller leaves. Throws RESOURCE_EXHAUSTED, with the
 * cursor to resume from, if the client reads too slowly. Starts again after a GAP when the caller may see other
 * namespaces than before.
 */
export async function* watchJobs(
  ports: WatchPorts,
  request: WatchJobsRequest,
  context: CallContext,
): AsyncIterable<Response> {
  let { cursor } = request;
  if (cursor !== "" && !ports.watch.checkCursor(cursor)) {
    throw invalidFields([{ field: "cursor", message: "must be a cursor that a watch has returned" }]);
  }
  requireWatchable(request.filter);
  const view = request.view === JobView.FULL ? "FULL" : "BASIC";
  while (!context.signal.aborted) {
    const namespaces = shownNamespaces(view, context.access);
    using shown = linkedController(context.signal);
    const moved = untilOthersShown(namespaces, view, context, shown.signal).then((isMoved) => {
      shown.abort();
      return isMoved;
    });
    const filter = watchedFilter(request.filter, namespaces);
    const items = ports.watch.watch({ filter, cursor, full: view === "FULL" }, shown.signal);
    try {
      for await (const item of items) {
        if (shown.signal.aborted) break;
        yield response(ports.encoded, item, view, context);
      }
    } finally {
      shown.abort();
    }
    if (!(await moved)) return;
    cursor = "";
    yield { type: WatchJobsResponse_Type.GAP, cursor: "" };
  }
}

function response(encoded: EncodedChanges, item: WatchItem, view: View, { access }: CallContext): Response {
  if (item.type === "TOO_SLOW") throw tooSlow(item.cursor);
  if (!("job" in item)) return { type: WatchJobsResponse_Type[item.type], cursor: item.cursor };
  return encoded.encode({ ...item, job: withoutOthers(item.job, sightOf(access)) }, view);
}

/** Resolves with true once the caller may see other namespaces than these; with false when the signal is aborted. */
async function untilOthersShown(
  before: readonly string[] | null,
  view: View,
  { access }: CallContext,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    await access.changed(signal);
    if (signal.aborted) break;
    const now = shownNamespaces(view, access);
    if (now?.join() !== before?.join()) return true;
  }
  return false;
}
