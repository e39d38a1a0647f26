import { NAMESPACE_RULES } from "../../../../src/core/admin/namespace.ts";
import type { Job } from "../../../../src/core/job/job.ts";
import { liveAdmission } from "../../../../src/core/job/job.ts";
import type { SentJob } from "../../../../src/core/job/request/sent.ts";
import { type Admission, isTerminal } from "../../../../src/core/job/status.ts";
import { changeJob } from "../../../../src/core/kinds/change-job.ts";
import { kindOfJob } from "../../../../src/core/kinds/registry.ts";
import { PLAIN_POD_CONFIG } from "../../../../src/core/pods/pod-config.ts";
import { policyInForce } from "../../../../src/core/pods/policy/pod-policy.ts";
import { reconcile } from "../../../../src/core/reconcile/reconcile.ts";
import { changedTemplates } from "../../../../src/intake/change-templates.ts";
import type { IntakeRules } from "../../../../src/intake/ports.ts";
import type { Json, JsonObject } from "../../../../src/runtime/json.ts";
import { arrayAt, numberAt, objectAt, stringAt, stringMapAt } from "../../../../src/runtime/json.ts";
import {
  admit,
  CONFIG,
  jobOf,
  recorded,
  START_MS,
  TinyCluster,
  withNodeLabels,
} from "../../../core/reconcile/world.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";

/** More steps than any case needs until nothing moves. */
const STEPS_MAX = 50;
const CLUSTER = "conformance";
const INDEX_LABEL = "batch.kubernetes.io/job-completion-index";
const JOB_LABEL = "batch.kubernetes.io/job-name";

/** The namespaces of cases allow what their pods use. */
const RULES: IntakeRules = {
  kinds: OWN_KINDS,
  podConfig: PLAIN_POD_CONFIG,
  podPolicy: policyInForce({ level: "privileged", allow: [], limits: {} }, NAMESPACE_RULES.podPolicyDefault),
  isNew: false,
  isReserved: () => false,
};

/** A pod as cases name it: without the random suffix of other controllers. */
export type StagedPod = {
  readonly name: string;
  readonly uid: string;
  readonly phase: string;
  readonly terminating: boolean;
  readonly json: JsonObject;
};

/** A job in one cluster, admitted with all its members, on a clock that only events move. */
export class Stage {
  readonly #cluster = new TinyCluster(CLUSTER);
  job: Job;
  #nowMs = START_MS;
  #admissions = 0;
  /** Pods that had ended when they were deleted. */
  #past: StagedPod[] = [];
  #restarts = 0;

  /** The labels of nodes by name. */
  readonly #nodes: ReadonlyMap<string, Readonly<Record<string, string>>>;

  readonly #sent: SentJob;

  constructor(sent: SentJob, nodes: readonly Json[] = []) {
    this.#sent = sent;
    this.#nodes = new Map(nodes.map((node) => [stringAt(node, "name") ?? "", stringMapAt(node, "labels")]));
    const { name, namespace, labels, annotations } = sent;
    this.job = jobOf(sent.spec, { name, namespace, labels, annotations });
    this.settle();
  }

