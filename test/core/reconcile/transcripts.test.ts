/**
 * Compares what whole lives of jobs record and do, step by step, with text that a reviewer has read. Each file of
 * `transcripts` is one life. To write them again:
 * `GANGWAY_RECORD=transcripts npm test -- test/core/reconcile/transcripts.test.ts`.
 */
import { test } from "node:test";
import type { Job } from "../../../src/core/job/job.ts";
import { LABEL } from "../../../src/core/job/labels.ts";
import type { SentSpec } from "../../../src/core/job/request/sent.ts";
import { applyCacheLookup, lookUpCache } from "../../../src/core/reconcile/plugins/cached-result.ts";
import { kindFailed } from "../../../src/core/reconcile/plugins/kind-failed.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { objectAt } from "../../../src/runtime/json.ts";
import { kindsWith } from "../../support/kinds.ts";
import { etlEntry } from "../kinds/plugin-world.ts";
import { pytorch, Scene } from "./scene.ts";
import { Transcript } from "./transcript.ts";
import { admit, CONFIG, jobOf, podStatus, recorded, START_MS, template } from "./world.ts";

/** A scene whose decisions are written down. */
class Told {
  readonly scene: Scene;
  readonly text = new Transcript();

  constructor(sent: SentSpec, container = "pytorch") {
    this.scene = new Scene(sent, container);
  }

  /** Says what happens, lets it happen, and steps. */
  when(sentence: string, happens: (scene: Scene) => void = () => {}): this {
    this.text.note(sentence);
    happens(this.scene);
    const { job, nowMs } = this.scene;
    this.text.decision(job, this.scene.step(), nowMs);
    return this;
  }

  /** Starts all pods, without saying so: the first life shows how. */
  starts(): this {
    this.scene.start();
    return this;
  }

  /** The cluster carries out all deletions, again and again, until nothing is left to do. */
  settles(times: number): this {
    for (let round = 1; round <= times; round++) {
      this.when("the cluster deletes what it was told to, and 5 s pass", (scene) => {
        scene.cluster.collect();
        scene.nowMs += 5_000;
      });
    }
    return this;
  }
}

const runAll = (scene: Scene) => {
  for (const { name } of scene.cluster.pods()) scene.set(name, "Running");
};
const pass = (seconds: number) => (scene: Scene) => {
  scene.nowMs += seconds * 1000;
};
const pod = (scene: Scene, name: string) => scene.cluster.pods().find((one) => one.name === name)!;
const labelled = (scene: Scene, name: string, change: { name: string; labels: JsonObject }) => {
  const one = pod(scene, name);
  const metadata = objectAt(one.json, "metadata");
  const labels = { ...objectAt(metadata, "labels"), ...change.labels };
  const json = { ...one.json, metadata: { ...metadata, name: change.name, uid: change.name, labels } };
  scene.cluster.things.push({ kind: "pod", name: change.name, uid: change.name, json, deleting: false });
};
const stick = (scene: Scene, name: string) => {
  const state = { waiting: { reason: "ImagePullBackOff", message: "no such image" } };
  const lastTransitionTime = new Date(scene.nowMs).toISOString();
  scene.cluster.setPod(pod(scene, name), {
    phase: "Pending",
    conditions: [{ type: "Ready", status: "False", lastTransitionTime }],
    containerStatuses: [{ name: "pytorch", ready: false, state }],
  });
};
const cancel = (reason: string) => (scene: Scene) => {
  scene.job = { ...scene.job, cancel: { reason, atMs: scene.nowMs } };
};

const mpi: SentSpec = {
  kind: "MPIJob",
  replicaSpecs: { Launcher: { template: template("mpi") }, Worker: { replicas: 2, template: template("mpi") } },
  runPolicy: { cleanPodPolicy: "Running", ttlSecondsAfterFinished: 60 },
};

const dynamic: SentSpec = {
  kind: "TFJob",
  replicaSpecs: { Worker: { replicas: 3, template: template("tensorflow") } },
  kindSpec: { enableDynamicWorker: true },
  runPolicy: { schedulingPolicy: { minAvailable: 1 } },
};

