import { queueOf } from "../core/job/defaults.ts";
import type { Job } from "../core/job/job.ts";
import { joinNotes } from "../core/job/notes.ts";
import type { JobPriorityClass } from "../core/job/priority-class.ts";
import type {
  CreateOutcome,
  MadeJob,
  OutdatedCheck,
  QueueAccess,
  Submission,
  SubmitOutcome,
} from "../core/job/requests.ts";
import type { FieldNote, SentJob } from "../core/job/sent.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import { invariant } from "../runtime/assert.ts";
import { UnavailableError } from "../runtime/unavailable-error.ts";
import { uuidV7 } from "../runtime/uuid-v7.ts";
import { isDnsLabel } from "./check-metadata.ts";
import { describeDifference } from "./describe-difference.ts";
import { generatedName, newJob, SUFFIX_LENGTH } from "./new-job.ts";
import type { IntakeFacts, IntakePorts, IntakeRules } from "./ports.ts";
import { rulesOf } from "./rules.ts";
import { sizeNotes } from "./size-notes.ts";
import { namespaceQueueOf, queueNamed, validate } from "./validate.ts";
import { warnKind } from "./warn-kind.ts";
import { warnNeverEnding } from "./warn-never-ending.ts";
import { warnPodGroupClass } from "./warn-pod-group-class.ts";
import { warnSimulated } from "./warn-simulated.ts";

/** There are 27^6 suffixes: five collisions in a row have another cause. */
const NAMES_TRIED_MAX = 5;
/** How often a job is checked whose namespace or queue others delete and make again at the same time. */
const CHECKS_MAX = 5;
const UUID_BYTES = 10;
const PROJECT_DEFAULT = "default";

/** A valid submission, or the answer to a refused one. */
export type Prepared =
  | {
      readonly kind: "ready";
      /** The job that is created, unless its generated name is taken. */
      readonly job: Job;
      readonly facts: IntakeFacts;
      readonly priorityClass: JobPriorityClass | null;
      readonly warnings: readonly FieldNote[];
      /** The settings that the job was checked with. It is also made with them, even if they change meanwhile. */
      readonly podConfig: PodConfig;
      /** True: members of templates that Gangway does not know reach the cluster, because no policy judges them. */
      readonly keepsUnknown: boolean;
    }
  | { readonly kind: "refused"; readonly answer: SubmitOutcome };
export type Ready = Extract<Prepared, { kind: "ready" }>;

/** Validates a job. Changes nothing. */
export async function prepare(ports: IntakePorts, submission: Submission): Promise<Prepared> {
  const { job: sent, strict, queueAccess, seesCluster } = submission;
  const facts = await factsOf(ports, sent, queueAccess);
  const rules = rulesOf(ports, facts);
  const { violations, warnings, priorityClass } = await findings({ sent, facts, strict, rules });
  if (violations.length > 0) {
    const earlier = await earlierOf(ports, submission, facts);
    if (earlier === null) return { kind: "refused", answer: { kind: "invalid", violations, warnings } };
    return { kind: "refused", answer: submitOutcome(earlier, sent, warnings) };
  }
  if (facts === null || facts.namespace === null) {
    return { kind: "refused", answer: { kind: "unknownNamespace", namespace: sent.namespace } };
  }
  const queue = queueNamed(sent, facts);
  if (queueAccess?.(queue) === "see") return { kind: "refused", answer: { kind: "deniedQueue", queue } };
  const { podConfig, podPolicy } = rules;
  const keepsUnknown = podPolicy.level === "privileged";
  const job = makeJob(ports, submission, { facts, priorityClass, podConfig, keepsUnknown });
  const tooLarge = sizeNotes(job, ports.kinds);
  if (tooLarge.length > 0) {
    const earlier = await earlierOf(ports, submission, facts);
    if (earlier === null) return { kind: "refused", answer: { kind: "invalid", violations: tooLarge, warnings } };
    return { kind: "refused", answer: submitOutcome(earlier, sent, warnings) };
  }
  // Not findings, which `strict` would refuse: nothing is wrong with the job.
  const simulated = warnSimulated(sent, facts, { kinds: ports.kinds, seesCluster });
  const kept = joinNotes(warnPodGroupClass(sent), warnNeverEnding(sent, ports.kinds), warnKind(sent, ports.kinds));
  const all = joinNotes(warnings, simulated, kept);
  return { kind: "ready", job, facts, priorityClass, warnings: all, podConfig, keepsUnknown };
}

/** Returns the job that a submission would create, or why it would be refused. Changes nothing. */
export async function make(ports: IntakePorts, submission: Submission): Promise<MadeJob> {
  const prepared = await prepare(ports, submission);
  if (prepared.kind === "refused") return prepared;
  return { kind: "made", job: prepared.job, warnings: prepared.warnings };
}

/**
 * Makes a validated job durable. With `validateOnly`: only returns how that would end. If the job's namespace or queue
 * was deleted after the check, checks the job again: it is answered as if it were submitted now.
 */
