/** One job: why it is as it is, then its pods, logs, events, and all of it as text. */
import type { Job } from "../../../../src/gen/gangway/v1/job_pb.ts";
import { LiveMark } from "../../live/live-mark.tsx";
import { PhaseBadge } from "../../parts/job-badge.tsx";
import { summaryOf } from "../../parts/job-summary.ts";
import { Ago } from "../../parts/time.tsx";
import { msOf } from "../../parts/time-text.ts";
import { View } from "../../parts/view.tsx";
import { Link } from "../../router/location.tsx";
import { JOBS_PATH, type JobName, jobPath, withQuery } from "../../router/path.ts";
import { CommandsSection } from "./commands-section.tsx";
import { EventsSection } from "./events-section.tsx";
import { Fact } from "./failure-section.tsx";
import { LogsSection } from "./logs-section.tsx";
import { ManifestSection } from "./manifest-section.tsx";
import { PodsSection } from "./pods-section.tsx";
import { useJob, useWhy } from "./use-job.ts";
import { WhySection } from "./why-section.tsx";

const TABS: Readonly<Record<string, string>> = {
  "": "Pods",
  logs: "Logs",
  events: "Events",
  yaml: "YAML",
  commands: "Commands",
};

type JobViewProps = JobName & { readonly search: URLSearchParams };

export function JobView({ namespace, name, search }: JobViewProps) {
  const { query, job, isGone, live } = useJob({ namespace, name });
  return (
    <main className="view job">
      <div className="job-head">
        <h1>
          <Link href={withQuery(JOBS_PATH, { q: `namespace:${namespace}` })} className="muted">
            {namespace}
          </Link>
          <span className="muted"> / </span>
          {name}
        </h1>
        {job !== undefined && (
          <>
            <Standing job={job} />
            <LiveMark state={live} />
          </>
        )}
      </div>
      {isGone && <p className="note warning">The record of this job was removed.</p>}
      <View query={query} what="the job">
        {() => job !== undefined && <JobBody name={{ namespace, name }} job={job} search={search} />}
      </View>
    </main>
  );
}

function Standing({ job }: { readonly job: Job }) {
  const { kind, phase, pods, hasEnded, isSimulated, isDraining } = summaryOf(job);
  return (
    <>
      <PhaseBadge phase={phase} />
      <span>{hasEnded || pods === "-" ? kind : `${pods} pods · ${kind}`}</span>
      {isDraining && <span className="phase tone-wait">draining</span>}
      {isSimulated && <span className="phase tone-wait">simulated: no program runs</span>}
    </>
  );
}

function JobBody({
  name,
  job,
  search,
}: {
  readonly name: JobName;
  readonly job: Job;
  readonly search: URLSearchParams;
}) {
  const { hasEnded } = summaryOf(job);
  const why = useWhy(name, hasEnded);
  const tab = search.get("tab") ?? "";
  return (
    <>
      <section aria-label="Why">
        <View query={why} what="why it is so">
          {(answer) => <WhySection answer={answer} />}
        </View>
      </section>
      <Facts job={job} />
      <nav className="tabs" aria-label="Parts of the job">
        {Object.entries(TABS).map(([word, title]) => (
          <Link
            key={word}
            href={withQuery(jobPath(name), { tab: word })}
            aria-current={word === tab ? "page" : undefined}
          >
            {title}
          </Link>
        ))}
      </nav>
      <Tab tab={tab} name={name} job={job} replica={search.get("replica") ?? ""} />
    </>
  );
}

type TabProps = { readonly tab: string; readonly name: JobName; readonly job: Job; readonly replica: string };

function Tab({ tab, name, job, replica }: TabProps) {
  const { hasEnded } = summaryOf(job);
  switch (tab) {
    case "":
      return <PodsSection name={name} hasEnded={hasEnded} />;
    case "logs":
      return <LogsSection key={replica} name={name} replica={replica} hasEnded={hasEnded} replicas={replicasOf(job)} />;
    case "events":
      return <EventsSection name={name} />;
    case "yaml":
      return <ManifestSection name={name} />;
    case "commands":
      return <CommandsSection name={name} hasEnded={hasEnded} />;
    default:
      return <p className="note">A job has no part {tab}.</p>;
  }
}

function Facts({ job }: { readonly job: Job }) {
  const summary = summaryOf(job);
  const { metadata, status } = job;
  const startedMs = msOf(status?.startTime);
  const endedMs = msOf(status?.completionTime);
  const preemptions = status?.attempts?.preemptions ?? 0;
  const admittedMs = msOf(status?.admission?.admitTime);
  return (
    <dl className="facts">
      <Fact name="Queue">
        <Link href={withQuery(JOBS_PATH, { q: `queue:${summary.queue}` })}>{summary.queue}</Link>
      </Fact>
      <Fact name="Priority">{summary.priority}</Fact>
      <Fact name="Pods at once">
        {status?.minAvailable ?? 0} of {status?.totalReplicas ?? 0}
      </Fact>
      {summary.devices !== "" && <Fact name="GPUs">{summary.devices}</Fact>}
      {summary.cluster !== "" && <Fact name="Cluster">{summary.cluster}</Fact>}
      <Fact name="Owner">{summary.owner}</Fact>
      <Fact name="Submitted">
        <Ago atMs={summary.createdMs} />
      </Fact>
      {admittedMs !== null && (
        <Fact name="Admitted">
          <Ago atMs={admittedMs} />
        </Fact>
      )}
      {startedMs !== null && (
        <Fact name="Started">
          <Ago atMs={startedMs} />
        </Fact>
      )}
      {endedMs !== null && (
        <Fact name="Ended">
          <Ago atMs={endedMs} />
        </Fact>
      )}
      {summary.restarts > 0 && <Fact name="Failures">{summary.restarts}</Fact>}
      {preemptions > 0 && <Fact name="Preempted">{preemptions} ×</Fact>}
      {Object.entries(metadata?.labels ?? {}).map(([key, value]) => (
        <Fact key={key} name={key}>
          {value}
        </Fact>
      ))}
    </dl>
  );
}

function replicasOf({ spec }: Job): Readonly<Record<string, number>> {
  const entries = Object.entries(spec?.replicaSpecs ?? {});
  return Object.fromEntries(entries.map(([type, { replicas }]) => [type, replicas ?? 1]));
}
