import type { Job } from "../job/job.ts";
import { board, type Desk, grow } from "./board.ts";
import { flavoredResources } from "./flavors.ts";
import { openLines, type QueueLine } from "./order.ts";
import type { PlaceInLine, Plan, PlannedAdmission, Refusal } from "./plan-types.ts";
import { QuotaBook } from "./quota-book.ts";
import { refuse } from "./refuse.ts";
import { openRooms } from "./rooms.ts";
import type { PlanSnapshot } from "./snapshot.ts";

/**
 * Decides from the snapshot and the time alone which gangs board now and where, which grow, and why each of the others waits. Every
 * waiting job is admitted or refused exactly once; the same inputs give the same plan.
 */
export function plan(snapshot: PlanSnapshot, nowMs: number): Plan {
  // 1. What is there: quotas with what is used of them, clusters with what is free.
  const book = new QuotaBook(snapshot);
  const rooms = new Map(openRooms(snapshot));
  const { lastAdmissions } = snapshot;
  const desk: Desk = { book, rooms, resources: flavoredResources(snapshot), lastAdmissions, nowMs };

  // 2. Who comes when: a line for each queue; the queue that uses least of its quota has the next turn.
  const lines = openLines(snapshot);
  const admissions: PlannedAdmission[] = [];
  const refusals: Refusal[] = [];
  let inLine: PlaceInLine | null = null;
  for (let line = nextLine(lines, book); line !== null; line = nextLine(lines, book)) {
    // 3. What runs with fewer members than it should grows before anything new of its queue boards.
    const growing = line.growing.shift();
    if (growing !== undefined) {
      const grown = grow(growing, desk);
      if (grown !== null) admissions.push(grown);
      continue;
    }
    // 4. Its first gang boards if a quota, a flavor and a cluster have room for it; else it is told why not.
    const job = line.waiting.shift();
    if (job === undefined) continue;
    const decided = board(job, desk);
    if ("kind" in decided) {
      admissions.push(decided);
      continue;
    }
    // 5. The first that waits for tokens alone stands in their line, and those behind it leave room for it.
    if (decided.inLine !== null) {
      inLine = placeOf(job, decided.inLine, admissions.length);
      book.reserve(job, decided.inLine.lines);
    }
    // 6. Nobody passes the head of a strict queue, unless it only waits for itself.
    refusals.push(decided.refusal, ...behind(job, decided.refusal, line));
  }
  // 7. What room is left is for elastic gangs; not past the head of a strict queue, whose line ends with it.
  const stretched = lines.flatMap(({ stretching }) => stretching.flatMap((job) => grow(job, desk) ?? []));
  admissions.push(...stretched);
  return { admissions, inLine, refusals, replanAtMs: earliest(refusals) };
}

function placeOf(job: Job, planned: PlannedAdmission, after: number): PlaceInLine {
  return { planned, priority: job.spec.priority, sinceMs: job.createTimeMs, after };
}

/** The line whose queue uses the smallest share of its quota, then by name; null once all are empty. */
function nextLine(lines: readonly QueueLine[], book: QuotaBook): QueueLine | null {
  let next: { line: QueueLine; share: number } | null = null;
  for (const line of lines) {
    if (line.growing.length + line.waiting.length === 0) continue;
    const share = book.share(line.queue);
    if (next === null || share < next.share) next = { line, share };
  }
  return next?.line ?? null;
}

/** A head that waits for nothing that the others could take from it is passed. */
const OWN_REASONS = ["Suspended", "Backoff", "Draining", "WaitingForCache"];

/** Refuses the rest of a strict line whose head cannot go; takes nobody from any other line. */
function behind(head: Job, refused: Refusal, line: QueueLine): readonly Refusal[] {
  if (!line.strict || OWN_REASONS.includes(refused.reason)) return [];
  const message = `waits behind ${head.namespace}/${head.name}, the head of the strict queue ${line.queue}`;
  line.stretching.splice(0);
  return line.waiting.splice(0).map((job) => refuse(job, { reason: "BehindHead", message }));
}

function earliest(refusals: readonly Refusal[]): number | null {
  const times = refusals.flatMap((refusal) => refusal.retryAtMs ?? []);
  return times.reduce<number | null>((least, atMs) => (least === null ? atMs : Math.min(least, atMs)), null);
}
