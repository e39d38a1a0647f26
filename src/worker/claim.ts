import type { Job } from "../core/job/job.ts";
import type { Admission } from "../core/job/status.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { admissionLabels } from "../core/pods/build-labels.ts";
import { anchoredMaps } from "../core/reconcile/anchored.ts";
import { type Claimable, type Claimant, type ClaimVerdict, claimVerdict } from "../core/reconcile/claim.ts";
import type { JobEvent, ObjectView, Observed, ObservedCluster } from "../core/reconcile/decision.ts";
import type { ReconcileConfig } from "../core/reconcile/draft.ts";
import type { ActOutcome, WorkerClusters } from "./ports.ts";

/** How one admission's claims reach its cluster. */
export type ClaimPorts<T> = {
  /** Asks the cluster itself whether the anchor is still there and stays; false also where it does not answer. */
  readonly anchorLives: () => Promise<boolean>;
  readonly adopt: (object: T) => Promise<ActOutcome>;
  readonly release: (object: T) => Promise<ActOutcome>;
};

export type Claimed<T> = {
  /** Those that are ours now. */
  readonly claimed: readonly T[];
  /** Those that turned out not to be: controlled by another, released, or not to be had. */
  readonly lost: readonly T[];
  readonly failures: readonly { readonly object: T; readonly what: "Adopt" | "Release"; readonly message: string }[];
};

/**
 * Adopts and releases until every object is ours or is not. Before the first adoption the anchor is looked at once, since what was heard of
 * it may be old. An object that went in the meantime, or has another uid, is no failure. Source: Kubernetes' `ClaimPods`.
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
  const all: { readonly object: T; readonly fate: Fate }[] = [];
  for (const object of objects) {
    all.push({ object, fate: await claimOne({ ...ports, adopt }, object, claimVerdict(object, claimant)) });
  }
  const failures = all.flatMap(({ object, fate }) => (fate.failure === null ? [] : [{ object, ...fate.failure }]));
  const having = (has: Fate["has"]) => all.filter(({ fate }) => fate.has === has).map(({ object }) => object);
  return { claimed: having("claimed"), lost: having("lost"), failures };
}

type Fate = {
  /** `neither`: on its way out, or none of anybody's business. */
  readonly has: "claimed" | "lost" | "neither";
  readonly failure: { readonly what: "Adopt" | "Release"; readonly message: string } | null;
};

async function claimOne<T extends Claimable>(
  { adopt, release }: Pick<ClaimPorts<T>, "adopt" | "release">,
  object: T,
  verdict: ClaimVerdict,
): Promise<Fate> {
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

function failureOf(what: "Adopt" | "Release", outcome: ActOutcome): Fate["failure"] {
  if (outcome.kind !== "failed" || outcome.reason === "NotFound" || outcome.reason === "Invalid") return null;
  return { what, message: outcome.message };
}

const ANCHOR_GONE: ActOutcome = { kind: "failed", reason: "AnchorGone", message: "the anchor is not there any more" };

export type ClaimedJob = { readonly observed: Observed; readonly events: readonly JobEvent[] };

/**
 * Settles what of a job's live admissions is ours, and answers what is seen after that. A pod that is not ours any more stays in view without
 * the job's uid: it still holds its name. Nothing is claimed for admissions that are not live, whose anchors are on their way out.
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
    const live = job.admissions.find(({ state, cluster }) => state === "live" && cluster === seen.cluster);
    const anchor = live === undefined ? null : anchoredMaps(seen, live.number).anchor;
    if (live === undefined || anchor === null || anchor.deleting) after.push(seen);
    else after.push(await claimSeen({ clusters, config, job, live, anchor, seen, events }, signal));
  }
  return { observed: after, events };
}

type Claim = {
  readonly clusters: Pick<WorkerClusters, "claim" | "anchorLives">;
  readonly config: ReconcileConfig;
  readonly job: Job;
  readonly live: Admission;
  readonly anchor: ObjectView;
  readonly seen: ObservedCluster;
  readonly events: JobEvent[];
};

async function claimSeen(claim: Claim, signal: AbortSignal): Promise<ObservedCluster> {
  const { clusters, job, live, anchor, seen } = claim;
  const isOurs = (object: Pick<ObjectView, "admission" | "controllerUid">) =>
    object.admission === live.number || object.controllerUid === anchor.uid;
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
    const claimed = await claimObjects(ports, candidates, { anchor, selector: selectorOf(claim) });
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
      return pods.claimed.includes(pod) ? { ...pod, controllerUid: anchor.uid } : pod;
    }),
    services: seen.services.flatMap((service) => {
      if (services.lost.includes(service)) return [];
      return services.claimed.includes(service) ? { ...service, controllerUid: anchor.uid } : service;
    }),
  };
}

/** What every object of the admission is made with, and nobody has reason to change. */
function selectorOf({ job, live, config }: Claim): Readonly<Record<string, string>> {
  const operatorName = kindOf(job.spec.kind)?.operatorName ?? "";
  return admissionLabels({ job, operatorName, admission: live.number, config: config.build });
}

function failedEvent(
  { object, what, message }: { readonly object: Claimable; readonly what: string; readonly message: string },
  kind: "pod" | "service",
  cluster: string,
): JobEvent {
  const reason = `Failed${what}${kind === "pod" ? "Pod" : "Service"}`;
  return { type: "Warning", reason, message: `${what.toLowerCase()} ${kind} ${object.name} in ${cluster}: ${message}` };
}
