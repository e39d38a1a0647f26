/** Connects what all parts of one process share: the store, the hints and its membership. */

import type { Db } from "../adapters/store/db/db.ts";
import { installationId } from "../adapters/store/db/installation.ts";
import { createStore } from "../adapters/store/store.ts";
import type { Config, DatabaseConfig } from "../config/config.ts";
import { type NamespaceRules, reservedNamespaces } from "../core/admin/namespace.ts";
import type { Registry } from "../core/kinds/registry.ts";
import type { PodPolicyDefault } from "../core/pods/policy/pod-policy.ts";
import type { Clock } from "../runtime/clock.ts";
import type { DecisionClock } from "../runtime/decision-clock.ts";
import type { Member } from "../runtime/member.ts";
import type { Telemetry } from "../telemetry/events.ts";
import type { Instrumentation } from "../telemetry/instrumentation.ts";
import { ownHints, type StageHints, shareHints } from "./hints.ts";
import { joinAsMember, nameOfProcess, type ServiceStore } from "./member.ts";
import { createSections, type Sections } from "./sections.ts";
import type { ProcessTelemetry } from "./telemetry.ts";

export const DEFAULT_QUEUE = "default";

export type Base = {
  readonly processName: string;
  readonly clock: Clock;
  readonly kinds: Registry;
  readonly store: ServiceStore;
  readonly namespaceRules: NamespaceRules;
  readonly installation: string;
  readonly telemetry: Telemetry;
  readonly instrumentation: Instrumentation;
  /** Wakes the stage in every process. */
  readonly tell: StageHints;
  /** Wakes the stage in this process; each stage sets its function when it starts. */
  readonly heard: StageHints;
  readonly member: Member;
  /** Each returns sentences that `/readyz` shows now. Parts add theirs when they start. */
  readonly warnings: (() => readonly string[])[];
  /** Which code this process runs, for its watchdog. */
  readonly sections: Sections;
  /** Closed in the reverse order of their start. */
  readonly parts: AsyncDisposableStack;
};

/** Connects the store, shares hints with the other processes of a server, and makes this process a member. */
export async function startBase(of: {
  readonly config: Config;
  readonly kinds: Registry;
  readonly db: Db;
  /** The server that `db` is on. Null: a database that this process alone uses. */
  readonly server: DatabaseConfig | null;
  readonly openNamespaces: boolean;
  /** The pod policy of namespaces whose admin has set no level, unless the configuration names a level. */
  readonly podPolicyDefault: PodPolicyDefault;
  readonly takesBuckets: boolean;
  readonly clock: DecisionClock;
  readonly started: ProcessTelemetry;
  readonly parts: AsyncDisposableStack;
}): Promise<Base> {
  const { config, kinds, db, server, openNamespaces, takesBuckets, clock, parts } = of;
  const { telemetry, instrumentation } = of.started;
  const heard: StageHints = { appended: () => {}, planner: () => {}, job: () => {} };
  const tell = server === null ? ownHints(heard) : shareHints(heard, { database: server, clock, telemetry, parts });
  const store = createStore(db, {
    clock,
    kinds,
    openNamespaces,
    defaultQueue: DEFAULT_QUEUE,
    onAppended: tell.appended,
    onAudited: telemetry.audited,
    quotaBounds: config.quotaBounds,
    namespacesMax: config.namespacesMax,
  });
  // Every member of a database that one process uses is a process that has ended.
  if (server === null) await store.members.forgetAll();
  const processName = nameOfProcess();
  const { leaseMs } = config;
  const member = await joinAsMember({ processName, clock, store, telemetry, parts, takesBuckets, leaseMs });
  const installation = await installationId(db);
  const namespaceRules = rulesOf(config, of.podPolicyDefault);
  const sections = createSections(clock, telemetry);
  const connected = {
    sections,
    store,
    namespaceRules,
    installation,
    telemetry,
    instrumentation,
    tell,
    heard,
    member,
    parts,
    warnings: [],
  };
  return { processName, clock, kinds, ...connected };
}

function rulesOf({ podSecurity, reservedNamespaces: own }: Config, fallback: PodPolicyDefault): NamespaceRules {
  const podPolicyDefault = podSecurity === null ? fallback : { level: podSecurity, warn: [] };
  return { podPolicyDefault, isReserved: reservedNamespaces(own) };
}

type Loop = (signal: AbortSignal) => Promise<void>;

/** Runs loops until the parts are closed. */
export function runLoops(parts: AsyncDisposableStack, ...loops: readonly Loop[]): void {
  const stop = new AbortController();
  const running = Promise.all(loops.map((loop) => loop(stop.signal)));
  parts.defer(async () => {
    stop.abort();
    await running;
  });
}
