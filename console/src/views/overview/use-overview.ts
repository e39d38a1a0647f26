/** The calls behind the overview. Each is made again while the page is looked at. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@tanstack/react-query";
import { JobPhase } from "../../../../src/gen/gangway/v1/job_pb.ts";
import { JobProperty } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { bounded, clusters, jobs, queues } from "../../rpc/clients.ts";

const AGAIN_MS = 5_000;
/** Counting looks at each job that lives. */
const COUNT_AGAIN_MS = 15_000;
export const FAILED_SHOWN = 8;
const DAY_MS = 86_400_000;

export function useClusters() {
  return useQuery({
    queryKey: ["clusters"],
    queryFn: ({ signal }) => clusters.listClusters({}, bounded(signal)),
    refetchInterval: AGAIN_MS,
  });
}

export function useQueues() {
  return useQuery({
    queryKey: ["queues"],
    queryFn: ({ signal }) => queues.listQueues({}, bounded(signal)),
    refetchInterval: AGAIN_MS,
  });
}

/** Jobs that live, by phase. */
export function usePhaseCounts() {
  return useQuery({
    queryKey: ["counts", "phase"],
    queryFn: ({ signal }) => jobs.countJobs({ groupBy: [JobProperty.PHASE] }, bounded(signal)),
    refetchInterval: COUNT_AGAIN_MS,
  });
}

export function useReasonCounts() {
  return useQuery({
    queryKey: ["counts", "reason"],
    queryFn: ({ signal }) =>
      jobs.countJobs({ filter: { phases: [JobPhase.WAITING] }, groupBy: [JobProperty.REASON] }, bounded(signal)),
    refetchInterval: COUNT_AGAIN_MS,
  });
}

/** The jobs that failed last, within a day. */
export function useLastFailed() {
  return useQuery({
    queryKey: ["jobs", "last failed"],
    queryFn: ({ signal }) => {
      const endedSince = timestampFromMs(Date.now() - DAY_MS);
      const filter = { phases: [JobPhase.FAILED], endedSince };
      return jobs.listJobs({ filter, orderBy: "complete_time desc", pageSize: FAILED_SHOWN }, bounded(signal));
    },
    refetchInterval: COUNT_AGAIN_MS,
  });
}