const lives: Record<string, () => Told> = {
  "a worker fails once and the job succeeds": () =>
    new Told(pytorch({ cleanPodPolicy: "Running", ttlSecondsAfterFinished: 30 }))
      .when("the gang is admitted")
      .when("all pods run", runAll)
      .when("one worker fails", (scene) => scene.set("j-worker-0", "Failed", { exitCode: 1 }))
      .when("its pod is gone", (scene) => scene.cluster.collect())
      .when("its backoff is over", pass(10))
      .when("the new pod runs", runAll)
      .when("the master succeeds", (scene) => scene.set("j-master-0", "Succeeded", { exitCode: 0 }))
      .settles(3)
      .when("the time to live is over", pass(30))
      .settles(4),
  "failed members of both roles restart the gang": () =>
    new Told(pytorch({ restartScope: "GANG" }))
      .starts()
      .when("the master and a worker fail", (scene) => {
        scene.set("j-master-0", "Failed", { exitCode: 2 });
        scene.set("j-worker-1", "Failed", { exitCode: 3 });
      })
      .settles(3),
  "a member fails for good": () =>
    new Told(pytorch({ cleanPodPolicy: "None" }, "Never"))
      .starts()
      .when("both workers fail", (scene) => {
        scene.set("j-worker-0", "Failed", { exitCode: 1 });
        scene.set("j-worker-1", "Failed", { exitCode: 4 });
      })
      .settles(2)
      .when("the job is deleted", (scene) => {
        scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
      })
      .settles(4),
  "containers restart until the budget is spent": () =>
    new Told(pytorch({ backoffLimit: 3, cleanPodPolicy: "All" }))
      .starts()
      .when("a container restarts", (scene) => scene.set("j-worker-0", "Running", { restarts: 1 }))
      .when("nothing happens")
      .when("it restarts twice more", (scene) => scene.set("j-worker-0", "Running", { restarts: 3 }))
      .settles(3),
  "evictions spend the budget of the system": () =>
    new Told(pytorch({ systemBackoffLimit: 2, interruptible: true }))
      .starts()
      .when("a worker is evicted", (scene) => scene.set("j-worker-0", "Failed", { reason: "Evicted" }))
      .when("its pod is gone and its backoff is over", (scene) => {
        scene.cluster.collect();
        scene.nowMs += 10_000;
      })
      .when("its node is lost", (scene) =>
        scene.cluster.change(pod(scene, "j-worker-1"), { deleting: true, deletedMs: scene.nowMs, lost: true }),
      )
      .when("the grace time of the lost node is over", pass(120))
      .when("the other worker is disrupted", (scene) => scene.cluster.disrupt(pod(scene, "j-worker-0"), scene.nowMs))
      .settles(3),
  "a running job is cancelled": () =>
    new Told(pytorch({ cleanPodPolicy: "None" }))
      .starts()
      .when("it is cancelled for a reason", cancel("no longer needed"))
      .when("its objects are being deleted")
      .settles(3),
  "a job is cancelled while a pod is pending and one has ended": () =>
    new Told(pytorch({ cleanPodPolicy: "Running" }))
      .when("the gang is admitted")
      .when("one worker has succeeded", (scene) => scene.set("j-worker-0", "Succeeded", { exitCode: 0 }))
      .when("it is cancelled without a reason", cancel(""))
      .settles(3),
  "a job succeeds while a pod is pending and one is unknown": () =>
    new Told(pytorch({ cleanPodPolicy: "Running" }))
      .when("the gang is admitted")
      .when("the master succeeds, a worker's node does not answer, the other is pending", (scene) => {
        scene.set("j-master-0", "Succeeded", { exitCode: 0 });
        scene.set("j-worker-0", "Unknown");
      })
      .settles(3),
  "a deadline ends a job whose pods stay": () =>
    new Told(pytorch({ cleanPodPolicy: "None", activeDeadlineSeconds: 60 }))
      .starts()
      .when("its deadline is over", pass(60))
      .settles(2),
  "a job is suspended and resumed": () =>
    new Told(pytorch())
      .starts()
      .when("it is suspended", (scene) => scene.change({ suspend: true }))
      .settles(3)
      .when("it is resumed", (scene) => scene.change({ suspend: false })),
  "a gang does not start in time": () =>
    new Told(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 60 } }))
      .when("the gang is admitted")
      .when("one pod runs", (scene) => scene.set("j-master-0", "Running"))
      .when("the start timeout is over", pass(60))
      .settles(3)
      .when("it is admitted again, and no pod starts", (scene) => {
        scene.job = admit(scene.job, { cluster: "c1", nowMs: scene.nowMs, number: 2 });
      })
      .when("the start timeout is over again", pass(60))
      .settles(2),
  "a gang of which no pod was ever seen is undone": () =>
    new Told(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 60 } }))
      .when("its worker looks at it for the first time after the start timeout", pass(60))
      .settles(2),
  "members of a dynamic TFJob fail for good one after the other": () =>
    new Told(
      {
        ...dynamic,
        replicaSpecs: {
          PS: { template: template("tensorflow"), restartPolicy: "Never" },
          Worker: { replicas: 3, restartPolicy: "Never", template: template("tensorflow") },
        },
      },
      "tensorflow",
    )
      .starts()
      .when("one worker fails", (scene) => scene.set("j-worker-0", "Failed", { exitCode: 3 }))
      .when("nothing happens")
      .when("another one fails, and its exit code is not known", (scene) => scene.set("j-worker-1", "Failed"))
      .when("the last one fails", (scene) => scene.set("j-worker-2", "Failed", { exitCode: 5 })),
  "others delete the anchor of a gang": () =>
    new Told(pytorch({ restartScope: "GANG" }))
      .starts()
      .when("the anchor and a worker's pod are being deleted", (scene) => {
        const anchor = scene.cluster.things.find(({ kind }) => kind === "anchor");
        if (anchor !== undefined) scene.cluster.change(anchor, { deleting: true });
        scene.cluster.change(pod(scene, "j-worker-0"), { deleting: true, deletedMs: scene.nowMs });
      })
      .settles(3),
  "a foreign pod has the name of a member": () =>
    new Told(pytorch())
      .when("a pod of others exists", (scene) => {
        const json = { metadata: { name: "j-worker-0", uid: "foreign" }, status: { phase: "Running" } };
        scene.cluster.things.push({ kind: "pod", name: "j-worker-0", uid: "foreign", json, deleting: false });
      })
      .when("all others run", runAll)
      .when("nothing happens")
      .when("the pod of others is gone", (scene) => {
        scene.cluster.things = scene.cluster.things.filter(({ uid }) => uid !== "foreign");
      }),
  "pods that no record explains": () =>
    new Told(pytorch())
      .starts()
      .when("a pod beyond the members and one of an unknown admission appear", (scene) => {
        labelled(scene, "j-worker-0", { name: "beyond", labels: { [LABEL.replicaIndex]: "7" } });
        labelled(scene, "j-worker-0", { name: "unknown", labels: { [LABEL.admission]: "9" } });
      })
      .when("a pod of an unknown replica type appears", (scene) =>
        labelled(scene, "j-worker-0", { name: "chief", labels: { [LABEL.replicaType]: "chief" } }),
      )
      .when("a pod of a later attempt appears", (scene) =>
        labelled(scene, "j-worker-0", { name: "later", labels: { [LABEL.attempt]: "5" } }),
      )
      .when("a pod with the same place as another appears", (scene) =>
        labelled(scene, "j-worker-1", { name: "twin", labels: {} }),
      )
      .settles(2),
  "an elastic gang is scaled down and up": () =>
    new Told(dynamic, "tensorflow")
      .starts()
      .when("it is scaled to one worker", (scene) => scene.change({ replicas: { Worker: 1 } }))
      .when("one pod has failed, the other still stops", (scene) => {
        scene.nowMs += 1_000;
        scene.set("j-worker-2", "Failed", { exitCode: 1 });
      })
      .when("it still stops", pass(5))
      .when("it has succeeded meanwhile", (scene) => {
        scene.nowMs += 1_000;
        scene.set("j-worker-1", "Succeeded", { exitCode: 0 });
      })
      .settles(2)
      .when("the last worker succeeds", (scene) => scene.set("j-worker-0", "Succeeded", { exitCode: 0 }))
      .settles(2),
  "an MPIJob runs and its objects are deleted": () =>
    new Told(mpi, "mpi")
      .when("the gang is admitted")
      .when("the workers run", (scene) => {
        for (const { name } of scene.cluster.pods()) if (name.includes("worker")) scene.set(name, "Running");
      })
      .when("all pods run", runAll)
      .when("the launcher succeeds", (scene) => {
        const launcher = scene.cluster.pods().find(({ name }) => name.includes("launcher"));
        if (launcher !== undefined) scene.set(launcher.name, "Succeeded", { exitCode: 0 });
      })
      .settles(2)
      .when("its time to live is over", pass(60))
      .when("it is deleted")
      .when("its objects are being deleted")
      .settles(4),
  "volcano admits a group late and the deadline ends it": () => {
    const told = new Told({
      ...pytorch({ activeDeadlineSeconds: 60, cleanPodPolicy: "None" }),
      replicaSpecs: {
        Worker: {
          replicas: 2,
          template: {
            spec: { ...objectAt(template("pytorch"), "spec"), restartPolicy: "Always", schedulerName: "mine" },
          },
        },
      },
    });
    told.scene.cluster.scheduler = "volcano";
    const accept = (scene: Scene) => {
      const group = scene.cluster.things.find(({ kind }) => kind === "podGroup");
      if (group !== undefined) scene.cluster.change(group, { json: { ...group.json, status: { phase: "Inqueue" } } });
    };
    return told
      .when("the gang is admitted")
      .when("others delete the group", (scene) => {
        const group = scene.cluster.things.find(({ kind }) => kind === "podGroup");
        if (group !== undefined) scene.cluster.change(group, { deleting: true });
      })
      .when("the group is gone", (scene) => scene.cluster.collect())
      .when("the new group is accepted", accept)
      .when("all pods run", runAll)
      .when("the deadline is over", pass(60))
      .when("its group is being deleted")
      .settles(3);
  },
  "an image cannot be pulled": () =>
    new Told(pytorch({ backoffLimit: 1, cleanPodPolicy: "None" }))
      .when("the gang is admitted")
      .when("one worker runs, the other cannot pull its image", (scene) => {
        scene.set("j-worker-1", "Running");
        stick(scene, "j-worker-0");
      })
      .when("its grace time is over", pass(180))
      .settles(3),
  "a pod that cannot start outlives its job": () =>
    new Told(pytorch({ cleanPodPolicy: "None" }))
      .when("the gang is admitted")
      .when("the master succeeds, one worker's image cannot be pulled", (scene) => {
        scene.set("j-master-0", "Succeeded", { exitCode: 0 });
        stick(scene, "j-worker-0");
      })
      .settles(1)
      .when("the other worker's pod is deleted by others", (scene) => {
        scene.cluster.change(pod(scene, "j-worker-1"), { deleting: true, deletedMs: scene.nowMs });
      })
      .when("the grace time of the image is over", pass(175))
      .settles(2),
  "a pod runs but is not ready": () =>
    new Told(pytorch())
      .starts()
      .when("a worker is not ready any more", (scene) => {
        const status = { ...podStatus("Running", "pytorch"), conditions: [{ type: "Ready", status: "False" }] };
        scene.cluster.setPod(pod(scene, "j-worker-0"), status);
      })
      .when("it is ready again", runAll),
  "an older admission has not left when the next one begins": () =>
    new Told(pytorch({ schedulingPolicy: { scheduleTimeoutSeconds: 60 } }))
      .starts()
      .when("it is suspended", (scene) => scene.change({ suspend: true }))
      .when("it is resumed", (scene) => scene.change({ suspend: false }))
      .when("it is admitted to a cluster that is not seen", (scene) => {
        scene.job = admit(scene.job, { cluster: "c2", nowMs: scene.nowMs, number: 2 });
      })
      .settles(2),
  "a sidecar runs on after its primary container": () =>
    new Told(pytorch({}, "Never")).starts().when("the primary container of the master has succeeded", (scene) => {
      const status = podStatus("Running", "pytorch", { exitCode: 0 });
      scene.cluster.setPod(pod(scene, "j-master-0"), status);
    }),
  "a suspended job is deleted": () =>
    new Told(pytorch({ suspend: true }))
      .when("it is suspended, and none of its objects was seen for 20 s", pass(20))
      .settles(1)
      .when("it is deleted", (scene) => {
        scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
      })
      .settles(3),
};
for (const [name, life] of Object.entries(lives)) {
  test(`a life as it was reviewed: ${name}`, () => life().text.check(name));
}

