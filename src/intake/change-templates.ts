/**
 * Changes pod templates of a suspended job: where its pods may run, and their labels and annotations. It serves users
 * and queueing systems that learn late which nodes a job gets, as Kubernetes does for Jobs, JobSets and TrainJobs.
 */
import type { Job } from "../core/job/job.ts";
import { joinNotes } from "../core/job/request/notes.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import type { WantedChange } from "../core/kinds/change-job.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { haveEqualTopology } from "../core/kinds/topology/kueue-annotations.ts";
import { isJsonObject, type Json, type JsonObject, objectAt } from "../runtime/json.ts";
import { checkTemplates } from "./check-templates.ts";
import type { IntakeRules } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/** The members of a template that may change. */
const CHANGEABLE: Readonly<Record<string, readonly string[]>> = {
  metadata: ["labels", "annotations"],
  spec: ["nodeSelector", "affinity", "tolerations", "schedulingGates"],
};
const ALL = Object.entries(CHANGEABLE).flatMap(([of, members]) => members.map((member) => `${of}.${member}`));

type ChangedTemplates = {
  /** The job as its client would have sent it. */
  readonly sent: SentJob;
  readonly templates: NonNullable<WantedChange["templates"]>;
  readonly notes: readonly FieldNote[];
};

/** `wanted`: by replica type, in any case. Types that the job does not have are named in the notes. */
export function changedTemplates(
  { job, sent, kind }: { readonly job: Job; readonly sent: SentJob; readonly kind: Kind },
  wanted: Readonly<Record<string, JsonObject>>,
  rules: IntakeRules,
): ChangedTemplates {
  const named = Object.entries(wanted).map(([role, patch]) => [kind.roleName(role), { role, patch }] as const);
  const patches = new Map(named);
  const unknown = named.flatMap(([spelled, { role }]): readonly FieldNote[] => {
    if (job.spec.replicaSpecs[spelled] !== undefined) return [];
    return [{ field: pathOf(role), message: "is not a replica type of this job" }];
  });
  const forbidden = named.flatMap(([, { role, patch }]) => forbiddenMembers(role, patch));
  const replicas = Object.entries(sent.spec.replicaSpecs).map(([role, replica]) => {
    const patch = patches.get(kind.roleName(role))?.patch;
    return [
      role,
      patch === undefined ? replica : { ...replica, template: patched(replica.template ?? {}, patch) },
    ] as const;
  });
  const wishes = replicas.flatMap(([role, { template = {} }]): readonly FieldNote[] => {
    if (haveEqualTopology(sent.spec.replicaSpecs[role]?.template ?? {}, template)) return [];
    const message = "cannot change the wish for topology after the job was created: keep Kueue's annotations for it";
    return [{ field: `${pathOf(role)}.metadata.annotations`, message }];
  });
  const after = { ...sent, spec: { ...sent.spec, replicaSpecs: Object.fromEntries(replicas) } };
  const refused = [...unknown, ...forbidden, ...wishes];
  if (refused.length > 0) return { sent: after, templates: {}, notes: refused };
  const { violations, shaped } = checkTemplates(after, rules);
  const templates = Object.entries(shaped).flatMap(([role, { sent: _sent, ...template }]) => {
    return patches.has(kind.roleName(role)) ? [[kind.roleName(role), template] as const] : [];
  });
  return { sent: after, templates: Object.fromEntries(templates), notes: joinNotes(violations) };
}

function pathOf(role: string): string {
  return requestPath(["spec", "replicaSpecs", role, "template"]);
}

function forbiddenMembers(role: string, patch: JsonObject): readonly FieldNote[] {
  const message = `cannot change after the job was created; of a template ${ALL.join(", ")} can`;
  return Object.entries(patch).flatMap(([of, members]): readonly FieldNote[] => {
    const known = CHANGEABLE[of];
    if (known === undefined) return [{ field: `${pathOf(role)}.${of.slice(0, 63)}`, message }];
    return Object.keys(isJsonObject(members) ? members : {})
      .filter((member) => !known.includes(member))
      .map((member) => ({ field: `${pathOf(role)}.${of}.${member.slice(0, 63)}`, message }));
  });
}

/** Each member that is given takes the place of the template's. Null removes it. */
function patched(template: JsonObject, patch: JsonObject): JsonObject {
  const joined = Object.keys(CHANGEABLE).flatMap((of) => {
    const members: Readonly<Record<string, Json | undefined>> = { ...objectAt(template, of), ...objectAt(patch, of) };
    const kept = Object.entries(members).filter(([, value]) => value !== null && value !== undefined);
    return kept.length === 0 ? [] : [[of, Object.fromEntries(kept)] as const];
  });
  const { metadata: _metadata, spec: _spec, ...others } = template;
  return { ...others, ...Object.fromEntries(joined) };
}
