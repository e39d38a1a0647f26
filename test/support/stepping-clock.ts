/** Loaded before a program: on SIGUSR2 the clock of its machine steps by an hour, and back at the next one. */
const HOUR_MS = 3_600_000;
const { now } = Date;
let aheadMs = 0;
process.on("SIGUSR2", () => {
  aheadMs = aheadMs === 0 ? HOUR_MS : 0;
});
Date.now = () => now() + aheadMs;
globalThis.Date = new Proxy(Date, {
  construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [Date.now()] : args, made) as object,
});
