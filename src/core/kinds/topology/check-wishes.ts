import { cutText } from "../../../runtime/cut-text.ts";
import {
  SLICE_SIZE_MAX,
  SLICES_MAX,
  type TopologySlice,
  type TopologyWish,
} from "../../job/placement/topology-wish.ts";
import type { FieldError, SentSpec } from "../../job/request/sent.ts";
import { notShown } from "../../job/request/shown-value.ts";
import { isService, type Kind } from "../kind.ts";
import { kueueOf, type SentWish, wishOfJob, wishOfRole } from "./sent-wishes.ts";

/** The name of a level, or a label of nodes. A name has the form of a label without a prefix. */
const LEVEL = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/**
 * Checks the wishes for topology of a job. Only clusters know which of two levels is coarser, so their order is checked
 * where slices name one of them before the other. Paths are those of a manifest.
 */
export function checkTopology(kind: Kind, spec: SentSpec): readonly FieldError[] {
  const ofJob = wishOfJob(spec);
  const roles = Object.keys(spec.replicaSpecs);
  const ofRoles = new Map(roles.map((role) => [role, wishOfRole(kind, spec, role)]));
  const wishes = [ofJob, ...ofRoles.values()].flatMap((one) => one ?? []);
  const slicesOfJob = ofJob === null ? [] : checkSlicesOfJob({ ofJob, ofRoles, kind, spec });
  const isOnly = roles.length === 1;
  return [
    ...roles.flatMap((role) => annotationErrors(kind, spec, role)),
    ...wishes.flatMap(checkWish),
    ...slicesOfJob,
    ...roles.flatMap((role) => checkSlicesOfRole({ ofJob, ofRole: ofRoles.get(role) ?? null, spec, role, isOnly })),
    ...(wishes.some(({ wish }) => wish.slices !== undefined) ? checkWhole(spec) : []),
  ];
}

function annotationErrors(kind: Kind, spec: SentSpec, role: string): readonly FieldError[] {
  return kueueOf(kind, spec, role).errors.map(({ path, message }) => {
    return { path: `spec.replicaSpecs.${role}.template.${path}`, message };
  });
}

/** The errors of a wish that are seen without its job. */
function checkWish({ wish, note }: SentWish): readonly FieldError[] {
  const { required, preferred, slices = [] } = wish;
  const both = required !== undefined && preferred !== undefined;
  return [
    ...levelsOf(wish)
      .filter(({ level }) => !LEVEL.test(level))
      .map(({ member, level }) => note(member, `must be ${LEVEL_FORM}${notShown(level)}`)),
    ...(both ? [note("preferred", "must be omitted beside required: a wish has one of them")] : []),
    ...(slices.length > SLICES_MAX ? [note("slices", `must be at most ${SLICES_MAX}, not ${slices.length}`)] : []),
    ...slices.slice(0, SLICES_MAX).flatMap((slice, at) => checkSlice({ slice, at, slices, note })),
  ];
}

const CHARS_SHOWN = 60;

/** A level in a message. */
function shown(level: string): string {
  return cutText(level, CHARS_SHOWN);
}

const LEVEL_FORM = "a level: its name, such as rack, or the label of its nodes, such as topology.kubernetes.io/rack";

/** The levels that a wish names, each with the member that names it. */
export function levelsOf({ required, preferred, slices = [] }: TopologyWish) {
  return [
    ...(required === undefined ? [] : [{ member: "required", level: required }]),
    ...(preferred === undefined ? [] : [{ member: "preferred", level: preferred }]),
    ...slices.slice(0, SLICES_MAX).map(({ level }, at) => ({ member: `slices[${at}].level`, level })),
  ];
}

