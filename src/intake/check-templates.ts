import { interruptibleBy } from "../core/job/interruptible.ts";
import { joinErrors, joinNotes, NoteList } from "../core/job/request/notes.ts";
import type { FieldError, FieldNote, SentJob, TemplateFindings } from "../core/job/request/sent.ts";
import { shapeReplica } from "../core/kinds/shape-replica.ts";
import { knownTemplate } from "../core/pods/judge/pod-types.ts";
import { ruleErrors } from "../core/pods/judge/template-errors.ts";
import { checkTemplate } from "../core/pods/judge/validate-template.ts";
import { Remedies } from "../core/pods/policy/remedies.ts";
import { checkAnnotations } from "../core/pods/shape-template.ts";
import { checkTemplateSize } from "../core/pods/template-size.ts";
import { checkPlaceholders } from "../core/pods/validate-placeholders.ts";
import { canonicalJson, type JsonObject, objectAt } from "../runtime/json.ts";
import { reservedLabels } from "./check-metadata.ts";
import { checkPodPolicy } from "./check-pod-policy.ts";
import type { ShapedTemplates } from "./new-job.ts";
import type { IntakeRules } from "./ports.ts";
import { requestPath } from "./request-path.ts";
import { warnLowered } from "./warn-lowered.ts";

/** A template as it was sent, and as the platform makes pods of it. */
type ShapedReplica = ShapedTemplates[string] & { readonly sent: JsonObject };
/** By replica type as the request spells it. */
export type ShapedReplicas = Readonly<Record<string, ShapedReplica>>;

/** The errors and the probable mistakes in a job's templates, and the templates that the platform makes of them. */
type TemplateNotes = {
  readonly violations: readonly FieldNote[];
  readonly warnings: readonly FieldNote[];
  /** Without those that cannot be shaped. */
  readonly shaped: ShapedReplicas;
  /** The replica types whose templates are too large to be checked any further. */
  readonly tooLarge: ReadonlySet<string>;
  /** Something is said about a placeholder. */
  readonly arePlaceholdersNoted: boolean;
};

/**
 * Checks every pod template: its size, its labels, its fields, the template that the platform's settings make of it,
 * and the pod policy of its namespace.
 */
export function checkTemplates(job: SentJob, rules: IntakeRules): TemplateNotes {
  const violations = new NoteList<FieldNote>();
  const warnings = new NoteList<FieldNote>();
  const remedies = new Remedies(job.namespace, rules.isNew);
  const shaped: [string, ShapedReplica][] = [];
  const tooLarge = new Set<string>();
  let arePlaceholdersNoted = false;
  for (const [role, { template = {} }] of Object.entries(job.spec.replicaSpecs)) {
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const within = ({ path, ...error }: FieldError) => ({ field: path === "" ? at : `${at}.${path}`, ...error });
    const size = checkTemplateSize(template);
    if (size.length > 0) {
      violations.addAll(size.map(within));
      tooLarge.add(role);
      continue;
    }
    const findings = findingsOf(template, { job, role, rules: { ...rules, remedies } });
    violations.addAll(checkReserved(template, at));
    violations.addAll(findings.errors.map(within));
    warnings.addAll(findings.warnings.map(within));
    if (findings.shaped !== null) shaped.push([role, { sent: template, ...findings.shaped }]);
    arePlaceholdersNoted ||= findings.arePlaceholdersNoted;
  }
  const notes = { violations: violations.list(ofRequest), warnings: warnings.list(ofRequest) };
  return { ...notes, shaped: Object.fromEntries(shaped), tooLarge, arePlaceholdersNoted };
}

/**
 * The shaped templates of a job that differs in its texts alone from one whose templates have no errors. Null: these
 * texts are too large, or something is to be said about their placeholders.
 */
export function shapedAlike(job: SentJob, rules: IntakeRules): ShapedReplicas | null {
  const shaped: [string, ShapedReplica][] = [];
  for (const [role, { template = {} }] of Object.entries(job.spec.replicaSpecs)) {
    if (checkTemplateSize(template).length > 0) return null;
    if (isAnyNoted(checkPlaceholders(template, job.spec.inputs ?? {}))) return null;
    shaped.push([role, { sent: template, ...shape(template, job, rules).templates }]);
  }
  return Object.fromEntries(shaped);
}

function isAnyNoted({ errors, warnings }: TemplateFindings): boolean {
  return errors.length + warnings.length > 0;
}

const ofRequest = (rest: Omit<FieldNote, "field">): FieldNote => ({ field: "", ...rest });

