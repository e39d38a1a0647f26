import type { JobEvent } from "../core/job/event.ts";
import type { Action, ActOutcome } from "../core/reconcile/decision.ts";
import { actionName } from "../core/reconcile/problems/action-name.ts";
import { stringAt } from "../runtime/json.ts";
import { append } from "../runtime/lists.ts";

export type Acted = { readonly action: Action; readonly outcome: ActOutcome };
type Act = (action: Action, signal: AbortSignal) => Promise<ActOutcome>;

/**
 * Carries out a decision's actions: anchors first, then PodGroups and parts, and config maps after the other parts,
 * since they show that the parts are complete. Services and pods follow in growing groups of 1, 2, 4, 8 …: after a
 * failure no further group starts, so that an exhausted quota refuses one pod and not a thousand. Deletes run at the
 * same time, anchors last. Returns the actions that were tried.
 */
export async function carryOut(act: Act, actions: readonly Action[], signal: AbortSignal): Promise<readonly Acted[]> {
  const of = (...kinds: readonly Action["kind"][]) => actions.filter(({ kind }) => kinds.includes(kind));
  const together = (group: readonly Action[]) =>
    Promise.all(signal.aborted ? [] : group.map(async (action) => ({ action, outcome: await act(action, signal) })));
  const creates = async () => {
    const parts = of("createPart", "updatePart");
    const needed = [...of("createPodGroup", "updatePodGroup"), ...parts.filter((part) => !isConfigMap(part))];
    const acted: Acted[] = [];
    for (const stage of [of("createAnchor"), needed, parts.filter(isConfigMap)]) {
      const tried = await together(stage);
      append(acted, tried);
      if (tried.some(hasFailed)) return acted;
    }
    return [...acted, ...(await inGrowingGroups([...of("createService"), ...of("createPod")], together))];
  };
  const deletes = async () => {
    const owned = await together(of("deletePod", "deleteService", "deleteConfigMap", "deletePodGroup"));
    return owned.some(hasFailed) ? owned : [...owned, ...(await together(of("deleteAnchor")))];
  };
  return (await Promise.all([creates(), deletes()])).flat();
}

function isConfigMap(action: Action): boolean {
  return "manifest" in action && action.manifest["kind"] === "ConfigMap";
}

async function inGrowingGroups(
  actions: readonly Action[],
  together: (group: readonly Action[]) => Promise<readonly Acted[]>,
): Promise<readonly Acted[]> {
  const acted: Acted[] = [];
  for (let start = 0, size = 1; start < actions.length; start += size / 2) {
    const group = await together(actions.slice(start, start + size));
    append(acted, group);
    if (group.length === 0 || group.some(hasFailed)) return acted;
    size *= 2;
  }
  return acted;
}

export function hasFailed({ outcome }: Acted): boolean {
  return outcome.kind === "failed";
}

/**
 * True for actions that create or change an object. They are held back for a while after a failure; deletes are not.
 */
export function isCreate({ kind }: Action): boolean {
  return !kind.startsWith("delete");
}

/** The reason of the event of a failed action, in the words of Kubernetes' controllers: `FailedCreatePod`. */
export function failureReasonOf(action: Action): string {
  const { verb, what } = wordsOf(action);
  return `Failed${verb}${what}`;
}

/**
 * The event of an action, in the words of Kubernetes' controllers. Null: the action has no event.
 */
export function eventOf({ action, outcome }: Acted): JobEvent | null {
  const { verb, what } = wordsOf(action);
  if (outcome.kind === "failed") {
    const doing = `${verb.toLowerCase()} ${what.toLowerCase()} ${actionName(action)}`;
    const message = `${doing} in ${action.cluster}: ${outcome.message}`;
    return { type: "Warning", reason: failureReasonOf(action), message };
  }
  if (outcome.kind === "already" || what === "Anchor") return null;
  return {
    type: "Normal",
    reason: `Successful${verb}${what}`,
    message: `${verb}d ${what.toLowerCase()}: ${actionName(action)}`,
  };
}

/** `Create` and `Pod`. A part is called by its kind. */
function wordsOf(action: Action): { readonly verb: string; readonly what: string } {
  const [, lowerVerb = "", object = ""] = /^(create|update|delete)(.*)$/.exec(action.kind) ?? [];
  const what = object === "Part" && "manifest" in action ? (stringAt(action.manifest, "kind") ?? object) : object;
  return { verb: `${lowerVerb[0]?.toUpperCase()}${lowerVerb.slice(1)}`, what };
}