function checkSlice(of: {
  readonly slice: TopologySlice;
  readonly at: number;
  readonly slices: readonly TopologySlice[];
  readonly note: SentWish["note"];
}): readonly FieldError[] {
  const { slice, at, slices, note } = of;
  const { level, size } = slice;
  const first = slices.findIndex((one) => one.level === level);
  const twice =
    first < at ? [note(`slices[${at}].level`, `must not be ${shown(level)} again, as in slices[${first}]`)] : [];
  if (size < 1 || size > SLICE_SIZE_MAX) {
    return [...twice, note(`slices[${at}].size`, `must be from 1 to ${SLICE_SIZE_MAX}, not ${size}`)];
  }
  const coarser = slices[at - 1];
  if (coarser === undefined || coarser.size % size === 0) return twice;
  return [
    ...twice,
    note(`slices[${at}].size`, `must divide ${coarser.size}, the size of slices[${at - 1}], and is ${size}`),
  ];
}

/** Slices of a job are those of its only replica type. */
function checkSlicesOfJob(of: {
  readonly ofJob: SentWish;
  readonly ofRoles: ReadonlyMap<string, SentWish | null>;
  readonly kind: Kind;
  readonly spec: SentSpec;
}): readonly FieldError[] {
  const { ofJob, ofRoles, kind } = of;
  const { wish, note } = ofJob;
  const [member = "required"] = Object.keys(wish);
  if (isService(kind)) return [note(member, `must be omitted: a ${kind.name} has no pods`)];
  if (wish.slices === undefined) return [];
  if (ofRoles.size > 1) {
    const types = `${ofRoles.size} replica types`;
    return [note("slices", `must be omitted, because the job has ${types}: a replica type can have slices`)];
  }
  const [only] = ofRoles;
  if (only?.[1]?.wish.slices === undefined) return [];
  return [note("slices", `must be omitted, because the replica type ${only[0]} has slices of its own`)];
}

/** The slices of a replica type against the number of its replicas, and against the levels of itself and the job. */
function checkSlicesOfRole(of: {
  readonly ofJob: SentWish | null;
  readonly ofRole: SentWish | null;
  readonly spec: SentSpec;
  readonly role: string;
  /** True: the job has no other replica type. */
  readonly isOnly: boolean;
}): readonly FieldError[] {
  const { ofJob, ofRole, spec, role, isOnly } = of;
  const own = ofRole?.wish.slices === undefined && isOnly ? ofJob : ofRole;
  const { slices = [] } = own?.wish ?? {};
  const [first] = slices;
  if (own === null || first === undefined) return [];
  const outer = [ofRole, ofJob].flatMap((one) => one?.wish.required ?? one?.wish.preferred ?? []);
  const replicas = spec.replicaSpecs[role]?.replicas ?? 1;
  const isWrong = first.size >= 1 && replicas % first.size !== 0;
  const size = `must divide ${replicas}, the number of ${role} replicas, and is ${first.size}`;
  return [...checkOrder(slices, outer, own), ...(isWrong ? [own.note("slices[0].size", size)] : [])];
}

/** Slices come coarse to fine, and none is coarser than a level within which all of them are. */
function checkOrder(slices: readonly TopologySlice[], outer: readonly string[], { note }: SentWish) {
  const levels = slices.map(({ level }) => level);
  const above = outer.find((level) => levels.indexOf(level) > 0);
  if (above === undefined) return [];
  const where = `${shown(above)}, where all of them run`;
  return [note("slices[0].level", `must not be coarser than ${where}, and slices come coarse to fine`)];
}

/** All members of a gang with slices are admitted together. */
function checkWhole({ replicaSpecs, runPolicy }: SentSpec): readonly FieldError[] {
  const minimum = runPolicy?.schedulingPolicy?.minAvailable;
  const total = Object.values(replicaSpecs).reduce((sum, { replicas = 1 }) => sum + Math.max(replicas, 0), 0);
  if (minimum === undefined || minimum >= total) return [];
  const path = "spec.runPolicy.schedulingPolicy.minAvailable";
  const message = `must be omitted, or ${total}, the number of all replicas: a job with slices is admitted as a whole`;
  return [{ path, message }];
}