test("a life as it was reviewed: identical jobs share a result", () => {
  const text = new Transcript();
  const asking = (name: string): Job =>
    jobOf(
      { kind: "Job", replicaSpecs: { Worker: { template: template("a") } }, runPolicy: { cacheKey: "k" } },
      { uid: `uid-${name}`, name },
    );
  let job = asking("z");
  let other = asking("a");
  const looks = (sentence: string, seconds: number) => {
    text.note(sentence);
    const nowMs = START_MS + seconds * 1000;
    const decision = applyCacheLookup(job, lookUpCache(job, [other]), { nowMs, config: CONFIG });
    text.decision(job, decision, nowMs);
    job = recorded(job, decision);
  };
  looks("another job may have the result", 0);
  looks("it still may", 5);
  const info = {
    phase: "SUCCESS",
    logs: [{ name: "l", uri: "u" }],
    customInfo: { rows: 1 },
  } as unknown as Job["status"]["info"];
  other = {
    ...other,
    status: { ...other.status, phase: "SUCCEEDED", completionTimeMs: START_MS + 7_000, ...(info && { info }) },
  };
  const waiting = job;
  looks("it has the result", 10);
  job = waiting;
  other = { ...other, status: { ...other.status, phase: "FAILED" } };
  looks("or it has failed", 10);
  text.check("identical jobs share a result");
});

