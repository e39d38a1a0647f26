import { randomBytes } from "node:crypto";
import type { RobotStore } from "../../src/access/ports.ts";
import { createRobots } from "../../src/access/robots.ts";
import type { RobotToken } from "../../src/core/access/robot.ts";
import { systemClock } from "../../src/runtime/clock.ts";

/** Robots whose tokens are kept in memory. */
export function memoryRobots(clock: { readonly nowMs: () => number } = systemClock()) {
  const rows = new Map<string, RobotToken & { readonly hash: string }>();
  const change = (name: string, members: (robot: RobotToken) => Partial<RobotToken>) => {
    const robot = rows.get(name);
    if (robot === undefined) return null;
    const changed = { ...robot, ...members(robot) };
    rows.set(name, changed);
    return changed;
  };
  const store: RobotStore = {
    makeRobot: async ({ hash, ...robot }, { nowMs, max, ownedMax }) => {
      if (rows.has(robot.name)) return { kind: "exists" };
      const all = [...rows.values()].filter(({ revokedMs }) => revokedMs === null);
      if (all.length >= max) return { kind: "full", max };
      const owned = all.filter(({ owner, expiresAtMs }) => owner === robot.owner && expiresAtMs > nowMs);
      if (ownedMax !== null && owned.length >= ownedMax) return { kind: "ownerFull", max: ownedMax };
      const made = { ...robot, createTimeMs: nowMs, lastUseMs: null, revokedMs: null };
      rows.set(robot.name, { ...made, hash: hash.toString("hex") });
      return { kind: "made", robot: made };
    },
    findRobot: async (hash) => [...rows.values()].find((row) => row.hash === hash.toString("hex")) ?? null,
    noteUse: async (name, nowMs) => void change(name, () => ({ lastUseMs: nowMs })),
    revokeRobot: async (name, nowMs) => change(name, ({ revokedMs }) => ({ revokedMs: revokedMs ?? nowMs })),
    getRobot: async (name) => rows.get(name) ?? null,
    listRobots: async ({ listed }) => {
      const isListed = ({ scope: { kind, name } }: RobotToken) =>
        (kind === "namespace" ? listed?.namespaces : listed?.projects)?.includes(name) === true;
      return { robots: [...rows.values()].filter((robot) => listed === null || isListed(robot)), next: null };
    },
  };
  return createRobots({ clock, store, randomBytes, onError: (error) => Promise.reject(error) });
}