  /** Steps the job until nothing moves any more. */
  settle(): void {
    for (let step = 0; step < STEPS_MAX; step++) {
      this.#admitWaiting();
      const before = JSON.stringify([this.job.status, this.#cluster.things]);
      const decision = reconcile(
        this.job,
        [withNodeLabels(this.#cluster.observe({ nowMs: this.#nowMs, lagMs: 0 }), this.#nodes)],
        this.#nowMs,
        CONFIG,
      );
      this.job = recorded(this.job, decision);
      for (const action of decision.actions) this.#cluster.act(action, this.#nowMs);
      this.#collect();
      if (JSON.stringify([this.job.status, this.#cluster.things]) === before) return;
    }
    throw new Error(`the job still moves after ${STEPS_MAX} steps`);
  }

  /** The planner admits what waits, and gives a gang the members that its job has got. */
  #admitWaiting(): void {
    const { status, spec } = this.job;
    const live = liveAdmission(this.job);
    if (!isTerminal(status) && live !== null) this.#grow(live);
    const waits = !isTerminal(status) && liveAdmission(this.job) === null && spec.runPolicy.suspend !== true;
    if (!waits || status.phase === "SUSPENDED") return;
    this.#admissions += 1;
    this.job = admit(this.job, { cluster: CLUSTER, nowMs: this.#nowMs, number: this.#admissions });
  }

  #grow(live: Admission): void {
    const { spec, admissions, version } = this.job;
    const roles = Object.entries(live.members);
    const members = Object.fromEntries(
      roles.map(([role, count]) => [role, Math.max(count, spec.replicaSpecs[role]?.replicas ?? 0)]),
    );
    if (roles.every(([role, count]) => members[role] === count)) return;
    const grown = admissions.map((one) => (one === live ? { ...one, members } : one));
    this.job = { ...this.job, admissions: grown, version: version + 1 };
  }

  /** Moves the clock to when the record of an ended job is deleted, with all that is left of it. */
  expire(): void {
    const seconds = this.job.spec.runPolicy.ttlSecondsAfterFinished;
    if (!isTerminal(this.job.status) || seconds === null) return;
    this.#nowMs += seconds * 1000;
    this.settle();
    this.#past = [];
  }

  /** Pods that are being deleted go. Those of an earlier attempt of a whole gang are not kept. */
  #collect(): void {
    const restarts = this.job.status.attempts.restarts?.all ?? 0;
    if (restarts > this.#restarts) {
      this.#restarts = restarts;
      this.#past = [];
      this.#cluster.collect();
      return;
    }
    const going = this.#pods().filter(({ terminating }) => terminating);
    if (isTerminal(this.job.status)) this.#forgetUnfinished(going);
    const ended = going.filter(({ phase }) => phase === "Failed" || phase === "Succeeded");
    this.#past.push(...ended.map((pod) => ({ ...pod, terminating: false })));
    this.#cluster.collect();
  }

  /** When a set of Jobs ends, those that still run are deleted, with the failed pods that they keep. */
  #forgetUnfinished(going: readonly StagedPod[]): void {
    const jobOf = ({ json }: StagedPod) => stringMapAt(objectAt(json, "metadata"), "labels")[JOB_LABEL];
    const running = going.filter(({ phase }) => phase === "Pending" || phase === "Running").map(jobOf);
    if (this.job.spec.kind === "Job.v1.batch") return;
    this.#past = this.#past.filter((pod) => !running.includes(jobOf(pod)));
  }

  #pods(): readonly StagedPod[] {
    return this.#cluster.pods().map(({ uid, json, deleting }) => {
      const phase = stringAt(objectAt(json, "status"), "phase") ?? "";
      return { name: this.#nameOf(json), uid, phase, terminating: deleting, json };
    });
  }

  /** A pod with an index has the name of the other controller; others share the name of their Job. */
  #nameOf(pod: JsonObject): string {
    const metadata = objectAt(pod, "metadata");
    const labels = stringMapAt(metadata, "labels");
    return labels[INDEX_LABEL] === undefined ? (labels[JOB_LABEL] ?? "") : (stringAt(metadata, "name") ?? "");
  }

  get pods(): readonly StagedPod[] {
    return [...this.#past, ...this.#pods()];
  }

  /** The services, config maps, secrets and claims of the job. */
  get objects(): readonly JsonObject[] {
    return this.#cluster.things
      .filter(({ kind, deleting }) => kind !== "pod" && kind !== "anchor" && !deleting)
      .map(({ json }) => json);
  }

  /** Carries out an event. Null: done. Else why it is not understood. */
  carryOut(event: JsonObject): string | null {
    const { pods, deletePods, bind, wait } = event;
    if ("update" in event) return this.#update(objectAt(event, "update"));
    if (typeof pods === "string") {
      this.#change(pods, event, ({ json }) => ({ json: { ...json, status: statusOf(json, event) } }));
    } else if (typeof deletePods === "string") {
      this.#change(deletePods, event, () => ({ deleting: true, deletedMs: this.#nowMs }));
    } else if (typeof bind === "string") {
      const nodeName = stringAt(event, "node") ?? "";
      this.#change(bind, event, ({ json }) => ({ json: { ...json, spec: { ...objectAt(json, "spec"), nodeName } } }));
    } else if (typeof wait === "number") this.#nowMs += wait * 1000;
    else if ("delete" in event) this.job = { ...this.job, deleteTimeMs: this.#nowMs };
    else return `the event ${Object.keys(event).join(", ")} is not known`;
    this.settle();
    return null;
  }

  /** The living pods whose name matches, the first ones if the event says how many. */
  #chosen(glob: string, event: JsonObject): readonly StagedPod[] {
    const pattern = new RegExp(`^${glob.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`);
    const wantsTerminating = event["ofTerminating"] === true;
    const living = this.#pods()
      .filter(({ phase }) => phase !== "Failed" && phase !== "Succeeded")
      .filter(({ terminating }) => terminating === wantsTerminating)
      .filter(({ name }) => pattern.test(`${name}-X`))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return living.slice(0, numberAt(event, "count") ?? living.length);
  }

  #change(glob: string, event: JsonObject, changed: (pod: StagedPod) => Parameters<TinyCluster["change"]>[1]): void {
    for (const pod of this.#chosen(glob, event)) {
      const thing = this.#cluster.pods().find(({ uid }) => uid === pod.uid);
      if (thing !== undefined) this.#cluster.change(thing, changed(pod));
    }
  }

  #update(changed: JsonObject): string | null {
    const spec = objectAt(changed, "spec");
    const { suspend, parallelism, completions: _follows, replicatedJobs, runtimePatches, ...others } = spec;
    const [other] = Object.keys(others);
    if (other !== undefined) return `UpdateJob cannot change ${other}`;
    const templates = this.#templatesIn(replicatedJobs ?? null, runtimePatches ?? null);
    if (templates === null) return "UpdateJob changes only templates of a group";
    const kind = kindOfJob(OWN_KINDS, this.job);
    const { templates: shaped, notes } = changedTemplates({ job: this.job, sent: this.#sent, kind }, templates, RULES);
    if (notes.length > 0) return notes.map(({ field }) => field).join(", ");
    const wanted = {
      version: null,
      ...(typeof suspend === "boolean" ? { suspend } : {}),
      ...(typeof parallelism === "number" ? { replicas: { Worker: parallelism } } : {}),
      ...(Object.keys(shaped).length === 0 ? {} : { templates: shaped }),
    };
    const decided = changeJob(this.job, kind, wanted, this.#nowMs);
    if (decided.kind === "changed") this.job = decided.job;
    this.settle();
    return decided.kind === "changed" || decided.kind === "unchanged" ? null : decided.kind;
  }

  /** The pod templates that an update of groups or of a runtime's patches has. Null: it changes something else. */
  #templatesIn(replicatedJobs: Json, runtimePatches: Json): Readonly<Record<string, JsonObject>> | null {
    const patches = arrayAt({ runtimePatches }, "runtimePatches").flatMap((patch) => {
      return arrayAt(objectAt(objectAt(objectAt(patch, "trainingRuntimeSpec"), "template"), "spec"), "replicatedJobs");
    });
    const names = arrayAt(this.job.spec.kindSpec, "replicatedJobs").map((group) => stringAt(group, "name") ?? "");
    const groups = Object.entries(objectAt({ replicatedJobs }, "replicatedJobs")).map(([at, group]) => {
      return { name: names[Number(at)] ?? "", ...objectAt({ group }, "group") };
    });
    const changed = [...groups, ...patches].map((group) => {
      const { template, ...others } = objectAt(objectAt(group, "template"), "spec");
      const { name: _name, template: _template, ...rest } = objectAt({ group }, "group");
      const isTemplate = Object.keys(others).length + Object.keys(rest).length === 0;
      return isTemplate ? ([stringAt(group, "name") ?? "", objectAt({ template }, "template")] as const) : null;
    });
    const kept = changed.filter((one) => one !== null);
    return kept.length < changed.length ? null : Object.fromEntries(kept);
  }
}

/** The status that an event writes. Failed without an exit code: 1; other containers end with 0. */
function statusOf(pod: JsonObject, event: JsonObject): JsonObject {
  const phase = stringAt(event, "phase") ?? "Running";
  const names = arrayAt(objectAt(pod, "spec"), "containers").map((one) => stringAt(one, "name") ?? "");
  const meant = stringAt(event, "container") ?? names[0];
  const exitCode = numberAt(event, "exitCode") ?? (phase === "Failed" ? 1 : 0);
  const ended = phase === "Failed" || phase === "Succeeded";
  const isReady = phase === "Running" && event["ready"] !== false;
  const containerStatuses = names.map((name) => ({
    name,
    restartCount: name === meant ? (numberAt(event, "restartCount") ?? 0) : 0,
    ready: isReady,
    state: ended ? { terminated: { exitCode: name === meant ? exitCode : 0 } } : { running: {} },
  }));
  const conditions = [...arrayAt(event, "conditions"), ...(isReady ? [{ type: "Ready", status: "True" }] : [])];
  const [reason, message] = [stringAt(event, "reason"), stringAt(event, "message")];
  return {
    phase,
    conditions,
    containerStatuses,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}
