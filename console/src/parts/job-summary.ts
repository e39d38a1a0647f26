/** What views show of a job, as plain data. */
import {
  type JobReason,
  jobReason,
  phaseWord,
  podsCell,
  queueOf,
  TERMINAL,
} from "../../../src/cli/output/job-words.ts";
import type { Admission, Job } from "../../../src/gen/gangway/v1/job_pb.ts";
import { jobPath } from "../router/path.ts";
import { msOf } from "./time-text.ts";

export type JobSummary = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly href: string;
  readonly kind: string;
  /** WAITING, RUNNING, … */
  readonly phase: string;
  readonly hasEnded: boolean;
  /** `3/4`; `-` for a job without pods. */
  readonly pods: string;
  readonly why: JobReason | null;
  readonly queue: string;
  readonly priority: number;
  /** `16 × h100`, or `h100` where the amount is not known. Empty: none is held, and none was asked for by name. */
  readonly devices: string;
  readonly cluster: string;
  readonly isSimulated: boolean;
  readonly owner: string;
  readonly createdMs: number;
  readonly restarts: number;
  readonly isDraining: boolean;
};

export function summaryOf(job: Job): JobSummary {
  const { metadata, spec, status } = job;
  const { namespace = "", name = "" } = metadata ?? {};
  const { attempts, admission, phase = 0 } = status ?? {};
  return {
    uid: metadata?.uid ?? "",
    namespace,
    name,
    href: jobPath({ namespace, name }),
    kind: spec?.kind ?? "",
    phase: phaseWord(phase),
    hasEnded: TERMINAL.includes(phase),
    pods: podsCell(job),
    why: jobReason(job),
    queue: queueOf(job),
    priority: spec?.priority ?? 0,
    devices: devicesOf(job),
    cluster: admission?.cluster ?? "",
    isSimulated: admission?.simulated ?? false,
    owner: metadata?.createdBy ?? "",
    createdMs: msOf(metadata?.createTime) ?? 0,
    restarts: (attempts?.user ?? 0) + (attempts?.system ?? 0),
    isDraining: status?.draining ?? false,
  };
}

/** Colours say again what words say. */
export function toneOf(phase: string): "wait" | "run" | "good" | "bad" | "quiet" {
  switch (phase) {
    case "WAITING":
    case "RESTARTING":
      return "wait";
    case "ADMITTED":
    case "STARTING":
    case "RUNNING":
      return "run";
    case "SUCCEEDED":
      return "good";
    case "FAILED":
      return "bad";
    default:
      return "quiet";
  }
}

function devicesOf({ spec, status }: Job): string {
  const held = heldDevices(status?.admission);
  if (held.length > 0) return held.map(({ flavor, amount }) => `${amount} × ${flavor}`).join(", ");
  const named = status?.admission === undefined ? (spec?.placement?.gpuModels ?? []) : flavorsOf(status.admission);
  return named.map(shortFlavor).join(" or ");
}

/** What an admission holds of each flavor; pools of other things than devices are left out. */
function heldDevices(
  admission: Admission | undefined,
): readonly { readonly flavor: string; readonly amount: bigint }[] {
  if (admission === undefined) return [];
  const flavors = flavorsOf(admission);
  const sums = new Map<string, bigint>();
  for (const { pool, amount } of admission.tokens) {
    if (flavors.includes(pool)) sums.set(pool, (sums.get(pool) ?? 0n) + amount);
  }
  return [...sums].map(([pool, amount]) => ({ flavor: shortFlavor(pool), amount }));
}

function flavorsOf({ flavors, roleFlavors }: Admission): readonly string[] {
  const all = [flavors, ...Object.values(roleFlavors).map((role) => role.flavors)].flatMap(Object.values<string>);
  return [...new Set(all)];
}

/** `h100` of `gpu/h100`. */
export function shortFlavor(flavor: string): string {
  return flavor.replace(/^gpu\//, "");
}
