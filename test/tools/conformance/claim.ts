import { LABEL } from "../../../src/core/job/labels.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import type { ActOutcome } from "../../../src/core/reconcile/decision.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt, stringMapAt } from "../../../src/runtime/json.ts";
import { claimObjects } from "../../../src/worker/claim.ts";
import { equalLoosely } from "./compare.ts";

/** Adopts and releases pods as a worker does; the case says which calls fail. All pods carry the current admission. */
export async function claim(input: JsonObject, expected: JsonObject): Promise<readonly string[]> {
  const ours = { [LABEL.jobUid]: "job-uid", [LABEL.admission]: "1" };
  const controller = objectAt(input, "controller");
  const claimant = {
    anchor: { uid: stringAt(controller, "uid") ?? "", deleting: Boolean(controller["deletionTimestamp"]) },
    selector: { ...stringMapAt(input, "selector"), ...ours },
  };
  const pods = arrayAt(input, "pods")
    .filter(isJsonObject)
    .map((pod) => podView(carrying(pod, ours)));
  const patched: string[] = [];
  let liveChecks = 0;
  const patch = async ({ name }: { readonly name: string }): Promise<ActOutcome> => {
    patched.push(name);
    const reason = stringAt(input, "patchFailsWith");
    return reason === undefined ? { kind: "done" } : { kind: "failed", reason, message: "as the case has it" };
  };
  const ports = {
    anchorLives: async () => {
      liveChecks += 1;
      return !input["liveCheckFails"];
    },
    adopt: patch,
    release: patch,
  };
  const outcome = await claimObjects(ports, pods, claimant);
  const claimed = outcome.claimed.map(({ name }) => name);
  const found: JsonObject = {
    claimed: claimed.sort(),
    patched: patched.sort(),
    liveChecks,
    error: outcome.failures.length > 0,
  };
  return Object.entries(objectAt(expected, "result")).flatMap(([name, wanted]) => {
    const sorted = Array.isArray(wanted) ? [...wanted].sort() : wanted;
    const same = equalLoosely(sorted, found[name]);
    return same ? [] : [`${name}: expected ${JSON.stringify(sorted)}, found ${JSON.stringify(found[name])}`];
  });
}

function carrying(pod: JsonObject, labels: Readonly<Record<string, string>>): JsonObject {
  const metadata = objectAt(pod, "metadata");
  return { ...pod, metadata: { ...metadata, labels: { ...stringMapAt(metadata, "labels"), ...labels } } };
}