export async function finish(ports: IntakePorts, submission: Submission, ready: Ready): Promise<SubmitOutcome> {
  let prepared: Prepared = ready;
  for (let checks = 1; checks <= CHECKS_MAX; checks++) {
    if (prepared.kind === "refused") return prepared.answer;
    const outcome = await create(ports, submission, prepared);
    if (outcome.kind !== "outdated") return finished(ports, submission, { outcome, warnings: prepared.warnings });
    prepared = await prepare(ports, submission);
  }
  throw new UnavailableError(`the namespace or the queue of the job was deleted ${CHECKS_MAX} times; retry later`);
}

function finished(
  ports: IntakePorts,
  { job: sent, validateOnly }: Submission,
  { outcome, warnings }: { readonly outcome: CreateOutcome; readonly warnings: readonly FieldNote[] },
): SubmitOutcome {
  if (outcome.kind === "created" && validateOnly) return { kind: "valid", job: outcome.job, warnings };
  if (outcome.kind === "created") ports.wakePlanner();
  return submitOutcome(outcome, sent, warnings);
}

/**
 * Returns the outcome of an earlier call with the same request id. A repeated call gets its first answer even if it
 * would be refused now, for example because its queue was deleted.
 */
async function earlierOf(
  { store }: IntakePorts,
  { job: sent, requestId }: Submission,
  facts: IntakeFacts | null,
): Promise<CreateOutcome | null> {
  if (requestId === "" || facts === null) return null;
  return await store.earlierRequest({ namespace: sent.namespace, requestId, sent });
}

/**
 * Returns all errors of a job that is refused anyway, then its warnings, which are marked. Reads only its namespace and
 * queues from the store.
 */
export async function check(
  ports: IntakePorts,
  { job: sent, queueAccess }: Pick<Submission, "job" | "queueAccess">,
): Promise<readonly FieldNote[]> {
  const facts = await factsOf(ports, sent, queueAccess);
  const { violations, warnings } = await findings({ sent, facts, strict: false, rules: rulesOf(ports, facts) });
  return [...violations, ...warnings.map((warning) => ({ ...warning, isWarning: true }) as const)];
}

/** Returns facts of the namespace. Null: its name is invalid, so the store is not asked. */
async function factsOf(
  ports: IntakePorts,
  { namespace, labels, spec }: SentJob,
  queueAccess: QueueAccess | undefined,
): Promise<IntakeFacts | null> {
  if (!isDnsLabel(namespace)) return null;
  const facts = await ports.store.facts({ namespace, queue: queueOf(spec, { labels, namespaceQueue: null }) });
  if (queueAccess === undefined) return facts;
  const queueExists = async (queue: string) => queueAccess(queue) !== "hidden" && (await facts.queueExists(queue));
  return { ...facts, queueExists };
}

async function findings(of: {
  readonly sent: SentJob;
  readonly facts: IntakeFacts | null;
  readonly strict: boolean;
  readonly rules: IntakeRules;
}): ReturnType<typeof validate> {
  const { sent, facts, strict, rules } = of;
  const found = await validate(sent, facts, rules);
  return strict ? { ...found, violations: joinNotes(found.violations, found.warnings), warnings: [] } : found;
}

/** Creates the job. If a generated name is taken, tries another one. */
async function create(
  ports: IntakePorts,
  submission: Submission,
  ready: Ready,
): Promise<CreateOutcome | OutdatedCheck> {
  const { job: sent, requestId, validateOnly: dryRun, call = null } = submission;
  for (let tried = 1; ; tried++) {
    const job = tried === 1 ? ready.job : makeJob(ports, submission, ready);
    const outcome = await ports.store.createJob({ job, sent, requestId, dryRun, call });
    const takenByChance = sent.name === "" && (outcome.kind === "nameTaken" || outcome.kind === "beingDeleted");
    if (!takenByChance || tried === NAMES_TRIED_MAX) return outcome;
  }
}

/** Makes the record of a validated job, with a new uid and, if requested, a generated name. */
function makeJob(
  ports: IntakePorts,
  { job: sent, createdBy }: Submission,
  ready: Pick<Ready, "facts" | "priorityClass" | "podConfig" | "keepsUnknown">,
): Job {
  const { facts, priorityClass, podConfig, keepsUnknown } = ready;
  const kind = ports.kinds.kindOf(sent.spec.kind);
  invariant(kind !== undefined, "a validated job has a kind that is served");
  const nowMs = ports.clock.nowMs();
  const { namespace } = facts;
  return newJob(sent, {
    kind,
    project: namespace === null || namespace === "open" ? PROJECT_DEFAULT : namespace.project,
    namespaceQueue: namespaceQueueOf(facts),
    priorityClass,
    uid: uuidV7(nowMs, ports.randomBytes(UUID_BYTES)),
    name: sent.name || generatedName(sent.generateName, ports.randomBytes(SUFFIX_LENGTH)),
    createdBy,
    podConfig,
    keepsUnknown,
    nowMs,
    traceParent: ports.traceParent?.(),
  });
}

function submitOutcome(outcome: CreateOutcome, sent: SentJob, warnings: readonly FieldNote[]): SubmitOutcome {
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
    case "tooManyNamespaces":
    case "noRoom":
      return outcome;
  }
}
