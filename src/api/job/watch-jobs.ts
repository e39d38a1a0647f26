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
import type { Encoded } from "../rpc/service-definition.ts";
import { jobFilter } from "./convert-sent.ts";
import type { EncodedChanges } from "./encoded-changes.ts";

/**
 * Streams the jobs that pass the filter and their changes until the caller leaves. Throws RESOURCE_EXHAUSTED, with the
 * cursor to resume from, if the client reads too slowly.
 */
export async function* watchJobs(
  { watch, encoded }: { readonly watch: JobWatch; readonly encoded: EncodedChanges },
  request: WatchJobsRequest,
  context: CallContext,
): AsyncIterable<MessageInitShape<typeof WatchJobsResponseSchema> | Encoded> {
  const { cursor } = request;
  if (cursor !== "" && !watch.checkCursor(cursor)) {
    throw invalidFields([{ field: "cursor", message: "must be a cursor that a watch has returned" }]);
  }
  const full = request.view === JobView.FULL;
  for await (const entry of watch.watch({ filter: jobFilter(request.filter), cursor, full }, context.signal)) {
    if (entry.type === "TOO_SLOW") throw tooSlow(entry.cursor);
    if ("job" in entry) yield encoded.encode(entry, full ? "FULL" : "BASIC");
    else yield { type: WatchJobsResponse_Type[entry.type], cursor: entry.cursor };
  }
}
