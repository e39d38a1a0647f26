/**
 * Walks the exported names of Flyte's package of core plugins, in their order: what stands for each here, what was
 * done, and what was seen. A name without a counterpart has its reason in docs/migrating.md.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createPluginHost } from "../../../src/adapters/plugins/plugin-host.ts";
import { taskName } from "../../../src/core/job/names.ts";
import { CACHE_STATUSES, TASK_PHASES } from "../../../src/core/job/task-info.ts";
import { CONTRACT_VERSION, type PhaseInfo, phaseInfo, serviceKind } from "../../../src/core/kinds/plugin.ts";
import { eventsOfCall } from "../../../src/core/kinds/plugin-services.ts";
import { readTransition } from "../../../src/core/kinds/read-transition.ts";
import { AllocationStatus } from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import { type FlyteName, isExplained, namesOfPage } from "../../support/flyte-pages.ts";
import { kindsWith } from "../../support/kinds.ts";

const migrating = readFileSync(new URL("../../../docs/migrating.md", import.meta.url), "utf8");

/** What Gangway reads of an info that a plugin returns. */
function told(info: PhaseInfo, more: object = {}) {
  const outcome = readTransition({ info, ...more });
  assert.ok(outcome.kind === "read", JSON.stringify(outcome));
  return outcome.transition;
}

const phaseOf = (info: PhaseInfo) => {
  const { phase, version, reason } = told(info);
  return { phase, version, reason };
};
const failureOf = (info: PhaseInfo) => {
  const { phase, failure, cleanup } = told(info);
  return [phase, failure?.code, failure?.kind, failure?.message, cleanup];
};
const why = { code: "Lost", reason: "r" };
const task = { logs: [{ name: "l", uri: "u" }] };

/** A host with one pool, which has `quota` tokens, and what was asked of it. */
async function hosted() {
  const asked: string[] = [];
  const entry = {
    id: "walk",
    kinds: [serviceKind({ name: "WalkJob", description: "" })],
    isDefault: true,
    load: async (setup: import("../../../src/core/kinds/plugin.ts").SetupContext) => {
      await setup.registerResourceQuota("ex:pool:part", 3);
      setup.enqueueOwner("uid-1");
      setup.metrics.count("loads", { label: setup.ownerKind });
      const nothing = async () => undefined;
      const handle = async () => ({ info: phaseInfo.success() });
      return { id: "walk", properties: { disableCaching: true }, handle, abort: nothing, finalize: nothing };
    },
  };
  const host = createPluginHost({
    kinds: kindsWith(entry),
    secretsDirectory: null,
    wakeJob: (uid) => void asked.push(`wake ${uid}`),
    pluginCounted: ({ plugin, name, label, by }) => void asked.push(`count ${plugin} ${name} ${label} ${by}`),
    tokens: {
      poolExists: async () => false,
      registerPool: async (pool, quota) => {
        asked.push(`pool ${pool} ${quota}`);
        return "done";
      },
      allocate: async (_holder, { pool, token, amount, projectCap, namespaceCap }) => {
        asked.push(`take ${amount} of ${pool} as ${token} at most ${projectCap}/${namespaceCap}`);
        return { status: "EXHAUSTED", message: "none is left" };
      },
      release: async (_holder, { pool, token }) => void asked.push(`return ${token} to ${pool}`),
    },
  });
  const plugin = await host.pluginOf("AnyJob", new AbortController().signal);
  const resources = host.resources({ taskName: "gw-1" });
  return { host, plugin, resources, asked };
}

