import { addResources, type Resources } from "../core/pods/resources.ts";

const BINARY_UNITS = [
  ["Ti", 2 ** 40],
  ["Gi", 2 ** 30],
  ["Mi", 2 ** 20],
  ["Ki", 2 ** 10],
] as const;

/** Amounts in thousandths as Kubernetes quantities: 1500 of cpu is `1500m`, bytes of memory are `64Gi`. Negative amounts show as 0. */
export function toQuantities(resources: Resources): Record<string, string> {
  return Object.fromEntries(
    Object.entries(resources).map(([name, milli]) => [name, toQuantity(name, Math.max(0, milli))]),
  );
}

export function sumResources(all: readonly Resources[]): Resources {
  return all.reduce(addResources, {});
}

function toQuantity(name: string, milli: number): string {
  if (milli % 1000 !== 0) return isBytes(name) ? String(Math.floor(milli / 1000)) : `${milli}m`;
  const whole = milli / 1000;
  const unit = isBytes(name) && whole > 0 ? BINARY_UNITS.find(([, size]) => whole % size === 0) : undefined;
  return unit === undefined ? String(whole) : `${whole / unit[1]}${unit[0]}`;
}

function isBytes(name: string): boolean {
  return name === "memory" || name.endsWith("storage") || name.startsWith("hugepages-");
}
