import { EXPECT_ANNOTATION } from "../../core/kinds/manifest/foreign-settings.ts";
import { type Job, JobPhase, JobPhaseSchema } from "../../gen/gangway/v1/job_pb.ts";
import { clusterCell, qualifiedName } from "../output/job-text.ts";
import { podsCell, reasonCell } from "../output/job-words.ts";
import { type Column, renderTable, type TableOptions } from "../output/table.ts";

/** Few columns: they and the reason fit 80 characters. `gangway list` shows the others. */
const COLUMNS: readonly Column[] = [
  { title: "JOB" },
  { title: "PHASE" },
  { title: "CLUSTER" },
  { title: "PODS", align: "right" },
  { title: "WAITING FOR" },
];
/** A longer name is cut in the table. */
const NAME_SHOWN_MAX = 24;

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

  /**
   * The newest jobs, those that have not ended first; at most `rowsMax`, and then how many others there are. Clusters
   * that are simulated are named below the table: in it, the word would leave no room for reasons.
   */
  table(options: TableOptions, rowsMax: number): readonly string[] {
    const jobs = [...this.#jobs.values()];
    const ended = jobs.filter(hasEnded);
    const byNeed = [...ended, ...jobs.filter((job) => !hasEnded(job))];
    const shown = new Set(byNeed.slice(-rowsMax));
    const rows = jobs.filter((job) => shown.has(job)).map((job) => rowOf(job).map(cutName));
    const others = jobs.length - shown.size;
    const below = [...(others > 0 ? [`and ${others} more`] : []), ...simulatedLines([...shown])];
    return [...renderTable(COLUMNS, rows, options), ...below];
  }

  /** The line of a job if it has changed; null if not. */
  line(job: Job): string | null {
    const [, phase = "", , pods = "", reason = ""] = rowOf(job);
    const cluster = clusterCell(job);
    const where = cluster === "" ? "" : ` on ${cluster}`;
    const line = `${qualifiedName(job)} ${phase}${where} ${pods}${reason === "" ? "" : ` (${reason})`}`;
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
  return [
    job.metadata?.name ?? "",
    phaseName(job),
    job.status?.admission?.cluster ?? "",
    podsCell(job),
    reasonCell(job),
  ];
}

function simulatedLines(jobs: readonly Job[]): readonly string[] {
  const admissions = jobs.flatMap(({ status }) => status?.admission ?? []);
  const simulated = new Set(admissions.filter((one) => one.simulated).map(({ cluster }) => cluster));
  if (simulated.size === 0) return [];
  return [`simulated, no program runs there: ${[...simulated].sort().join(", ")}`];
}

function hasEnded({ status }: Job): boolean {
  return ENDED.has(status?.phase ?? JobPhase.UNSPECIFIED);
}

function cutName(cell: string, at: number): string {
  return at === 0 && cell.length > NAME_SHOWN_MAX ? `${cell.slice(0, NAME_SHOWN_MAX - 1)}…` : cell;
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
