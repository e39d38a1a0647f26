import { JsonMeter, type SizedText } from "../../../runtime/json-bytes.ts";
import { commandTexts } from "../template-texts.ts";
import { sizedTexts } from "../text-maker.ts";
import { checkpointKeys, placesOf, renderer } from "../variables.ts";
import type { PodReplica } from "./build-pod.ts";

/** A command or argument of a template, by its path there, and its bytes once its placeholders are filled in. */
export type LargeText = { readonly path: string; readonly bytes: number };

/** The text of a pod that is largest. Null: the pod has no commands and no arguments. */
export function largestText({ template, variables: given, annotations, inputs }: PodReplica): LargeText | null {
  const maker = sizedTexts(new JsonMeter());
  const variables: Record<string, SizedText> = {};
  for (const [name, value] of Object.entries(given)) variables[name] = maker.of(value);
  const checkpoints = checkpointKeys(given, maker);
  const places = placesOf(template, { variables, annotations, inputs, checkpoints }, maker);
  const sizeOf = renderer({ variables: { ...variables, ...places }, annotations, inputs }, maker);
  const texts = commandTexts(template).map(({ path, text }) => ({ path, bytes: sizeOf(text).bytes }));
  return texts.reduce<LargeText | null>((most, one) => (most === null || one.bytes > most.bytes ? one : most), null);
}
