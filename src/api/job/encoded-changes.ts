import type { Job } from "../../core/job/job.ts";
import type { WatchItem } from "../../core/job/request/event-log.ts";
import type { JobView } from "../../core/job/request/list.ts";
import { WatchJobsResponse_Type, WatchJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { getOrCreate } from "../../runtime/get-or-create.ts";
import { Encoded } from "../rpc/service-definition.ts";
import { type KindNames, recordOf, toProtoJob } from "./convert-job.ts";

type ChangeItem = Extract<WatchItem, { readonly job: Job }>;

/**
 * Encodes changes for all streams: a change that a thousand streams send is converted and encoded once for each view.
 * The streams share the job of a change, so its encodings live as long as the job does.
 */
export class EncodedChanges {
  readonly #kinds: KindNames;
  readonly #encoded = new WeakMap<Job, Map<string, Encoded>>();

  constructor(kinds: KindNames) {
    this.#kinds = kinds;
  }

  encode({ type, job, cursor }: ChangeItem, view: JobView): Encoded {
    const ofJob = getOrCreate(this.#encoded, job, () => new Map<string, Encoded>());
    const key = `${type} ${view} ${cursor}`;
    const known = ofJob.get(key);
    if (known !== undefined) return known;
    const response = {
      type: WatchJobsResponse_Type[type],
      cursor,
      job: toProtoJob(recordOf(job), { view, kinds: this.#kinds }),
    };
    const encoded = Encoded.of(WatchJobsResponseSchema, response);
    ofJob.set(key, encoded);
    return encoded;
  }
}
