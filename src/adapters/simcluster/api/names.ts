import type { JsonObject } from "../../../runtime/json.ts";
import { objectAt } from "../../../runtime/json.ts";
import { append } from "../../../runtime/lists.ts";
import type { NameRule } from "./resource-kinds.ts";
import type { StatusCause } from "./status-error.ts";
import { CAUSE } from "./status-error.ts";

const LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

type NameSyntax = { readonly syntax: RegExp; readonly lengthMax: number; readonly message: string };

/** The syntax of Kubernetes' names, with its messages. Source: `validation.IsDNS1123Subdomain` of apimachinery. */
const SYNTAXES: Readonly<Record<NameRule, NameSyntax>> = {
  subdomain: {
    syntax: new RegExp(`^${LABEL_1123}(\\.${LABEL_1123})*$`),
    lengthMax: 253,
    message:
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
      "and must start and end with an alphanumeric character (e.g. 'example.com', " +
      `regex used for validation is '${LABEL_1123}(\\.${LABEL_1123})*')`,
  },
  label: {
    syntax: new RegExp(`^${LABEL_1123}$`),
    lengthMax: 63,
    message:
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', " +
      "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', " +
      `regex used for validation is '${LABEL_1123}')`,
  },
};

/** Returns the errors of a name. */
export function nameCauses(field: string, name: string, rule: NameRule): readonly StatusCause[] {
  const { syntax, lengthMax, message } = SYNTAXES[rule];
  const causes: StatusCause[] = [];
  if (name.length > lengthMax) causes.push(CAUSE.invalid(field, name, `must be no more than ${lengthMax} characters`));
  if (!syntax.test(name)) causes.push(CAUSE.invalid(field, name, message));
  return causes;
}

const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const LABEL_VALUE_MESSAGE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " +
  "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', " +
  "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const LABEL_NAME_RULE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  "(e.g. 'MyName',  or 'my.name',  or '123-abc', " +
  "regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_NAME_MESSAGE = `name part ${LABEL_NAME_RULE}`;
const LABEL_KEY_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
/** For a key with more than one slash. */
const LABEL_KEY_MESSAGE = `a valid label key ${LABEL_NAME_RULE} ${LABEL_KEY_PREFIX}`;

/** Returns the errors of an object's labels, and of the keys of its annotations. */
export function labelCauses(metadata: JsonObject): readonly StatusCause[] {
  const causes: StatusCause[] = [];
  for (const [key, value] of Object.entries(objectAt(metadata, "labels"))) {
    append(causes, keyCauses("metadata.labels", key));
    if (typeof value !== "string") continue;
    if (value.length > 63) causes.push(CAUSE.invalid("metadata.labels", value, "must be no more than 63 characters"));
    if (!LABEL_VALUE.test(value)) causes.push(CAUSE.invalid("metadata.labels", value, LABEL_VALUE_MESSAGE));
  }
  for (const key of Object.keys(objectAt(metadata, "annotations"))) {
    append(causes, keyCauses("metadata.annotations", key));
  }
  return causes;
}

function keyCauses(field: string, key: string): readonly StatusCause[] {
  if (key.split("/").length > 2) return [CAUSE.invalid(field, key, LABEL_KEY_MESSAGE)];
  const slash = key.indexOf("/");
  const name = key.slice(slash + 1);
  const prefix = slash < 0 ? null : key.slice(0, slash);
  const isValid = name !== "" && name.length <= 63 && LABEL_VALUE.test(name);
  const causes = isValid ? [] : [CAUSE.invalid(field, key, LABEL_NAME_MESSAGE)];
  if (prefix === null || SYNTAXES.subdomain.syntax.test(prefix)) return causes;
  return [...causes, CAUSE.invalid(field, key, `prefix part ${SYNTAXES.subdomain.message}`)];
}
