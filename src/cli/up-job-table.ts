import { type Job, JobPhase, JobPhaseSchema } from "../gen/gangway/v1/job_pb.ts";
import { type Column, renderTable, type TableOptions } from "./output/table.ts";

/** The annotation says how an example should end: `Succeeded` or `Failed`. */
export const EXPECT_ANNOTATION = "gangway.dev/expect";

const COLUMNS: readonly Column[] = [
  { title: "JOB" },
  { title: "KIND" },
  { title: "QUEUE" },
  { title: "CLUSTER" },
  { title: "PHASE" },
  { title: "READY/MIN/TOTAL", align: "right" },
  { title: "WAITING FOR" },
];

const ENDED: ReadonlySet<JobPhase> = new Set([JobPhase.SUCCEEDED, JobPhase.FAILED, JobPhase.CANCELLED]);

/** The jobs of a service, as its watch reports them. Shows them as a table, or as a line for each change. */
export class JobTable {
  readonly #jobs = new Map<string, Job>();
  /** The last line of each job. A line is shown again only if it has changed. */
  readonly #lastLines = new Map<string, string>();

  set(job: Job): void {
    this.#jobs.set(keyOf(job), job);
  }

  remove(job: Job): void {
    this.#jobs.delete(keyOf(job));
  }

  clear(): void {
    this.#jobs.clear();
  }

  table(options: TableOptions): readonly string[] {
    return renderTable(COLUMNS, [...this.#jobs.values()].map(rowOf), options);
  }

  /** The line of a job if it has changed; null if not. */
  line(job: Job): string | null {
    const [name = "", kind = "", , cluster = "", phase = "", pods = "", waiting = ""] = rowOf(job);
    const where = cluster === "" ? "" : ` on ${cluster}`;
    const line = `${kind.toLowerCase()}/${name} ${phase}${where} ${pods}${waiting === "" ? "" : ` (${waiting})`}`;
    if (this.#lastLines.get(keyOf(job)) === line) return null;
    this.#lastLines.set(keyOf(job), line);
    return line;
  }

  /** True once each of these jobs has ended and holds no tokens. */
  allEnded(keys: readonly string[]): boolean {
    return keys.every((key) => {
      const status = this.#jobs.get(key)?.status;
      return status !== undefined && ENDED.has(status.phase) && !status.draining;
    });
  }

  /** How these jobs have ended, and whether each has ended as its annotation says. */
  summary(keys: readonly string[]): { readonly lines: readonly string[]; readonly asExpected: boolean } {
    const jobs = keys.flatMap((key) => this.#jobs.get(key) ?? []);
    const count = (phase: JobPhase) => jobs.filter((job) => job.status?.phase === phase).length;
    const unexpected = jobs.filter((job) => !endedAsExpected(job));
    const succeeded = count(JobPhase.SUCCEEDED);
    const failed = count(JobPhase.FAILED);
    return {
      lines: [
        ...unexpected.map(
          (job) => `not as expected: ${keyOf(job)} is ${phaseName(job)} instead of ${expectation(job)}`,
        ),
        `jobs: ${succeeded} succeeded, ${failed} failed, ${jobs.length - unexpected.length} as expected`,
      ],
      asExpected: unexpected.length === 0 && jobs.length === keys.length,
    };
  }
}

export function keyOf(job: Job): string {
  return `${job.metadata?.namespace}/${job.metadata?.name}`;
}

function rowOf(job: Job): readonly string[] {
  const { metadata, spec, status } = job;
  const isEnded = ENDED.has(status?.phase ?? JobPhase.UNSPECIFIED);
  const active = Object.values(status?.replicaStatuses ?? {}).reduce((sum, replica) => sum + replica.active, 0);
  return [
    metadata?.name ?? "",
    spec?.kind ?? "",
    spec?.runPolicy?.schedulingPolicy?.queue ?? "",
    status?.admission?.cluster ?? "",
    phaseName(job) + (status?.draining ? " (draining)" : ""),
    `${isEnded ? 0 : active}/${status?.minAvailable ?? 0}/${status?.totalReplicas ?? 0}`,
    status?.waiting === undefined ? "" : `${status.waiting.reason}: ${status.waiting.message}`,
  ];
}

function phaseName(job: Job): string {
  return JobPhaseSchema.value[job.status?.phase ?? JobPhase.UNSPECIFIED]?.localName ?? "";
}

function expectation(job: Job): string {
  return (job.metadata?.annotations[EXPECT_ANNOTATION] ?? "Succeeded").toUpperCase();
}

function endedAsExpected(job: Job): boolean {
  return phaseName(job) === expectation(job);
}
