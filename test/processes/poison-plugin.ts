/**
 * A plugin that processes load: its kind makes pods, and its code never returns, or fills the memory, for jobs that ask
 * for it, as long as a file exists. As long as another one exists, each worker fills its memory by itself.
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

/** How often a worker leaks. */
const LEAK_MS = 20;
const leaked: number[][] = [];
let isLeaking = false;

/** Leaks from the first step on: a worker that ends before it has buckets tells nothing. */
function leak(): void {
  if (isLeaking || env["LEAK_FILE"] === undefined) return;
  isLeaking = true;
  setInterval(() => {
    if (existsSync(env["LEAK_FILE"] ?? "")) leaked.push(new Array<number>(2 * CHUNK).fill(leaked.length + 0.5));
  }, LEAK_MS).unref();
}

const kind = podKind({
  name: "PoisonJob",
  description: "A program whose kind may stop workers.",
  kindSpec: { harm: { type: "string", enum: ["none", "block", "fill"] } },
  // Only workers ask for verdicts.
  verdict: (states, kindSpec) => {
    harm(kindSpec["harm"]);
    leak();
    if (states.every(({ members, succeeded }) => members === succeeded)) return "succeeded";
    return states.some(({ active }) => active > 0) ? "running" : null;
  },
});

export const plugins: readonly PluginEntry[] = [{ id: "poison", kinds: [kind] }];
