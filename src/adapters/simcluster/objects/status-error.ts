import type { JsonObject } from "../../../runtime/json.ts";

/** One entry of `details.causes` of a Status. */
export type StatusCause = { readonly reason: string; readonly message: string; readonly field: string };

/** A refusal with the code and the message of kube-apiserver. The API server sends it as a `kind: Status` body. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: JsonObject | undefined;
  readonly listMeta: JsonObject;

  constructor(
    code: number,
    reason: string,
    message: string,
    details?: JsonObject | undefined,
    listMeta: JsonObject = {},
  ) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
    this.listMeta = listMeta;
  }

  /** The body of the response. */
  body(): JsonObject {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: this.listMeta,
      status: "Failure",
      message: this.message,
      ...(this.reason === "" ? {} : { reason: this.reason }),
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

/** Names an object in the details. Kinds outside the core have a group. */
function objectDetails(resource: string, name: string): JsonObject {
  const dot = resource.indexOf(".");
  if (dot < 0) return { name, kind: resource };
  return { name, group: resource.slice(dot + 1), kind: resource.slice(0, dot) };
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}

export function notFound(resource: string, name: string): StatusError {
  return new StatusError(404, "NotFound", `${resource} "${name}" not found`, objectDetails(resource, name));
}

export function alreadyExists(resource: string, name: string): StatusError {
  return new StatusError(409, "AlreadyExists", `${resource} "${name}" already exists`, objectDetails(resource, name));
}

export function conflict(resource: string, name: string, reason: string): StatusError {
  const message = `Operation cannot be fulfilled on ${resource} "${name}": ${reason}`;
  return new StatusError(409, "Conflict", message, objectDetails(resource, name));
}

export function modified(resource: string, name: string): StatusError {
  return conflict(
    resource,
    name,
    "the object has been modified; please apply your changes to the latest version and try again",
  );
}

export function forbidden(
  resource: string,
  name: string,
  reason: string,
  causes: readonly StatusCause[] = [],
): StatusError {
  const details = { ...objectDetails(resource, name), ...(causes.length === 0 ? {} : { causes }) };
  return new StatusError(403, "Forbidden", `${resource} "${name}" is forbidden: ${reason}`, details);
}

/** The message lists all causes with their fields. `detailed`: the causes in the details. */
export function invalid(
  kind: string,
  name: string,
  causes: readonly StatusCause[],
  detailed: readonly StatusCause[] = causes,
): StatusError {
  const lines = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const text = lines.length === 1 ? lines[0] : `[${lines.join(", ")}]`;
  return new StatusError(422, "Invalid", `${kind} "${name}" is invalid: ${text}`, {
    ...(name === "" ? {} : { name }),
    kind,
    causes: detailed,
  });
}

export function expired(message: string, listMeta: JsonObject = {}): StatusError {
  return new StatusError(410, "Expired", message, undefined, listMeta);
}

export const CAUSE = {
  required: (field: string, detail = ""): StatusCause => ({
    reason: "FieldValueRequired",
    message: detail === "" ? "Required value" : `Required value: ${detail}`,
    field,
  }),
  invalid: (field: string, value: unknown, detail: string): StatusCause => ({
    reason: "FieldValueInvalid",
    message: `Invalid value: ${JSON.stringify(value)}: ${detail}`,
    field,
  }),
  duplicate: (field: string, value: string): StatusCause => ({
    reason: "FieldValueDuplicate",
    message: `Duplicate value: ${JSON.stringify(value)}`,
    field,
  }),
  unsupported: (field: string, value: unknown, supported: readonly string[]): StatusCause => ({
    reason: "FieldValueNotSupported",
    message:
      `Unsupported value: ${JSON.stringify(value)}: ` +
      `supported values: ${supported.map((one) => JSON.stringify(one)).join(", ")}`,
    field,
  }),
  notFound: (field: string, value: string, detail = ""): StatusCause => ({
    reason: "FieldValueNotFound",
    message: `Not found: ${JSON.stringify(value)}${detail === "" ? "" : `: ${detail}`}`,
    field,
  }),
  forbidden: (field: string, detail: string): StatusCause => ({
    reason: "FieldValueForbidden",
    message: `Forbidden: ${detail}`,
    field,
  }),
};
