import type { FieldError, FieldNote, SentJob, SentSpec } from "../core/job/sent.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { shapeReplica } from "../core/kinds/shape-replica.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
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
  const kind = kindOf(spec.kind);
  const interruptible = spec.runPolicy?.interruptible === true;
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
    const findings = findingsOf(template, spec);
    const within = ({ path, message }: FieldError) => ({ field: path === "" ? at : `${at}.${path}`, message });
    violations.push(...checkReserved(template, at), ...findings.errors.map(within));
    if (kind !== undefined && findings.errors.length === 0) {
      const shape = (interrupted: boolean) =>
        shapeReplica(template, { kind, namespace, interruptible: interrupted, config });
      const refused = [shape(false), ...(interruptible ? [shape(true)] : [])].find((one) => one.kind === "refused");
      if (refused?.kind === "refused") violations.push(...refused.errors.map(within));
    }
    warnings.push(...findings.warnings.map(within));
  }
  return { violations, warnings };
}

function findingsOf(template: JsonObject, { inputs = {} }: SentSpec): TemplateFindings {
  const own = checkTemplate(template);
  const placeholders = checkPlaceholders(template, inputs);
  return {
    errors: [...own.errors, ...placeholders.errors],
    warnings: [...own.warnings, ...placeholders.warnings],
  };
}

function checkReserved(template: JsonObject, at: string): readonly FieldNote[] {
  return reservedLabels(objectAt(objectAt(template, "metadata"), "labels")).map((key) => ({
    field: `${at}.metadata.labels.${key}`,
    message: "labels of gangway.dev/ are Gangway's own",
  }));
}
