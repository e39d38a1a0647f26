import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt } from "../../runtime/json.ts";

/** A text of a template that may have placeholders, by its path there. */
export type TemplateText = { readonly path: string; readonly text: string };

/** The commands and arguments of all containers. */
export function commandTexts(template: JsonObject): readonly TemplateText[] {
  return (["containers", "initContainers"] as const).flatMap((list) =>
    arrayAt(objectAt(template, "spec"), list).flatMap((container, index) =>
      isJsonObject(container) ? textsOf(container, `spec.${list}[${index}]`) : [],
    ),
  );
}

function textsOf(container: JsonObject, path: string): readonly TemplateText[] {
  return (["command", "args"] as const).flatMap((member) =>
    arrayAt(container, member).flatMap((text, index) =>
      typeof text === "string" ? [{ path: `${path}.${member}[${index}]`, text }] : [],
    ),
  );
}

/**
 * A template without the texts that decide nothing about its pods, and these texts in their order: commands, arguments,
 * and values of variables. No rule, policy, setting or kind reads them; only placeholders stand in them. Empty ones
 * stay, because rules tell a text that is set from one that is not.
 */
export function apartFromTexts(template: JsonObject): { readonly rest: JsonObject; readonly texts: readonly string[] } {
  const { spec } = template;
  if (!isJsonObject(spec)) return { rest: template, texts: [] };
  const texts: string[] = [];
  const lists = (["containers", "initContainers"] as const).flatMap((list) => {
    const containers = spec[list];
    if (!Array.isArray(containers)) return [];
    return [[list, containers.map((one: Json) => (isJsonObject(one) ? withoutTexts(one, texts) : one))] as const];
  });
  return { rest: { ...template, spec: { ...spec, ...Object.fromEntries(lists) } }, texts };
}

function withoutTexts(container: JsonObject, texts: string[]): JsonObject {
  const rest: Record<string, Json | undefined> = { ...container };
  const { env } = container;
  for (const member of ["command", "args"] as const) {
    const list = container[member];
    if (Array.isArray(list)) rest[member] = list.map((one) => moved(one, texts));
  }
  if (Array.isArray(env)) {
    rest["env"] = env.map((one) => {
      const value = isJsonObject(one) ? one["value"] : undefined;
      return isJsonObject(one) && value !== undefined ? { ...one, value: moved(value, texts) } : one;
    });
  }
  return rest;
}

function moved(value: Json, texts: string[]): Json {
  if (typeof value !== "string" || value === "") return value;
  texts.push(value);
  return "text";
}
