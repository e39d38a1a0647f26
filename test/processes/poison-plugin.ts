/**
 * A plugin that processes load: its kind makes pods, and its code never returns, or fills the memory, for jobs that ask
 * for it, as long as a file exists.
 */
import { existsSync } from "node:fs";
import { env } from "node:process";
import { type PluginEntry, podKind } from "../../src/core/kinds/plugin.ts";

const CHUNK = 1_000_000;

function harm(how: unknown): void {
  if (!existsSync(env["POISON_FILE"] ?? "")) return;
  const kept: number[][] = [];
  while (how === "block") Math.sqrt(kept.length);
  while (how === "fill") kept.push(new Array<number>(CHUNK).fill(kept.length + 0.5));
}

const kind = podKind({
  name: "PoisonJob",
  description: "A program whose kind may stop workers.",
  kindSpec: { harm: { type: "string", enum: ["none", "block", "fill"] } },
  // Only workers ask for verdicts.
  verdict: (states, kindSpec) => {
    harm(kindSpec["harm"]);
    if (states.every(({ members, succeeded }) => members === succeeded)) return "succeeded";
    return states.some(({ active }) => active > 0) ? "running" : null;
  },
});

export const plugins: readonly PluginEntry[] = [{ id: "poison", kinds: [kind] }];
