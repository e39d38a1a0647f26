/** The flags of `gangway namespace create` and `update` that say what the pods of a namespace may do. */
import { clone, create } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ALLOWANCE_KINDS, allowanceText, readAllowance } from "../../core/pods/policy/allowances.ts";
import { POD_SECURITY_LEVELS } from "../../core/pods/policy/control.ts";
import { isLimitKind, LIMIT_KINDS, type LimitKind } from "../../core/pods/policy/limits.ts";
import {
  PodLimitSchema,
  type PodPolicy,
  PodPolicySchema,
  PodSecurityLevel,
} from "../../gen/gangway/v1/namespace_service_pb.ts";

const LEVELS = {
  privileged: PodSecurityLevel.PRIVILEGED,
  baseline: PodSecurityLevel.BASELINE,
  restricted: PodSecurityLevel.RESTRICTED,
  default: PodSecurityLevel.UNSPECIFIED,
} as const;

type Limit = { readonly kind: LimitKind; readonly values: readonly string[] | null };

export type PodPolicyOptions = {
  readonly podSecurity?: keyof typeof LEVELS;
  readonly allow?: readonly string[];
  readonly disallow?: readonly string[];
  readonly only?: readonly Limit[];
  readonly also?: readonly Limit[];
};

/** Adds the flags to a command. */
export function addPodPolicyFlags(command: Command): Command {
  const kinds = Object.entries(ALLOWANCE_KINDS).map(([kind, { form }]) => (form === null ? kind : `${kind}=…`));
  const limits = Object.keys(LIMIT_KINDS).join(", ");
  return command
    .addOption(
      new Option(
        "--pod-security <level>",
        "level of Kubernetes' Pod Security Standards; default: the installation's",
      ).choices([...POD_SECURITY_LEVELS, "default"]),
    )
    .addOption(
      new Option("--allow <list>", `what pods may do beyond the level, by commas: ${kinds.join(", ")}`).argParser(
        (text: string, before: readonly string[] | undefined) => [...(before ?? []), ...parseAllowances(text)],
      ),
    )
    .addOption(
      new Option("--disallow <list>", "allowances to take away").argParser(
        (text: string, before: readonly string[] | undefined) => [...(before ?? []), ...parseAllowances(text)],
      ),
    )
    .addOption(
      new Option("--only <kind=list>", `only values that pods may use: ${limits}; any: lifts the limit`).argParser(
        (text: string, before: readonly Limit[] | undefined) => [...(before ?? []), parseLimit(text)],
      ),
    )
    .addOption(
      new Option("--also <kind=list>", "values to add to a limit; changes nothing if there is no such limit").argParser(
        (text: string, before: readonly Limit[] | undefined) => [...(before ?? []), parseLimit(text)],
      ),
    );
}

/** Splits `host-path=/dev/shm,/data:ro,host-ipc`. A part without a kind is another value of the kind before it. */
function parseAllowances(text: string): readonly string[] {
  const texts: string[] = [];
  let last = "";
  for (const part of text.split(",").map((one) => one.trim())) {
    const [name = ""] = part.split("=");
    const isKind = Object.hasOwn(ALLOWANCE_KINDS, name);
    if (part === "" || (!isKind && last === "")) {
      throw new InvalidArgumentError(`"${part}" must be one of ${Object.keys(ALLOWANCE_KINDS).join(", ")}.`);
    }
    if (isKind) last = name;
    texts.push(isKind ? part : `${last}=${part}`);
  }
  return texts;
}

function parseLimit(text: string): Limit {
  const equals = text.indexOf("=");
  const kind = text.slice(0, equals);
  if (equals < 0 || !isLimitKind(kind)) {
    throw new InvalidArgumentError(`It must be KIND=VALUE,…; kinds are ${Object.keys(LIMIT_KINDS).join(", ")}.`);
  }
  const values = text
    .slice(equals + 1)
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "");
  return { kind, values: values[0] === "any" && values.length === 1 ? null : values };
}

const FIELDS = {
  image: "images",
  "service-account": "serviceAccounts",
  toleration: "tolerations",
  "priority-class": "priorityClasses",
  "node-selector": "nodeSelectors",
} as const satisfies Readonly<Record<LimitKind, keyof PodPolicy>>;

/** The policy with the changes that the flags ask for. Undefined: they ask for none. */
export function changedPodPolicy(
  before: PodPolicy | undefined,
  { podSecurity, allow = [], disallow = [], only = [], also = [] }: PodPolicyOptions,
): PodPolicy | undefined {
  const lists = [allow, disallow, only, also];
  if (podSecurity === undefined && lists.every(({ length }) => length === 0)) return undefined;
  const policy = before === undefined ? create(PodPolicySchema) : clone(PodPolicySchema, before);
  if (podSecurity !== undefined) policy.level = LEVELS[podSecurity];
  const taken = new Set(disallow.map(normalText));
  policy.allow = [...new Set([...policy.allow, ...allow])].filter((text) => !taken.has(normalText(text)));
  for (const { kind, values } of only) {
    if (values === null) delete policy[FIELDS[kind]];
    else policy[FIELDS[kind]] = create(PodLimitSchema, { values: [...values] });
  }
  for (const { kind, values } of also) {
    const limit = policy[FIELDS[kind]];
    if (limit !== undefined) limit.values = [...new Set([...limit.values, ...(values ?? [])])];
  }
  return policy;
}

function normalText(text: string): string {
  const read = readAllowance(text);
  return read.kind === "read" ? allowanceText(read.allowance) : text;
}

/** The level that is in force, and the number of allowances and limits beside it. */
export function podSecurityCell(policy: PodPolicy | undefined): string {
  const level = POD_SECURITY_LEVELS.find((name) => LEVELS[name] === policy?.level) ?? "";
  const limits = Object.values(FIELDS).filter((field) => policy?.[field] !== undefined).length;
  const parts = [
    ...(policy === undefined || policy.allow.length === 0 ? [] : [`${policy.allow.length} allowed`]),
    ...(limits === 0 ? [] : [`${limits} limited`]),
  ];
  return parts.length === 0 ? level : `${level} (${parts.join(", ")})`;
}
