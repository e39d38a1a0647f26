import type { Job } from "../core/job/job.ts";
import type { FieldNote, SentJob } from "../core/job/sent.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../core/pods/pod-config.ts";
import { invariant } from "../runtime/assert.ts";
import { uuidV7 } from "../runtime/uuid-v7.ts";
import { isDnsLabel } from "./check-metadata.ts";
import { describeDifference } from "./describe-difference.ts";
import { generatedName, newJob, SUFFIX_LENGTH } from "./new-job.ts";
import type { CreateOutcome, IntakeFacts, IntakePorts } from "./ports.ts";
import { type Findings, namespaceQueueOf, validate } from "./validate.ts";

export type Submission = {
  readonly job: SentJob;
  /** Empty: none. */
  readonly requestId: string;
  /** Answers as it would, and changes nothing. */
  readonly validateOnly: boolean;
  /** Warnings become errors. */
  readonly strict: boolean;
  readonly createdBy: string;
};

/** How a submission ended; violations and warnings name fields as the request does. */
export type Submitted =
  | {
      readonly kind: "created" | "replayed" | "unchanged" | "valid";
      readonly job: Job;
      readonly warnings: readonly FieldNote[];
    }
  | { readonly kind: "invalid"; readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] }
  | { readonly kind: "unknownNamespace"; readonly namespace: string }
  | { readonly kind: "nameTaken" | "requestIdReused"; readonly difference: string }
  | { readonly kind: "madeAndDeleted"; readonly uid: string }
  | { readonly kind: "beingDeleted" };

/** 27^6 suffixes: five collisions in a row mean that something else is wrong. */
const NAMES_TRIED_MAX = 5;
const UUID_BYTES = 10;
const PROJECT_DEFAULT = "default";

/** A submission that nothing is wrong with, or the answer of one that goes no further. */
export type Prepared =
  | {
      readonly kind: "ready";
      readonly facts: IntakeFacts;
      readonly warnings: readonly FieldNote[];
      /** What it was checked against, and is made by, whatever the platform changes meanwhile. */
      readonly podConfig: PodConfig;
    }
  | { readonly kind: "refused"; readonly answer: Submitted };
export type Ready = Extract<Prepared, { kind: "ready" }>;

/** Validates a job; nothing changes. */
export async function prepare(ports: IntakePorts, submission: Submission): Promise<Prepared> {
  const { job: sent, strict } = submission;
  const facts = await factsOf(ports, sent);
  const podConfig = podConfigOf(ports);
  const { violations, warnings } = await findings({ sent, facts, strict, podConfig });
  if (violations.length > 0) {
    const earlier = await earlierOf(ports, submission, facts);
    if (earlier === null) return { kind: "refused", answer: { kind: "invalid", violations, warnings } };
    return { kind: "refused", answer: toSubmitted(earlier, sent, warnings) };
  }
  if (facts === null || facts.namespace === null) {
    return { kind: "refused", answer: { kind: "unknownNamespace", namespace: sent.namespace } };
  }
  return { kind: "ready", facts, warnings, podConfig };
}

/** Makes a validated job durable, or with `validateOnly` says how that would end. */
export async function finish(ports: IntakePorts, submission: Submission, ready: Ready): Promise<Submitted> {
  const outcome = await create(ports, submission, ready);
  if (outcome.kind === "created" && submission.validateOnly) {
    return { kind: "valid", job: outcome.job, warnings: ready.warnings };
  }
  if (outcome.kind === "created") ports.wakePlanner();
  return toSubmitted(outcome, submission.job, ready.warnings);
}

/** A call that is repeated gets its first answer, whatever has changed since that it is checked against: a queue may be gone. */
async function earlierOf(
  { store }: IntakePorts,
  { job: sent, requestId }: Submission,
  facts: IntakeFacts | null,
): Promise<CreateOutcome | null> {
  if (requestId === "" || facts === null) return null;
  return await store.earlierRequest({ namespace: sent.namespace, requestId, sent });
}

/** Everything that is wrong or odd with a job that is refused anyway; the store is only asked what its namespace and queues are. */
export async function check(ports: IntakePorts, sent: SentJob): Promise<readonly FieldNote[]> {
  const facts = await factsOf(ports, sent);
  return (await findings({ sent, facts, strict: true, podConfig: podConfigOf(ports) })).violations;
}

/** Null where the namespace's name cannot be one: the store is not asked with it. */
async function factsOf(ports: IntakePorts, { namespace }: SentJob): Promise<IntakeFacts | null> {
  return isDnsLabel(namespace) ? await ports.store.facts(namespace) : null;
}

function podConfigOf({ podConfig }: IntakePorts): PodConfig {
  return podConfig === undefined ? PLAIN_POD_CONFIG : podConfig();
}

async function findings(of: {
  readonly sent: SentJob;
  readonly facts: IntakeFacts | null;
  readonly strict: boolean;
  readonly podConfig: PodConfig;
}): Promise<Findings> {
  const { sent, facts, strict, podConfig } = of;
  const { violations, warnings } = await validate(sent, facts, podConfig);
  return strict ? { violations: [...violations, ...warnings], warnings: [] } : { violations, warnings };
}

/** A generated name that is taken says nothing to the caller: another one is tried. */
async function create(ports: IntakePorts, submission: Submission, ready: Ready): Promise<CreateOutcome> {
  const { job: sent, requestId, validateOnly: dryRun } = submission;
  for (let tried = 1; ; tried++) {
    const outcome = await ports.store.createJob({ job: makeJob(ports, submission, ready), sent, requestId, dryRun });
    const takenByChance = sent.name === "" && (outcome.kind === "nameTaken" || outcome.kind === "beingDeleted");
    if (!takenByChance || tried === NAMES_TRIED_MAX) return outcome;
  }
}

/** The record of a validated job, with a uid and, where that is asked for, a name of its own. */
export function makeJob(ports: IntakePorts, { job: sent, createdBy }: Submission, ready: Ready): Job {
  const { facts, podConfig } = ready;
  const kind = kindOf(sent.spec.kind);
  invariant(kind !== undefined, "a validated job has a kind that is served");
  const nowMs = ports.clock.nowMs();
  const { namespace } = facts;
  return newJob(sent, {
    kind,
    project: namespace === null || namespace === "open" ? PROJECT_DEFAULT : namespace.project,
    namespaceQueue: namespaceQueueOf(facts),
    uid: uuidV7(nowMs, ports.randomBytes(UUID_BYTES)),
    name: sent.name || generatedName(sent.generateName, ports.randomBytes(SUFFIX_LENGTH)),
    createdBy,
    podConfig,
    nowMs,
    traceParent: ports.traceParent?.(),
  });
}

function toSubmitted(outcome: CreateOutcome, sent: SentJob, warnings: readonly FieldNote[]): Submitted {
  switch (outcome.kind) {
    case "created":
    case "replayed":
    case "unchanged":
      return { kind: outcome.kind, job: outcome.job, warnings };
    case "nameTaken":
    case "requestIdReused":
      return { kind: outcome.kind, difference: describeDifference(outcome.sent, sent) };
    case "madeAndDeleted":
    case "beingDeleted":
      return outcome;
  }
}
