/**
 * The pod policy of a namespace: which pods its jobs may have. It serves admins, whose clusters run the templates of
 * users that they do not know.
 */
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import { CONTAINER_LISTS } from "../pod-parts.ts";
import { type Allowance, allowanceText, covers, readAllowance } from "./allowances.ts";
import type { Control, JudgedPod, PodNeed, PodSecurityLevel } from "./control.ts";
import { HOST_CONTROLS } from "./host-controls.ts";
import { KERNEL_CONTROLS } from "./kernel-controls.ts";
import type { PodLimits } from "./limits.ts";
import { OWN_RULES } from "./own-rules.ts";
import { RESTRICTED_CONTROLS } from "./restricted-controls.ts";

/** The settings of an admin for a namespace. */
export type PodPolicy = {
  /** Null: the installation's level, with its allowances. */
  readonly level: PodSecurityLevel | null;
  /** Texts such as `host-path=/dev/shm`, which `readAllowance` reads. */
  readonly allow: readonly string[];
  readonly limits: PodLimits;
};

/** The policy of namespaces whose admin has set no level. */
export type PodPolicyDefault = {
  readonly level: PodSecurityLevel;
  /** Allowances that hold, and warn the user of each pod that needs them. */
  readonly warn: readonly string[];
};

/** The policy that is in force: that of the namespace on top of the installation's default. */
export type PolicyInForce = {
  readonly level: PodSecurityLevel;
  readonly allow: readonly string[];
  readonly warn: readonly string[];
  readonly limits: PodLimits;
};

const EMPTY_POLICY: PodPolicy = { level: null, allow: [], limits: {} };

/** The default of a served installation, and of every one that knows its callers. */
export const BASELINE_DEFAULT: PodPolicyDefault = { level: "baseline", warn: [] };

/**
 * The default of `gangway up` without authentication: it tries manifests out, and says which of them a served
 * installation would refuse.
 */
export const TRIAL_DEFAULT: PodPolicyDefault = { level: "baseline", warn: ["host-path=/"] };

/** A namespace without a level has the installation's. Its allowances add to those of the installation. */
export function policyInForce(policy: PodPolicy | null, fallback: PodPolicyDefault): PolicyInForce {
  const { level, allow, limits } = policy ?? EMPTY_POLICY;
  return { level: level ?? fallback.level, allow, warn: level === null ? fallback.warn : [], limits };
}

/** Every control: those of Kubernetes' standard, and the rules of Gangway. */
export const CONTROLS: readonly Control[] = [
  ...HOST_CONTROLS,
  ...KERNEL_CONTROLS,
  ...RESTRICTED_CONTROLS,
  ...OWN_RULES,
];

/** The controls of a level. Each level has those of the level before it. */
function controlsOf(level: PodSecurityLevel): readonly Control[] {
  if (level === "privileged") return [];
  return CONTROLS.filter((control) => control.level === "baseline" || level === "restricted");
}

/** The needs of a pod that its policy does not allow, or allows with a warning. */
export type PolicyFinding = PodNeed & { readonly control: string; readonly severity: "error" | "warning" };

/**
 * Judges a pod by the controls of its policy's level. `sent` is the template as the user wrote it: a value that it sets
 * is judged there, so that no merge can hide it. `built` is the pod that the platform makes of it: a value that a level
 * requires may come from the platform. Values that only the platform sets are the admin's, and are not judged.
 */
export function judgeLevel(
  { sent, built }: { readonly sent: JsonObject; readonly built: JsonObject },
  { level, allow, warn }: Pick<PolicyInForce, "level" | "allow" | "warn">,
): readonly PolicyFinding[] {
  const [allowed, warned] = [allowancesOf(allow), allowancesOf(warn)];
  const pods = { set: judgedPod(sent), missing: judgedPod(withContainersOf(sent, built)) };
  const found = controlsOf(level).flatMap(({ id, judges, check }) =>
    check(pods[judges])
      .filter(({ needs }) => !isCovered(needs, allowed))
      .map((need): PolicyFinding => {
        const isWarned = isCovered(need.needs, warned);
        return { ...need, control: id, severity: isWarned ? "warning" : "error" };
      }),
  );
  // The first control that finds a need tells it.
  const byNeed = new Map(found.toReversed().map((one) => [`${one.path} ${allowanceText(one.needs)}`, one]));
  const first = new Set(byNeed.values());
  return found.filter((one) => first.has(one));
}

function judgedPod(template: JsonObject): JudgedPod {
  return { annotations: objectAt(objectAt(template, "metadata"), "annotations"), spec: objectAt(template, "spec") };
}

/** The built template with only the containers that the user sent, in their order. */
function withContainersOf(sent: JsonObject, built: JsonObject): JsonObject {
  const [sentSpec, builtSpec] = [objectAt(sent, "spec"), objectAt(built, "spec")];
  const lists = CONTAINER_LISTS.map((list) => {
    const all = new Map(arrayAt(builtSpec, list).map((one) => [stringAt(one, "name"), one]));
    return [list, arrayAt(sentSpec, list).map((one) => all.get(stringAt(one, "name")) ?? one)] as const;
  });
  return { ...built, spec: { ...builtSpec, ...Object.fromEntries(lists) } };
}

type AllowancesByKind = ReadonlyMap<Allowance["kind"], readonly Allowance[]>;

function isCovered(needed: Allowance, allowances: AllowancesByKind): boolean {
  return allowances.get(needed.kind)?.some((one) => covers(one, needed)) ?? false;
}

function allowancesOf(texts: readonly string[]): AllowancesByKind {
  const read = texts.map(readAllowance).flatMap((one) => (one.kind === "read" ? [one.allowance] : []));
  return Map.groupBy(read, ({ kind }) => kind);
}
