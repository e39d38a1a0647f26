import { joinErrors, joinNotes, NoteList } from "../core/job/notes.ts";
import type { FieldError, FieldNote, SentJob } from "../core/job/sent.ts";
import { shapeReplica } from "../core/kinds/shape-replica.ts";
import { checkAnnotations } from "../core/pods/shape-template.ts";
import { checkTemplateSize } from "../core/pods/template-size.ts";
import { checkPlaceholders } from "../core/pods/validate-placeholders.ts";
import { checkTemplate, type TemplateFindings } from "../core/pods/validate-template.ts";
import type { JsonObject } from "../runtime/json.ts";
import { objectAt } from "../runtime/json.ts";
import { reservedLabels } from "./check-metadata.ts";
import { checkPodPolicy } from "./check-pod-policy.ts";
import type { IntakeRules } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/** The errors and the probable mistakes in a job's templates. */
type TemplateNotes = { readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] };

/**
 * Checks every pod template: its size, its labels, its fields, the template that the platform's settings make of it,
 * and the pod policy of its namespace.
 */
export function checkTemplates(job: SentJob, rules: IntakeRules): TemplateNotes {
  const violations = new NoteList<FieldNote>();
  const warnings = new NoteList<FieldNote>();
  for (const [role, { template = {} }] of Object.entries(job.spec.replicaSpecs)) {
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const within = ({ path, ...error }: FieldError) => ({ field: path === "" ? at : `${at}.${path}`, ...error });
    const tooLarge = checkTemplateSize(template);
    if (tooLarge.length > 0) {
      violations.addAll(tooLarge.map(within));
      continue;
    }
    const findings = findingsOf(template, { job, role, rules });
    violations.addAll(checkReserved(template, at));
    violations.addAll(findings.errors.map(within));
    warnings.addAll(findings.warnings.map(within));
  }
  return { violations: violations.list(ofRequest), warnings: warnings.list(ofRequest) };
}

const ofRequest = (rest: Omit<FieldNote, "field">): FieldNote => ({ field: "", ...rest });

/** The errors of a job's templates by the pod policy of its namespace. The templates have no other errors. */
export function policyNotes(job: SentJob, rules: IntakeRules): readonly FieldNote[] {
  const notes = Object.entries(job.spec.replicaSpecs).map(([role, { template = {} }]) => {
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const built = shape(template, job, rules).template;
    const { errors } = checkPodPolicy(job, { role, sent: template, built }, rules);
    return errors.map(({ path, ...error }) => ({ field: `${at}.${path}`, ...error }));
  });
  return joinNotes(...notes);
}

type Context = { readonly job: SentJob; readonly role: string; readonly rules: IntakeRules };

function findingsOf(template: JsonObject, { job, role, rules }: Context): TemplateFindings {
  const own = checkTemplate(template);
  const placeholders = checkPlaceholders(template, job.spec.inputs ?? {});
  const { namespace } = job;
  // Only a template without errors can be shaped. The requests in its annotations are checked in any case.
  const shaped = own.errors.length === 0 ? shape(template, job, rules) : null;
  const shapeErrors = shaped?.errors ?? checkAnnotations(template, { namespace, config: rules.podConfig });
  const policy = checkPodPolicy(job, { role, sent: template, built: shaped?.template ?? null }, rules);
  return {
    errors: joinErrors("", own.errors, placeholders.errors, shapeErrors, policy.errors),
    warnings: joinErrors("", own.warnings, placeholders.warnings, policy.warnings),
  };
}

/** The template with the platform's settings, and their errors, for interruptible and other attempts alike. */
function shape(template: JsonObject, { spec, namespace }: SentJob, { kinds, podConfig: config }: IntakeRules) {
  const kind = kinds.kindOf(spec.kind);
  if (kind === undefined) return { template, errors: [] };
  const ways = spec.runPolicy?.interruptible === true ? [false, true] : [false];
  const outcomes = ways.map((interruptible) => shapeReplica(template, { kind, namespace, interruptible, config }));
  const built = outcomes.flatMap((one) => (one.kind === "shaped" ? [one.template] : []))[0];
  const errors = outcomes.flatMap((one) => (one.kind === "refused" ? [one.errors] : []))[0];
  return { template: built ?? template, errors: errors ?? [] };
}

function checkReserved(template: JsonObject, at: string): readonly FieldNote[] {
  return reservedLabels(objectAt(objectAt(template, "metadata"), "labels")).map((key) => ({
    field: `${at}.metadata.labels.${key}`,
    message: "must not be set: labels that begin with gangway.dev/ are reserved",
  }));
}
