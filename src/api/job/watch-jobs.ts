import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  JobView,
  type WatchJobsRequest,
  WatchJobsResponse_Type,
  type WatchJobsResponseSchema,
} from "../../gen/gangway/v1/job_service_pb.ts";
import type { JobWatch } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { invalidFields, tooSlow } from "../rpc/rpc-error.ts";
import { recordOf, toProtoJob } from "./convert-job.ts";
import { jobFilter } from "./convert-sent.ts";

/**
 * Streams the jobs that pass the filter and their changes until the caller leaves. Throws RESOURCE_EXHAUSTED, with the
 * cursor to resume from, if the client reads too slowly.
 */
export async function* watchJobs(
  watch: JobWatch,
  request: WatchJobsRequest,
  context: CallContext,
): AsyncIterable<MessageInitShape<typeof WatchJobsResponseSchema>> {
  const { cursor } = request;
  if (cursor !== "" && !watch.checkCursor(cursor)) {
    throw invalidFields([{ field: "cursor", message: "must be a cursor that a watch has returned" }]);
  }
  const full = request.view === JobView.FULL;
  for await (const entry of watch.watch({ filter: jobFilter(request.filter), cursor, full }, context.signal)) {
    if (entry.type === "TOO_SLOW") throw tooSlow(entry.cursor);
    const type = WatchJobsResponse_Type[entry.type];
    if (!("job" in entry)) yield { type, cursor: entry.cursor };
    else yield { type, cursor: entry.cursor, job: toProtoJob(recordOf(entry.job), full ? "FULL" : "BASIC") };
  }
}
