import { type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { FieldError } from "../../job/sent.ts";
import type { TemplateFindings } from "../validate-template.ts";
import { allowanceText, readAllowance } from "./allowances.ts";
import { beyondLimits, type LimitExcess } from "./limits.ts";
import { judgeLevel, type PolicyFinding, type PolicyInForce } from "./pod-policy.ts";

/** A template to judge, and whose policy judges it. */
type TemplateCase = {
  readonly namespace: string;
  /** True if the namespace does not exist yet: an admin creates it with its policy. */
  readonly isNew: boolean;
  readonly policy: PolicyInForce;
  /** The template as the user wrote it. */
  readonly sent: JsonObject;
  /** The template that the platform builds from it. The same as `sent` if it cannot be built. */
  readonly built: JsonObject;
  /** Whether the kind gives an account to pods whose template names none. */
  readonly kindHasAccount: boolean;
};

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

/** Longer texts of a template are cut in messages. */
const SHOWN_MAX = 200;

function refusal({ path, what, control, needs }: PolicyFinding, judged: TemplateCase): FieldError {
  const { namespace, policy } = judged;
  const text = allowanceText(needs);
  const isAllowable = readAllowance(text).kind === "read" && text.length <= SHOWN_MAX;
  const way = isAllowable ? `--allow ${shellWord(text)}` : "--pod-security privileged";
  const rule = `control ${control} of level ${policy.level} refuses this in namespace ${shown(namespace)}`;
  return { path, message: `${shown(what)}: ${rule}. An admin allows it with: ${command(judged)} ${way}` };
}

function caution({ path, what, control, needs }: PolicyFinding, { namespace }: TemplateCase): FieldError {
  const rule = `an installation that \`gangway serve\` runs refuses this by control ${control}`;
  const way = `${command({ namespace, isNew: false })} --allow ${shellWord(allowanceText(needs))}`;
  return { path, message: `${shown(what)}: ${rule}. There, an admin allows it with: ${way}` };
}

/** More entries of a limit than this are not named. */
const ENTRIES_SHOWN_MAX = 5;

function limitRefusal({ kind, path, value, entries }: LimitExcess, judged: TemplateCase): FieldError {
  const named = entries.slice(0, ENTRIES_SHOWN_MAX).join(", ");
  const more = entries.length > ENTRIES_SHOWN_MAX ? " and others" : "";
  const allowed = entries.length === 0 ? "none" : `only ${named}${more}`;
  const rule = `namespace ${shown(judged.namespace)} allows ${allowed} (limit ${kind})`;
  const way = `${command(judged)} --only ${kind}=…`;
  return { path, message: `is "${shown(value)}": ${rule}. An admin changes the limit with: ${way}` };
}

function command({ namespace, isNew }: Pick<TemplateCase, "namespace" | "isNew">): string {
  return `gangway namespace ${isNew ? "create" : "update"} ${shellWord(shown(namespace))}`;
}

function shown(text: string): string {
  return text.slice(0, SHOWN_MAX);
}

/** One word of a shell. Admins copy these commands, whose texts come from templates of users. */
function shellWord(text: string): string {
  return /^[-\w./:=]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
