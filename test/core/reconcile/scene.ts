import type { Job } from "../../../src/core/job/job.ts";
import type { Placement } from "../../../src/core/job/placement/placement.ts";
import type { SentRunPolicy, SentSpec } from "../../../src/core/job/request/sent.ts";
import { changeJob, type WantedChange } from "../../../src/core/kinds/change-job.ts";
import type { Decision } from "../../../src/core/reconcile/decision.ts";
import { OUTSTANDING_MS } from "../../../src/core/reconcile/decision-draft.ts";
import type { Observed } from "../../../src/core/reconcile/observed.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { objectAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { admit, CONFIG, jobOf, podStatus, recorded, START_MS, TinyCluster, template, withNodeLabels } from "./world.ts";

export const pytorch = (
  runPolicy: SentRunPolicy = {},
  restartPolicy: "OnFailure" | "Never" | "ExitCode" = "OnFailure",
): SentSpec => ({
  kind: "PyTorchJob",
  replicaSpecs: {
    Master: { restartPolicy, template: template("pytorch") },
    Worker: { replicas: 2, restartPolicy, template: template("pytorch") },
  },
  runPolicy,
});

/** A job on one cluster, with a worker without faults. */
export class Scene {
  readonly cluster = new TinyCluster("c1");
  job: Job;
  nowMs = START_MS;
  /** Where the live admission's pods are planned. Null: nowhere. */
  placement: Placement | null = null;
  /** True: nothing is known of the cluster. */
  isLost = false;

  /** The labels of nodes by name. */
  readonly nodeLabels = new Map<string, Readonly<Record<string, string>>>();

  readonly container: string;

  constructor(sent: SentSpec, container = "pytorch") {
    this.container = container;
    this.job = admit(jobOf(sent), { cluster: "c1", nowMs: this.nowMs, number: 1 });
  }

  /** Nothing while the cluster is lost. */
  observe(): Observed {
    if (this.isLost) return [];
    return [withNodeLabels(this.cluster.observe({ nowMs: this.nowMs, lagMs: 0 }), this.nodeLabels)];
  }

  step(): Decision {
    const decision = reconcile(this.job, this.observe(), this.nowMs, CONFIG, { placement: this.placement });
    this.job = recorded(this.job, decision);
    for (const action of decision.actions) this.cluster.act(action, this.nowMs);
    return decision;
  }

  /**
   * Steps, and lets the cluster carry out deletions, until nothing changes any more, also after all requested changes
   * have arrived.
   */
  rest(): void {
    for (let round = 0; round < 10; round++) {
      if (round === 5) this.nowMs += OUTSTANDING_MS;
      this.step();
      this.cluster.collect();
    }
  }

  /** Changes a job as the service does, and returns its answer. */
  change(wanted: Omit<WantedChange, "version">): string {
    const decided = changeJob(
      this.job,
      OWN_KINDS.kindOf(this.job.spec.kind)!,
      { version: null, ...wanted },
      this.nowMs,
    );
    if (decided.kind === "changed") this.job = decided.job;
    return decided.kind;
  }

  set(name: string, phase: string, of: Parameters<typeof podStatus>[2] = {}): void {
    this.cluster.setPod(this.cluster.pods().find((pod) => pod.name === name)!, podStatus(phase, this.container, of));
  }

  /** The node of a pod stops to report to its cluster. */
  silentNode(name: string): void {
    const thing = this.cluster.pods().find((pod) => pod.name === name)!;
    const json = { ...thing.json, spec: { ...objectAt(thing.json, "spec"), nodeName: "gpu-1" } };
    this.cluster.change(thing, { json, silentMs: this.nowMs });
  }

  /** A pod is on a node, and has not started. */
  bind(name: string, nodeName: string): void {
    const thing = this.cluster.pods().find((pod) => pod.name === name)!;
    const json = { ...thing.json, spec: { ...objectAt(thing.json, "spec"), nodeName } };
    this.cluster.change(thing, { json });
  }

  /** The scheduler finds no node for a pod, from now on. */
  refuse(name: string, message: string): void {
    const lastTransitionTime = new Date(this.nowMs).toISOString();
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message, lastTransitionTime };
    this.cluster.setPod(this.cluster.pods().find((pod) => pod.name === name)!, {
      phase: "Pending",
      conditions: [condition],
    });
  }

  start(): this {
    this.step();
    for (const { name } of this.cluster.pods()) this.set(name, "Running");
    this.step();
    return this;
  }

  get podNames(): string[] {
    return this.cluster
      .pods()
      .map(({ name }) => name)
      .sort();
  }
}

export const names = (decision: Decision, kind: string) =>
  decision.actions.flatMap((action) => {
    if (action.kind !== kind) return [];
    return ["manifest" in action ? objectAt(action.manifest, "metadata")["name"] : action.name];
  });
