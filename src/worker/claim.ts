/**
 * Adopts and releases pods and services by their labels. It serves users who take a pod out of a job to debug it, and
 * whose orphaned pods must find their job again.
 */
import type { JobEvent } from "../core/job/event.ts";
import type { Job } from "../core/job/job.ts";
import type { Admission } from "../core/job/status.ts";
import { numberLabels } from "../core/pods/build/build-labels.ts";
import type { ActOutcome } from "../core/reconcile/decision.ts";
import type { ReconcileConfig } from "../core/reconcile/decision-draft.ts";
import { anchoredMaps } from "../core/reconcile/objects/anchored-objects.ts";
import {
  type Claimable,
  type Claimant,
  type ClaimVerdict,
  claimVerdict,
  isSelected,
} from "../core/reconcile/objects/claim.ts";
import { hasFenceOf, ofAdmission } from "../core/reconcile/objects/object-fences.ts";
import type { ObjectView, Observed, ObservedCluster } from "../core/reconcile/observed.ts";
import type { WorkerClusters } from "./ports.ts";

/** The calls by which one admission claims objects in its cluster. */
type ClaimPorts<T> = {
  /** Asks the API server whether the anchor exists and is not being deleted. False also if it does not answer. */
  readonly anchorLives: () => Promise<boolean>;
  readonly adopt: (object: T) => Promise<ActOutcome>;
  readonly release: (object: T) => Promise<ActOutcome>;
};

type Claimed<T> = {
  /** Objects that are ours now. */
  readonly claimed: readonly T[];
  /** Objects that are not ours: controlled by another owner, released now or before, or not adopted. */
  readonly lost: readonly T[];
  readonly failures: readonly { readonly object: T; readonly what: "Adopt" | "Release"; readonly message: string }[];
};

/**
 * Adopts and releases objects until it is known for each whether it is ours. The anchor is read once before the first
 * adoption, since the watch may lag. An object that is gone by then, or has another uid, is not a failure. Source:
 * Kubernetes' `ClaimPods`.
 */
export async function claimObjects<T extends Claimable>(
  ports: ClaimPorts<T>,
  objects: readonly T[],
  claimant: Claimant,
): Promise<Claimed<T>> {
  let lives: boolean | null = null;
  const adopt = async (object: T) => {
    lives ??= await ports.anchorLives();
    return lives ? ports.adopt(object) : ANCHOR_GONE;
  };
  const all: { readonly object: T; readonly fate: ClaimResult }[] = [];
  for (const object of objects) {
    const fate = await claimOne({ ...ports, adopt }, object, claimVerdict(object, claimant));
    // Without a controller and with other labels it was released before.
    const isReleased = fate.has === "neither" && !isSelected(object, claimant);
    all.push({ object, fate: isReleased ? { ...fate, has: "lost" } : fate });
  }
  const failures = all.flatMap(({ object, fate }) => (fate.failure === null ? [] : [{ object, ...fate.failure }]));
  const having = (has: ClaimResult["has"]) => all.filter(({ fate }) => fate.has === has).map(({ object }) => object);
  return { claimed: having("claimed"), lost: having("lost"), failures };
}

type ClaimResult = {
  /** `neither`: it has no controller, and our anchor or the object itself is being deleted. */
  readonly has: "claimed" | "lost" | "neither";
  readonly failure: { readonly what: "Adopt" | "Release"; readonly message: string } | null;
};

async function claimOne<T extends Claimable>(
  { adopt, release }: Pick<ClaimPorts<T>, "adopt" | "release">,
  object: T,
  verdict: ClaimVerdict,
): Promise<ClaimResult> {
  switch (verdict) {
    case "owned":
      return { has: "claimed", failure: null };
    case "leave":
      return { has: object.controllerUid === null ? "neither" : "lost", failure: null };
    case "adopt": {
      const outcome = await adopt(object);
      return { has: outcome.kind === "failed" ? "lost" : "claimed", failure: failureOf("Adopt", outcome) };
    }
    case "release":
      return { has: "lost", failure: failureOf("Release", await release(object)) };
  }
}

function failureOf(what: "Adopt" | "Release", outcome: ActOutcome): ClaimResult["failure"] {
  if (outcome.kind !== "failed" || outcome.reason === "NotFound" || outcome.reason === "Invalid") return null;
  return { what, message: outcome.message };
}

const ANCHOR_GONE: ActOutcome = { kind: "failed", reason: "AnchorGone", message: "the anchor no longer exists" };

