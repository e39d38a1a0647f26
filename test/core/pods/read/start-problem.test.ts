/** Pods that can never start: they must not hold GPUs through start timeouts without an end. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SentRunPolicy } from "../../../../src/core/job/request/sent.ts";
import { startReasonOf } from "../../../../src/core/pods/read/start-problem.ts";
import { names, pytorch, Scene } from "../../reconcile/scene.ts";
import { admit } from "../../reconcile/world.ts";

const RESOLVE = 'failed to pull and unpack image "docker.io/a/b:1": failed to resolve reference "docker.io/a/b:1": ';

describe("a reason for which a pod can never start", () => {
  const cases: Record<string, readonly [reason: string, message: string, found: string | null]> = {
    "containerd does not find the tag": ["ErrImagePull", `${RESOLVE}docker.io/a/b:1: not found`, "ImageNotFound"],
    "CRI-O does not find the manifest": [
      "ErrImagePull",
      "reading manifest 1 in reg/a/b: manifest unknown",
      "ImageNotFound",
    ],
    "the image is not built for the node": [
      "ErrImagePull",
      "no match for platform in manifest: not found",
      "ImageNotFound",
    ],
    "the registry hides what the caller may not pull": [
      "ImagePullBackOff",
      `${RESOLVE}pull access denied, repository does not exist or may require authorization: insufficient_scope`,
      "ImageAccessDenied",
    ],
    "the registry asks for credentials": ["ErrImagePull", `${RESOLVE}401 Unauthorized`, "ImageAccessDenied"],
    "the registry forbids it": ["ErrImagePull", `${RESOLVE}403 Forbidden`, "ImageAccessDenied"],
    "the name is invalid": ["InvalidImageName", "couldn't parse image name", "InvalidImageName"],
    "a secret lacks a key": ["CreateContainerConfigError", "couldn't find key token in Secret team/s", "MissingKey"],
    "a config map lacks a key": ["CreateContainerConfigError", "references non-existent config key: x", "MissingKey"],
    "the registry's name does not resolve": ["ErrImagePull", `${RESOLVE}dial tcp: lookup reg: no such host`, null],
    "the registry cannot be reached": ["ErrImagePull", `${RESOLVE}dial tcp 10.0.0.1:443: i/o timeout`, null],
    "the registry limits the rate": ["ErrImagePull", `${RESOLVE}429 Too Many Requests: toomanyrequests`, null],
    "a proxy answers for the registry": ["ErrImagePull", `${RESOLVE}503 Service Unavailable: host not found`, null],
    "the kubelet says only that it waits": ["ImagePullBackOff", 'Back-off pulling image "a/b:1"', null],
    "no node has room": ["Unschedulable", "0/3 nodes are available: node not found", null],
    "the program ends": ["CrashLoopBackOff", "back-off 10s restarting failed container: file not found", null],
  };
  for (const [name, [reason, message, found]] of Object.entries(cases)) {
    test(`${name}: ${found ?? "a later start may succeed"}`, () => {
      assert.equal(startReasonOf({ reason, message }), found);
    });
  }
});

const TIMEOUT_S = 60;
const NOT_FOUND = `${RESOLVE}not found`;
const UNREACHABLE = `${RESOLVE}dial tcp: i/o timeout`;
const DENIED = `${RESOLVE}pull access denied`;

const startsOf = (runPolicy: SentRunPolicy = {}) =>
  new Scene(pytorch({ ...runPolicy, schedulingPolicy: { scheduleTimeoutSeconds: TIMEOUT_S } }));

const show = (scene: Scene, message: string) => {
  for (const pod of scene.cluster.pods()) {
    scene.cluster.setPod(pod, {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "True" }],
      containerStatuses: [{ name: "pytorch", ready: false, state: { waiting: { reason: "ErrImagePull", message } } }],
    });
  }
  scene.step();
};

/** An admission whose pods have this problem until the start timeout undoes it. Returns the last decision. */
const start = (scene: Scene, message: string) => {
  scene.step();
  show(scene, message);
  // The pods are made anew and show nothing when the time is over.
  for (const pod of scene.cluster.pods()) scene.cluster.setPod(pod, { phase: "Pending" });
  scene.nowMs += TIMEOUT_S * 1_000;
  const decision = scene.step();
  scene.rest();
  if (scene.job.status.phase === "WAITING") {
    const number = (scene.job.admissions.at(-1)?.number ?? decision.record?.admissions.at(-1)?.number ?? 0) + 1;
    scene.job = admit(scene.job, { cluster: "c1", nowMs: scene.nowMs, number });
  }
  return decision;
};

