import { type JsonObject, objectAt, stringMapAt } from "../../runtime/json.ts";
import { joinErrors } from "../job/request/notes.ts";
import type { TemplateFindings } from "../job/request/sent.ts";

import { type NameHelp, nameHelp } from "./nearest-name.ts";
import { type Placeholder, placeholdersIn } from "./placeholders.ts";
import { annotationPath } from "./pod-annotations.ts";
import { commandTexts, type TemplateText } from "./template-texts.ts";
import { PLACES, VARIABLES } from "./variables.ts";

const KNOWN = [...VARIABLES, ...Object.keys(PLACES), "Inputs.NAME", "Annotations.KEY"];
const SHOWN_MAX = 80;
const NAMES_SHOWN_MAX = 20;

/**
 * Checks the placeholders in a template's commands, arguments and places. Errors: inputs that the job does not have,
 * and places that the template does not name. Warnings: other unknown names, which stay, because other programs have
 * templates too.
 */
export function checkPlaceholders(template: JsonObject, inputs: JsonObject): TemplateFindings {
  const annotations = stringMapAt(objectAt(template, "metadata"), "annotations");
  const help = nameHelp();
  const found = textsOf(template, annotations).flatMap(({ path, text }) =>
    [...placeholdersIn(text)].map(({ name, key }) => ({
      path,
      ...judge({ name, key }, { annotations, inputs, help }),
    })),
  );
  const noted = (severity: "error" | "warning") =>
    found.flatMap(({ path, kind, message }) => (kind === severity ? [{ path, message }] : []));
  return { errors: joinErrors("", noted("error")), warnings: joinErrors("", noted("warning")) };
}

function textsOf(template: JsonObject, annotations: Readonly<Record<string, string>>): readonly TemplateText[] {
  const places = [...new Set<string>(Object.values(PLACES))].map((key) => ({
    path: annotationPath(key),
    text: annotations[key] ?? "",
  }));
  return [...places, ...commandTexts(template)];
}

type Judgement = { readonly kind: "fine" | "error" | "warning"; readonly message: string };
type Judging = {
  readonly annotations: Readonly<Record<string, string>>;
  readonly inputs: JsonObject;
  readonly help: NameHelp;
};
const FINE: Judgement = { kind: "fine", message: "" };

function judge({ name, key }: Pick<Placeholder, "name" | "key">, { annotations, inputs, help }: Judging): Judgement {
  const is = (known: string) => known.toLowerCase() === name.toLowerCase();
  if (key !== undefined)
    return is("Inputs") ? judgeInput(key, inputs) : is("Annotations") ? FINE : unknown(`${name}.${key}`, help);
  const place = Object.entries(PLACES).find(([known]) => is(known));
  if (place !== undefined && !annotations[place[1]]) {
    return { kind: "error", message: `uses {{ .${place[0]} }}, so the template must have the annotation ${place[1]}` };
  }
  return place !== undefined || VARIABLES.some(is) ? FINE : unknown(name, help);
}

function judgeInput(key: string, inputs: JsonObject): Judgement {
  if (Object.hasOwn(inputs, key)) return FINE;
  const names = Object.keys(inputs).sort().slice(0, NAMES_SHOWN_MAX);
  const available = names.length === 0 ? "the job has no inputs" : `the job's inputs are ${names.join(", ")}`;
  return { kind: "error", message: `uses {{ .Inputs.${key.slice(0, SHOWN_MAX)} }}, but ${available}` };
}

function unknown(name: string, help: NameHelp): Judgement {
  const near = help(name.slice(0, SHOWN_MAX), KNOWN);
  const meant = near === null ? allowed() : `did you mean ${near}?`;
  return {
    kind: "warning",
    message: `{{ .${name.slice(0, SHOWN_MAX)} }} is not a placeholder of Gangway and stays unchanged: ${meant}`,
  };
}

function allowed(): string {
  return `placeholders are ${KNOWN.join(", ")}`;
}
