/** The arguments of Flyte's own co-pilot. Source: Flyte's `DownloadCommandArgs` and `SidecarCommandArgs`. */
import { isJsonObject, type Json, type JsonObject, objectAt } from "../../../runtime/json.ts";

/** Placeholders in the commands of a co-pilot, beside `{{ .From }}` and `{{ .To }}`. */
export const PILOT_PLACEHOLDERS = {
  /** JSON, YAML or PROTO. */
  format: "Format",
  /** What Flyte calls a VariableMap and a TypedInterface, in base64. */
  inputInterface: "InputInterface",
  outputInterface: "Interface",
  /** The place of outputs, or of inputs without one, and that of this attempt's raw outputs. */
  outputs: "Outputs",
  rawOutputs: "RawOutputs",
  /** The time limit of the upload, such as `300s`. */
  timeout: "Timeout",
} as const;

const { format, inputInterface, outputInterface, outputs, rawOutputs, timeout } = PILOT_PLACEHOLDERS;
const filled = (name: string) => `{{ .${name} }}`;

export const DOWNLOAD_ARGS: readonly string[] = [
  "download",
  "--from-remote",
  filled("From"),
  "--to-output-prefix",
  filled(outputs),
  "--to-local-dir",
  filled("To"),
  "--format",
  filled(format),
  "--input-interface",
  filled(inputInterface),
];

/** Flyte's uploader waits itself for the signal that the program has ended. */
export const UPLOAD_ARGS: readonly string[] = [
  "sidecar",
  "--timeout",
  filled(timeout),
  "--to-raw-output",
  filled(rawOutputs),
  "--to-output-prefix",
  filled("To"),
  "--from-local-dir",
  filled("From"),
  "--interface",
  filled(outputInterface),
];

type StorageFlags = {
  readonly flags: readonly string[];
  /** The paths of members that are left out, because the arguments of a container are no place for secrets. */
  readonly secrets: readonly string[];
};

const SECRET = /secret|access[-_]key|password|token|json/i;

/** The flags that tell Flyte's co-pilot about the storage. Source: Flyte's `CopilotCommandArgs`. */
export function storageFlags(storage: Json): StorageFlags {
  const members = isJsonObject(storage) ? storage : {};
  const stow = objectAt(members, "stow");
  const connection = plainMembers(objectAt(members, "connection"));
  const stowConfig = plainMembers(objectAt(stow, "config"));
  const flags = [
    ...(members["enable-multicontainer"] === true ? ["--storage.enable-multicontainer"] : []),
    ...flagOf("storage.container", members["container"]),
    ...flagOf("storage.type", members["type"]),
  ];
  const isStow = stow["kind"] !== undefined && Object.keys(objectAt(stow, "config")).length > 0;
  const more = isStow
    ? [
        ...stowConfig.shown.flatMap(([name, text]) => ["--storage.stow.config", `${name}=${text}`]),
        ...flagOf("storage.stow.kind", stow["kind"]),
      ]
    : connection.shown.flatMap(([name, text]) => flagOf(`storage.connection.${name}`, text));
  const secrets = isStow
    ? stowConfig.secret.map((name) => `stow.config.${name}`)
    : connection.secret.map((name) => `connection.${name}`);
  return { flags: [...flags, ...more], secrets };
}

function plainMembers(object: JsonObject) {
  const given = Object.entries(object).filter(([, value]) => (value ?? "") !== "");
  const secret = given.flatMap(([name]) => (SECRET.test(name) ? [name] : []));
  const shown = given.flatMap(([name, value]) => (SECRET.test(name) ? [] : [[name, String(value)] as const]));
  return { secret, shown };
}

function flagOf(name: string, value: Json | undefined): readonly string[] {
  return typeof value === "string" && value !== "" ? [`--${name}=${value}`] : [];
}
