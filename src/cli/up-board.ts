import { type Job, JobPhase, JobPhaseSchema } from "../gen/gangway/v1/job_pb.ts";
import { type Column, renderTable, type TableOptions } from "./table.ts";

/** How an example should end: the annotation's value is `Succeeded` or `Failed`. */
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

/** What is known of the jobs of a service, as its watch tells it, drawn as a table or told as lines. */
export class Board {
  readonly #jobs = new Map<string, Job>();
  /** The line last told of each job, so that only changes are told. */
  readonly #told = new Map<string, string>();

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

  /** One line for a job if something that a reader sees of it has changed; null if not. */
  line(job: Job): string | null {
    const [name = "", kind = "", , cluster = "", phase = "", pods = "", waiting = ""] = rowOf(job);
    const where = cluster === "" ? "" : ` on ${cluster}`;
    const line = `${kind.toLowerCase()}/${name} ${phase}${where} ${pods}${waiting === "" ? "" : ` (${waiting})`}`;
    if (this.#told.get(keyOf(job)) === line) return null;
    this.#told.set(keyOf(job), line);
    return line;
  }

  /** True once each of these jobs has ended and holds no tokens any more. */
  allEnded(keys: readonly string[]): boolean {
    return keys.every((key) => {
      const status = this.#jobs.get(key)?.status;
      return status !== undefined && ENDED.has(status.phase) && !status.draining;
    });
  }

  /** How these jobs have ended, and whether each did as its annotation expects. */
  summary(keys: readonly string[]): { readonly lines: readonly string[]; readonly asExpected: boolean } {
    const jobs = keys.flatMap((key) => this.#jobs.get(key) ?? []);
    const count = (phase: JobPhase) => jobs.filter((job) => job.status?.phase === phase).length;
    const odd = jobs.filter((job) => !endedAsExpected(job));
    const succeeded = count(JobPhase.SUCCEEDED);
    const failed = count(JobPhase.FAILED);
    return {
      lines: [
        ...odd.map((job) => `not as expected: ${keyOf(job)} ended ${phaseName(job)}, expected ${expectation(job)}`),
        `jobs: ${succeeded} succeeded, ${failed} failed, ${jobs.length - odd.length} as expected`,
      ],
      asExpected: odd.length === 0 && jobs.length === keys.length,
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
