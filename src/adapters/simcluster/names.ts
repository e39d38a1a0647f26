import type { JsonObject } from "../../runtime/json.ts";
import { objectAt } from "../../runtime/json.ts";
import type { NameRule } from "./resource-kinds.ts";
import type { StatusCause } from "./status-error.ts";
import { CAUSE } from "./status-error.ts";

const LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

type Rule = { readonly syntax: RegExp; readonly lengthMax: number; readonly says: string };

/** Syntax, length and wording of Kubernetes' names. Source: apimachinery `validation.IsDNS1123Subdomain` and its neighbours. */
const RULES: Readonly<Record<NameRule, Rule>> = {
  subdomain: {
    syntax: new RegExp(`^${LABEL_1123}(\\.${LABEL_1123})*$`),
    lengthMax: 253,
    says: `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${LABEL_1123}(\\.${LABEL_1123})*')`,
  },
  label: {
    syntax: new RegExp(`^${LABEL_1123}$`),
    lengthMax: 63,
    says: `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${LABEL_1123}')`,
  },
};

/** What is wrong with a name. */
export function nameCauses(field: string, name: string, rule: NameRule): readonly StatusCause[] {
  const { syntax, lengthMax, says } = RULES[rule];
  const causes: StatusCause[] = [];
  if (name.length > lengthMax) causes.push(CAUSE.invalid(field, name, `must be no more than ${lengthMax} characters`));
  if (!syntax.test(name)) causes.push(CAUSE.invalid(field, name, says));
  return causes;
}

const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const LABEL_VALUE_SAYS =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const LABEL_NAME_REGEX =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_NAME_SAYS = `name part ${LABEL_NAME_REGEX}`;
/** Said of a key with more than one slash. */
const LABEL_KEY_SAYS = `a valid label key ${LABEL_NAME_REGEX} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`;

/** What is wrong with an object's labels and with the keys of its annotations. */
export function labelCauses(metadata: JsonObject): readonly StatusCause[] {
  const causes: StatusCause[] = [];
  for (const [key, value] of Object.entries(objectAt(metadata, "labels"))) {
    causes.push(...keyCauses("metadata.labels", key));
    if (typeof value !== "string") continue;
    if (value.length > 63) causes.push(CAUSE.invalid("metadata.labels", value, "must be no more than 63 characters"));
    if (!LABEL_VALUE.test(value)) causes.push(CAUSE.invalid("metadata.labels", value, LABEL_VALUE_SAYS));
  }
  for (const key of Object.keys(objectAt(metadata, "annotations"))) {
    causes.push(...keyCauses("metadata.annotations", key));
  }
  return causes;
}

function keyCauses(field: string, key: string): readonly StatusCause[] {
  if (key.split("/").length > 2) return [CAUSE.invalid(field, key, LABEL_KEY_SAYS)];
  const slash = key.indexOf("/");
  const name = key.slice(slash + 1);
  const prefix = slash < 0 ? null : key.slice(0, slash);
  const good = name !== "" && name.length <= 63 && LABEL_VALUE.test(name);
  const causes = good ? [] : [CAUSE.invalid(field, key, LABEL_NAME_SAYS)];
  if (prefix === null || RULES.subdomain.syntax.test(prefix)) return causes;
  return [...causes, CAUSE.invalid(field, key, `prefix part ${RULES.subdomain.says}`)];
}
