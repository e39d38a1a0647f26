/** A queue among its siblings. A leaf has gangs that ask for its demand; an inner queue has queues below it. */
export type Vessel = {
  readonly name: string;
  readonly weight: number;
  /** 0 for an inner queue. */
  readonly demand: number;
  readonly below: readonly Vessel[];
};

/** So many drops are one unit. */
const DROPS = 60;

/**
 * Pours an amount into queues drop by drop, and returns what each of them gets, also the inner ones, by name. From the
 * top down, each drop goes to the child that has least for its weight, of those whose gangs ask for more.
 */
export function pour(amount: number, vessels: readonly Vessel[]): ReadonlyMap<string, number> {
  const drops = new Map<string, number>();
  for (let poured = 0; poured < amount * DROPS; poured += 1) {
    if (!pourDrop(vessels, drops)) break;
  }
  return new Map([...drops].map(([name, count]) => [name, count / DROPS]));
}

/** False: nobody asks for more. */
function pourDrop(vessels: readonly Vessel[], drops: Map<string, number>): boolean {
  const inside = ({ name }: Vessel) => drops.get(name) ?? 0;
  const level = (one: Vessel) => inside(one) / one.weight;
  const open = vessels.filter((one) => inside(one) < demandOf(one) * DROPS);
  const [lowest] = open.sort((a, b) => level(a) - level(b));
  if (lowest === undefined) return false;
  drops.set(lowest.name, inside(lowest) + 1);
  return lowest.below.length === 0 || pourDrop(lowest.below, drops);
}

/** All that the gangs of a queue, or of those below it, ask for. */
export function demandOf({ demand, below }: Vessel): number {
  return below.reduce((sum, one) => sum + demandOf(one), demand);
}

export function leavesOf(vessels: readonly Vessel[]): readonly Vessel[] {
  return vessels.flatMap((one) => (one.below.length === 0 ? [one] : leavesOf(one.below)));
}

/** How far a queue is from its part of what it and its siblings use together, in gangs. */
export type Off = {
  readonly name: string;
  readonly gangs: number;
  /** What it may keep, in gangs: its weight's part of one gang of each sibling that wants more. Above 1: heavy. */
  readonly keeps: number;
};

/** Compares each queue with its part, also those below it. `used`: what a leaf uses; `gpus`: those of one gang. */
export function offsOf(
  siblings: readonly Vessel[],
  of: { readonly used: (leaf: string) => number; readonly gpus: number },
): readonly Off[] {
  const used = (one: Vessel) => leavesOf([one]).reduce((sum, { name }) => sum + of.used(name), 0);
  const all = siblings.reduce((sum, one) => sum + used(one), 0);
  const parts = pour(all, siblings);
  const hungry = siblings.filter((one) => (parts.get(one.name) ?? 0) < demandOf(one));
  const weights = hungry.reduce((sum, { weight }) => sum + weight, 0);
  return siblings.flatMap((one) => {
    const gangs = (used(one) - (parts.get(one.name) ?? 0)) / of.gpus;
    const keeps = weights === 0 ? 0 : (one.weight * (hungry.length - 1)) / weights;
    return [{ name: one.name, gangs, keeps }, ...offsOf(one.below, of)];
  });
}

/** The parts come from drops, so that they are a little off. */
const EXACT = 0.05;

/**
 * Says by how much a queue misses its part. Null: it is within one gang. A gang is preempted only for a queue that then
 * stands lower than the victim's queue before. So a heavy queue keeps what each of its siblings lacks, which is one
 * gang at most.
 */
export function missOf({ name, gangs, keeps }: Off): string | null {
  const most = Math.max(1, keeps);
  if (gangs < -1 - EXACT) return `${name} is ${-gangs} gangs below its part`;
  return gangs > most + EXACT ? `${name} is ${gangs} gangs above its part, and may be ${most}` : null;
}
