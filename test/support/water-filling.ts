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

/** True if a queue would get more than its part. */
export function isHungry(vessel: Vessel, parts: ReadonlyMap<string, number>): boolean {
  return (parts.get(vessel.name) ?? 0) < demandOf(vessel);
}

/** All that the gangs of a queue, or of those below it, ask for. */
export function demandOf({ demand, below }: Vessel): number {
  return below.reduce((sum, one) => sum + demandOf(one), demand);
}

export function leavesOf(vessels: readonly Vessel[]): readonly Vessel[] {
  return vessels.flatMap((one) => (one.below.length === 0 ? [one] : leavesOf(one.below)));
}