const PLUGIN = { ...CONFIG, kinds: kindsWith(etlEntry) };
const etl = (runPolicy: SentSpec["runPolicy"] = {}) =>
  admit(
    jobOf({ kind: "EtlJob", replicaSpecs: {}, runPolicy: { systemBackoffLimit: 2, ...runPolicy } }, {}, PLUGIN.kinds),
    {
      cluster: null,
      nowMs: START_MS,
      number: 1,
    },
  );

test("a life as it was reviewed: a kind throws until the job fails", () => {
  const text = new Transcript();
  let job = etl();
  for (const seconds of [0, 0.5, 1, 2]) {
    const nowMs = START_MS + seconds * 1000;
    text.note("the kind throws");
    if (job.status.phase === "FAILED") break;
    const decision = kindFailed(job, new Error("no\0 idea"), { nowMs, config: PLUGIN });
    text.decision(job, decision, nowMs);
    job = recorded(job, decision);
  }
  text.check("a kind throws until the job fails");
});

test("a life as it was reviewed: a job without pods is cancelled", () => {
  const text = new Transcript();
  let job = etl({ activeDeadlineSeconds: 60, ttlSecondsAfterFinished: 5 });
  const steps = (sentence: string, seconds: number, changed: (job: Job) => Job = (one) => one) => {
    text.note(sentence);
    job = changed(job);
    const nowMs = START_MS + seconds * 1000;
    const decision = reconcile(job, [], nowMs, PLUGIN);
    text.decision(job, decision, nowMs);
    job = recorded(job, decision);
  };
  const staged = (stage: "abort" | "done", notBefore: number) => (one: Job) => {
    const { plugin } = one.status;
    if (plugin === undefined) return one;
    return {
      ...one,
      status: { ...one.status, plugin: { ...plugin, stage, notBeforeMs: START_MS + notBefore * 1000 } },
    };
  };
  steps("it is admitted", 0);
  steps("nothing happens", 1);
  steps("it is cancelled", 2, (one) => ({ ...one, cancel: { reason: "", atMs: START_MS } }));
  steps("its plugin has not ended yet", 3, staged("abort", 9));
  steps("its plugin has ended", 10, staged("done", 10));
  steps("its time to live is over", 20);
  steps("nothing is left", 21);
  text.check("a job without pods is cancelled");
});

test("a life as it was reviewed: a deadline ends a job without pods", () => {
  const text = new Transcript();
  let job = etl({ activeDeadlineSeconds: 60 });
  for (const seconds of [0, 60, 61]) {
    const nowMs = START_MS + seconds * 1000;
    const decision = reconcile(job, [], nowMs, PLUGIN);
    text.decision(job, decision, nowMs);
    job = recorded(job, decision);
  }
  text.check("a deadline ends a job without pods");
});
