import { pick } from "../../support/random.ts";
import type { World } from "./world.ts";

type Killing = { readonly world: World; readonly random: () => number; readonly trace: string[] };

/** Ends a process: it hands over, or crashes, or is declared dead while it still works. */
export async function kill({ world, random, trace }: Killing): Promise<void> {
  const how = pick(random, ["stopped", "killed", "killed", "taken for dead"]);
  const at = Math.floor(random() * world.processes().length);
  const isPlanner = at < world.planners.length;
  trace.push(`  ${isPlanner ? "planner" : "worker"} ${how}`);
  const before = isPlanner ? await world.killPlanner(at) : await world.killWorker(at - world.planners.length);
  if (how === "stopped") await world.stop(before);
  if (how !== "taken for dead") return;
  await world.takeForDead(before);
  for (const { member } of world.processes()) await member.look();
  for (const { worker } of world.workers) if (random() < 0.7) await worker.runOnce();
  for (const { planner } of world.planners) if (random() < 0.7) await planner.runOnce();
  // It does not know that it is dead. Its decisions must not be recorded, and its actions are harmless.
  if ("planner" in before) await before.planner.runOnce();
  else await before.worker.runOnce();
}
