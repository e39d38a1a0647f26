import type { JsonObject } from "../../../runtime/json.ts";
import { append } from "../../../runtime/lists.ts";
import type { Finding } from "./finding.ts";
import { inside, type PodPlace } from "./place.ts";
import { SYNTAX } from "./syntax.ts";

/** What is wrong with the keys and values of a map of labels. */
export function labelFindings(labels: JsonObject, place: PodPlace): readonly Finding[] {
  const found: Finding[] = [];
  const { fits, problems, allowed } = SYNTAX.labelValue;
  for (const key in labels) {
    if (!SYNTAX.labelKey.fits(key)) append(found, keyFindings(key, key, place));
    const value = labels[key] ?? "";
    if (typeof value !== "string" || fits(value)) continue;
    const at = inside(place, { key });
    for (const detail of problems(value))
      found.push({ kind: "invalid", place: at, field: place, value, detail, allowed });
  }
  return found;
}

/** What is wrong with the keys of annotations, in which the case of letters does not matter. */
export function qualifiedKeys(annotations: JsonObject, place: PodPlace): readonly Finding[] {
  const found: Finding[] = [];
  for (const key in annotations) {
    const text = key.toLowerCase();
    if (!SYNTAX.labelKey.fits(text)) append(found, keyFindings(key, text, place));
  }
  return found;
}

function keyFindings(key: string, text: string, field: PodPlace): readonly Finding[] {
  const allowed = `the key ${SYNTAX.labelKey.allowed}`;
  const place = inside(field, { key });
  return SYNTAX.labelKey
    .problems(text)
    .map((detail) => ({ kind: "invalid", place, field, value: key, detail, allowed }));
}
