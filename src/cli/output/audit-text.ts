import { canonicalJson, isJsonObject } from "../../runtime/json.ts";

/**
 * The details of an audit entry in one line. Of a change that has settings before and after it, only what differs, as
 * `policy.weight: 1 → 2`. Else the whole details as JSON.
 */
export function auditText(details: unknown): string {
  if (details === undefined) return "";
  if (!isJsonObject(details)) return JSON.stringify(details);
  const { before, after, ...others } = details;
  if (!isJsonObject(before) || !isJsonObject(after)) return JSON.stringify(details);
  const more = Object.keys(others).length === 0 ? [] : [JSON.stringify(others)];
  return [...differences(before, after, ""), ...more].join(", ");
}

/** Objects are compared member by member, and all other values as a whole. */
function differences(before: unknown, after: unknown, path: string): readonly string[] {
  if (isJsonObject(before) && isJsonObject(after)) {
    const members = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return members.flatMap((member) => {
      return differences(before[member], after[member], path === "" ? member : `${path}.${member}`);
    });
  }
  const [was, is] = [textOf(before), textOf(after)];
  return was === is ? [] : [`${path}: ${was} → ${is}`];
}

function textOf(value: unknown): string {
  return value === undefined ? "none" : canonicalJson(value);
}
