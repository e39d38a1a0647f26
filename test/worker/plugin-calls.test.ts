import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import {
  type Plugin,
  phaseInfo,
  type ResourceManager,
  serviceKind,
  type TaskContext,
} from "../../src/core/kinds/plugin.ts";
import type { WorkerClusters } from "../../src/worker/ports.ts";
import { createWorker, type WorkerOptions } from "../../src/worker/worker.ts";
import { clock } from "../cluster/harness.ts";
import { CONFIG, jobOf } from "../core/reconcile/world.ts";
import { waitUntil } from "../support/bounded.ts";
import { kindsWith } from "../support/kinds.ts";
import { MemoryStore } from "./memory-store.ts";

const KINDS = kindsWith(
  { id: "a", kinds: [serviceKind({ name: "AJob", description: "" })], load: () => never() },
  { id: "c", kinds: [serviceKind({ name: "AnyJob", description: "" })], load: () => never(), isDefault: true },
  { id: "b", kinds: [serviceKind({ name: "BJob", description: "" })], load: () => never() },
);

function never(): never {
  throw new Error("the test's own host loads plugins");
}

/** A job without pods needs no cluster. */
const clusters: WorkerClusters = {
  observe: () => assert.fail("a job without pods is in no cluster"),
  listJob: () => assert.fail("a job without pods is in no cluster"),
  act: () => assert.fail("a job without pods needs no action"),
  claim: () => assert.fail("a job without pods claims nothing"),
  anchorLives: async () => false,
  seenJobs: () => [],
  namespaceOf: () => null,
};

let counter = 0;

function submitted(store: MemoryStore, kind: string, systemBackoffLimit = 1): Job {
  const uid = `uid-${counter++}`;
  const job = jobOf({ kind, replicaSpecs: {}, runPolicy: { systemBackoffLimit } }, { uid, name: uid }, KINDS);
  store.add(job);
  store.admit(uid, null);
  return job;
}

/** A worker with these plugins. The test steps it until a condition holds. */
function working(
  store: MemoryStore,
  plugins: Readonly<Record<string, Partial<Plugin>>>,
  pluginCallMsMax = 10_000,
  options: Partial<Pick<WorkerOptions, "onError" | "pluginEvents">> & {
    readonly answer?: (of: { readonly pool: string }) => Awaited<ReturnType<ResourceManager["allocate"]>>;
  } = {},
) {
  const { answer = () => ({ status: "GRANTED" }), ...rest } = options;
  const term = { name: `worker ${counter++}`, signal: new AbortController().signal };
  const tokens: string[] = [];
  const worker = createWorker(
    {
      clock,
      store: store.port(),
      clusters,
      member: { term: () => term },
      wakePlanner: () => undefined,
      plugins: {
        pluginOf: async (kind) => {
          const own = plugins[kind] ?? assert.fail(`no plugin for ${kind}`);
          const nothing = async () => undefined;
          return {
            id: kind,
            handle: async () => ({ info: phaseInfo.success() }),
            abort: nothing,
            finalize: nothing,
            ...own,
          };
        },
        resources: ({ taskName }) => ({
          allocate: async ({ pool }) => {
            tokens.push(`${pool}/${taskName}`);
            return answer({ pool });
          },
          release: async () => undefined,
        }),
        secrets: { get: async (name) => `the ${name}` },
      },
    },
    { config: { ...CONFIG, kinds: KINDS }, pluginCallMsMax, onError: (error) => assert.fail(String(error)), ...rest },
  );
  const until = (holds: () => boolean) => {
    const isDone = async () => {
      if (holds()) return true;
      await worker.runOnce();
      return false;
    };
    return waitUntil("the worker has done its work", isDone, { pollMs: 1 });
  };
  return { worker, until, tokens };
}

const statusOf = (store: MemoryStore, { uid }: Job) => store.job(uid)!.status;

test("each call sees the state of the last one under one task name, and is recorded before it is made", async () => {
  const store = new MemoryStore(clock);
  const job = submitted(store, "AJob");
  const rounds: TaskContext[] = [];
  const { until, tokens } = working(store, {
    AJob: {
      handle: async (context) => {
        rounds.push(context);
        const recorded = statusOf(store, job);
        assert.equal(recorded.plugin?.stage, "handle");
        assert.deepEqual(recorded.plugin?.state, context.state);
        await context.resources.allocate({ pool: "slots" });
        const state = { version: 7, value: { round: rounds.length } };
        if (rounds.length === 4)
          return { info: phaseInfo.success({ reason: await context.secrets.get("word") }), state };
        return { info: phaseInfo.running(), state, recheckAfterMs: 0 };
      },
    },
  });
  await until(() => statusOf(store, job).plugin?.stage === "done");
  assert.deepEqual(
    rounds.map(({ state }) => state.value),
    [null, { round: 1 }, { round: 2 }, { round: 3 }],
  );
  assert.deepEqual([...new Set(tokens)], [`slots/gw-${job.uid}-1-1`]);
  assert.equal(statusOf(store, job).phase, "SUCCEEDED");
  assert.equal(statusOf(store, job).info?.reason, "the word");
  const reported = store.events.filter(({ reason }) => reason === "AJobTaskProgress");
  assert.equal(reported.length, 2, "the same phase and version cause no event");
});

