/** The pods of a job, on their nodes. */
import type { JobPod } from "../../../../src/gen/gangway/v1/job_pb.ts";
import { Table, type TableColumn } from "../../parts/table.tsx";
import { Age } from "../../parts/time.tsx";
import { msOf } from "../../parts/time-text.ts";
import { View } from "../../parts/view.tsx";
import { Link } from "../../router/location.tsx";
import { type JobName, jobPath, withQuery } from "../../router/path.ts";
import { usePods } from "./use-job.ts";

export function PodsSection({ name, hasEnded }: { readonly name: JobName; readonly hasEnded: boolean }) {
  const query = usePods(name, hasEnded);
  const [first] = query.data?.pages ?? [];
  return (
    <View
      query={query}
      what="the pods"
      isEmpty={({ pages }) => (pages[0]?.pods.length ?? 0) === 0}
      empty={<p>The job has no pods: it waits, or nothing of it is left in its clusters.</p>}
      staleReason={first?.staleReason ?? ""}
    >
      {({ pages }) => (
        <>
          <Table
            caption={`Pods on ${first?.cluster ?? ""}`}
            columns={columnsFor(name)}
            rows={pages.flatMap(({ pods }) => pods)}
            keyOf={replicaOf}
          />
          {query.hasNextPage && (
            <button type="button" onClick={() => void query.fetchNextPage()} disabled={query.isFetchingNextPage}>
              {query.isFetchingNextPage ? "Loading …" : "Show more pods"}
            </button>
          )}
        </>
      )}
    </View>
  );
}

function columnsFor(name: JobName): readonly TableColumn<JobPod>[] {
  return [
    { title: "Replica", cell: (pod) => <LogsLink name={name} replica={replicaOf(pod)} /> },
    { title: "Phase", cell: (pod) => <PodPhase pod={pod} /> },
    { title: "Node", cell: nodeOf },
    { title: "Pod", cell: (pod) => pod.name },
    { title: "Attempt", kind: "number", cell: ({ attempt }) => attempt },
    { title: "Restarts", kind: "number", cell: ({ restarts }) => restarts },
    { title: "Age", kind: "number", cell: ageOf },
    { title: "Reason", kind: "long", cell: reasonOf },
  ];
}

function replicaOf({ replicaType, index }: JobPod): string {
  return `${replicaType}/${index}`;
}

function LogsLink({ name, replica }: { readonly name: JobName; readonly replica: string }) {
  return (
    <Link href={withQuery(jobPath(name), { tab: "logs", replica })} title={`Logs of ${replica}`}>
      {replica}
    </Link>
  );
}

function PodPhase({ pod }: { readonly pod: JobPod }) {
  return (
    <>
      <span className={`phase tone-${toneOfPod(pod)}`}>{pod.phase}</span>
      {pod.phase === "Running" && !pod.ready && <span className="muted"> not ready</span>}
    </>
  );
}

function nodeOf({ node, plannedNode }: JobPod) {
  return node === "" && plannedNode !== "" ? <span className="muted">{plannedNode} planned</span> : node;
}

function ageOf({ createTime }: JobPod) {
  const createdMs = msOf(createTime);
  return createdMs === null ? "" : <Age atMs={createdMs} />;
}

function reasonOf({ reason, message, offPlan }: JobPod) {
  return (
    <>
      {reason !== "" && <b>{reason}</b>} {message} {offPlan}
    </>
  );
}

function toneOfPod({ phase, reason }: JobPod): string {
  if (phase === "Failed") return "bad";
  if (phase === "Succeeded") return "good";
  if (phase === "Running") return reason === "" ? "run" : "wait";
  return phase === "Pending" ? "wait" : "quiet";
}
