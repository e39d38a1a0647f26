import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { PodProblem } from "../../core/job/status.ts";
import type { ShownPod } from "../../core/kinds/job-pods.ts";
import type { JobPodSchema, PodProblemSchema } from "../../gen/gangway/v1/job_pb.ts";

export function toProtoProblem({ sinceMs, ...problem }: PodProblem): MessageInitShape<typeof PodProblemSchema> {
  return { ...problem, since: timestampFromMs(sinceMs) };
}

export function toProtoPod({ createTimeMs, ...pod }: ShownPod): MessageInitShape<typeof JobPodSchema> {
  return { ...pod, createTime: createTimeMs === null ? undefined : timestampFromMs(createTimeMs) };
}
