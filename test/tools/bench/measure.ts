import { Session } from "node:inspector/promises";
import { WAIT_MS_MAX, within } from "../../support/bounded.ts";

/** Calls or rows a second. */
export type Rate = { readonly name: string; readonly perSecond: number };

/** One line with a measurement, the floor of the same run, and their ratio. */
export function reportLine(measured: Rate, floor: Rate): string {
  const ratio = measured.perSecond / floor.perSecond;
  const rate = (rate_: Rate) => `${Math.round(rate_.perSecond).toString().padStart(7)}/s`;
  const measuredText = `${measured.name.padEnd(34)} ${rate(measured)}`;
  return `${measuredText}   ${floor.name.padEnd(26)} ${rate(floor)}   ratio ${ratio.toFixed(3)}`;
}

/** Runs a task repeatedly by several callers at a time. Calls of the first part, the warm-up, do not count. */
export async function callRate(
  name: string,
  task: (call: number) => Promise<unknown>,
  of: { readonly callers: number; readonly seconds: number },
): Promise<Rate> {
  const startMs = performance.now();
  const fromMs = startMs + Math.min(1000, of.seconds * 250);
  const endMs = fromMs + of.seconds * 1000;
  let call = 0;
  let counted = 0;
  let lastMs = endMs;
  const caller = async () => {
    // On a busy machine, no call may end in time. Then the first call that ends counts, with the time that it took.
    while (performance.now() < endMs || counted === 0) {
      call += 1;
      await task(call);
      const nowMs = performance.now();
      if (nowMs < fromMs || (nowMs >= endMs && counted > 0)) continue;
      counted += 1;
      lastMs = Math.max(endMs, nowMs);
    }
  };
  await within(
    name || "a call",
    of.seconds * 1000 + WAIT_MS_MAX,
    Promise.all(Array.from({ length: of.callers }, caller)),
  );
  return { name, perSecond: (counted * 1000) / (lastMs - fromMs) };
}

/** A function, and its share of the CPU time. */
export type SelfTime = { readonly place: string; readonly share: number };

export async function startProfile(): Promise<() => Promise<readonly SelfTime[]>> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.start");
  return async () => {
    const { profile } = await session.post("Profiler.stop");
    session.disconnect();
    return selfTimes(profile);
  };
}

type Profile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples?: readonly number[] | undefined;
  readonly timeDeltas?: readonly number[] | undefined;
};

const IDLE = ["(idle)", "(program)", "(root)"];

function selfTimes({ nodes, samples = [], timeDeltas = [] }: Profile): readonly SelfTime[] {
  const placeOf = new Map(nodes.map(({ id, callFrame }) => [id, placeText(callFrame)]));
  const spent = new Map<string, number>();
  let busy = 0;
  for (const [at, id] of samples.entries()) {
    const place = placeOf.get(id) ?? "";
    const delta = timeDeltas[at] ?? 0;
    if (IDLE.includes(place)) continue;
    busy += delta;
    spent.set(place, (spent.get(place) ?? 0) + delta);
  }
  return [...spent]
    .map(([place, time]) => ({ place, share: busy === 0 ? 0 : time / busy }))
    .sort((a, b) => b.share - a.share)
    .slice(0, TOP);
}

const TOP = 25;

function placeText({ functionName, url, lineNumber }: Profile["nodes"][number]["callFrame"]): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  if (url === "") return name;
  const file = url.replace(/^.*\/node_modules\//, "").replace(/^file:\/\/.*\/(src|test)\//, "$1/");
  return `${name} ${file}:${lineNumber + 1}`;
}

export function profileLines(title: string, times: readonly SelfTime[]): readonly string[] {
  return [
    `${title}: self time of what was not idle`,
    ...times.map(({ place, share }) => `  ${percent(share)}  ${place}`),
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1).padStart(5)} %`;
}
