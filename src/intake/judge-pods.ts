import type { Job } from "../core/job/job.ts";
import { joinNotes } from "../core/job/request/notes.ts";
import type { FieldNote } from "../core/job/request/sent.ts";
import { isService, type Kind } from "../core/kinds/kind.ts";
import { kindOfJob, OWN_ENTRY, type Registry } from "../core/kinds/registry.ts";
import { type JudgedRole, podErrors } from "../core/reconcile/objects/pod-errors.ts";
import type { JsonObject } from "../runtime/json.ts";
import { thrownText } from "../runtime/thrown-text.ts";
import { requestPath } from "./request-path.ts";

/**
 * The errors for which API servers would refuse the pods of a new job. `sent`: its templates without other errors, by
 * replica type as the request spells it. Every way into Gangway comes here or to `changedPodNotes`: submit, dry run,
 * can-run, batch, update.
 */
export function newPodNotes(
  draft: Job,
  kinds: Registry,
  templates: Readonly<Record<string, { readonly sent: JsonObject }>>,
): readonly FieldNote[] {
  const kind = kindOfJob(kinds, draft);
  const roles = Object.entries(templates).map(([role, { sent }]) => ({ role: kind.roleName(role), named: role, sent }));
  return notesOf(draft, { kind, kinds, roles });
}

/** The same for a job that exists and asks for more. */
export function changedPodNotes(job: Job, kinds: Registry): readonly FieldNote[] {
  const roles = Object.entries(job.spec.replicaSpecs).map(([role, { template }]) => ({
    role,
    named: role,
    sent: template,
  }));
  return notesOf(job, { kind: kindOfJob(kinds, job), kinds, roles });
}

type JudgedJob = {
  readonly kind: Kind;
  readonly kinds: Registry;
  /** `named`: the replica type as the request spells it. */
  readonly roles: readonly (JudgedRole & { readonly named: string })[];
};

function notesOf(job: Job, { kind, kinds, roles }: JudgedJob): readonly FieldNote[] {
  if (isService(kind)) return [];
  const names = new Map(roles.map(({ role, named }) => [role, named]));
  try {
    const notes = podErrors(job, kind, roles).map(({ role, errors }) => {
      const at = requestPath(["spec", "replicaSpecs", names.get(role) ?? role, "template"]);
      return errors.map(({ path, ...error }) => ({ field: path === "" ? at : `${at}.${path}`, ...error }));
    });
    return joinNotes(...notes);
  } catch (error) {
    // A kind from outside that fails fails again when its pods are made, and its job is told.
    if (kinds.entryOf(job.spec.kind) !== OWN_ENTRY) return [];
    throw new Error(`the pods of a job cannot be judged: ${thrownText(error)}`, { cause: error });
  }
}