test("a call has the job's inputs, limits and platform, and may change none of them", async () => {
  const store = new MemoryStore(clock);
  const runPolicy = { backoffLimit: 4, systemBackoffLimit: 2, interruptible: true, interruptibleFailureThreshold: 3 };
  const inputs = { table: "t", days: [1, 2] };
  const job = jobOf(
    { kind: "AJob", replicaSpecs: {}, runPolicy, inputs },
    { uid: "uid-inputs", name: "inputs" },
    KINDS,
  );
  store.add(job);
  store.admit(job.uid, null);
  const rounds: TaskContext[] = [];
  const { until } = working(store, {
    AJob: {
      handle: async (context) => {
        rounds.push({ ...context, inputs: structuredClone(context.inputs) });
        (context.inputs as { table: string }).table = "changed";
        context.events.record({ reason: "Seen", message: "once" });
        assert.throws(() => context.events.record({ reason: "not a word", message: "" }), /reason must be a letter/);
        await assert.rejects(context.store.read("s3://bucket/x"), /set GANGWAY_OBJECT_STORES/);
        const more = { info: phaseInfo.running(), recheckAfterMs: 0 };
        return rounds.length === 2 ? { info: phaseInfo.success(), outputs: context.inputs } : more;
      },
    },
  });
  await until(() => statusOf(store, job).plugin?.stage === "done");
  for (const { inputs: given, maxAttempts, interruptible, interruptibleFailureThreshold, platform } of rounds) {
    assert.deepEqual(given, inputs);
    assert.deepEqual([maxAttempts, interruptible, interruptibleFailureThreshold], [{ user: 4, system: 2 }, true, 3]);
    assert.equal(platform.serviceAccount, "");
  }
  assert.deepEqual(statusOf(store, job).outputs, { table: "changed", days: [1, 2] });
  assert.equal(store.events.filter(({ reason }) => reason === "Seen").length, 2);
});

test("plugins that hang are cut off, and delay neither the worker's other jobs nor other plugins", async () => {
  const store = new MemoryStore(clock);
  const hanging = Array.from({ length: 40 }, () => submitted(store, "AJob"));
  const signals: AbortSignal[] = [];
  const { until } = working(
    store,
    {
      AJob: {
        handle: ({ signal }) => {
          signals.push(signal);
          return new Promise(() => undefined);
        },
      },
      BJob: {},
    },
    30,
  );
  const other = submitted(store, "BJob");
  await until(() => statusOf(store, other).phase === "SUCCEEDED");
  assert.ok(hanging.some((job) => statusOf(store, job).phase !== "FAILED"));
  await until(() => hanging.every((job) => statusOf(store, job).plugin?.stage === "done"));
  for (const job of hanging) assert.match(statusOf(store, job).failure?.message ?? "", /cut off after 0.03 s/);
  assert.ok(signals.every(({ aborted }) => aborted));
});

test("a plugin gets no tokens after its call has ended", async () => {
  const store = new MemoryStore(clock);
  const job = submitted(store, "AJob");
  let late: Promise<unknown> = Promise.resolve();
  const { until, tokens } = working(store, {
    AJob: {
      handle: async ({ resources, signal }) => {
        late = new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve(resources.allocate({ pool: "slots" }).catch(String)));
        });
        return { info: phaseInfo.success() };
      },
    },
  });
  await until(() => statusOf(store, job).plugin?.stage === "done");
  assert.match(String(await late), /the call is over/);
  assert.deepEqual(tokens, []);
});

