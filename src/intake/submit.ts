import type { Job } from "../core/job/job.ts";
import type { JobPriorityClass } from "../core/job/priority-class.ts";
import { queueOf } from "../core/job/request/defaults.ts";
import { joinNotes } from "../core/job/request/notes.ts";
import type {
  CreateOutcome,
  MadeJob,
  OutdatedCheck,
  QueueAccess,
  Submission,
  SubmitOutcome,
} from "../core/job/request/requests.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { kindOfJob } from "../core/kinds/registry.ts";
import type { ForeseenSubmission } from "../core/plan/model/simulation.ts";
import { invariant } from "../runtime/assert.ts";
import { UnavailableError } from "../runtime/unavailable-error.ts";
import { UUID_PLACES, uuidV7 } from "../runtime/uuid-v7.ts";
import { isDnsLabel } from "./check-metadata.ts";
import { describeDifference } from "./describe-difference.ts";
import type { MadeOfTemplates, TemplateJudge } from "./judged-templates.ts";
import { generatedName, newJob, SUFFIX_LENGTH } from "./new-job.ts";
import type { IntakeFacts, IntakePorts } from "./ports.ts";
import { rulesOf } from "./rules.ts";
import { sizeNotes } from "./size-notes.ts";
import { type JobFindings, namespaceQueueOf, queueNamed, validate } from "./validate.ts";
import { variableNotes } from "./variable-notes.ts";
import { warnFit } from "./warn-fit.ts";
import { warnKind } from "./warn-kind.ts";
import { warnLevels } from "./warn-levels.ts";
import { warnNeverEnding } from "./warn-never-ending.ts";
import { warnPodGroupClass } from "./warn-pod-group-class.ts";
import { warnSimulated } from "./warn-simulated.ts";

/** There are 27^6 suffixes: five collisions in a row have another cause. */
const NAMES_TRIED_MAX = 5;
/** How often a job is checked whose namespace or queue others delete and make again at the same time. */
const CHECKS_MAX = 5;
const UUID_BYTES = 10;
const PROJECT_DEFAULT = "default";

export type JudgingPorts = IntakePorts & { readonly templateJudge: TemplateJudge };

/** A valid submission, or the answer to a refused one. */
export type Prepared =
  | {
      readonly kind: "ready";
      /** The job that is created, unless its generated name is taken. */
      readonly job: Job;
      readonly facts: IntakeFacts;
      readonly priorityClass: JobPriorityClass | null;
      readonly warnings: readonly FieldNote[];
      /** The templates as they were judged. The job is made of these, even if settings change meanwhile. */
      readonly made: MadeOfTemplates;
    }
  | { readonly kind: "refused"; readonly answer: SubmitOutcome };
export type Ready = Extract<Prepared, { kind: "ready" }>;

/** The age and the uid of a job, which order it among jobs of its priority. */
export type Birth = Pick<Job, "uid" | "createTimeMs">;

/** Births of jobs that are submitted together, each before the next one, however long each is validated. */
export function birthsOf(ports: JudgingPorts, count: number): readonly Birth[] {
  invariant(count <= UUID_PLACES, "a batch has fewer jobs than a time has places");
  const createTimeMs = ports.clock.nowMs();
  const uid = (place: number) => uuidV7(createTimeMs, ports.randomBytes(UUID_BYTES), place);
  return Array.from({ length: count }, (_, place) => ({ createTimeMs, uid: uid(place) }));
}

function newBirth(ports: JudgingPorts): Birth {
  const createTimeMs = ports.clock.nowMs();
  return { createTimeMs, uid: uuidV7(createTimeMs, ports.randomBytes(UUID_BYTES)) };
}

/** Validates a job. Changes nothing. `birth`: that of the job if it is one of a batch. Omitted: it is born now. */
export async function prepare(ports: JudgingPorts, submission: ForeseenSubmission, birth?: Birth): Promise<Prepared> {
  const { job: sent, queueAccess, seesCluster } = submission;
  const facts = await factsOf(ports, sent, queueAccess);
  const rules = rulesOf(ports, facts);
  const { templateJudge } = ports;
  const { priorityClass, made, ...found } = heeded(submission, await validate(sent, facts, { rules, templateJudge }));
  if (found.violations.length > 0) return await refused(ports, submission, { facts, found });
  if (facts === null || facts.namespace === null) {
    return { kind: "refused", answer: { kind: "unknownNamespace", namespace: sent.namespace } };
  }
  const queue = queueNamed(sent, facts);
  if (queueAccess?.(queue) === "see") return { kind: "refused", answer: { kind: "deniedQueue", queue } };
  invariant(made !== null, "a validated job has a kind that is served");
  const job = makeJob(ports, submission, { facts, priorityClass, made, birth: birth ?? newBirth(ports) });
  const variables = variableNotes(sent, job, ports.kinds);
  const tooLarge = sizeNotes(job, ports.kinds);
  const never = tooLarge.length > 0 ? [] : ((await submission.foresee?.(job, made.ask())) ?? []);
  const levels = await warnLevels(sent, facts, { kind: kindOfJob(ports.kinds, job), seesCluster });
  const ofJob = heeded(submission, { violations: tooLarge, warnings: joinNotes(variables.ignored, levels, never) });
  const warnings = joinNotes(ofJob.warnings, found.warnings);
  if (ofJob.violations.length > 0) {
    return await refused(ports, submission, { facts, found: { violations: ofJob.violations, warnings } });
  }
  // Not findings, which `strict` would refuse: nothing is wrong with the job.
  const simulated = warnSimulated(sent, facts, { kinds: ports.kinds, seesCluster });
  const kept = joinNotes(warnPodGroupClass(sent), warnNeverEnding(sent, ports.kinds), warnKind(sent, ports.kinds));
  const all = joinNotes(warnings, simulated, kept, variables.kept, warnFit(job));
  return { kind: "ready", job, facts, priorityClass, warnings: all, made };
}

