import type { JsonObject } from "../../../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";
import { compareCreated, comparePresent, compareVerdict } from "./compare.ts";
import { compareObjects } from "./compare-objects.ts";
import { asStored, runtimesOf } from "./runtimes.ts";
import { Stage } from "./stage.ts";
import { submit } from "./submit.ts";

/** What webhooks say whose errors name no field. */
const NO_FIELD = "<nil>";

type KindCase = { readonly input: JsonObject; readonly expected: JsonObject };

/** Runs a case of a kind's controller, and returns the differences. Null: it is none, or its kind is not served. */
export function runKind({ input, expected }: KindCase): readonly string[] | null {
  const manifest = objectAt(input, "manifest");
  const kind = OWN_KINDS.ofManifest(stringAt(manifest, "apiVersion") ?? "", stringAt(manifest, "kind") ?? "");
  if (kind === undefined) return null;
  const namespace = stringAt(input, "namespace") ?? "default";
  const submitted = submit(asStored(manifest), namespace, runtimesOf(arrayAt(input, "runtimes")));
  const refused = expected["refused"] === undefined ? null : objectAt(expected, "refused");
  if (submitted.kind === "refused") {
    return refused === null
      ? [`the job is refused because of ${submitted.fields.join(", ")}`]
      : unnamedFields(refused, submitted.fields);
  }
  if (refused !== null) return [`the job is accepted; expected: ${stringAt(refused, "message")}`];
  const stage = new Stage(submitted.sent, arrayAt(input, "nodes"));
  const created = objectAt(expected, "created");
  const errors = [...compareState(stage, created, new Set())];
  for (const [at, step] of arrayAt(expected, "steps").entries()) {
    const before = new Set(stage.pods.map(({ uid }) => uid));
    const event = objectAt(step, "event");
    const why = stage.carryOut(event);
    // A change that the other controller refuses may be one that Gangway has no call for.
    const isKnown = why === null || objectAt({ step }, "step")["refused"] !== undefined;
    const found = isKnown ? compareState(stage, objectAt(step, "after"), before) : [why];
    errors.push(...found.map((text) => `step ${at + 1} (${JSON.stringify(event)}): ${text}`));
  }
  return errors;
}

function compareState(stage: Stage, expected: JsonObject, before: ReadonlySet<string>): readonly string[] {
  if (expected["exists"] === false) {
    stage.expire();
    const isGone = stage.job.deleteTimeMs !== null;
    return [...comparePresent(expected, stage.pods), ...(isGone ? [] : ["the job is still there"])];
  }
  return [
    ...compareCreated(expected, stage.pods, before),
    ...comparePresent(expected, stage.pods),
    // A suspended job has no objects in its cluster.
    ...(stage.job.status.phase === "SUSPENDED" ? [] : compareObjects(expected, stage.objects)),
    ...compareVerdict(expected, stage.job),
  ];
}

/** The fields that the other controller names and Gangway does not. */
function unnamedFields(refused: JsonObject, fields: readonly string[]): readonly string[] {
  const named = arrayAt(refused, "causes").map((cause) => stringAt(cause, "field") ?? "");
  const wanted = named.filter((field) => field !== "" && field !== NO_FIELD);
  const missing = wanted.filter((field) => !fields.some((one) => one === field || one.endsWith(`.${field}`)));
  return missing.map((field) => `the refusal does not name ${field}, only ${fields.join(", ")}`);
}
