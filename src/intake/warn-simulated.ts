import type { Submission } from "../core/job/request/requests.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { isService } from "../core/kinds/kind.ts";
import type { Registry } from "../core/kinds/registry.ts";
import { unselected } from "../core/plan/model/selects.ts";
import type { IntakeFacts } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/**
 * Warns that simulated clusters may take a job: it may then succeed although nothing ran. Names those that the caller
 * may see. `seesCluster` undefined: all.
 */
export function warnSimulated(
  { spec }: SentJob,
  facts: IntakeFacts,
  of: { readonly kinds: Registry; readonly seesCluster?: Submission["seesCluster"] | undefined },
): readonly FieldNote[] {
  const kind = of.kinds.kindOf(spec.kind);
  if (facts.clusters === undefined || kind === undefined || isService(kind)) return [];
  const selected = facts.clusters.filter((cluster) => unselected(spec.placement ?? {}, cluster) === null);
  const simulated = selected.filter((cluster) => cluster.simulated).map(({ name }) => name);
  if (simulated.length === 0) return [];
  const which = `${simulated.length < selected.length ? "simulated" : "only simulated"} clusters may take the job`;
  const named = simulated.filter((name) => of.seesCluster?.(name) ?? true);
  const names = named.length === 0 ? "" : `: ${named.join(", ")}`;
  return [{ field: requestPath(["spec", "placement"]), message: `${which}, and no program runs there${names}` }];
}
