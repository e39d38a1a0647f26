import { arrayAt, isJsonObject, type JsonObject, objectAt } from "../../runtime/json.ts";

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