type ClaimedJob = { readonly observed: Observed; readonly events: readonly JobEvent[] };

/**
 * Claims the objects of a job's admissions that are not undone, and returns the observed objects afterwards. A pod that
 * is no longer ours stays among them without the job's uid, since it still has its name. Nothing is claimed once the
 * anchor is being deleted.
 */
export async function claimAll(
  {
    clusters,
    config,
  }: { readonly clusters: Pick<WorkerClusters, "claim" | "anchorLives">; readonly config: ReconcileConfig },
  job: Job,
  observed: Observed,
  signal: AbortSignal,
): Promise<ClaimedJob> {
  const events: JobEvent[] = [];
  const after: ObservedCluster[] = [];
  for (const seen of observed) {
    const current = job.admissions.find(({ state, cluster }) => state !== "undone" && cluster === seen.cluster);
    const anchor = current === undefined ? null : anchoredMaps(ofAdmission(seen, current), current.number).anchor;
    if (current === undefined || anchor === null || anchor.deleting) after.push(seen);
    else after.push(await claimSeen({ clusters, config, job, current, anchor, seen, events }, signal));
  }
  return { observed: after, events };
}

type AdmissionClaim = {
  readonly clusters: Pick<WorkerClusters, "claim" | "anchorLives">;
  readonly config: ReconcileConfig;
  readonly job: Job;
  readonly current: Admission;
  readonly anchor: ObjectView;
  readonly seen: ObservedCluster;
  readonly events: JobEvent[];
};

async function claimSeen(claim: AdmissionClaim, signal: AbortSignal): Promise<ObservedCluster> {
  const { clusters, job, current, anchor, seen } = claim;
  const claimant = { anchor, selector: selectorOf(claim), fence: current.fence };
  const isOurs = (object: Pick<ObjectView, "admission" | "controllerUid" | "labels">) =>
    (object.admission === current.number && hasFenceOf(current, object)) || object.controllerUid === anchor.uid;
  const place = { cluster: seen.cluster, namespace: job.namespace, anchor: { name: anchor.name, uid: anchor.uid } };
  let lives: Promise<boolean> | null = null;
  const anchorLives = () => {
    lives ??= clusters.anchorLives(place, signal);
    return lives;
  };
  const claimKind = async <T extends Claimable>(object: "pod" | "service", candidates: readonly T[]) => {
    const act = (kind: "adopt" | "release") => (one: T) =>
      clusters.claim({ ...place, kind, object, name: one.name, uid: one.uid }, signal);
    const ports = { anchorLives, adopt: act("adopt"), release: act("release") };
    const claimed = await claimObjects(ports, candidates, claimant);
    for (const failure of claimed.failures) claim.events.push(failedEvent(failure, object, seen.cluster));
    return claimed;
  };
  const pods = await claimKind(
    "pod",
    seen.pods.filter((pod) => (pod.jobUid === job.uid || pod.controllerUid === anchor.uid) && isOurs(pod)),
  );
  const services = await claimKind("service", seen.services.filter(isOurs));
  return {
    ...seen,
    pods: seen.pods.map((pod) => {
      if (pods.lost.includes(pod)) return { ...pod, jobUid: null };
      if (!pods.claimed.includes(pod)) return pod;
      const { released: _released, ...own } = pod;
      return { ...own, controllerUid: anchor.uid };
    }),
    ...(seen.lost === undefined ? {} : { lost: seen.lost.filter((pod) => isSelected(pod, claimant)) }),
    services: seen.services.flatMap((service) => {
      if (services.lost.includes(service)) return [];
      return services.claimed.includes(service) ? { ...service, controllerUid: anchor.uid } : service;
    }),
  };
}

/** Labels with which every object of the admission is created, and which users have no reason to change. */
function selectorOf({ job, current, config }: AdmissionClaim): Readonly<Record<string, string>> {
  const operatorName = config.kinds.kindOf(job.spec.kind)?.operatorName ?? "";
  return numberLabels({ job, operatorName, admission: current.number, config: config.build });
}

function failedEvent(
  { object, what, message }: { readonly object: Claimable; readonly what: string; readonly message: string },
  kind: "pod" | "service",
  cluster: string,
): JobEvent {
  const reason = `Failed${what}${kind === "pod" ? "Pod" : "Service"}`;
  return { type: "Warning", reason, message: `${what.toLowerCase()} ${kind} ${object.name} in ${cluster}: ${message}` };
}