/** Refuses a submission, unless it repeats a call that was answered earlier. */
async function refused(
  ports: JudgingPorts,
  submission: ForeseenSubmission,
  { facts, found }: { readonly facts: IntakeFacts | null; readonly found: JobFindings },
): Promise<Prepared> {
  const earlier = await earlierOf(ports, submission, facts);
  const { violations, warnings } = found;
  if (earlier === null) return { kind: "refused", answer: { kind: "invalid", violations, warnings } };
  return { kind: "refused", answer: submitOutcome(earlier, submission.job, warnings) };
}

/** With `strict`, warnings are violations. */
function heeded<Found extends JobFindings>({ strict }: Pick<Submission, "strict">, found: Found): Found {
  return strict ? { ...found, violations: joinNotes(found.violations, found.warnings), warnings: [] } : found;
}

/** Returns the job that a submission would create, or why it would be refused. Changes nothing. */
export async function make(ports: JudgingPorts, submission: ForeseenSubmission): Promise<MadeJob> {
  const prepared = await prepare(ports, submission);
  if (prepared.kind === "refused") return prepared;
  return { kind: "made", job: prepared.job, warnings: prepared.warnings };
}

/**
 * Makes a validated job durable. With `validateOnly`: only returns how that would end. If the job's namespace or queue
 * was deleted after the check, checks the job again: it is answered as if it were submitted now.
 */
export async function finish(
  ports: JudgingPorts,
  submission: ForeseenSubmission,
  ready: Ready,
): Promise<SubmitOutcome> {
  let prepared: Prepared = ready;
  for (let checks = 1; checks <= CHECKS_MAX; checks++) {
    if (prepared.kind === "refused") return prepared.answer;
    const outcome = await create(ports, submission, prepared);
    if (outcome.kind !== "outdated") return finished(ports, submission, { outcome, warnings: prepared.warnings });
    prepared = await prepare(ports, submission, prepared.job);
  }
  throw new UnavailableError(`the namespace or the queue of the job was deleted ${CHECKS_MAX} times; retry later`);
}

function finished(
  ports: JudgingPorts,
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
  ports: JudgingPorts,
  { job: sent, queueAccess }: Pick<Submission, "job" | "queueAccess">,
): Promise<readonly FieldNote[]> {
  const facts = await factsOf(ports, sent, queueAccess);
  const rules = rulesOf(ports, facts);
  const { violations, warnings } = await validate(sent, facts, { rules, templateJudge: ports.templateJudge });
  return [...violations, ...warnings.map((warning) => ({ ...warning, isWarning: true }) as const)];
}

/** Returns facts of the namespace. Null: its name is invalid, so the store is not asked. */
async function factsOf(
  ports: JudgingPorts,
  { namespace, labels, spec }: SentJob,
  queueAccess: QueueAccess | undefined,
): Promise<IntakeFacts | null> {
  if (!isDnsLabel(namespace)) return null;
  const facts = await ports.store.facts({ namespace, queue: queueOf(spec, { labels, namespaceQueue: null }) });
  if (queueAccess === undefined) return facts;
  const queueExists = async (queue: string) => queueAccess(queue) !== "hidden" && (await facts.queueExists(queue));
  return { ...facts, queueExists };
}

/** Creates the job. If a generated name is taken, tries another one. */
async function create(
  ports: JudgingPorts,
  submission: ForeseenSubmission,
  ready: Ready,
): Promise<CreateOutcome | OutdatedCheck> {
  const { job: sent, requestId, validateOnly: dryRun, call = null } = submission;
  for (let tried = 1; ; tried++) {
    const job = tried === 1 ? ready.job : makeJob(ports, submission, { ...ready, birth: ready.job });
    const asked = ready.made.ask();
    const outcome = await ports.store.createJob({ job, asked, sent, requestId, dryRun, call });
    const takenByChance = sent.name === "" && (outcome.kind === "nameTaken" || outcome.kind === "beingDeleted");
    if (!takenByChance || tried === NAMES_TRIED_MAX) return outcome;
  }
}

/** Makes the record of a validated job, with a generated name if one is requested. */
function makeJob(
  ports: JudgingPorts,
  { job: sent, createdBy }: Submission,
  { facts, priorityClass, made, birth }: Pick<Ready, "facts" | "priorityClass" | "made"> & { readonly birth: Birth },
): Job {
  const kind = ports.kinds.kindOf(sent.spec.kind);
  invariant(kind !== undefined, "a validated job has a kind that is served");
  const { namespace } = facts;
  return newJob(sent, {
    kind,
    project: namespace === null || namespace === "open" ? PROJECT_DEFAULT : namespace.project,
    namespaceQueue: namespaceQueueOf(facts),
    priorityClass,
    uid: birth.uid,
    name: sent.name || generatedName(sent.generateName, ports.randomBytes(SUFFIX_LENGTH)),
    createdBy,
    templates: made.templates,
    nowMs: birth.createTimeMs,
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
