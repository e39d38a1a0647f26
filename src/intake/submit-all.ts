import type { Job } from "../core/job/job.ts";
import type { BatchSubmitOutcome } from "../core/job/request/requests.ts";
import type { ForeseenSubmission } from "../core/plan/model/simulation.ts";
import { invariant } from "../runtime/assert.ts";
import { getOrCreate } from "../runtime/get-or-create.ts";
import { append } from "../runtime/lists.ts";
import { mapInTurns } from "../runtime/map-in-turns.ts";
import { wouldFailAlone } from "../runtime/unavailable-error.ts";
import type { FactsWanted, IntakeStore } from "./ports.ts";
import { type Birth, birthsOf, finish, type JudgingPorts, type Prepared, prepare, type Ready } from "./submit.ts";

/**
 * The number of jobs that share a transaction: enough to make the commit cheap, and few enough to hold row locks
 * briefly.
 */
export const GROUP_MAX = 200;
/** After so many jobs that were validated, others get a turn. */
const PREPARED_IN_A_TURN = 20;

type Item = { readonly submission: ForeseenSubmission; readonly ready: Ready };

/**
 * Validates jobs and makes them durable, each as if it were submitted alone after the jobs before it. All are of one
 * age, and their uids rise in their order: the planner takes those of one priority in it. Jobs whose names
 * and request ids are free share transactions. The others are then submitted one by one.
 */
export async function submitAll(
  ports: JudgingPorts,
  submissions: readonly ForeseenSubmission[],
): Promise<readonly BatchSubmitOutcome[]> {
  const remembering = { ...ports, store: rememberingFacts(ports.store) };
  const answers: BatchSubmitOutcome[] = [];
  let writing: Promise<readonly BatchSubmitOutcome[]> = Promise.resolve([]);
  const births = birthsOf(ports, submissions.length);
  let born = 0;
  for (const group of groupsOf(submissions)) {
    const ofGroup = births.slice(born, born + group.length);
    born += group.length;
    const early = await mapInTurns(group, PREPARED_IN_A_TURN, (one, at) =>
      orFailed(prepare(remembering, one, ofGroup[at])),
    );
    append(answers, await writing);
    const prepared = await prepareRepeated(remembering, { group, births: ofGroup }, early);
    // Without the remembered facts: a job that they are outdated for is checked again.
    writing = submitGroup(ports, group, prepared);
    // The next group is validated meanwhile. If this one fails, that is thrown once it is awaited.
    writing.catch(() => undefined);
  }
  append(answers, await writing);
  return answers;
}

/** A job that is refused may repeat a call of the group before, whose answer it then gets. */
async function prepareRepeated(
  ports: JudgingPorts,
  { group, births }: { readonly group: readonly ForeseenSubmission[]; readonly births: readonly Birth[] },
  prepared: readonly PreparedOrFailed[],
): Promise<readonly PreparedOrFailed[]> {
  const again = prepared.map((one, at) => {
    const submission = group[at];
    const mayRepeat = one.kind === "refused" && submission !== undefined && submission.requestId !== "";
    return mayRepeat ? orFailed(prepare(ports, submission, births[at])) : one;
  });
  return await Promise.all(again);
}

/**
 * Groups neighbors. A dry run and a real submission never share a group: a dry run must see exactly the jobs before it.
 */
function groupsOf(submissions: readonly ForeseenSubmission[]): readonly (readonly ForeseenSubmission[])[] {
  const groups: ForeseenSubmission[][] = [];
  for (const submission of submissions) {
    const group = groups.at(-1);
    const fits = group !== undefined && group.length < GROUP_MAX && group[0]?.validateOnly === submission.validateOnly;
    if (fits) group.push(submission);
    else groups.push([submission]);
  }
  return groups;
}

type PreparedOrFailed = Prepared | Failed;

async function submitGroup(
  ports: JudgingPorts,
  submissions: readonly ForeseenSubmission[],
  prepared: readonly PreparedOrFailed[],
): Promise<readonly BatchSubmitOutcome[]> {
  const items = prepared.flatMap((one, at): Item[] => {
    const submission = submissions[at];
    return one.kind === "ready" && submission !== undefined ? [{ submission, ready: one }] : [];
  });
  const finished = (await createGroup(ports, items)).values();
  const answers: BatchSubmitOutcome[] = [];
  for (const one of prepared) {
    const answer = one.kind === "ready" ? finished.next().value : one.kind === "refused" ? one.answer : one;
    invariant(answer !== undefined, "every submission has an answer");
    answers.push(answer);
  }
  return answers;
}

/** Creates the jobs that can be in one transaction, then submits the rest one by one, in their order. */
async function createGroup(ports: JudgingPorts, items: readonly Item[]): Promise<readonly BatchSubmitOutcome[]> {
  const made = await createFree(ports, items);
  const isNew = (outcome: Made, at: number) =>
    outcome?.kind === "created" && items[at]?.submission.validateOnly === false;
  if (made.some(isNew)) ports.wakePlanner();
  const answers: BatchSubmitOutcome[] = [];
  for (const [at, { submission, ready }] of items.entries()) {
    const outcome = made[at] ?? null;
    if (outcome === null) answers.push(await orFailed(finish(ports, submission, ready)));
    else if (outcome.kind === "failed") answers.push(outcome);
    else
      answers.push({ kind: submission.validateOnly ? "valid" : "created", job: outcome.job, warnings: ready.warnings });
  }
  return answers;
}

type Made = { readonly kind: "created"; readonly job: Job } | Failed | null;

/** Null: submit this job by itself. If the database refuses the transaction because of one job, that is all of them. */
async function createFree(ports: JudgingPorts, items: readonly Item[]): Promise<readonly Made[]> {
  if (items.length === 1) return [null];
  const jobs = items.map(({ submission, ready }) => ({
    job: ready.job,
    sent: submission.job,
    requestId: submission.requestId,
    dryRun: submission.validateOnly,
    call: submission.call ?? null,
  }));
  try {
    return await ports.store.createJobs(jobs);
  } catch (error) {
    return items.map(() => (wouldFailAlone(error) ? { kind: "failed", error } : null));
  }
}

type Failed = { readonly kind: "failed"; readonly error: unknown };

async function orFailed<T>(work: Promise<T>): Promise<T | Failed> {
  try {
    return await work;
  } catch (error) {
    return { kind: "failed", error };
  }
}

/** Wraps the store so that one batch reads the same facts once. Also remembers failed reads. */
function rememberingFacts(store: IntakeStore): IntakeStore {
  const facts = remembering(async (wanted: FactsWanted) => {
    const found = await store.facts(wanted);
    const { priorityClasses: classes } = found;
    const priorityClasses = { ...classes, find: remembering(classes.find) };
    return { ...found, priorityClasses, queueExists: remembering(found.queueExists) };
  });
  return { ...store, facts };
}

function remembering<Asked, T>(ask: (asked: Asked) => Promise<T>): (asked: Asked) => Promise<T> {
  const answers = new Map<string, Promise<T>>();
  return (asked) => {
    const key = JSON.stringify(asked);
    const answer = getOrCreate(answers, key, () => ask(asked));
    return answer;
  };
}
