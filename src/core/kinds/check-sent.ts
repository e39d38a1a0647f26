import { arrayAt, type Json, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import type { FieldError, SentReplicaSpec, SentSpec } from "../job/sent.ts";
import type { Kind } from "./kind.ts";

const ROLE_NAME = /^[A-Za-z][A-Za-z0-9-]{0,29}$/;

/**
 * What a kind finds wrong with a spec as it was sent: unknown replica types, their bounds, the missing default container, members of the
 * kind spec. Paths are the API's (`spec.replicaSpecs.Worker.replicas`); what templates hold is `checkTemplate`'s.
 */
export function checkSent(kind: Kind, sent: SentSpec): readonly FieldError[] {
  return [
    ...checkRoles(kind, sent),
    ...checkMinimum(sent),
    ...checkKindSpec(kind, sent.kindSpec ?? {}),
    ...checkUnserved(sent),
  ];
}

function checkRoles(kind: Kind, { replicaSpecs }: SentSpec): readonly FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [role, replica] of Object.entries(replicaSpecs)) {
    const path = `spec.replicaSpecs.${role}`;
    const spelled = kind.roleName(role).toLowerCase();
    if (seen.has(spelled)) errors.push({ path, message: "is given twice, in different case" });
    seen.add(spelled);
    errors.push(...checkRole(kind, { role, replica, path }));
  }
  const total = Object.values(replicaSpecs).reduce((sum, { replicas = 1 }) => sum + Math.max(replicas, 0), 0);
  if (total === 0) errors.push({ path: "spec.replicaSpecs", message: "must ask for at least one replica" });
  return errors;
}

type SentRole = { readonly role: string; readonly replica: SentReplicaSpec; readonly path: string };

function checkRole(kind: Kind, { role, replica, path }: SentRole): readonly FieldError[] {
  const bounds = kind.roles?.find(({ name }) => name === kind.roleName(role));
  if (kind.roles === null && !ROLE_NAME.test(role)) {
    return [{ path, message: "must be a letter, then up to 29 letters, digits and dashes" }];
  }
  if (kind.roles !== null && bounds === undefined) {
    const known = kind.roles.map(({ name }) => name).join(", ");
    return [{ path, message: `is no replica type of ${kind.name}; these are: ${known}` }];
  }
  return [
    ...checkCount({ role, replica, path }, bounds?.max ?? null),
    ...checkContainer(kind, { role, replica, path }),
  ];
}

function checkCount({ replica, path }: SentRole, max: number | null): readonly FieldError[] {
  const count = replica.replicas ?? 1;
  if (count < 0) return [{ path: `${path}.replicas`, message: "must not be negative" }];
  if (max !== null && count > max) return [{ path: `${path}.replicas`, message: `must be at most ${max}` }];
  return [];
}

function checkContainer(kind: Kind, { replica, path }: SentRole): readonly FieldError[] {
  const containers = arrayAt(objectAt(replica.template, "spec"), "containers");
  if (kind.defaultContainer === null || containers.length === 0) return [];
  if (containers.some((container) => stringAt(container, "name") === kind.defaultContainer)) return [];
  const message = `must have a container named ${kind.defaultContainer}, as every ${kind.name} does`;
  return [{ path: `${path}.template.spec.containers`, message }];
}

function checkMinimum({ replicaSpecs, runPolicy }: SentSpec): readonly FieldError[] {
  const minimum = runPolicy?.schedulingPolicy?.minAvailable;
  if (minimum === undefined) return [];
  const path = "spec.runPolicy.schedulingPolicy.minAvailable";
  const total = Object.values(replicaSpecs).reduce((sum, { replicas = 1 }) => sum + Math.max(replicas, 0), 0);
  if (minimum < 1) return [{ path, message: "must be at least 1" }];
  return minimum > total ? [{ path, message: `must be at most the number of replicas, ${total}` }] : [];
}

function checkKindSpec(kind: Kind, kindSpec: JsonObject): readonly FieldError[] {
  return Object.entries(kindSpec).flatMap(([name, value]) => {
    const message = value === undefined || value === null ? null : kindFieldError(kind, name, value);
    return message === null ? [] : [{ path: `spec.kindSpec.${name}`, message }];
  });
}

function kindFieldError(kind: Kind, name: string, value: Json): string | null {
  if (kind.unservedFields.includes(name)) return `${name} is not served yet`;
  const check = kind.kindSpecFields[name];
  return check === undefined ? `is no field of ${kind.name}` : check(value);
}

function checkUnserved({ runPolicy }: SentSpec): readonly FieldError[] {
  return runPolicy?.suspend === true ? [{ path: "spec.runPolicy.suspend", message: "suspend is not served yet" }] : [];
}
