import type { FieldError, FieldNote, SentJob, SentSpec } from "../core/job/sent.ts";
import { shapeReplica } from "../core/kinds/shape-replica.ts";
import { checkAnnotations } from "../core/pods/shape-template.ts";
import { checkPlaceholders } from "../core/pods/validate-placeholders.ts";
import { checkTemplate, type TemplateFindings } from "../core/pods/validate-template.ts";
import type { JsonObject } from "../runtime/json.ts";
import { objectAt } from "../runtime/json.ts";
import { reservedLabels } from "./check-metadata.ts";
import type { IntakeRules } from "./ports.ts";
import { requestPath } from "./request-path.ts";

const TEMPLATE_BYTES_MAX = 1024 * 1024;

/** The errors and the probable mistakes in a job's templates. */
type TemplateNotes = { readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] };

/**
 * Checks every pod template: its size, its labels, its fields, and the template that the platform's settings make of
 * it.
 */
export function checkTemplates({ spec, namespace }: SentJob, { kinds, podConfig }: IntakeRules): TemplateNotes {
  const violations: FieldNote[] = [];
  const warnings: FieldNote[] = [];
  for (const [role, { template = {} }] of Object.entries(spec.replicaSpecs)) {
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const bytes = Buffer.byteLength(JSON.stringify(template));
    if (bytes > TEMPLATE_BYTES_MAX) {
      const message = `must be at most ${TEMPLATE_BYTES_MAX} bytes of JSON, but has ${bytes}`;
      violations.push({ field: at, message });
      continue;
    }
    const findings = findingsOf(template, { sent: spec, namespace, kinds, config: podConfig });
    const within = ({ path, message }: FieldError) => ({ field: path === "" ? at : `${at}.${path}`, message });
    violations.push(...checkReserved(template, at), ...findings.errors.map(within));
    warnings.push(...findings.warnings.map(within));
  }
  return { violations, warnings };
}

type Context = {
  readonly sent: SentSpec;
  readonly namespace: string;
  readonly kinds: IntakeRules["kinds"];
  readonly config: IntakeRules["podConfig"];
};

function findingsOf(template: JsonObject, context: Context): TemplateFindings {
  const own = checkTemplate(template);
  const placeholders = checkPlaceholders(template, context.sent.inputs ?? {});
  // Only a template without errors can be shaped. The requests in its annotations are checked in any case.
  const shaped = own.errors.length === 0 ? shapeErrors(template, context) : checkAnnotations(template, context);
  return {
    errors: [...own.errors, ...placeholders.errors, ...shaped],
    warnings: [...own.warnings, ...placeholders.warnings],
  };
}

/** Returns the errors of applying the platform's settings, for interruptible and other attempts alike. */
function shapeErrors(template: JsonObject, { sent, namespace, kinds, config }: Context): readonly FieldError[] {
  const kind = kinds.kindOf(sent.kind);
  if (kind === undefined) return [];
  const ways = sent.runPolicy?.interruptible === true ? [false, true] : [false];
  const outcomes = ways.map((interruptible) => shapeReplica(template, { kind, namespace, interruptible, config }));
  return outcomes.flatMap((one) => (one.kind === "refused" ? [one.errors] : []))[0] ?? [];
}

function checkReserved(template: JsonObject, at: string): readonly FieldNote[] {
  return reservedLabels(objectAt(objectAt(template, "metadata"), "labels")).map((key) => ({
    field: `${at}.metadata.labels.${key}`,
    message: "must not be set: labels that begin with gangway.dev/ are reserved",
  }));
}
