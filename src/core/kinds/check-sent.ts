import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { defaultSpec } from "../job/request/defaults.ts";
import { joinErrors } from "../job/request/notes.ts";
import type { FieldError, SentReplicaSpec, SentSpec } from "../job/request/sent.ts";
import { parseMilli } from "../pods/quantity.ts";
import { schemaErrors } from "./check-schema.ts";
import { elasticRolesOf, isService, type Kind, type RoleBounds } from "./kind.ts";
import { checkTopology } from "./topology/check-wishes.ts";

/** The form of the name of a replica type. It becomes part of the names of pods. */
export const ROLE_NAME = /^[A-Za-z][A-Za-z0-9-]{0,29}$/;

/**
 * Checks a submitted spec against its kind: replica types, their numbers, the default container, the kind spec, and
 * wishes for topology.
 * Paths are those of the API, such as `spec.replicaSpecs.Worker.replicas`. `checkTemplate` checks the templates.
 */
export function checkSent(kind: Kind, sent: SentSpec): readonly FieldError[] {
  const gang = [checkRoles(kind, sent), checkMinimum(sent), checkPartial(kind, sent), checkMinResources(sent)];
  return joinErrors("spec", ...gang, checkKindSpec(kind, sent), checkTopology(kind, sent));
}

/** Checks the quantities of the future PodGroup. Otherwise the cluster would refuse it only after the admission. */
function checkMinResources({ runPolicy }: SentSpec): readonly FieldError[] {
  return Object.entries(runPolicy?.schedulingPolicy?.minResources ?? {})
    .filter(([, quantity]) => (parseMilli(quantity) ?? -1n) < 0n)
    .map(([resource, quantity]) => {
      const shown = quantity.slice(0, 40);
      const path = "spec.runPolicy.schedulingPolicy.minResources";
      return {
        path,
        message: `has "${shown}" for ${resource.slice(0, 63)}: must be a quantity of at least 0, such as 64Gi`,
      };
    });
}

function checkRoles(kind: Kind, { replicaSpecs }: SentSpec): readonly FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [role, replica] of Object.entries(replicaSpecs)) {
    const path = `spec.replicaSpecs.${role}`;
    const spelled = kind.roleName(role).toLowerCase();
    if (seen.has(spelled)) errors.push({ path, message: "is set twice: upper and lower case do not matter" });
    seen.add(spelled);
    for (const error of checkRole(kind, { role, replica, path })) errors.push(error);
  }
  const missing = (kind.roles ?? []).filter(({ name, min }) => min > 0 && !seen.has(name.toLowerCase()));
  for (const bounds of missing) {
    errors.push({ path: `spec.replicaSpecs.${bounds.name}`, message: missingRole(kind, bounds) });
  }
  const total = Object.values(replicaSpecs).reduce((sum, { replicas = 1 }) => sum + Math.max(replicas, 0), 0);
  if (total === 0 && missing.length === 0 && !isService(kind))
    errors.push({ path: "spec.replicaSpecs", message: "must have at least one replica" });
  return errors;
}

function missingRole(kind: Kind, { min, max }: RoleBounds): string {
  const count = min === max ? `exactly ${min}` : `at least ${min}`;
  return `is required: every ${kind.name} has ${count}`;
}

type SentRole = { readonly role: string; readonly replica: SentReplicaSpec; readonly path: string };

function checkRole(kind: Kind, { role, replica, path }: SentRole): readonly FieldError[] {
  const bounds = kind.roles?.find(({ name }) => name === kind.roleName(role));
  if (kind.roles === null && !ROLE_NAME.test(role)) {
    return [{ path, message: "must be a letter, then up to 29 letters, digits and dashes" }];
  }
  if (kind.roles !== null && bounds === undefined) {
    if (isService(kind)) return [{ path, message: `is not allowed: a ${kind.name} has no replicas` }];
    const known = kind.roles.map(({ name }) => name).join(", ");
    return [{ path, message: `is not a replica type of ${kind.name}; types are: ${known}` }];
  }
  return [...checkCount({ role, replica, path }, bounds), ...checkContainer(kind, { role, replica, path })];
}

function checkCount({ replica, path }: SentRole, bounds: RoleBounds | undefined): readonly FieldError[] {
  const count = replica.replicas ?? 1;
  const { min = 0, max = null } = bounds ?? {};
  const error = (message: string) => [{ path: `${path}.replicas`, message }];
  if (count < 0) return error("must not be negative");
  if (min === max && count !== min) return error(`must be exactly ${min}`);
  if (count < min) return error(`must be at least ${min}`);
  return max !== null && count > max ? error(`must be at most ${max}`) : [];
}

function checkContainer(kind: Kind, { replica, path }: SentRole): readonly FieldError[] {
  const containers = arrayAt(objectAt(replica.template, "spec"), "containers");
  if (!kind.containerRequired || containers.length === 0) return [];
  if (containers.some((container) => stringAt(container, "name") === kind.defaultContainer)) return [];
  const message = `must have a container named ${kind.defaultContainer}: ${kind.name} requires it`;
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

/** An elastic gang is told no number of its own: its programs find each other by rendezvous. */
function checkPartial(kind: Kind, sent: SentSpec): readonly FieldError[] {
  if (sent.runPolicy?.schedulingPolicy?.partial === undefined) return [];
  const context = { labels: {}, namespaceQueue: null, priorityClass: null };
  const elastic = elasticRolesOf(kind, defaultSpec(sent, { ...context, kind }));
  if (elastic.length === 0) return [];
  const path = "spec.runPolicy.schedulingPolicy.partial";
  return [{ path, message: `must be omitted: the ${elastic[0]?.name} replicas of this ${kind.name} are elastic` }];
}

/** Runs `validate` only if the schema holds. */
function checkKindSpec(kind: Kind, sent: SentSpec): readonly FieldError[] {
  // An omitted kind spec may lack required members too.
  const errors = schemaErrors(kind.kindSpecSchema, sent.kindSpec ?? {}, "spec.kindSpec");
  return errors.length > 0 ? errors : kind.validate(sent);
}

/** Returns the members that the kind accepts but ignores: their schema says `x-ignored`. */
export function ignoredMembers(kind: Kind, { kindSpec = {} }: SentSpec): readonly FieldError[] {
  return ignoredWithin(kind.kindSpecSchema, kindSpec, "spec.kindSpec");
}

function ignoredWithin(schema: JsonObject, value: JsonObject, path: string): readonly FieldError[] {
  return Object.entries(objectAt(schema, "properties")).flatMap(([name, inner]) => {
    const member = Object.hasOwn(value, name) ? value[name] : undefined;
    if (!isJsonObject(inner) || member === undefined || member === null) return [];
    const why = stringAt(inner, "x-ignored");
    if (why !== undefined) return [{ path: `${path}.${name}`, message: `is ignored: ${why}` }];
    return isJsonObject(member) ? ignoredWithin(inner, member, `${path}.${name}`) : [];
  });
}