describe("starts that fail for a permanent reason", () => {
  test("end the job at the third in a row, and free what it held", () => {
    const scene = startsOf();
    for (const _ of [1, 2]) {
      const undone = start(scene, NOT_FOUND);
      assert.match(undone.record?.events.at(0)?.message ?? "", /is undone: ErrImagePull|ImagePullBackOff .*not found/);
      assert.equal(scene.job.status.phase, "ADMITTED");
    }
    start(scene, NOT_FOUND);
    const { status } = scene.job;
    assert.deepEqual([status.phase, status.failure?.code], ["FAILED", "StartFailed"]);
    assert.match(status.failure?.message ?? "", /could not start 3 times in a row \(ImageNotFound\): .*not found/);
    assert.deepEqual(scene.podNames, [], "the limit frees the GPUs");
    assert.notEqual(scene.job.admissions.at(-1)?.tokensReleasedMs, null);
  });

  const lives: Record<
    string,
    { readonly messages: readonly string[]; readonly limit?: number; readonly ends: boolean }
  > = {
    "an unreachable registry never ends the job": { messages: Array(6).fill(UNREACHABLE), ends: false },
    "a start in between for a passing reason breaks the row": {
      messages: [NOT_FOUND, NOT_FOUND, UNREACHABLE, NOT_FOUND, NOT_FOUND],
      ends: false,
    },
    "another permanent reason begins a row of its own": {
      messages: [NOT_FOUND, NOT_FOUND, DENIED, DENIED],
      ends: false,
    },
    "a limit of 1 ends the job at the first": { messages: [DENIED], limit: 1, ends: true },
    "a higher limit allows more": { messages: Array(4).fill(DENIED), limit: 5, ends: false },
  };
  for (const [name, { messages, limit, ends }] of Object.entries(lives)) {
    test(name, () => {
      const scene = startsOf(limit === undefined ? {} : { startBackoffLimit: limit });
      for (const message of messages) start(scene, message);
      assert.equal(scene.job.status.phase, ends ? "FAILED" : "ADMITTED");
    });
  }

  test("are forgotten once the gang has run", () => {
    const scene = startsOf();
    for (const _ of [1, 2]) start(scene, NOT_FOUND);
    scene.start();
    assert.equal(scene.job.status.phase, "RUNNING");
    assert.deepEqual([scene.job.status.backoff, scene.job.status.startProblem], [null, undefined]);
  });

  test("do not end a job that an older version has recorded", () => {
    const scene = startsOf();
    const { startBackoffLimit: _new, ...runPolicy } = scene.job.spec.runPolicy;
    scene.job = { ...scene.job, spec: { ...scene.job.spec, runPolicy } };
    for (const _ of [1, 2, 3, 4]) start(scene, NOT_FOUND);
    assert.equal(scene.job.status.phase, "ADMITTED");
  });

  test("undo the whole admission, so that no pod of it stays", () => {
    const scene = startsOf();
    scene.step();
    show(scene, NOT_FOUND);
    scene.nowMs += TIMEOUT_S * 1_000;
    assert.deepEqual(names(scene.step(), "deletePod"), ["j-master-0", "j-worker-0", "j-worker-1"]);
  });
});
