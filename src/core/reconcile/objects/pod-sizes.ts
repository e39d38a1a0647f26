/**
 * Measures the pods of a job before they are built. Placeholders, and the addresses that a kind gives to each member,
 * can make pods many times larger than the job. A job is measured when it is submitted and when it grows, each pod
 * again before it is built.
 */
import { charsLeft } from "../../../runtime/chars-left.ts";
import { JsonMeter } from "../../../runtime/json-bytes.ts";
import { asksInterruptible } from "../../job/interruptible.ts";
import type { Job } from "../../job/job.ts";
import { replicaName } from "../../job/names.ts";
import type { FieldError } from "../../job/request/sent.ts";
import { totalReplicas } from "../../job/spec.ts";
import type { Kind } from "../../kinds/kind.ts";
import type { PodReplica } from "../../pods/build/build-pod.ts";
import { largestText } from "../../pods/build/largest-text.ts";
import { POD_BYTES_MAX } from "../../pods/pod-size.ts";
import { type BuildTarget, type PodSlot, podBytes, podReplica } from "./build-objects.ts";

/**
 * The most bytes of all pods of a job. A TFJob of 4,000 workers reaches it, because each pod has the addresses of all;
 * other jobs are far below. A cluster could not hold more of one job.
 */
export const JOB_BYTES_MAX = 1024 ** 3;
/** The most bytes of pods that one step builds, or one pod. The next step goes on. It takes a fraction of a second. */
export const STEP_BYTES_MAX = 32 * 1024 ** 2;

/** Longer than any number of an admission or attempt. */
const NUMBER_MAX = 2 ** 31 - 1;
/** The longest names that an operator would set. They are not known where jobs are submitted. */
const LONGEST = { installation: "x".repeat(63), image: "x".repeat(1_024) };

/** A small job needs no measure: without placeholders and with so few bytes it stays far below all limits. */
const SMALL_SPEC_CHARS = 16 * 1024;
const SMALL_REPLICAS = 100;

/**
 * The errors of a job whose pods would be too large, before any of them is built. Paths are those of the API. Counts
 * everything but the node labels of flavors and the planned nodes. A kind from outside is asked for its first and its
 * last member only.
 */
export function sizeErrors(job: Job, kind: Kind, isOwn: boolean): readonly FieldError[] {
  if (isOwn && isSmall(job)) return [];
  const meter = new JsonMeter();
  const target: BuildTarget = {
    job,
    kind,
    admission: { number: NUMBER_MAX, cluster: "", members: membersOf(job), flavorLabels: {} },
    build: {
      installation: LONGEST.installation,
      clusterDomain: "",
      initImage: LONGEST.image,
      kubectlImage: LONGEST.image,
    },
    // The one that adds most to a pod.
    scheduler: "volcano",
  };
  let totalBytes = 0;
  for (const [role, { replicas }] of Object.entries(job.spec.replicaSpecs)) {
    if (replicas === 0) continue;
    const largest = largestPod(target, { role, replicas }, meter);
    const path = `spec.replicaSpecs.${role}`;
    if (largest.bytes > POD_BYTES_MAX) return [tooLargePod(largest.replica, largest.bytes, `${path}.template`)];
    totalBytes += largest.bytes * replicas;
  }
  if (totalBytes <= JOB_BYTES_MAX) return [];
  const message = `makes pods of up to ${totalBytes} bytes of JSON in all: at most ${JOB_BYTES_MAX} are allowed`;
  return [{ path: "spec.replicaSpecs", message }];
}

function isSmall({ spec }: Job): boolean {
  return totalReplicas(spec) <= SMALL_REPLICAS && charsLeft(spec, SMALL_SPEC_CHARS, charsOf) >= 0;
}

/** Texts with placeholders may become much longer. */
function charsOf(text: string): number {
  return text.includes("{{") ? Number.POSITIVE_INFINITY : text.length;
}

function membersOf({ spec }: Job): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(spec.replicaSpecs).map(([role, { replicas }]) => [role, replicas]));
}

type MeasuredPod = { readonly replica: PodReplica; readonly bytes: number };

/** The largest pod of a replica type: the first one may lead the others, and the last one has the longest number. */
function largestPod(
  target: BuildTarget,
  { role, replicas }: { readonly role: string; readonly replicas: number },
  meter: JsonMeter,
): MeasuredPod {
  const { job } = target;
  const { system } = job.status.attempts;
  const later = { ...job.status, attempts: { ...job.status.attempts, system: Math.max(system, NUMBER_MAX) } };
  const jobs = asksInterruptible(job.spec, role) ? [job, { ...job, status: later }] : [job];
  const measured = jobs.flatMap((one) =>
    [...new Set([0, replicas - 1])].map((index): MeasuredPod => {
      const slot: PodSlot = { role, index, name: replicaName(job.name, role, index), attempt: NUMBER_MAX };
      const replica = podReplica({ ...target, job: one }, slot);
      return { replica, bytes: podBytes({ ...target, job: one }, replica, meter) };
    }),
  );
  return measured.reduce((largest, one) => (one.bytes > largest.bytes ? one : largest));
}

function tooLargePod(replica: PodReplica, bytes: number, path: string): FieldError {
  const text = largestText(replica);
  const most = text === null ? "" : `, ${text.bytes} of them here, with its placeholders filled in`;
  return {
    path: text === null ? path : `${path}.${text.path}`,
    message: `makes pods of ${bytes} bytes of JSON${most}: at most ${POD_BYTES_MAX} are allowed`,
  };
}

/** The pods that a step may create. `more`: others wait for the next step. */
export type PodChoice =
  | { readonly kind: "create"; readonly replicas: readonly PodReplica[]; readonly more: boolean }
  | { readonly kind: "tooLarge"; readonly name: string; readonly bytes: number };

/** A pod that only the names of its planned nodes make too large is made without them. */
function steeredIfSmall(target: BuildTarget, slot: PodSlot, meter: JsonMeter): MeasuredPod {
  const replica = podReplica(target, slot);
  const bytes = podBytes(target, replica, meter);
  if (bytes <= POD_BYTES_MAX || replica.place === null) return { replica, bytes };
  const bare = { ...replica, place: null };
  return { replica: bare, bytes: podBytes(target, bare, meter) };
}

/** Chooses the first pods that fit into a step. Builds none of them. */
export function choosePods(target: BuildTarget, slots: readonly PodSlot[]): PodChoice {
  const meter = new JsonMeter();
  const replicas: PodReplica[] = [];
  let sum = 0;
  for (const slot of slots) {
    const { replica, bytes } = steeredIfSmall(target, slot, meter);
    if (bytes > POD_BYTES_MAX) return { kind: "tooLarge", name: slot.name, bytes };
    sum += bytes;
    if (sum > STEP_BYTES_MAX && replicas.length > 0) return { kind: "create", replicas, more: true };
    replicas.push(replica);
  }
  return { kind: "create", replicas, more: false };
}