test("plugin calls, token requests and jobs that lack tokens are reported under the kind's own name", async () => {
  const store = new MemoryStore(clock);
  const wrong = submitted(store, "RubbishJob");
  const asks = submitted(store, "AskingJob");
  const reported: string[] = [];
  const { until } = working(
    store,
    {
      RubbishJob: { handle: async () => ({}) as never },
      AskingJob: {
        handle: async ({ resources }) => {
          const { status } = await resources.allocate({ pool: "slots" });
          if (status === "GRANTED") return { info: phaseInfo.success() };
          return { info: phaseInfo.waitingForResources(), recheckAfterMs: 0 };
        },
      },
    },
    10_000,
    {
      answer: () => (reported.includes("1 wait") ? { status: "GRANTED" } : { status: "EXHAUSTED", message: "full" }),
      pluginEvents: {
        pluginCalled: ({ kind, call, outcome }) => void reported.push(`${kind} ${call} ${outcome}`),
        pluginAsked: ({ kind, pool, outcome }) => void reported.push(`${kind} ${pool} ${outcome}`),
        pluginsWait: ({ jobs }) => void reported.push(`${jobs} wait`),
      },
    },
  );
  await until(() => [wrong, asks].every((job) => statusOf(store, job).plugin?.stage === "done"));
  for (const fact of ["handle failed", "slots exhausted", "slots granted", "handle answered", "finalize answered"]) {
    assert.ok(reported.includes(`AnyJob ${fact}`), fact);
  }
  assert.equal(
    reported.findLast((fact) => fact.endsWith(" wait")),
    "0 wait",
  );
});

test("a plugin that blocks the event loop is named in the error", async () => {
  const store = new MemoryStore(clock);
  const job = submitted(store, "AJob");
  const errors: string[] = [];
  const { until } = working(
    store,
    {
      AJob: {
        handle: async () => {
          const untilMs = performance.now() + 600;
          while (performance.now() < untilMs);
          return { info: phaseInfo.success() };
        },
      },
    },
    10_000,
    { onError: (error, what) => void errors.push(`${what}: ${error}`) },
  );
  await until(() => statusOf(store, job).plugin?.stage === "done");
  assert.match(errors.join(), /handle of job .*: Error: plugin AJob blocked the event loop for \d+ ms/);
});

const wrong: Record<string, { readonly plugin: Partial<Plugin>; readonly says: RegExp }> = {
  "throws at once": {
    plugin: {
      handle: () => {
        throw new Error("at once");
      },
    },
    says: /at once/,
  },
  "throws a value that is not an error": {
    plugin: { handle: () => Promise.reject(Object.create(null)) },
    says: /no error was thrown/,
  },
  "returns nothing": { plugin: { handle: async () => undefined as never }, says: /handle returned nothing/ },
  "returns an unknown phase": {
    plugin: { handle: async () => ({ info: { ...phaseInfo.running(), phase: "FINE" as never } }) },
    says: /info\.phase must be one of/,
  },
  "stores too large a state": {
    plugin: {
      handle: async () => ({ info: phaseInfo.running(), state: { version: 1, value: { text: "x".repeat(70_000) } } }),
    },
    says: /handle returned 70\d+ characters of JSON; state and info together may have 65536/,
  },
  "stores a number that JSON does not have": {
    plugin: { handle: async () => ({ info: phaseInfo.running(), state: { version: 1, value: { of: 1n } as never } }) },
    says: /the result of handle is not JSON: .*BigInt/,
  },
  "stores a state without its wrapper": {
    plugin: { handle: async () => ({ info: phaseInfo.running(), state: { step: "poll" } as never }) },
    says: /state has step; it may have version, value/,
  },
  "misspells a member": {
    plugin: { handle: async () => ({ info: phaseInfo.running(), recheckAfterMS: 10 }) as never },
    says: /the result of handle has recheckAfterMS; it may have info, state, outputs, recheckAfterMs/,
  },
  "cannot reach its service": {
    plugin: {
      handle: () => Promise.reject(new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") })),
    },
    says: /fetch failed: connect ECONNREFUSED/,
  },
};
for (const [name, { plugin, says }] of Object.entries(wrong)) {
  test(`a plugin that ${name} fails its job, and is still aborted and finalized`, async () => {
    const store = new MemoryStore(clock);
    const job = submitted(store, "AJob");
    const called: string[] = [];
    const { until } = working(store, {
      AJob: {
        abort: async () => void called.push("abort"),
        finalize: async () => void called.push("finalize"),
        ...plugin,
      },
    });
    await until(() => statusOf(store, job).plugin?.stage === "done");
    const { failure } = statusOf(store, job);
    assert.deepEqual([failure?.code, failure?.kind], ["PluginFailed", "SYSTEM"]);
    assert.match(failure?.message ?? "", says);
    assert.deepEqual(called, ["abort", "finalize"]);
    assert.notEqual(store.job(job.uid)?.admissions[0]?.tokensReleasedMs, null);
  });
}
