/** The models of the console's views, without a browser. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { parse } from "yaml";
import { follow } from "../../console/src/live/follow.ts";
import { isListedBefore, newestOf, withChanges } from "../../console/src/live/live-jobs.ts";
import { agoText, exactText } from "../../console/src/parts/time-text.ts";
import { type ViewState, viewState } from "../../console/src/parts/view-state.ts";
import { jobPath, type Route, routeOf, withQuery } from "../../console/src/router/path.ts";
import { callFailed, isPassing } from "../../console/src/rpc/failure.ts";
import { commandsFor } from "../../console/src/views/job/commands.ts";
import { found, NO_LINES, withLines } from "../../console/src/views/job/log-buffer.ts";
import { holderOf, whyOf } from "../../console/src/views/job/why.ts";
import { type Json, yamlText } from "../../console/src/views/job/yaml-text.ts";
import { completedFilters } from "../../console/src/views/jobs/complete-filter.ts";
import { ORDERS, PRESETS, requestOf } from "../../console/src/views/jobs/jobs-search.ts";
import { NO_ROWS, placed } from "../../console/src/views/jobs/row-order.ts";
import { clusterRows, queueRows } from "../../console/src/views/overview/overview-rows.ts";
import { ClusterSchema, ClusterState } from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { type Job, JobPhase, JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import {
  ExplainJobResponseSchema,
  PodObstacle_Kind,
  QuotaLevel,
  WatchJobsResponse_Type,
  WatchJobsResponseSchema,
} from "../../src/gen/gangway/v1/job_service_pb.ts";
import { QueueSchema } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";

const routes: Readonly<Record<string, Route>> = {
  "/": { view: "overview" },
  "/jobs": { view: "jobs" },
  "/jobs/": { view: "jobs" },
  "/jobs/default/llama": { view: "job", namespace: "default", name: "llama" },
  "/jobs/default": { view: "unknown" },
  "/jobs/default/": { view: "unknown" },
  "/jobs/default/llama/pods": { view: "unknown" },
  "/jobs//llama": { view: "unknown" },
  "/%": { view: "unknown" },
  "/queues": { view: "unknown" },
};
suite("a path leads to its view", () => {
  for (const [path, route] of Object.entries(routes)) test(path, () => assert.deepEqual(routeOf(path), route));

  test("the path of a job leads to that job", () => {
    const text = fc.string({ minLength: 1 });
    fc.assert(
      fc.property(text, text, (namespace, name) => {
        assert.deepEqual(routeOf(jobPath({ namespace, name })), { view: "job", namespace, name });
      }),
    );
  });
});

test("an address has only what is asked for", () => {
  assert.equal(withQuery("/jobs", { phase: "waiting", queue: "" }), "/jobs?phase=waiting");
  assert.equal(withQuery("/jobs", { phase: "" }), "/jobs");
});

const denied = new ConnectError("ann may not list jobs", Code.PermissionDenied, new Headers({ "x-request-id": "r1" }), [
  { desc: ErrorInfoSchema, value: { metadata: { permission: "jobs.list", scope: "namespace/a" } } },
]);
const away = new TypeError("Failed to fetch");
const known = { dataUpdatedAt: 5, error: null };

const states: Readonly<Record<string, readonly [ViewState<readonly string[]>, ViewState<readonly string[]>["kind"]]>> =
  {
    "no answer yet is loading, not empty": [of({ data: undefined, error: null, dataUpdatedAt: 0 }), "loading"],
    "nothing there": [of({ ...known, data: [] }), "empty"],
    data: [of({ ...known, data: ["a"] }), "data"],
    "a failure without data": [of({ data: undefined, error: away, dataUpdatedAt: 0 }), "failed"],
    "a failure after data keeps them": [of({ data: ["a"], error: away, dataUpdatedAt: 5 }), "data"],
    "a failure after an empty answer": [of({ data: [], error: away, dataUpdatedAt: 5 }), "empty"],
    "no permission": [of({ data: undefined, error: denied, dataUpdatedAt: 0 }), "forbidden"],
    "a permission that was taken away hides what was shown": [
      of({ data: ["a"], error: denied, dataUpdatedAt: 5 }),
      "forbidden",
    ],
  };
suite("a view is in one state", () => {
  for (const [name, [state, kind]] of Object.entries(states)) test(name, () => assert.equal(state.kind, kind));

  test("data from before a failure say why they are old, and since when", () => {
    const state = of({ data: ["a"], error: away, dataUpdatedAt: 5 });
    assert.deepEqual(state.kind === "data" && state.stale, { why: "The service does not answer.", sinceMs: 5 });
  });

  test("the service itself says that data are old", () => {
    const state = viewState({ ...known, data: ["a"] }, () => false, "cluster east does not answer");
    assert.deepEqual(state.kind === "data" && state.stale, { why: "cluster east does not answer", sinceMs: null });
  });
});

function of(query: Parameters<typeof viewState<readonly string[]>>[0]): ViewState<readonly string[]> {
  return viewState(query, (data) => data.length === 0);
}

test("a refusal has the permission, its scope, the request and the service's sentence", () => {
  assert.deepEqual(callFailed(denied), {
    kind: "forbidden",
    message: "ann may not list jobs",
    requestId: "r1",
    permission: "jobs.list",
    scope: "namespace/a",
  });
});

suite("rows stay in their places", () => {
  const uids = fc.uniqueArray(fc.integer({ min: 0, max: 30 }).map(String), { maxLength: 20 });

  test("law: no list moves a row that is shown, and each of its jobs is shown or counted", () => {
    fc.assert(
      fc.property(uids, uids, (first, second) => {
        const before = placed(NO_ROWS, first);
        const after = placed(before, second);
        assert.deepEqual(after.shown.slice(0, before.shown.length), before.shown);
        assert.equal(new Set(after.shown).size, after.shown.length);
        assert.equal(second.filter((uid) => !after.shown.includes(uid)).length, after.newer);
      }),
    );
  });

  test("a new job at the top is counted, the next page is appended, a job that left stays", () => {
    const before = placed(NO_ROWS, ["c", "b", "a"]);
    assert.deepEqual(placed(before, ["d", "c", "a", "z"]), { shown: ["c", "b", "a", "z"], newer: 1 });
  });
});

suite("a watch brings rows up to date", () => {
  const listed = job("5", JobPhase.RUNNING, 8n);

  test("an older version does not replace a newer one", () => {
    assert.equal(newestOf(listed, changed(job("4", JobPhase.STARTING, 0n))), listed);
  });

  test("a newer version does, with the tokens that only lists have", () => {
    const now = newestOf(listed, changed(job("6", JobPhase.RESTARTING, 0n)));
    assert.equal(now?.status?.phase, JobPhase.RESTARTING);
    assert.equal(now.status.admission?.tokens[0]?.amount, 8n);
  });

  test("a job that has ended holds what the change says", () => {
    const now = newestOf(listed, changed(job("6", JobPhase.SUCCEEDED, 0n)));
    assert.deepEqual(now?.status?.admission?.tokens, []);
  });

  test("the list lacks the tokens of a job that was admitted after it", () => {
    assert.equal(isListedBefore(listed, job("6", JobPhase.RESTARTING, 0n)), false);
    assert.equal(isListedBefore(create(JobSchema, { status: { phase: JobPhase.WAITING } }), listed), true);
  });

  test("a removed record", () => {
    assert.equal(newestOf(listed, changed(listed, WatchJobsResponse_Type.DELETED)), null);
  });

  test("a gap forgets everything before it", () => {
    const gap = create(WatchJobsResponseSchema, { type: WatchJobsResponse_Type.GAP });
    assert.equal(withChanges(changed(listed), [gap]).size, 0);
  });
});

function job(resourceVersion: string, phase: JobPhase, amount: bigint): Job {
  const tokens = amount === 0n ? [] : [{ pool: "gpu/h100", amount }];
  return create(JobSchema, {
    metadata: { uid: "u", resourceVersion },
    status: { phase, admission: { number: 1, flavors: { "nvidia.com/gpu": "gpu/h100" }, tokens } },
  });
}

function changed(job: Job, type: WatchJobsResponse_Type = WatchJobsResponse_Type.MODIFIED) {
  return withChanges(new Map(), [create(WatchJobsResponseSchema, { type, job })]);
}

const spans: Readonly<Record<number, string>> = {
  0: "now",
  42000: "42 s ago",
  192000: "3 min ago",
  7200000: "2 h ago",
  172800000: "2 d ago",
  [-120_000]: "in 2 min",
};
suite("times in words", () => {
  for (const [spanMs, text] of Object.entries(spans)) {
    test(text, () => assert.equal(agoText(1e12, 1e12 + Number(spanMs)), text));
  }
  test("exactly", () => assert.equal(exactText(0), "1970-01-01 00:00:00 UTC"));
});

suite("why a job waits", () => {
  test("holders lead to their jobs; callers and hidden jobs are words", () => {
    assert.deepEqual(holderOf("nlp/llama"), { text: "nlp/llama", href: "/jobs/nlp/llama" });
    assert.equal(holderOf("caller ex:w").href, null);
    assert.equal(holderOf("another job").href, null);
  });

  test("the answer becomes rows", () => {
    const why = whyOf(
      create(ExplainJobResponseSchema, {
        summary: "a/b waits",
        position: 2,
        quotas: [{ level: QuotaLevel.PROJECT, name: "p", flavor: "gpu/h100", need: 8n, used: 4n, limit: 8n }],
        clusters: [
          {
            cluster: "east",
            simulated: true,
            need: 2,
            have: 1,
            blockedPod: {
              node: "n0",
              nodes: 3,
              obstacles: [
                {
                  kind: PodObstacle_Kind.RESOURCE,
                  name: "nvidia.com/gpu",
                  need: "8",
                  available: "2",
                  allocatable: "8",
                },
                { kind: PodObstacle_Kind.TAINT, name: "k=v:NoSchedule" },
              ],
            },
          },
        ],
      }),
    );
    assert.equal(why.quotas[0]?.level, "project p");
    assert.equal(why.clusters[0]?.cluster, "east (simulated)");
    assert.equal(why.clusters[0]?.nearest, "n0 and 2 like it");
    assert.deepEqual(why.clusters[0]?.obstacles, [
      "nvidia.com/gpu: needs 8, has 2 of 8 free",
      "has the taint k=v:NoSchedule",
    ]);
  });
});

suite("the lines of a log", () => {
  const lines = (count: number, start = 0) =>
    Array.from({ length: count }, (_, at) => ({ replica: "Worker/0", text: `step ${start + at}` }));

  test("law: at most so many are kept, the newest, and the others are counted", () => {
    const batches = fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 10 });
    fc.assert(
      fc.property(batches, fc.integer({ min: 1, max: 40 }), (sizes, keptMax) => {
        const all = sizes.reduce((buffer, size) => withLines(buffer, lines(size, buffer.next - 1), keptMax), NO_LINES);
        const total = sizes.reduce((sum, size) => sum + size, 0);
        assert.equal(all.lines.length, Math.min(keptMax, total));
        assert.equal(all.dropped + all.lines.length, total);
        assert.deepEqual(
          all.lines.map(({ text }) => text),
          lines(total)
            .slice(all.dropped)
            .map(({ text }) => text),
        );
        assert.equal(new Set(all.lines.map(({ number }) => number)).size, all.lines.length);
      }),
    );
  });

  test("what is looked for is found in any case; words of the page about the log stay", () => {
    const buffer = withLines(NO_LINES, [...lines(2), { replica: "", text: "the pod is gone" }]);
    assert.deepEqual(
      found(buffer.lines, "STEP 1").map(({ text }) => text),
      ["step 1", "the pod is gone"],
    );
  });
});

test("law: what is written as YAML is read as what it was", () => {
  const json = fc.jsonValue({ maxDepth: 4 });
  const text = fc.oneof(fc.string(), fc.string({ unit: "grapheme" }), fc.constantFrom(...ODD_TEXTS));
  fc.assert(
    fc.property(fc.oneof(json, fc.dictionary(text, text), fc.array(text)), (value) => {
      const plain = JSON.parse(JSON.stringify(value));
      assert.deepEqual(parse(yamlText(plain as Json), { version: "1.2" }), plain);
    }),
    { numRuns: 500 },
  );
});
const ODD_TEXTS = [
  "yes",
  "null",
  "1e3",
  "- a",
  "a: b",
  "# c",
  "a\nb",
  "a\nb\n",
  "a\n\n",
  " a\nb",
  "a \nb",
  "",
  "\ta\n",
];

suite("commands say the namespace and fit the job", () => {
  test("of a job that lives elsewhere than in default", () => {
    const commands = commandsFor({ namespace: "nlp", name: "llama" }, false).map(({ command }) => command);
    assert.ok(commands.includes("gangway explain llama -n nlp"));
    assert.ok(commands.includes("gangway cancel llama -n nlp"));
  });

  test("of a job that has ended", () => {
    const commands = commandsFor({ namespace: "default", name: "llama" }, true).map(({ command }) => command);
    assert.ok(commands.includes("gangway rerun llama"));
    assert.ok(!commands.includes("gangway cancel llama"));
  });
});

suite("a stream that breaks is opened again", () => {
  test("until it ends, and each state is told once a change", async () => {
    const told: string[] = [];
    let opened = 0;
    await follow<number>(
      {
        open: async function* () {
          opened += 1;
          yield opened;
          if (opened < 3) throw away;
        },
        onMessage: (message) => told.push(String(message)),
        onState: (state) => told.push(state),
        isPassing,
        random: () => 0.5,
        sleep: async () => {},
      },
      new AbortController().signal,
    );
    assert.deepEqual(told, ["connecting", "live", "1", "reconnecting", "live", "2", "reconnecting", "live", "3"]);
  });

  test("a refusal is not repeated", async () => {
    let opened = 0;
    const refused = follow(
      {
        // biome-ignore lint/correctness/useYield: it fails before its first message
        open: async function* () {
          opened += 1;
          throw denied;
        },
        onMessage: () => {},
        onState: () => {},
        isPassing,
        random: () => 0,
        sleep: async () => {},
      },
      new AbortController().signal,
    );
    await assert.rejects(refused, /may not list/);
    assert.equal(opened, 1);
  });
});

suite("the filter of the list", () => {
  test("each preset is a request", () => {
    for (const preset of PRESETS) assert.equal(typeof requestOf(preset, 1e12, "ann"), "object", preset.label);
    assert.ok(PRESETS.every(({ sort }) => Object.hasOwn(ORDERS, sort)));
  });

  test("the caller's own name, one namespace, and an order", () => {
    const request = requestOf({ q: "owner:me namespace:nlp phase:failed", sort: "name" }, 1e12, "ann");
    assert.ok(typeof request === "object");
    assert.deepEqual(request.filter.createdBy, ["ann"]);
    assert.deepEqual(request.filter.phases, [JobPhase.FAILED]);
    assert.deepEqual([request.namespace, request.orderBy], ["nlp", "name"]);
  });

  test("what is wrong is named, with what is allowed", () => {
    assert.match(String(requestOf({ q: "fase:x", sort: "" }, 0, "")), /no key "fase".*phase/);
    assert.match(String(requestOf({ q: "", sort: "best" }, 0, "")), /no order best: use one of oldest, /);
    assert.match(String(requestOf({ q: "", sort: "constructor" }, 0, "")), /no order constructor/);
  });

  const completions: Readonly<Record<string, readonly string[]>> = {
    qu: ["queue:"],
    "queue:a na": ["queue:a namespace:", "queue:a name:"],
    "phase:s": ["phase:starting", "phase:suspended", "phase:succeeded"],
    "owner:me": [],
    "constructor:": [],
  };
  for (const [text, expected] of Object.entries(completions)) {
    test(`"${text}" is completed`, () => assert.deepEqual(completedFilters(text), expected));
  }
});

suite("the overview", () => {
  const cluster = (members: object) =>
    create(ClusterSchema, {
      ...{ name: "east", reachable: true, state: ClusterState.ACTIVE },
      flavors: [{ name: "gpu/h100", nodes: 2, allocatable: "16", free: "6" }],
      ...members,
    });

  test("a cluster's flavors, what is held of them, and what is wrong", () => {
    const [row] = clusterRows([cluster({})]);
    assert.deepEqual([row?.flavor, row?.use, row?.problems], ["h100", { held: 10, all: 16 }, []]);
    assert.deepEqual(clusterRows([cluster({ cordoned: true })])[0]?.problems, ["cordoned"]);
    const silent = cluster({ reachable: false, state: ClusterState.UNREACHABLE });
    assert.deepEqual(clusterRows([silent])[0]?.problems, ["unreachable"]);
  });

  test("a cluster that was not observed yet has no zeros", () => {
    const flavors = [{ name: "gpu/h100", nodes: 0, allocatable: "", free: "" }];
    assert.equal(clusterRows([cluster({ flavors })])[0]?.use, null);
  });

  test("queues that starve stand before those that borrow, and these before quiet ones", () => {
    const quotas = [{ flavor: "gpu/h100", nominal: 8n }];
    const queue = (name: string, use: object) => create(QueueSchema, { name, quotas, use });
    const rows = queueRows([
      queue("quiet", { used: { "gpu/h100": 2n } }),
      queue("borrows", { used: { "gpu/h100": 10n }, borrowed: { "gpu/h100": 2n }, waitingJobs: 1 }),
      queue("starves", { used: { "gpu/h100": 4n }, lent: { "gpu/h100": 2n }, waitingJobs: 3 }),
    ]);
    assert.deepEqual(
      rows.map(({ queue, marks }) => [queue, ...marks]),
      [["starves", "waits below its quota", "lends"], ["borrows", "borrows"], ["quiet"]],
    );
  });

  test("what is granted for a time is part of the quota", () => {
    const quotas = [{ flavor: "gpu/h100", nominal: 8n, granted: 4n }];
    assert.equal(queueRows([create(QueueSchema, { name: "q", quotas })])[0]?.quota, 12);
  });
});
