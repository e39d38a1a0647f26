import type { Action, JobEvent } from "../core/reconcile/decision.ts";
import { objectAt, stringAt } from "../runtime/json.ts";
import type { ActOutcome } from "./ports.ts";

export type Acted = { readonly action: Action; readonly outcome: ActOutcome };
type Act = (action: Action, signal: AbortSignal) => Promise<ActOutcome>;

/**
 * Carries out a decision's actions: anchors, then services and pods in growing groups of 1, 2, 4, 8 …, where a
 * failure keeps the next group from starting (a quota that is used up should refuse one pod, not a thousand). Deletes
 * run beside that, anchors last. Answers what was tried.
 */
export async function carryOut(act: Act, actions: readonly Action[], signal: AbortSignal): Promise<readonly Acted[]> {
  const of = (...kinds: readonly Action["kind"][]) => actions.filter(({ kind }) => kinds.includes(kind));
  const together = (group: readonly Action[]) =>
    Promise.all(signal.aborted ? [] : group.map(async (action) => ({ action, outcome: await act(action, signal) })));
  const creates = async () => {
    const anchors = await together(of("createAnchor"));
    if (anchors.some(hasFailed)) return anchors;
    return [...anchors, ...(await inGrowingGroups([...of("createService"), ...of("createPod")], together))];
  };
  const deletes = async () => {
    const owned = await together(of("deletePod", "deleteService"));
    return owned.some(hasFailed) ? owned : [...owned, ...(await together(of("deleteAnchor")))];
  };
  return (await Promise.all([creates(), deletes()])).flat();
}

async function inGrowingGroups(
  actions: readonly Action[],
  together: (group: readonly Action[]) => Promise<readonly Acted[]>,
): Promise<readonly Acted[]> {
  const acted: Acted[] = [];
  for (let start = 0, size = 1; start < actions.length; start += size / 2) {
    const group = await together(actions.slice(start, start + size));
    acted.push(...group);
    if (group.length === 0 || group.some(hasFailed)) return acted;
    size *= 2;
  }
  return acted;
}

export function hasFailed({ outcome }: Acted): boolean {
  return outcome.kind === "failed";
}

/** True for actions that make something, which are held back for a while after a failure; deletes never are. */
export function isCreate({ kind }: Action): boolean {
  return kind === "createAnchor" || kind === "createPod" || kind === "createService";
}

/**
 * What users are told of an action, in the words that Kubernetes' controllers use; null where there is nothing to
 * tell.
 */
export function eventOf({ action, outcome }: Acted): JobEvent | null {
  const verb = isCreate(action) ? "Create" : "Delete";
  const what = action.kind.replace(/^create|^delete/, "");
  if (outcome.kind === "failed") {
    const message = `${verb.toLowerCase()} ${what.toLowerCase()} ${nameOf(action)} in ${action.cluster}: ${outcome.message}`;
    return { type: "Warning", reason: `Failed${verb}${what}`, message };
  }
  if (outcome.kind === "already" || what !== "Pod") return null;
  return { type: "Normal", reason: `Successful${verb}Pod`, message: `${verb}d pod: ${nameOf(action)}` };
}

function nameOf(action: Action): string {
  return "name" in action ? action.name : (stringAt(objectAt(action.manifest, "metadata"), "name") ?? "");
}
