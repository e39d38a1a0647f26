/** Keeps a copy of all roles and bindings in memory, and reads it again as they change. */
import type { AccessFile } from "../core/access/access-file.ts";
import type { BindingRecord, RoleRecord } from "../core/access/binding.ts";
import { type AccessCopy, accessCopy } from "../core/access/decide.ts";
import { BUILT_IN_ROLES } from "../core/access/roles.ts";
import { type Directory, EMPTY_DIRECTORY } from "../core/access/scope.ts";
import type { Clock } from "../runtime/clock.ts";
import type { AccessStore } from "./ports.ts";

/** A change elsewhere counts here after this time, and the time of a read. */
const LOOK_MS = 2_000;
/** A copy that could not be compared for this long may allow what was taken away: nothing is changed by it. */
export const OUTDATED_MS = 60_000;

export type FollowedAccess = {
  readonly copy: () => AccessCopy;
  /** True if it is not known what has changed in the last minute. */
  readonly isOutdated: () => boolean;
  /** Compares the copy with the store now. Throws if the store is away. */
  readonly refresh: () => Promise<void>;
  /** Resolves when the copy has changed, or when the signal is aborted. */
  readonly changed: (signal: AbortSignal) => Promise<void>;
  /** Compares the copy again and again, until the signal is aborted. */
  readonly run: (signal: AbortSignal) => Promise<void>;
};

export type FollowedAccessPorts = {
  readonly clock: Pick<Clock, "sleep" | "monotonicMs">;
  readonly store: Pick<AccessStore, "readAccess">;
  /** What the file says now. Each text of the file has its own object. */
  readonly file: () => AccessFile;
  readonly onError: (error: unknown) => void;
};

/** Nothing is known, and so nothing allowed, before the first `refresh` or `run`. */
export function followAccess({ clock, store, file, onError }: FollowedAccessPorts): FollowedAccess {
  let stored: StoredPart = { stamp: null, roles: [], bindings: [], directory: EMPTY_DIRECTORY };
  let used = file();
  let copy = merged(used, stored);
  let comparedMs = Number.NEGATIVE_INFINITY;
  let turn = Promise.resolve();
  const waiting = new Set<() => void>();
  const compare = async () => {
    const startedMs = clock.monotonicMs();
    const read = await store.readAccess(stored.stamp);
    const now = file();
    comparedMs = startedMs;
    if (read === null && now === used) return;
    stored = read ?? stored;
    used = now;
    copy = merged(used, stored);
    for (const wake of [...waiting]) wake();
  };
  /** One after the other, so that an older read never takes the place of a newer one. */
  const refresh = () => {
    const done = turn.then(compare);
    turn = done.catch(() => undefined);
    return done;
  };
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await refresh().catch(onError);
      await clock.sleep(LOOK_MS, signal);
    }
  };
  const changed = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const done = () => {
        waiting.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      if (signal.aborted) return resolve();
      waiting.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  const isOutdated = () => clock.monotonicMs() - comparedMs > OUTDATED_MS;
  return { copy: () => copy, isOutdated, refresh, changed, run };
}

type StoredPart = {
  readonly stamp: string | null;
  readonly roles: readonly RoleRecord[];
  readonly bindings: readonly BindingRecord[];
  readonly directory: Directory;
};

const NOT_STORED = { version: 0, createTimeMs: null, createdBy: "" } as const;

/** A record of the file takes the place of one of the store with its name. */
function merged(file: AccessFile, { roles, bindings, directory }: StoredPart): AccessCopy {
  const fixed: readonly RoleRecord[] = [
    ...BUILT_IN_ROLES.map((role) => ({ ...role, ...NOT_STORED, source: "built-in" as const })),
    ...file.roles.map((role) => ({ ...role, ...NOT_STORED, source: "file" as const })),
  ];
  const given: readonly BindingRecord[] = file.bindings.map((one) => ({ ...one, ...NOT_STORED, source: "file" }));
  return accessCopy(withOthers(fixed, file.only ? [] : roles), withOthers(given, file.only ? [] : bindings), directory);
}

function withOthers<T extends { readonly name: string }>(first: readonly T[], others: readonly T[]): readonly T[] {
  const names = new Set(first.map(({ name }) => name));
  return [...first, ...others.filter(({ name }) => !names.has(name))];
}
