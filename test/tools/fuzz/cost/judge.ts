/** What a grown call may cost, beside the smallest one of its kind. */

/** What one call cost the service. */
export type Cost = { readonly cpuMs: number; readonly memoryBytes: number };

const MIB = 2 ** 20;
/** CPU time for each MiB of the request; of a worker's step, for each MiB of the pods that it builds. */
const CPU_MS_PER_MIB = 50;
const MEMORY_PER_BYTE = 20;
/** The loops of the service use this much at any time. */
const CPU_MS_NOISE = 8;
/** A heap with nothing new in it varies by so much. */
const MEMORY_BYTES_NOISE = 8 * MIB;
/** Twice the size may cost a little more than twice: caches, collections, logarithms. */
const GROWTH_MAX = 3;
/** A cost that is not seen beside noise does not tell how it grows. */
const GROWTH_MS_MIN = 25;
const LATENCY_FACTOR_MAX = 3;
/** A machine that is busy with other things answers this late. */
const LATENCY_MS_MIN = 10;

/** Says what is wrong with the CPU time of a call of so many bytes. Null: nothing. */
export function cpuProblem(base: Cost, cost: Cost, bytes: number, steps = 1): string | null {
  const mostMs = base.cpuMs + (steps * CPU_MS_PER_MIB * bytes) / MIB + CPU_MS_NOISE;
  if (cost.cpuMs <= mostMs) return null;
  const allowed = `${ms(mostMs)} are allowed, the smallest costs ${ms(base.cpuMs)}`;
  return `${shown(bytes)} cost ${ms(cost.cpuMs)} of CPU time; ${allowed}`;
}

export function memoryProblem(base: Cost, cost: Cost, bytes: number): string | null {
  const most = MEMORY_PER_BYTE * bytes + MEMORY_BYTES_NOISE;
  const more = cost.memoryBytes - base.memoryBytes;
  return more <= most ? null : `${shown(bytes)} held ${shown(more)} of memory; ${shown(most)} are allowed`;
}

/** Compares a call of so many bytes with one of half its size. */
export function growthProblem(base: Cost, half: Cost, whole: Cost, bytes: number): string | null {
  const [halfMs, wholeMs] = [half.cpuMs - base.cpuMs, whole.cpuMs - base.cpuMs];
  // A half that is refused early, or meets no collection of garbage, costs next to nothing.
  const halfMsMin = Math.max(GROWTH_MS_MIN / 4, (CPU_MS_PER_MIB * bytes) / MIB / 8);
  if (wholeMs < GROWTH_MS_MIN || wholeMs <= GROWTH_MAX * Math.max(halfMs, halfMsMin)) return null;
  return `twice the size costs ${ms(wholeMs)} in place of ${ms(halfMs)} of CPU time`;
}

/** Compares another caller's calls beside grown ones with those beside refused calls of the same size. */
export function latencyProblem(baseMs: readonly number[], besideMs: readonly number[]): string | null {
  const [base, beside] = [percentile(baseMs, 0.99), percentile(besideMs, 0.99)];
  if (beside <= LATENCY_FACTOR_MAX * Math.max(base, LATENCY_MS_MIN)) return null;
  return `a second caller's p99 is ${ms(beside)}; beside refused calls of the same sizes it is ${ms(base)}`;
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The least of several measurements: noise only adds. */
export function least(costs: readonly Cost[]): Cost {
  return {
    cpuMs: Math.min(...costs.map(({ cpuMs }) => cpuMs)),
    memoryBytes: Math.min(...costs.map(({ memoryBytes }) => memoryBytes)),
  };
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}

export function shown(bytes: number): string {
  return bytes < MIB ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`;
}

/** The operations of a call of so many bytes, as counted. */
export type SizeCount = { readonly bytes: number; readonly operations: number };

/** Reading one byte, and checking the values against the rules of their fields, is so many. */
const OPERATIONS_PER_BYTE = 20;
/** Accepting one more connection, or asking a cluster that does not answer, is so many. */
const OPERATIONS_NOISE = 40_000;
/** Less does not tell how it grows. */
const OPERATIONS_SEEN = 400_000;
const OPERATIONS_GROWTH_MAX = 1.5;

/**
 * Judges a call at rising sizes. Null: each byte costs no more than it may, and no byte costs more than one of the half
 * before.
 */
export function operationsProblem(
  base: SizeCount,
  sizes: readonly SizeCount[],
  growthMax = OPERATIONS_GROWTH_MAX,
): string | null {
  for (const [at, size] of sizes.entries()) {
    const most = base.operations + OPERATIONS_PER_BYTE * size.bytes + OPERATIONS_NOISE;
    if (size.operations > most) return `${shown(size.bytes)} took ${size.operations} operations; ${most} are allowed`;
    const [half, quarter] = [sizes[at - 1], sizes[at - 2]];
    if (half === undefined || quarter === undefined || size.operations < OPERATIONS_SEEN) continue;
    const before = perByte(quarter, half);
    const now = perByte(half, size);
    if (before <= 0 || now <= growthMax * before) continue;
    const [less, more] = [before, now].map((operations) => operations.toFixed(1));
    return `a byte of ${shown(size.bytes)} took ${more} operations; one of ${shown(half.bytes)} took ${less}`;
  }
  return null;
}

function perByte(less: SizeCount, more: SizeCount): number {
  return (more.operations - less.operations) / Math.max(1, more.bytes - less.bytes);
}
