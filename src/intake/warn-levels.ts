import type { Submission } from "../core/job/request/requests.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { levelsOf } from "../core/kinds/topology/check-wishes.ts";
import { wishOfJob, wishOfRole } from "../core/kinds/topology/sent-wishes.ts";
import { unselected } from "../core/plan/model/selects.ts";
import { compareText } from "../runtime/compare-text.ts";
import { toNote } from "./check-spec.ts";
import type { IntakeFacts } from "./ports.ts";

/** The most names of levels in a message. */
const NAMED_MAX = 8;

/**
 * Warns of levels that no cluster has in which the job may run: a gang would wait for them for ever. The clusters are
 * read only for jobs with a wish. Names the levels of clusters that the caller may see. `seesCluster` undefined: all.
 */
export async function warnLevels(
  { spec }: SentJob,
  facts: IntakeFacts,
  of: { readonly kind: Kind; readonly seesCluster?: Submission["seesCluster"] | undefined },
): Promise<readonly FieldNote[]> {
  const ofRoles = Object.keys(spec.replicaSpecs).map((role) => wishOfRole(of.kind, spec, role));
  const wishes = [wishOfJob(spec), ...ofRoles].flatMap((one) => one ?? []);
  if (wishes.length === 0 || facts.clusterLevels === undefined) return [];
  const clusters = await facts.clusterLevels();
  if (clusters.length === 0) return [];
  const selected = clusters.filter((cluster) => unselected(spec.placement ?? {}, cluster) === null);
  const known = new Set(selected.flatMap(({ levels }) => levels.flatMap(({ name, label }) => [name, label])));
  const seen = selected.filter(({ name }) => of.seesCluster?.(name) ?? true);
  const help = helpOf(new Set(seen.flatMap(({ levels }) => levels.map(({ name }) => name))));
  return wishes.flatMap(({ wish, note }) =>
    levelsOf(wish)
      .filter(({ level }) => !known.has(level))
      .map(({ member, level }) => {
        return toNote(note(member, `is ${level}, a level that no cluster has in which the job may run${help}`), spec);
      }),
  );
}

function helpOf(names: ReadonlySet<string>): string {
  if (names.size === 0) return "";
  const sorted = [...names].sort(compareText);
  const more = sorted.length > NAMED_MAX ? `, and ${sorted.length - NAMED_MAX} more` : "";
  return `; levels are: ${sorted.slice(0, NAMED_MAX).join(", ")}${more}`;
}
