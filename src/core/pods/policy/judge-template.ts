import { type JsonObject, objectAt } from "../../../runtime/json.ts";
import type { FieldError } from "../../job/sent.ts";
import type { TemplateFindings } from "../validate-template.ts";
import { allowanceText, readAllowance } from "./allowances.ts";
import { beyondLimits, type LimitExcess } from "./limits.ts";
import { isSet } from "./pod-parts.ts";
import { judgeLevel, type PolicyFinding, type PolicyInForce } from "./pod-policy.ts";

/** A template to judge, and whose policy judges it. */
export type TemplateCase = {
  readonly namespace: string;
  readonly policy: PolicyInForce;
  /** The template as the user wrote it. */
  readonly sent: JsonObject;
  /** The template that the platform builds from it. The same as `sent` if it cannot be built. */
  readonly built: JsonObject;
  /** Whether the kind gives an account to pods whose template names none. */
  readonly kindHasAccount: boolean;
};

/**
 * Judges a template by the pod policy of its namespace. Each error says what the pod does, which control refuses it,
 * and the command by which an admin allows it. Paths start at the template.
 */
export function judgeTemplate({ namespace, policy, sent, built, kindHasAccount }: TemplateCase): TemplateFindings {
  const found = judgeLevel({ sent, built }, policy);
  const builtSpec = objectAt(built, "spec");
  const isChosen = kindHasAccount || isSet(builtSpec["serviceAccountName"]) || isSet(builtSpec["serviceAccount"]);
  const limited = { spec: objectAt(sent, "spec"), fallbackAccount: isChosen ? null : "default" };
  const excess = beyondLimits(limited, policy.limits);
  const noted = (severity: PolicyFinding["severity"]) => found.filter((finding) => finding.severity === severity);
  return {
    errors: [
      ...noted("error").map((finding) => refusal(finding, namespace, policy)),
      ...excess.map((one) => limitRefusal(one, namespace)),
    ],
    warnings: noted("warning").map((finding) => caution(finding, namespace)),
  };
}

function refusal(
  { path, what, control, needs }: PolicyFinding,
  namespace: string,
  { level }: PolicyInForce,
): FieldError {
  const text = allowanceText(needs);
  const way = readAllowance(text).kind === "read" ? `--allow ${text}` : "--pod-security privileged";
  const rule = `control ${control} of level ${level} refuses this in namespace ${namespace}`;
  return { path, message: `${what}: ${rule}. An admin allows it with: gangway namespace update ${namespace} ${way}` };
}

function caution({ path, what, control, needs }: PolicyFinding, namespace: string): FieldError {
  const rule = `an installation that \`gangway serve\` runs refuses this by control ${control}`;
  const way = `gangway namespace update ${namespace} --allow ${allowanceText(needs)}`;
  return { path, message: `${what}: ${rule}. There, an admin allows it with: ${way}` };
}

/** More entries of a limit than this are not named. */
const ENTRIES_SHOWN_MAX = 5;

function limitRefusal({ kind, path, value, entries }: LimitExcess, namespace: string): FieldError {
  const shown = entries.slice(0, ENTRIES_SHOWN_MAX).join(", ");
  const more = entries.length > ENTRIES_SHOWN_MAX ? " and others" : "";
  const allowed = entries.length === 0 ? "none" : `only ${shown}${more}`;
  const rule = `namespace ${namespace} allows ${allowed} (limit ${kind})`;
  const way = `gangway namespace update ${namespace} --only ${kind}=…`;
  return { path, message: `is "${value.slice(0, 200)}": ${rule}. An admin changes the limit with: ${way}` };
}
