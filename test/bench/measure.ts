import { Session } from "node:inspector/promises";

/** Calls or rows a second. */
export type Rate = { readonly name: string; readonly perSecond: number };

/** One measurement beside the floor of the same run. */
export function reportLine(measured: Rate, floor: Rate): string {
  const ratio = measured.perSecond / floor.perSecond;
  const rate = (rate_: Rate) => `${Math.round(rate_.perSecond).toString().padStart(7)}/s`;
  return `${measured.name.padEnd(34)} ${rate(measured)}   ${floor.name.padEnd(26)} ${rate(floor)}   ratio ${ratio.toFixed(3)}`;
}

/** Runs a task again and again by so many callers at a time, for so long; the first part, while everything warms up, does not count. */
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
    // On a machine that is busy elsewhere not one call may end in time: then the first that does counts, with the time it took.
    while (performance.now() < endMs || counted === 0) {
      call += 1;
      await task(call);
      const nowMs = performance.now();
      if (nowMs < fromMs || (nowMs >= endMs && counted > 0)) continue;
      counted += 1;
      lastMs = Math.max(endMs, nowMs);
    }
  };
  await Promise.all(Array.from({ length: of.callers }, caller));
  return { name, perSecond: (counted * 1000) / (lastMs - fromMs) };
}

/** Where the CPU time went, by function: those that took most themselves. */
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
