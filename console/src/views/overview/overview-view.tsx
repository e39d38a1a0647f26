/** What is full, broken or unfair: counts, clusters, queues, why jobs wait, what failed last. */
import type { ReactNode } from "react";
import type { Job } from "../../../../src/gen/gangway/v1/job_pb.ts";
import type { JobCount } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { Bar } from "../../parts/bar.tsx";
import { PhaseBadge } from "../../parts/job-badge.tsx";
import { summaryOf } from "../../parts/job-summary.ts";
import { Table, type TableColumn } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { msOf } from "../../parts/time-text.ts";
import { View } from "../../parts/view.tsx";
import { Link } from "../../router/location.tsx";
import { JOBS_PATH, withQuery } from "../../router/path.ts";
import { type ClusterRow, clusterRows, type QueueRow, queueRows } from "./overview-rows.ts";
import { useClusters, useLastFailed, usePhaseCounts, useQueues, useReasonCounts } from "./use-overview.ts";

export function OverviewView() {
  return (
    <main className="view overview">
      <h1>Overview</h1>
      <Phases />
      <div className="panels">
        <Panel title="Clusters">
          <Clusters />
        </Panel>
        <Panel title="Queues">
          <Queues />
        </Panel>
        <Panel title="Why jobs wait">
          <Reasons />
        </Panel>
        <Panel title="Failed within a day">
          <LastFailed />
        </Panel>
      </div>
    </main>
  );
}

function Panel({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function Phases() {
  const query = usePhaseCounts();
  return (
    <View
      query={query}
      what="the counts"
      isEmpty={({ groups }) => groups.length === 0}
      empty={
        <p>
          No job lives. <Link href={JOBS_PATH}>Show those that have ended</Link>
        </p>
      }
    >
      {({ groups }) => (
        <ul className="counts">
          {groups.map(({ values: [phase = ""], jobs, pods }) => (
            <li key={phase}>
              <Link href={withQuery(JOBS_PATH, { q: `phase:${phase.toLowerCase()}` })}>
                <b>{String(jobs)}</b> <PhaseBadge phase={phase} />
              </Link>
              <span className="muted">{pods === 1n ? "1 pod" : `${pods} pods`}</span>
            </li>
          ))}
        </ul>
      )}
    </View>
  );
}

const CLUSTERS: readonly TableColumn<ClusterRow>[] = [
  {
    title: "Cluster",
    cell: ({ cluster, isSimulated }) => (
      <>
        <Link href={withQuery(JOBS_PATH, { q: `cluster:${cluster}` })}>{cluster}</Link>
        {isSimulated && <span className="muted"> simulated</span>}
      </>
    ),
  },
  { title: "Flavor", cell: ({ flavor }) => flavor },
  { title: "Nodes", kind: "number", cell: ({ nodes }) => nodes },
  {
    title: "Held",
    cell: ({ use }) => (use === null ? "not observed yet" : <Bar {...use} what="GPUs are held" />),
  },
  {
    title: "State",
    kind: "long",
    cell: ({ problems }) =>
      problems.length === 0 ? "takes gangs" : <b className="warning-word">{problems.join(", ")}</b>,
  },
];

function Clusters() {
  const query = useClusters();
  return (
    <View
      query={query}
      what="the clusters"
      isEmpty={({ clusters }) => clusters.length === 0}
      empty={
        <p>
          No cluster is registered, or you may see none. Register one: <code>gangway cluster add --help</code>
        </p>
      }
    >
      {({ clusters }) => (
        <>
          {clusters.every(({ simulated }) => simulated) && (
            <p className="note warning">All clusters are simulated: no program runs.</p>
          )}
          <Table
            columns={CLUSTERS}
            rows={clusterRows(clusters)}
            keyOf={({ cluster, flavor }) => `${cluster} ${flavor}`}
          />
        </>
      )}
    </View>
  );
}

const QUEUES: readonly TableColumn<QueueRow>[] = [
  { title: "Queue", cell: ({ queue }) => <Link href={withQuery(JOBS_PATH, { q: `queue:${queue}` })}>{queue}</Link> },
  { title: "Flavor", cell: ({ flavor }) => flavor },
  { title: "Used of quota", cell: ({ used, quota }) => <Bar held={used} all={quota} what="of its own quota" /> },
  { title: "Waiting", kind: "number", cell: ({ waiting }) => waiting },
  { title: "Admitted", kind: "number", cell: ({ admitted }) => admitted },
  { title: "State", kind: "long", cell: marksOf },
];

function marksOf({ marks, borrowed, lent }: QueueRow): ReactNode {
  const words = marks.map((mark) => {
    if (mark === "borrows") return `borrows ${borrowed}`;
    return mark === "lends" ? `lends ${lent}` : mark;
  });
  return words.length === 0 ? "" : <b className="warning-word">{words.join(", ")}</b>;
}

/** More rows than a person compares; those that stand out come first. */
const QUEUES_SHOWN = 30;

function Queues() {
  const query = useQueues();
  const rows = queueRows(query.data?.queues ?? []);
  const more = rows.length - QUEUES_SHOWN;
  return (
    <View
      query={query}
      what="the queues"
      isEmpty={() => rows.length === 0}
      empty={
        <p>
          No queue has a quota, or you may see none. Make one: <code>gangway queue create --help</code>
        </p>
      }
      hidden={more > 0 ? `${more} more rows, in which less happens: gangway queue list` : ""}
    >
      {() => (
        <Table
          columns={QUEUES}
          rows={rows.slice(0, QUEUES_SHOWN)}
          keyOf={({ queue, flavor }) => `${queue} ${flavor}`}
        />
      )}
    </View>
  );
}

const REASONS: readonly TableColumn<JobCount>[] = [
  {
    title: "Reason",
    cell: ({ values: [reason = ""] }) => (
      <Link href={withQuery(JOBS_PATH, { q: `phase:waiting reason:${reason}`, sort: "waiting" })}>{reason}</Link>
    ),
  },
  { title: "Jobs", kind: "number", cell: ({ jobs }) => String(jobs) },
  { title: "Pods", kind: "number", cell: ({ pods }) => String(pods) },
  {
    title: "Oldest submitted",
    kind: "long",
    cell: ({ oldestCreateTime }) => <Ago atMs={msOf(oldestCreateTime) ?? 0} />,
  },
];

function Reasons() {
  const query = useReasonCounts();
  return (
    <View query={query} what="why jobs wait" isEmpty={({ groups }) => groups.length === 0} empty={<p>No job waits.</p>}>
      {({ groups }) => <Table columns={REASONS} rows={groups} keyOf={({ values }) => values.join(" ")} />}
    </View>
  );
}

const FAILED: readonly TableColumn<Job>[] = [
  { title: "Ended", cell: ({ status }) => <Ago atMs={msOf(status?.completionTime) ?? 0} /> },
  {
    title: "Job",
    cell: (job) => {
      const { href, namespace, name } = summaryOf(job);
      return <Link href={href}>{`${namespace}/${name}`}</Link>;
    },
  },
  { title: "Code", cell: ({ status }) => <b>{status?.failure?.code}</b> },
  { title: "Message", kind: "long", cell: ({ status }) => status?.failure?.message ?? "" },
];

function LastFailed() {
  const query = useLastFailed();
  return (
    <View
      query={query}
      what="the jobs that failed"
      isEmpty={({ jobs }) => jobs.length === 0}
      empty={<p>No job has failed within a day.</p>}
    >
      {({ jobs }) => <Table columns={FAILED} rows={jobs} keyOf={({ metadata }) => metadata?.uid ?? ""} />}
    </View>
  );
}
