import type { FieldError, SentJob, TemplateFindings } from "../core/job/request/sent.ts";
import { isService } from "../core/kinds/kind.ts";
import { OWN_ENTRY } from "../core/kinds/registry.ts";

import { ADMIN_HELP, judgeTemplate } from "../core/pods/policy/judge-template.ts";
import { isLimitKind, type PodLimits } from "../core/pods/policy/limits.ts";
import type { Remedies } from "../core/pods/policy/remedies.ts";
import type { JsonObject } from "../runtime/json.ts";
import { accountsOfKind, OWN_IMAGE, partsOfKind, withParts } from "./kind-pods.ts";
import type { IntakeRules } from "./ports.ts";

/** The template of a replica type. */
type ReplicaTemplate = {
  readonly role: string;
  readonly sent: JsonObject;
  /** The template that the platform builds from it. Null: it cannot be built. */
  readonly built: JsonObject | null;
};

/**
 * Judges a template by the pod policy of its namespace: first as the user wrote it, then with the parts that a plugin's
 * kind adds to it. Parts of Gangway's own kinds are not judged: users choose nothing in them.
 */
export function checkPodPolicy(
  job: SentJob,
  template: ReplicaTemplate,
  { kinds, podPolicy: policy, remedies }: IntakeRules & { readonly remedies: Remedies },
): TemplateFindings {
  const { role, sent } = template;
  const built = template.built ?? sent;
  const kind = kinds.kindOf(job.spec.kind);
  const { namespace } = job;
  const isOwn = kinds.entryOf(job.spec.kind) === OWN_ENTRY;
  const isAsked = !isOwn || policy.limits["service-account"] !== undefined;
  const parts = kind === undefined || isService(kind) || !isAsked ? [] : partsOfKind(job, kind, role);
  const kindHasAccount = parts.some(({ serviceAccount }) => serviceAccount !== undefined);
  const own = judgeTemplate({ namespace, remedies, policy, sent, built, kindHasAccount });
  if (isOwn || kind === undefined) return own;
  const known = new Set(own.errors.map(keyOf));
  const ofAdmins = { image: [OWN_IMAGE], "service-account": accountsOfKind(job, kind) };
  const wider = { ...policy, limits: widened(policy.limits, ofAdmins) };
  const added = parts.flatMap((one) => {
    const whole = { sent: withParts(sent, one), built: withParts(built, one) };
    return judgeTemplate({ namespace, remedies, policy: wider, ...whole, kindHasAccount }).errors;
  });
  const news = new Map(added.map((error) => [keyOf(error), error]));
  const ofKind = [...news.values()].filter((error) => !known.has(keyOf(error)));
  const told = ofKind.map(({ path, message }) => ({ path, message: `(added by the kind ${kind.name}) ${message}` }));
  return { errors: [...own.errors, ...told], warnings: own.warnings };
}

/** Equal for errors about the same. Their commands may differ: only the first one makes the namespace. */
function keyOf({ path, message }: FieldError): string {
  return `${path} ${message.split(ADMIN_HELP)[0]}`;
}

/** Limits with further entries. A limit that is not set stays so. */
function widened(limits: PodLimits, more: PodLimits): PodLimits {
  const entries = Object.entries(limits).map(([kind, values]) => [
    kind,
    isLimitKind(kind) ? [...values, ...(more[kind] ?? [])] : values,
  ]);
  return Object.fromEntries(entries);
}
