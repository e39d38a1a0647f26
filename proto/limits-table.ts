/** Writes the table of the limits of requests in docs/api.md, from what the proto files declare. */
import type { DescMessage } from "@bufbuild/protobuf";
import { boundsOf, type FieldBounds } from "../src/api/rpc/declared-bounds.ts";
import { SERVICES } from "../src/api/services.ts";
import { TEMPLATE_BOUNDS } from "../src/core/pods/template-size.ts";
import { tableText, withTable, writeTable } from "./page-table.ts";

const PLACE = { page: "docs/api.md", shows: "The limits of requests" };
const OWN = "gangway.v1.";

/** A field with a limit. `message`: its message, without the package. */
export type LimitedField = { readonly message: string; readonly bounds: FieldBounds };

/** The fields of all requests that can be large, in the order of services, methods and fields. */
export function limitedFields(): readonly LimitedField[] {
  const seen = new Set<DescMessage>();
  const visit = (schema: DescMessage): LimitedField[] => {
    if (seen.has(schema) || !schema.typeName.startsWith(OWN)) return [];
    seen.add(schema);
    const all = [...boundsOf(schema).values()];
    const message = schema.typeName.slice(OWN.length);
    const own = all.filter((bounds) => limitOf(bounds) !== "").map((bounds) => ({ message, bounds }));
    return [...own, ...all.flatMap(({ content, message: of }) => (content === null && of !== null ? visit(of) : []))];
  };
  return SERVICES.flatMap((service) => service.methods.flatMap((method) => visit(method.input)));
}

/** The table, with one row for each field. */
export function limitsTable(): string {
  const fieldRows = limitedFields().map(({ message, bounds }) => [`\`${message}.${bounds.name}\``, limitOf(bounds)]);
  return tableText(["field", "at most"], [...fieldRows, ...templateRows()]);
}

/** The page with the table in its place. */
export function withLimitsTable(page: string): string {
  return withTable(page, PLACE, limitsTable());
}

/** Empty: the field cannot be large, or its parts have limits of their own. */
function limitOf({ kind, itemsMax, key, keyBytesMax, form, bytesMax, content }: FieldBounds): string {
  if (content !== null) {
    const { maxBytes, maxValues, maxDepth } = content;
    const depth = maxDepth === 0 ? [] : [`${maxDepth} lists and objects within each other`];
    return [`${sizeText(maxBytes)} of keys and texts`, `${countText(maxValues)} values`, ...depth].join(", ");
  }
  const text = form === "text" ? [sizeText(bytesMax)] : [];
  if (kind === "one") return text.join("");
  if (kind === "list") return [`${countText(itemsMax)} items`, ...text.map((size) => `of ${size}`)].join(" ");
  const keys = key === "text" ? [`keys of ${sizeText(keyBytesMax)}`] : [];
  return [`${countText(itemsMax)} entries`, ...keys, ...text.map((size) => `values of ${size}`)].join(", ");
}

/** The members of templates, which are JSON to the proto files. */
function templateRows(): readonly (readonly string[])[] {
  const { bytesMax, itemsMax, membersMax, nameBytesMax, lists, named } = TEMPLATE_BOUNDS;
  const paths = Object.entries(lists).map(([path, max]) => [`\`${path}\` of a template`, `${countText(max)} items`]);
  const names = Object.entries(named).map(([name, max]) => [
    `\`${name}\` anywhere in a template`,
    `${countText(max)} entries`,
  ]);
  return [
    ["a template", `${sizeText(bytesMax)} of JSON`],
    ...paths,
    ...names,
    ["any other list of a template", `${countText(itemsMax)} items`],
    ["any other object of a template", `${countText(membersMax)} members, names of ${sizeText(nameBytesMax)}`],
  ];
}

function sizeText(bytes: number): string {
  if (bytes % 2 ** 20 === 0) return `${bytes / 2 ** 20} MiB`;
  return bytes % 1024 === 0 && bytes > 1024 ? `${bytes / 1024} KiB` : `${countText(bytes)} bytes`;
}

function countText(count: number): string {
  return count.toLocaleString("en-US");
}

if (import.meta.main) writeTable(PLACE, withLimitsTable);