const NAMES: readonly FlyteName[] = [
  [
    "AllocationStatus",
    "the status of `resources.allocate`, and of the API",
    async () => [
      (await (await hosted()).resources.allocate({ pool: "ex:pool:part" })).status,
      Object.keys(AllocationStatus).filter((name) => Number.isNaN(Number(name))),
    ],
    ["EXHAUSTED", ["UNSPECIFIED", "GRANTED", "EXHAUSTED", "NAMESPACE_QUOTA_EXCEEDED"]],
  ],
  ["EnqueueOwner", "`setup.enqueueOwner`", async () => (await hosted()).asked.includes("wake uid-1"), true],
  [
    "EventsRecorder",
    "`events.record`",
    () => {
      const { recorder, events } = eventsOfCall();
      recorder.record({ reason: "Sent", message: "m" });
      return events;
    },
    [{ reason: "Sent", message: "m", isWarning: false }],
  ],
  [
    "ExternalResource",
    "`task.externalResources`",
    () =>
      told(
        phaseInfo.running({
          task: {
            externalResources: [
              { externalId: "e", cacheStatus: "HIT", index: 2, logs: task.logs, retryAttempt: 1, phase: "QUEUED" },
            ],
          },
        }),
      ).task.externalResources,
    [{ externalId: "e", cacheStatus: "HIT", index: 2, logs: task.logs, retryAttempt: 1, phase: "QUEUED" }],
  ],
  ["KubeClient", "docs/migrating.md", () => isExplained(migrating, "KubeClient"), true],
  [
    "Phase",
    "the phases of `phaseInfo`",
    () => TASK_PHASES.length,
    // Undefined, NotReady, WaitingForResources, WaitingForCache, Queued, Initializing, Running, Success, the two
    // failures, Aborted.
    11,
  ],
  ["PhaseInfo", "`info`", () => Object.keys(phaseInfo.running()), ["phase", "version", "reason", "task"]],
  [
    "PhaseInfoFailed",
    "`phaseInfo.aborted`, and the other failures",
    () => failureOf(phaseInfo.aborted(why)),
    ["ABORTED", "Lost", "USER", "r", false],
  ],
  [
    "PhaseInfoFailure",
    "`phaseInfo.permanentFailure`",
    () => failureOf(phaseInfo.permanentFailure(why)),
    ["PERMANENT_FAILURE", "Lost", "USER", "r", false],
  ],
  [
    "PhaseInfoFailureWithCleanup",
    "the same with `cleanup`",
    () => failureOf(phaseInfo.permanentFailure({ ...why, cleanup: true })),
    ["PERMANENT_FAILURE", "Lost", "USER", "r", true],
  ],
  [
    "PhaseInfoInitializing",
    "`phaseInfo.initializing`",
    () => phaseOf(phaseInfo.initializing({ version: 1, reason: "r" })),
    { phase: "INITIALIZING", version: 1, reason: "r" },
  ],
  [
    "PhaseInfoNotReady",
    "`phaseInfo.notReady`",
    () => phaseOf(phaseInfo.notReady({ reason: "r" })),
    { phase: "NOT_READY", version: 0, reason: "r" },
  ],
  [
    "PhaseInfoQueued",
    "`phaseInfo.queued`",
    () => phaseOf(phaseInfo.queued({ version: 2 })),
    { phase: "QUEUED", version: 2, reason: "" },
  ],
  ["PhaseInfoQueuedWithTaskInfo", "the same with `task`", () => told(phaseInfo.queued({ task })).task.logs, task.logs],
  [
    "PhaseInfoRetryableFailure",
    "`phaseInfo.retryableFailure`",
    () => failureOf(phaseInfo.retryableFailure(why)),
    ["RETRYABLE_FAILURE", "Lost", "USER", "r", false],
  ],
  [
    "PhaseInfoRetryableFailureWithCleanup",
    "the same with `cleanup`",
    () => failureOf(phaseInfo.retryableFailure({ ...why, cleanup: true })),
    ["RETRYABLE_FAILURE", "Lost", "USER", "r", true],
  ],
  [
    "PhaseInfoRunning",
    "`phaseInfo.running`",
    () => phaseOf(phaseInfo.running({ version: 3 })),
    { phase: "RUNNING", version: 3, reason: "" },
  ],
  ["PhaseInfoSuccess", "`phaseInfo.success`", () => told(phaseInfo.success({ task })).task.logs, task.logs],
  [
    "PhaseInfoSystemFailure",
    '`phaseInfo.permanentFailure` with `kind: "SYSTEM"`',
    () => failureOf(phaseInfo.permanentFailure({ ...why, kind: "SYSTEM" })),
    ["PERMANENT_FAILURE", "Lost", "SYSTEM", "r", false],
  ],
  [
    "PhaseInfoSystemFailureWithCleanup",
    "the same with `cleanup`",
    () => failureOf(phaseInfo.permanentFailure({ ...why, kind: "SYSTEM", cleanup: true })),
    ["PERMANENT_FAILURE", "Lost", "SYSTEM", "r", true],
  ],
  [
    "PhaseInfoSystemRetryableFailure",
    '`phaseInfo.retryableFailure` with `kind: "SYSTEM"`',
    () => failureOf(phaseInfo.retryableFailure({ ...why, kind: "SYSTEM" })),
    ["RETRYABLE_FAILURE", "Lost", "SYSTEM", "r", false],
  ],
  [
    "PhaseInfoSystemRetryableFailureWithCleanup",
    "the same with `cleanup`",
    () => failureOf(phaseInfo.retryableFailure({ ...why, kind: "SYSTEM", cleanup: true })),
    ["RETRYABLE_FAILURE", "Lost", "SYSTEM", "r", true],
  ],
  [
    "PhaseInfoWaitingForCache",
    "`phaseInfo.waitingForCache`",
    () => phaseOf(phaseInfo.waitingForCache({ version: 1 })),
    { phase: "WAITING_FOR_CACHE", version: 1, reason: "" },
  ],
  [
    "PhaseInfoWaitingForResources",
    "`phaseInfo.waitingForResources`",
    () => phaseOf(phaseInfo.waitingForResources({ reason: "r" })),
    { phase: "WAITING_FOR_RESOURCES", version: 0, reason: "r" },
  ],
  [
    "PhaseInfoWaitingForResourcesInfo",
    "the same with `task`",
    () => told(phaseInfo.waitingForResources({ task })).task.logs,
    task.logs,
  ],
  [
    "PhaseInfo.CleanupOnFailure",
    "`info.cleanupOnFailure`",
    () => phaseInfo.aborted({ ...why, cleanup: true }).cleanupOnFailure,
    true,
  ],
  [
    "PhaseInfo.Err",
    "`info.failure`",
    () => phaseInfo.aborted(why).failure,
    { code: "Lost", kind: "USER", message: "r" },
  ],
  ["PhaseInfo.Info", "`info.task`", () => phaseInfo.running({ task }).task, task],
  ["PhaseInfo.Phase", "`info.phase`", () => phaseInfo.undefined().phase, "UNDEFINED"],
  ["PhaseInfo.Reason", "`info.reason`", () => phaseInfo.running({ reason: "r" }).reason, "r"],
  ["PhaseInfo.String", "the info as JSON", () => JSON.stringify(phaseInfo.undefined()).includes("UNDEFINED"), true],
  ["PhaseInfo.Version", "`info.version`", () => phaseInfo.running().version, 0],
  ["PhaseInfo.WithVersion", "a copy of the info", () => told({ ...phaseInfo.running(), version: 9 }).version, 9],
  [
    "Plugin",
    "what `load` returns",
    async () => Object.keys((await hosted()).plugin).sort(),
    ["abort", "finalize", "handle", "id", "properties"],
  ],
  [
    "PluginEntry",
    "an item of `plugins`; one with `isDefault` serves other kinds",
    async () => (await hosted()).plugin.id,
    "walk",
  ],
  [
    "PluginLoader",
    "`load`, which runs once, at the first call",
    async () => {
      const { host, asked } = await hosted();
      await host.pluginOf("WalkJob", new AbortController().signal);
      return asked.filter((one) => one.startsWith("pool"));
    },
    ["pool ex:pool:part 3"],
  ],
  [
    "PluginProperties",
    "`properties`",
    async () => [
      (await hosted()).plugin.properties,
      taskName({ jobUid: "u", admission: 1, attempt: 1 }, { min: 14, max: 50 }),
    ],
    [{ disableCaching: true }, "gw-u-1-1x00000"],
  ],
  ["PluginStateReader", "`context.state`", () => told(phaseInfo.running()).state, null],
  [
    "PluginStateWriter",
    "`state` of the answer",
    () => told(phaseInfo.running(), { state: { version: 2, value: { at: 1 } } }).state,
    { version: 2, value: { at: 1 } },
  ],
  [
    "ReasonInfo",
    "`task.additionalReasons`",
    () => told(phaseInfo.running({ task: { additionalReasons: [{ reason: "r" }] } })).task.additionalReasons,
    [{ reason: "r", occurredAtMs: null }],
  ],
  [
    "ResourceConstraint",
    "a member of `constraints`",
    async () => {
      const { resources, asked } = await hosted();
      await resources.allocate({ pool: "p", constraints: { namespace: 2 } });
      return asked.at(-1);
    },
    "take 1 of p as gw-1 at most null/2",
  ],
  [
    "ResourceConstraintsSpec",
    "`constraints`",
    async () => {
      const { resources, asked } = await hosted();
      await resources.allocate({ pool: "p", amount: 2, constraints: { project: 4, namespace: 2 } });
      return asked.at(-1);
    },
    "take 2 of p as gw-1 at most 4/2",
  ],
  [
    "ResourceManager",
    "`resources`",
    async () => {
      const { resources, asked } = await hosted();
      await resources.release({ pool: "p", token: "t" });
      return asked.at(-1);
    },
    "return t to p",
  ],
  [
    "ResourceNamespace",
    "the name of a pool, with `:` between its parts",
    async () => (await hosted()).asked[0],
    "pool ex:pool:part 3",
  ],
  ["ResourceRegistrar", "`setup.registerResourceQuota`", async () => (await hosted()).asked[0], "pool ex:pool:part 3"],
  [
    "SecretManager",
    "`secrets`",
    async () => (await hosted()).host.secrets.get("none").catch(String),
    "Error: there is no secret none: GANGWAY_SECRETS is not set",
  ],
  [
    "SetupContext",
    "the argument of `load`",
    async () => (await hosted()).asked,
    ["pool ex:pool:part 3", "wake uid-1", "count walk loads gangway.dev/Job 1"],
  ],
  ["SignalAsync", "docs/migrating.md", () => isExplained(migrating, "SignalAsync"), true],
  [
    "TaskExecutionContext",
    "the argument of `handle`; the tests of plugin calls and of the example see each member",
    () => CONTRACT_VERSION,
    4,
  ],
  [
    "TaskExecutionID",
    "`taskName`: unique, and the same in all calls of an attempt",
    () => taskName({ jobUid: "u".repeat(60), admission: 1, attempt: 1 }, { min: 0, max: 20 }).length,
    14,
  ],
  [
    "TaskExecutionMetadata",
    "docs/migrating.md has `GetOwnerReference`",
    () => isExplained(migrating, "KubeClient`, `GetOwnerReference"),
    true,
  ],
  [
    "TaskInfo",
    "`task`",
    () => {
      const given = { logs: task.logs, occurredAtMs: 5, reportedAtMs: 6, customInfo: { rows: 1 } };
      const { occurredAtMs, reportedAtMs, customInfo } = told(phaseInfo.running({ task: given })).task;
      return [occurredAtMs, reportedAtMs, customInfo];
    },
    [5, 6, { rows: 1 }],
  ],
  ["TaskOverrides", "docs/migrating.md", () => isExplained(migrating, "TaskOverrides"), true],
  ["TaskReader", "`job.kindSpec`, and docs/plugins.md", () => CACHE_STATUSES.includes("POPULATED"), true],
  ["TaskTemplatePath", "docs/migrating.md", () => isExplained(migrating, "TaskTemplatePath"), true],
  ["TaskType", "the name of a kind", () => serviceKind({ name: "WalkJob", description: "" }).name, "WalkJob"],
  [
    "Transition",
    "the answer of `handle`",
    () => told(phaseInfo.running(), { outputs: { a: 1 }, recheckAfterMs: 7 }).recheckAfterMs,
    7,
  ],
  ["TransitionType", "docs/migrating.md", () => isExplained(migrating, "TransitionTypeBarrier"), true],
];

for (const [name, here, done, seen] of NAMES) {
  test(`${name} is here: ${here}`, async () => assert.deepEqual(await done(), seen));
}

test("constants and variables: a version of 0, a phase that is not known, and what is recorded before it", () => {
  assert.equal(phaseInfo.queued().version, 0, "DefaultPhaseVersion");
  assert.equal(told(phaseInfo.undefined()).phase, "UNDEFINED", "PhaseInfoUndefined, UnknownTransition");
  assert.ok(isExplained(migrating, "SystemErrorCode"), "SystemErrorCode");
  assert.ok(isExplained(migrating, "AllocationUndefined"), "AllocationUndefined");
});

const page = namesOfPage("flyteplugins-core");
test("the walk has every name of the page, in its order", { skip: page === null }, () => {
  assert.deepEqual(
    NAMES.map(([name]) => name),
    page,
  );
});
