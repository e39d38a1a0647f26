/** The options of commands that set a setting of a job, such as `--gpu-model`. */
import { create } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError, Option } from "commander";
import { notShown } from "../../core/job/request/shown-value.ts";
import {
  readSetting,
  replacedBy,
  SETTINGS,
  type Setting,
  type SettingValues,
  settingOf,
  withSettings,
} from "../../core/kinds/manifest/settings.ts";
import {
  type JobSpec,
  JobSpecSchema,
  PlacementSchema,
  RunPolicySchema,
  SchedulingPolicySchema,
  TopologyWishSchema,
} from "../../gen/gangway/v1/job_pb.ts";
import { sentToProto } from "../../manifest/sent-to-proto.ts";
import type { Json } from "../../runtime/json.ts";
import { usageFailure } from "../shell/exit.ts";

/** The values of a command's options by the names that they have in code. */
type Options = Readonly<Record<string, unknown>>;

export const SETTINGS_HEADING = "Settings of the jobs, in place of what their manifests say";

/** Adds an option for each setting. `except`: names of settings that the command has an option of its own for. */
export function addSettingOptions(
  command: Command,
  { heading, except = [] }: { readonly heading: string; readonly except?: readonly string[] },
): Command {
  for (const setting of SETTINGS.filter(({ name }) => !except.includes(name))) {
    command.addOption(optionOf(setting).helpGroup(`${heading}:`));
    // A manifest may say true.
    if (setting.type.of === "flag") command.addOption(new Option(`--no-${setting.name}`).hideHelp());
  }
  return command;
}

function optionOf(setting: Setting): Option {
  const { name, type, help } = setting;
  if (type.of === "flag") return new Option(`--${name}`, help);
  return new Option(`--${name} <${placeholderOf(setting)}>`, help).argParser((text) => {
    const outcome = readSetting(setting, text);
    if (outcome.kind === "value") return outcome.value;
    // The argument's error names the value.
    const allowed = outcome.message.replace(notShown(text.trim()), "");
    throw new InvalidArgumentError(`${allowed[0]?.toUpperCase()}${allowed.slice(1)}.`);
  });
}

function placeholderOf({ type }: Setting): string {
  switch (type.of) {
    case "text":
      return "name";
    case "number":
      return "number";
    case "seconds":
    case "duration":
      return "duration";
    case "word":
      return "word";
    case "texts":
      return "names";
    case "map":
      return "key=value,...";
    case "flag":
      return "";
    default:
      return type satisfies never;
  }
}

/** The settings that the options of a command line give. */
export function settingValues(options: object): SettingValues {
  const values = new Map<string, Json>();
  for (const { name } of SETTINGS) {
    const value = (options as Options)[attributeOf(name)];
    if (value !== undefined) values.set(name, value as Json);
  }
  return values;
}

/** `maxRuntime` of `--max-runtime`, as in commander. */
function attributeOf(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const SCHEMAS = {
  runPolicy: RunPolicySchema,
  schedulingPolicy: SchedulingPolicySchema,
  placement: PlacementSchema,
  topology: TopologyWishSchema,
};

/** Gives the spec of a job these values. */
export function setSettings(spec: JobSpec, values: SettingValues): void {
  const given = create(JobSpecSchema, sentToProto(withSettings({ kind: "", replicaSpecs: {} }, values)));
  const empty = create(JobSpecSchema);
  for (const name of replacedBy(values)) copyMember(empty, spec, fieldOf(name));
  for (const name of values.keys()) copyMember(given, spec, fieldOf(name));
}

type Members = Record<string, unknown>;

function copyMember(from: JobSpec, to: JobSpec, field: string): void {
  const path = field.split(".");
  const last = path.pop() ?? "";
  let [source, target] = [from as unknown as Members, to as unknown as Members];
  for (const name of path) {
    const schema = SCHEMAS[name as keyof typeof SCHEMAS];
    target[name] ??= create(schema);
    [source, target] = [(source[name] ?? create(schema)) as Members, target[name] as Members];
  }
  if (source[last] === undefined) delete target[last];
  else target[last] = source[last];
}

function fieldOf(name: string): string {
  return settingOf(name)?.field ?? name;
}

/** Adds hidden options for the settings that an update cannot change, and refuses them with what to do instead. */
export function refuseFixedSettings(command: Command, except: readonly string[]): Command {
  const fixed = SETTINGS.filter(({ name, isMutable }) => isMutable !== true && !except.includes(name));
  for (const { name, type } of fixed) {
    const flags = type.of === "flag" ? `--${name}` : `--${name} <value>`;
    command.addOption(new Option(flags).hideHelp());
  }
  return command;
}

/** Refuses the settings that `refuseFixedSettings` added. `shown`: the job, as the user names it. */
export function checkNoFixedSettings(options: object, shown: string): void {
  const given = SETTINGS.find(
    ({ name, isMutable }) => isMutable !== true && (options as Options)[attributeOf(name)] !== undefined,
  );
  if (given === undefined) return;
  const again = `gangway rerun ${shown} --replace --${given.name}${given.type.of === "flag" ? "" : " …"}`;
  throw usageFailure(`--${given.name} cannot change after the job was created; once it has ended, "${again}" does it`);
}
