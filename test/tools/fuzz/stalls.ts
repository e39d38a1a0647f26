/** Finds the moments in which an event loop did not run. */

/** A time in which a loop did not run. Times are milliseconds since 1970, so that those of two processes compare. */
export type Stall = {
  readonly fromMs: number;
  readonly forMs: number;
  /** The CPU time of the loop's own thread meanwhile. Little of it means that the machine was busy with others. */
  readonly cpuMs: number;
};

const TICK_MS = 20;
/** Shorter ones are not kept. */
const STALL_MS_MIN = 100;
const KEPT_MAX = 1000;

export function watchStalls(): { readonly take: () => readonly Stall[]; readonly stop: () => void } {
  let stalls: Stall[] = [];
  let lastMs = performance.now();
  let lastCpu = process.threadCpuUsage();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const forMs = nowMs - lastMs - TICK_MS;
    const { user, system } = process.threadCpuUsage(lastCpu);
    if (forMs > STALL_MS_MIN && stalls.length < KEPT_MAX) {
      stalls.push({ fromMs: performance.timeOrigin + lastMs, forMs, cpuMs: (user + system) / 1000 });
    }
    lastMs = nowMs;
    lastCpu = process.threadCpuUsage();
  }, TICK_MS);
  timer.unref();
  const take = () => {
    const taken = stalls;
    stalls = [];
    return taken;
  };
  return { take, stop: () => clearInterval(timer) };
}

/** The service promises to answer others meanwhile, whatever one call asks for. */
const STALL_MS_MAX = 1000;

/**
 * True if a loop that does nothing did not run for longer than the service may stall. Then no time tells anything about
 * the service: connections time out, and its thread is charged for what others did.
 */
export function stoodStill(machine: readonly Stall[]): boolean {
  return machine.some(({ forMs }) => forMs > STALL_MS_MAX);
}

/** Says of each stall that the service's own work has caused, how the machine did meanwhile. */
export function stallsOver(own: readonly Stall[], machine: readonly Stall[]): readonly string[] {
  return own
    .filter(({ cpuMs }) => cpuMs > STALL_MS_MAX)
    .map((stall) => ({ ...stall, meanwhile: machine.filter((one) => overlaps(one, stall)) }))
    .filter(({ meanwhile }) => !stoodStill(meanwhile))
    .map(({ forMs, cpuMs, meanwhile }) => {
      const machineMs = meanwhile.reduce((sum, one) => sum + one.forMs, 0);
      return (
        `the service's event loop did not run for ${Math.round(forMs)} ms (${Math.round(cpuMs)} ms of CPU time); ` +
        `an idle loop of this machine did not run for ${Math.round(machineMs)} ms meanwhile`
      );
    });
}

function overlaps(one: Stall, other: Stall): boolean {
  return one.fromMs < other.fromMs + other.forMs && other.fromMs < one.fromMs + one.forMs;
}
