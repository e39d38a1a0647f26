/** The wishes for topology of a job, where its fields or the annotations of its templates make them. */
import { canonicalJson } from "../../../runtime/json.ts";
import { keptWish, type TopologyWish } from "../../job/placement/topology-wish.ts";
import type { FieldError, SentSpec } from "../../job/request/sent.ts";
import type { JobSpec, ReplicaSpec } from "../../job/spec.ts";
import type { Kind } from "../kind.ts";
import { type KueueTopology, kueueTopology } from "./kueue-annotations.ts";

/** A wish that counts. */
export type SentWish = {
  readonly wish: TopologyWish;
  /** Makes the note about one of its members, such as `slices[0].size`. Its path is that of a manifest. */
  readonly note: (member: string, message: string) => FieldError;
};

/** The wish of a job. Null: none. */
export function wishOfJob({ placement }: Pick<SentSpec, "placement">): SentWish | null {
  const wish = keptWish(placement?.topology);
  return wish === undefined ? null : { wish, note: noteAt("spec.placement.topology") };
}

function noteAt(path: string): SentWish["note"] {
  return (member, message) => ({ path: `${path}.${member}`, message });
}

type Wishing = Pick<SentSpec, "replicaSpecs" | "kindSpec">;

/** The wish of a replica type. Null: none. A field, even an empty one, counts in place of the annotations. */
export function wishOfRole(kind: Pick<Kind, "roles" | "rules">, spec: Wishing, role: string): SentWish | null {
  const sent = spec.replicaSpecs[role]?.topology;
  const path = `spec.replicaSpecs.${role}`;
  if (sent !== undefined) {
    const wish = keptWish(sent);
    return wish === undefined ? null : { wish, note: noteAt(`${path}.topology`) };
  }
  const { wish, placeOf } = kueueOf(kind, spec, role);
  if (wish === undefined) return null;
  const note = (member: string, message: string) => {
    const place = placeOf(member);
    const within = place.within === "" ? "" : `${place.within} `;
    return { path: `${path}.template.${place.path}`, message: `${within}${message}` };
  };
  return { wish, note };
}

/** What the annotations of Kueue in the template of a replica type say. */
export function kueueOf(kind: Pick<Kind, "roles" | "rules">, spec: Wishing, role: string): KueueTopology {
  return kueueTopology(spec.replicaSpecs[role]?.template ?? {}, () => childSize(kind, spec, role));
}

/**
 * How many pods run each child job of a replica type: the size of its slices where Kueue's users name none. Null: the
 * kind has no child jobs.
 */
function childSize({ roles, rules }: Pick<Kind, "roles" | "rules">, spec: Wishing, role: string): number | null {
  // Of the kinds with rules of their own, those whose replica types users name are made of child jobs.
  if (roles !== null || rules === undefined) return null;
  const replicaSpecs = spec.replicaSpecs as JobSpec["replicaSpecs"];
  const { members } = rules.workOf({ replicaSpecs, kindSpec: spec.kindSpec ?? {} }, role);
  return members > 0 ? members : null;
}

/** Warnings about annotations of Kueue that have no effect. Paths are those of a manifest. */
export function ignoredWishes(kind: Pick<Kind, "roles" | "rules">, spec: SentSpec): readonly FieldError[] {
  return Object.entries(spec.replicaSpecs).flatMap(([role, { topology }]) => {
    const { wish, warnings, placeOf } = kueueOf(kind, spec, role);
    const at = `spec.replicaSpecs.${role}`;
    const ignored = warnings.map((warning) => ({ ...warning, path: `${at}.template.${warning.path}` }));
    const sent = keptWish(topology);
    if (wish === undefined || sent === undefined || canonicalJson(sent) === canonicalJson(wish)) return ignored;
    const [member = "required"] = Object.keys(wish);
    const { path } = placeOf(member === "slices" ? "slices[0].level" : member);
    return [...ignored, { path: `${at}.template.${path}`, message: `is ignored: ${at}.topology counts` }];
  });
}

/** The spec of a new job, with the wishes that the annotations of its templates make. */
export function withWishes(spec: JobSpec, kind: Pick<Kind, "roles" | "rules">): JobSpec {
  const replicas = Object.entries(spec.replicaSpecs).map(([role, replica]): [string, ReplicaSpec] => {
    const found = wishOfRole(kind, spec, role);
    return [role, found === null ? replica : { ...replica, topology: found.wish }];
  });
  return { ...spec, replicaSpecs: Object.fromEntries(replicas) };
}
