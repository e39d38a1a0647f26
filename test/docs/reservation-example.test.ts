/** Runs the example of reservations of docs/preemption.md on the planner's state, minute by minute. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_POLICY } from "../../src/core/plan/model/queue-policy.ts";
import type { FleetPlan } from "../../src/core/plan/round/run-round.ts";
import { queue } from "../core/plan/plan-world.ts";
import { SmallFleet } from "../core/plan/small-fleet.ts";
import { page } from "./pages.ts";

const MINUTE_MS = 60_000;

type Step = { readonly minute: number; readonly event: string; readonly planner: string };

const steps = page("docs/preemption.md")
  .text.split("\n")
  .flatMap((line): readonly Step[] => {
    const [, minute, event, planner] = /^\| (\d+) +\| (.+?) +\| (.+?) +\|$/.exec(line) ?? [];
    return minute === undefined ? [] : [{ minute: Number(minute), event: event ?? "", planner: planner ?? "" }];
  });

test("the example of reservations is what the planner does", () => {
  assert.ok(steps.length >= 8, `${steps.length} steps`);
  const fleet = new SmallFleet([queue("q", { h100: 100 }, { policy: DEFAULT_POLICY })], [8, 8], true);
  for (const { minute, event, planner } of steps) {
    fleet.nowMs = minute * MINUTE_MS;
    happen(fleet, event);
    assert.equal(said(fleet, fleet.step(), event), planner, `minute ${minute}: ${event}`);
  }
});

function happen(fleet: SmallFleet, event: string): void {
  const [, name, pods, gpus, minutes] = /^(\w+): (\d+) × (\d+) GPUs(?:, (\d+) min)?$/.exec(event) ?? [];
  const [, ended] = /^(\w+) ends$/.exec(event) ?? [];
  if (ended !== undefined) fleet.end(`uid-${ended}`);
  else if (name === undefined) assert.equal(event, "time passes");
  else {
    const bounded = minutes === undefined ? {} : { maxRuntimeMs: Number(minutes) * MINUTE_MS };
    const size = { pods: Number(pods), gpus: Number(gpus) };
    fleet.submit({ name, queue: "q", createTimeMs: fleet.nowMs, ...size, ...bounded });
  }
}

function said(fleet: SmallFleet, { admissions, preemptions }: FleetPlan, event: string): string {
  const nameOf = ({ jobUid }: { readonly jobUid: string }) => jobUid.slice("uid-".length);
  const keptFor = /^kept for uid-(\w+)$/.exec(fleet.causeOf(`uid-${event.split(":")[0]}`) ?? "");
  const words = [
    ...admissions.map((one) => `admits ${nameOf(one)}`),
    ...preemptions.map(({ planned, reservation }) => {
      return `reserves for ${nameOf(planned)} after ${(reservation?.awaits ?? []).map(nameOf).join(", ")}`;
    }),
    ...(keptFor === null ? [] : [`keeps ${event.split(":")[0]} out for ${keptFor[1]}`]),
  ];
  return words.join(", ") || "nothing";
}
