import { type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { FieldError, TemplateFindings } from "../../job/request/sent.ts";

import { beyondLimits, type LimitExcess } from "./limits.ts";
import { judgeLevel, type PolicyFinding, type PolicyInForce } from "./pod-policy.ts";
import { Remedies, SHOWN_MAX } from "./remedies.ts";

/** A template to judge, and whose policy judges it. */
type TemplateCase = {
  readonly namespace: string;
  /** Those of the errors of one job, whichever template they are about. */
  readonly remedies: Remedies;
  readonly policy: PolicyInForce;
  /** The template as the user wrote it. */
  readonly sent: JsonObject;
  /** The template that the platform builds from it. The same as `sent` if it cannot be built. */
  readonly built: JsonObject;
  /** Whether the kind gives an account to pods whose template names none. */
  readonly kindHasAccount: boolean;
};

/** Begins the part of a message that says which command helps. */
export const ADMIN_HELP = ". An admin";

/** More findings of a kind are not told. An answer has no room for them, and a template may have tens of thousands. */
const FINDINGS_MAX = 100;

/**
 * Judges a template by the pod policy of its namespace. Each error says what the pod does, which control refuses it,
 * and the command by which an admin allows it. Paths start at the template.
 */
export function judgeTemplate(judged: TemplateCase): TemplateFindings {
  const { policy, sent, built, kindHasAccount } = judged;
  const found = judgeLevel({ sent, built }, policy);
  const builtSpec = objectAt(built, "spec");
  const isNamed = stringAt(builtSpec, "serviceAccountName") || stringAt(builtSpec, "serviceAccount");
  const isChosen = kindHasAccount || Boolean(isNamed);
  const limited = { spec: objectAt(sent, "spec"), fallbackAccount: isChosen ? null : "default" };
  const excess = beyondLimits(limited, policy.limits);
  const noted = (severity: PolicyFinding["severity"]) => found.filter((finding) => finding.severity === severity);
  return {
    errors: [
      ...noted("error")
        .slice(0, FINDINGS_MAX)
        .map((finding) => refusal(finding, judged)),
      ...excess.slice(0, FINDINGS_MAX).map((one) => limitRefusal(one, judged)),
    ],
    warnings: noted("warning")
      .slice(0, FINDINGS_MAX)
      .map((finding) => caution(finding, judged)),
  };
}

function refusal({ path, what, control, needs }: PolicyFinding, judged: TemplateCase): FieldError {
  const { namespace, policy, remedies } = judged;
  const rule = `control ${control} of level ${policy.level} refuses this in namespace ${shown(namespace)}`;
  return { path, message: `${shown(what)}: ${rule}${ADMIN_HELP} allows it with: ${remedies.allow(needs)}` };
}

function caution({ path, what, control, needs }: PolicyFinding, { namespace }: TemplateCase): FieldError {
  const rule = `an installation that \`gangway serve\` runs refuses this by control ${control}`;
  const way = new Remedies(namespace, false).allow(needs);
  return { path, message: `${shown(what)}: ${rule}. There, an admin allows it with: ${way}` };
}

/** More entries of a limit than this are not named. */
const ENTRIES_SHOWN_MAX = 5;

function limitRefusal(excess: LimitExcess, judged: TemplateCase): FieldError {
  const { kind, path, value, entries } = excess;
  const named = entries.slice(0, ENTRIES_SHOWN_MAX).join(", ");
  const more = entries.length > ENTRIES_SHOWN_MAX ? " and others" : "";
  const allowed = entries.length === 0 ? "none" : `only ${named}${more}`;
  const rule = `namespace ${shown(judged.namespace)} allows ${allowed} (limit ${kind})`;
  const way = judged.remedies.widen(excess);
  return { path, message: `is "${shown(value)}": ${rule}${ADMIN_HELP} changes the limit with: ${way}` };
}

function shown(text: string): string {
  return text.slice(0, SHOWN_MAX);
}
