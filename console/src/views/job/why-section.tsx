/** Why a job waits, where it runs, or why it failed: the first thing on its page. */
import type { ExplainJobResponse } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { Table, type TableColumn } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { Link } from "../../router/location.tsx";
import { FailureSection } from "./failure-section.tsx";
import { type WhyCluster, type WhyHolder, type WhyQuota, whyOf } from "./why.ts";

export function WhySection({ answer }: { readonly answer: ExplainJobResponse }) {
  const why = whyOf(answer);
  return (
    <>
      <p className="summary">{why.summary}</p>
      <p className="muted">
        {why.position > 0 && `Place ${why.position} in its queue. `}
        {why.effectivePriority !== 0 && `Priority ${why.effectivePriority} now. `}
        {why.evaluatedMs !== null && (
          <>
            Judged <Ago atMs={why.evaluatedMs} />.{" "}
          </>
        )}
        {why.retryMs !== null && (
          <>
            Judged again <Ago atMs={why.retryMs} /> at the latest.
          </>
        )}
      </p>
      {[...why.concerns, ...why.problems].map((text) => (
        <p key={text} className="note warning">
          {text}
        </p>
      ))}
      {why.quotas.length > 0 && (
        <Table
          caption="Quotas in the way"
          columns={QUOTAS}
          rows={why.quotas}
          keyOf={({ level, flavor }) => `${level} ${flavor}`}
        />
      )}
      {why.clusters.length > 0 && (
        <Table
          caption="Clusters"
          columns={CLUSTERS}
          rows={why.clusters}
          keyOf={({ cluster, flavor }) => `${cluster} ${flavor}`}
        />
      )}
      <FailureSection answer={answer} />
    </>
  );
}

const QUOTAS: readonly TableColumn<WhyQuota>[] = [
  { title: "Quota", cell: ({ level }) => level },
  { title: "Flavor", cell: ({ flavor }) => flavor },
  { title: "Reason", cell: ({ reason }) => <b>{reason}</b> },
  { title: "Needs", kind: "number", cell: ({ need }) => need },
  { title: "Used", kind: "number", cell: ({ used }) => used },
  { title: "Limit", kind: "number", cell: ({ limit }) => limit },
  { title: "Reserved", kind: "number", cell: ({ reserved }) => reserved },
  { title: "Held by", kind: "long", cell: ({ holders }) => <Holders holders={holders} /> },
];

const CLUSTERS: readonly TableColumn<WhyCluster>[] = [
  { title: "Cluster", cell: ({ cluster }) => cluster },
  { title: "Flavor", cell: ({ flavor }) => flavor },
  { title: "Reason", cell: ({ reason }) => <b>{reason}</b> },
  { title: "Pods that fit", kind: "number", cell: ({ have, need }) => `${have} of ${need}` },
  { title: "In the way", kind: "long", cell: obstaclesText },
];

function obstaclesText({ nearest, obstacles, message }: WhyCluster): string {
  return nearest === "" ? message : `Nearest node ${nearest}: ${obstacles.join("; ")}`;
}

function Holders({ holders }: { readonly holders: readonly WhyHolder[] }) {
  return (
    <ul className="inline">
      {holders.map(({ text, href }) => (
        <li key={text}>{href === null ? text : <Link href={href}>{text}</Link>}</li>
      ))}
    </ul>
  );
}
