import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { requestPath } from "./request-path.ts";

/** Warns that pods whose programs never end by themselves outlive their job, if its clean-pod policy keeps them. */
export function warnNeverEnding({ spec }: SentJob, kinds: Registry): readonly FieldNote[] {
  const { cleanPodPolicy = "None" } = spec.runPolicy ?? {};
  const kind = kinds.kindOf(spec.kind);
  if (cleanPodPolicy !== "None" || kind === undefined) return [];
  const sent = Object.entries(spec.replicaSpecs).map(([role, { replicas = 1 }]) => [kind.roleName(role), replicas]);
  const counts = new Map(sent as [string, number][]);
  const endless = (kind.roles ?? []).filter(({ name, neverEnds }) => neverEnds === true && (counts.get(name) ?? 0) > 0);
  if (endless.length === 0) return [];
  const names = endless.map(({ name }) => name).join(" and ");
  const message =
    `None keeps the ${names} pods after the job has ended: they never end by themselves, and hold their GPUs and ` +
    "tokens until the job is deleted. Set Running to end them with the job";
  return [{ field: requestPath(["spec", "runPolicy", "cleanPodPolicy"]), message }];
}
