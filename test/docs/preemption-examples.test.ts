/** Runs the examples of docs/preemption.md on the planner's state: it preempts whom the page says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memberCount } from "../../src/core/job/roles.ts";
import { RefusalMessages } from "../../src/core/plan/explain/refusal-messages.ts";
import { addedMembers } from "../../src/core/plan/model/gang.ts";
import type { PlannedVictim } from "../../src/core/plan/model/preemption.ts";
import { DEFAULT_POLICY, FAIR_SHARING_STRATEGIES, type QueuePolicy } from "../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../src/core/plan/model/snapshot.ts";
import { FLAVOR, RESOURCE, VirtualFleet } from "../support/virtual-fleet.ts";
import { page, type Row, tablesOf } from "./pages.ts";

const MINUTE_MS = 60_000;
const NOW_MS = 1_700_000_000_000;
const ROOT = "ml";

type Example = {
  readonly title: string;
  readonly queues: readonly Row[];
  readonly gangs: readonly Row[];
  readonly nominee: string;
  /** The victims with their reasons, as the page says it. */
  readonly said: string;
  /** How the message for the nominee ends. Null: the page does not say it. */
  readonly waits: string | null;
};

const examples = page("docs/preemption.md")
  .text.split(/^#{2,3} /m)
  .flatMap(exampleOf);

test("the page has examples, of which some say why the nominee waits", () => {
  assert.ok(examples.length >= 8, `${examples.length}`);
  assert.ok(examples.filter(({ waits }) => waits !== null).length >= 3);
});

for (const { title, queues, gangs, nominee, said, waits } of examples) {
  test(`an example of preemption: ${title}`, () => {
    const fleet = new VirtualFleet([rootOf(queues), ...queues.filter(isLeaf).map(leafOf)]);
    for (const gang of gangs.filter(runs)) {
      fleet.submit(gangOf(gang));
      const sinceMs = NOW_MS - minutes(gang["runs for"]);
      const { admissions } = fleet.state.round(sinceMs, { admissionsMax: 1 });
      assert.deepEqual(
        admissions.map(({ jobUid }) => jobUid),
        [gang["gang"]],
        "the page's gangs could run beside each other",
      );
      for (const admission of admissions) fleet.admit(admission, sinceMs);
    }
    for (const gang of gangs.filter((one) => !runs(one))) fleet.submit(gangOf(gang));
    let message = "";
    const { admissions, preemptions } = fleet.state.round(
      NOW_MS,
      { admissionsMax: 10 },
      ({ refused }, { fleet: known, pendingUse }) => {
        const messages = new RefusalMessages(known, { callers: [], admissions: [], pendingUse });
        for (const { gang, cause } of refused.filter((one) => one.gang.uid === nominee)) {
          message = messages.refusalOf(gang, cause).message;
        }
      },
    );
    assert.deepEqual(admissions, []);
    const victims = preemptions
      .filter(({ planned }) => planned.jobUid === nominee)
      .flatMap((one) => one.victims.map(wordsOf));
    assert.equal(victims.length === 0 ? "nobody" : victims.sort().join(", "), said);
    if (waits !== null) assert.ok(message.endsWith(`; ${waits}`), message);
  });
}

function wordsOf({ jobUid, reason, members, keeps }: PlannedVictim): string {
  const count = memberCount(addedMembers(keeps ?? members, members));
  return `${count === 0 ? "" : `${count} members of `}${jobUid} (${reason})`;
}

function exampleOf(section: string): readonly Example[] {
  const [, nominee, said] = /^Preempted for (\w+): (.*)\.$/m.exec(section) ?? [];
  if (nominee === undefined || said === undefined) return [];
  const [queues = [], gangs = []] = tablesOf(section);
  const [, quoted] = /^It waits, and the time is 22:13:20: "([^"]*)"\.$/m.exec(section) ?? [];
  const waits = quoted?.replace(/\s+/g, " ") ?? null;
  return [{ title: section.split("\n")[0] ?? "", queues, gangs, nominee, said, waits }];
}

function runs(gang: Row): boolean {
  return gang["runs for"] !== "waits";
}

function minutes(text = ""): number {
  const found = /^(\d+) min$/.exec(text);
  assert.ok(found, `"${text}" is a number of minutes`);
  return Number(found[1]) * MINUTE_MS;
}

function times(text: string): number {
  const found = /^(\d+) times$/.exec(text);
  assert.ok(found, `"${text}" is a number of times`);
  return Number(found[1]);
}

function gangOf(gang: Row) {
  const ageMs = runs(gang) ? minutes(gang["runs for"]) : 0;
  return {
    uid: gang["gang"] ?? "",
    queue: gang["queue"] ?? "",
    priority: Number(gang["priority"]),
    units: Number(gang["GPUs"]),
    createTimeMs: NOW_MS - ageMs,
    ...(gang["minimum"] === undefined || gang["minimum"] === gang["GPUs"] ? {} : { minimum: Number(gang["minimum"]) }),
    ...(gang["preempted"] === undefined ? {} : { preemptions: times(gang["preempted"]) }),
  };
}

function isLeaf({ queue }: Row): boolean {
  return queue !== ROOT;
}

function rootOf(queues: readonly Row[]): PlanQueue {
  const settings = queues.find((one) => !isLeaf(one))?.["settings"] ?? "";
  return { name: ROOT, parent: null, strategy: "BEST_EFFORT_FIFO", quotas: [], policy: policyOf(settings) };
}

function leafOf(row: Row): PlanQueue {
  const quotas = [{ flavor: FLAVOR, resource: RESOURCE, nominal: Number(row["own quota"]) }];
  const policy = policyOf(row["settings"] ?? "");
  // The page's sentence about the budget.
  const preempted = policy.preemptionsPerHour === null ? [] : [{ atMs: NOW_MS - 10 * MINUTE_MS, victims: 2 }];
  return { name: row["queue"] ?? "", parent: ROOT, strategy: "BEST_EFFORT_FIFO", quotas, policy, preempted };
}

const SETTINGS: Readonly<Record<string, (value: string) => Partial<QueuePolicy>>> = {
  weight: (value) => ({ weight: Number(value) }),
  within_queue: (value) => ({ withinQueue: value as QueuePolicy["withinQueue"] }),
  reclaim_within_tree: (value) => ({ reclaimWithinTree: value as QueuePolicy["reclaimWithinTree"] }),
  borrow_within: (value) => ({ borrowWithin: { policy: value as "LOWER_PRIORITY", maxPriority: null } }),
  "min_runtime.reclaim": (value) => ({ minRuntimeReclaimMs: minutes(value) }),
  "min_runtime.preempt": (value) => ({ minRuntimePreemptMs: minutes(value) }),
  preemptions_per_hour: (value) => ({ preemptionsPerHour: Number(value) }),
  max_preemptions: (value) => ({ maxPreemptions: Number(value) }),
  fair_sharing: () => ({ fairSharing: FAIR_SHARING_STRATEGIES }),
};

function policyOf(settings: string): QueuePolicy {
  const parts = settings.split(", ").filter((part) => part !== "");
  const changes = parts.map((part) => {
    const [name = "", value = ""] = part.split(" = ");
    const setting = SETTINGS[name];
    assert.ok(setting, `"${name}" is a setting`);
    return setting(value);
  });
  return Object.assign({}, DEFAULT_POLICY, ...changes) as QueuePolicy;
}