/** The errors of a job's templates by the pod policy of its namespace. The templates have no other errors. */
export function policyNotes(job: SentJob, rules: IntakeRules): readonly FieldNote[] {
  const remedies = new Remedies(job.namespace, rules.isNew);
  const notes = Object.entries(job.spec.replicaSpecs).map(([role, { template = {} }]) => {
    const at = requestPath(["spec", "replicaSpecs", role, "template"]);
    const { built } = shape(template, job, rules);
    const { errors } = checkPodPolicy(job, { role, sent: template, built }, { ...rules, remedies });
    return errors.map(({ path, ...error }) => ({ field: `${at}.${path}`, ...error }));
  });
  return joinNotes(...notes);
}

type Context = {
  readonly job: SentJob;
  readonly role: string;
  readonly rules: IntakeRules & { readonly remedies: Remedies };
};

type Found = TemplateFindings & {
  readonly shaped: ShapedTemplates[string] | null;
  readonly arePlaceholdersNoted: boolean;
};

function findingsOf(template: JsonObject, { job, role, rules }: Context): Found {
  const own = checkTemplate(template);
  const placeholders = checkPlaceholders(template, job.spec.inputs ?? {});
  const { namespace } = job;
  // Only a template without errors can be shaped. The requests in its annotations are checked in any case.
  const shaped = own.errors.length === 0 ? shape(template, job, rules) : null;
  const shapeErrors = shaped?.errors ?? checkAnnotations(template, { namespace, config: rules.podConfig });
  const policy = checkPodPolicy(job, { role, sent: template, built: shaped?.built ?? null }, rules);
  const isShaped = shaped !== null && shaped.errors.length === 0;
  return {
    errors: joinErrors(
      "",
      own.errors,
      isShaped ? [] : others(own, template),
      placeholders.errors,
      shapeErrors,
      policy.errors,
    ),
    warnings: joinErrors(
      "",
      own.warnings,
      placeholders.warnings,
      policy.warnings,
      loweredRequests(template, shaped, rules.podConfig),
    ),
    shaped: isShaped ? shaped.templates : null,
    arePlaceholdersNoted: isAnyNoted(placeholders),
  };
}

/** Requests above their limits, which the platform's settings lower. Without such settings, a rule refuses them. */
function loweredRequests(
  sent: JsonObject,
  shaped: Shaped | null,
  { gpuResourceName }: IntakeRules["podConfig"],
): readonly FieldError[] {
  return shaped === null || shaped.errors.length > 0 ? [] : warnLowered(sent, shaped.built, gpuResourceName);
}

/** What rules refuse in a template that cannot be shaped, where nothing else is wrong. */
function others({ errors }: TemplateFindings, template: JsonObject): readonly FieldError[] {
  const known = new Set(errors.map(({ path }) => path));
  return ruleErrors(template).filter(({ path }) => !known.has(path));
}

type Shaped = {
  readonly errors: readonly FieldError[];
  /** The template of attempts that are not interruptible. */
  readonly built: JsonObject;
  readonly templates: ShapedTemplates[string];
};

/**
 * The template with the platform's settings, and their errors, for interruptible and other attempts alike. Members that
 * Gangway does not know reach the cluster only if no policy judges them.
 */
function shape(sent: JsonObject, { spec, namespace }: SentJob, rules: IntakeRules): Shaped {
  const { kinds, podConfig: config, podPolicy } = rules;
  const kind = kinds.kindOf(spec.kind);
  const template = podPolicy.level === "privileged" ? sent : knownTemplate(sent);
  if (kind === undefined) return { errors: [], built: template, templates: { template } };
  const outcomeOf = (interruptible: boolean) => shapeReplica(template, { kind, namespace, interruptible, config });
  const plain = outcomeOf(false);
  const isFirst = interruptibleBy(template) ?? spec.runPolicy?.interruptible ?? false;
  const first = isFirst ? outcomeOf(true) : plain;
  if (plain.kind === "refused" || first.kind === "refused") {
    const errors = [plain, first].flatMap((one) => (one.kind === "refused" ? [one.errors] : []))[0] ?? [];
    return { errors, built: plain.kind === "shaped" ? plain.template : template, templates: { template } };
  }
  const same = first === plain || canonicalJson(first.template) === canonicalJson(plain.template);
  const later = same ? {} : { uninterruptedTemplate: plain.template };
  return { errors: [], built: plain.template, templates: { template: first.template, ...later } };
}

function checkReserved(template: JsonObject, at: string): readonly FieldNote[] {
  return reservedLabels(objectAt(objectAt(template, "metadata"), "labels")).map((key) => ({
    field: `${at}.metadata.labels.${key}`,
    message: "must not be set: labels that begin with gangway.dev/ are reserved",
  }));
}
