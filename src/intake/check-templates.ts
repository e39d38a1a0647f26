import type { FieldError, FieldNote, SentJob, SentSpec } from "../core/job/sent.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { shapeReplica } from "../core/kinds/shape-replica.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import { checkAsked } from "../core/pods/shape-template.ts";
import { checkPlaceholders } from "../core/pods/validate-placeholders.ts";
import { checkTemplate, type TemplateFindings } from "../core/pods/validate-template.ts";
import type { JsonObject } from "../runtime/json.ts";
import { objectAt } from "../runtime/json.ts";
import { reservedLabels } from "./check-metadata.ts";
import { requestPath } from "./request-path.ts";

const TEMPLATE_BYTES_MAX = 1024 * 1024;

/** What is wrong with a job's templates, and what is merely odd. */
export type TemplateNotes = { readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] };

/** Checks every pod template: its size, labels that would pass for ours, what it holds, and what the platform makes of it. */
export function checkTemplates({ spec, namespace }: SentJob, config: PodConfig): TemplateNotes {
  const violations: FieldNote[] = [];
  const warnings: FieldNote[] = [];
  for (const [role, { template = {} }] of Object.entries(spec.replicaSpecs)) {
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const bytes = Buffer.byteLength(JSON.stringify(template));
    if (bytes > TEMPLATE_BYTES_MAX) {
      const message = `must be at most ${TEMPLATE_BYTES_MAX} bytes of JSON; this one has ${bytes}`;
      violations.push({ field: at, message });
      continue;
    }
    const findings = findingsOf(template, { sent: spec, namespace, config });
    const within = ({ path, message }: FieldError) => ({ field: path === "" ? at : `${at}.${path}`, message });
    violations.push(...checkReserved(template, at), ...findings.errors.map(within));
    warnings.push(...findings.warnings.map(within));
  }
  return { violations, warnings };
}

type Context = { readonly sent: SentSpec; readonly namespace: string; readonly config: PodConfig };

function findingsOf(template: JsonObject, context: Context): TemplateFindings {
  const own = checkTemplate(template);
  const placeholders = checkPlaceholders(template, context.sent.inputs ?? {});
  // Only what could be a template is shaped; what its annotations ask for is looked at all the same.
  const shaped = own.errors.length === 0 ? shapeErrors(template, context) : checkAsked(template, context);
  return {
    errors: [...own.errors, ...placeholders.errors, ...shaped],
    warnings: [...own.warnings, ...placeholders.warnings],
  };
}

/** What keeps the platform from making a pod of a template, be it interruptible or not. */
function shapeErrors(template: JsonObject, { sent, namespace, config }: Context): readonly FieldError[] {
  const kind = kindOf(sent.kind);
  if (kind === undefined) return [];
  const ways = sent.runPolicy?.interruptible === true ? [false, true] : [false];
  const outcomes = ways.map((interruptible) => shapeReplica(template, { kind, namespace, interruptible, config }));
  return outcomes.flatMap((one) => (one.kind === "refused" ? [one.errors] : []))[0] ?? [];
}

function checkReserved(template: JsonObject, at: string): readonly FieldNote[] {
  return reservedLabels(objectAt(objectAt(template, "metadata"), "labels")).map((key) => ({
    field: `${at}.metadata.labels.${key}`,
    message: "labels of gangway.dev/ are Gangway's own",
  }));
}
