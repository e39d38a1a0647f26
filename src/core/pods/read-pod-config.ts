/**
 * Reads the file of a platform's pod settings, in our words and in those of Flyte's own file. It serves operators, who
 * learn about every wrong member at start-up, before any user's pod is built with it.
 */
import { parseDurationMs } from "../../runtime/duration.ts";
import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import { OWN_PREFIX } from "../job/labels.ts";
import { inOurWords, nearestWord } from "./flyte/read-flyte-config.ts";
import { SYNTAX } from "./judge/syntax.ts";
import { nearestName } from "./nearest-name.ts";
import { toResourceList } from "./platform-resources.ts";
import {
  type CoPilotConfig,
  type NamespaceConfig,
  type NodePreference,
  type PendingConfig,
  PLAIN_POD_CONFIG,
  type PlatformResources,
  type PlatformTemplate,
  type PodConfig,
  type ResourceList,
} from "./pod-config.ts";
import { parseQuantity } from "./quantity.ts";

type PodConfigOutcome =
  | { readonly kind: "read"; readonly config: PodConfig }
  /** Each error names a member and says which values are allowed. */
  | { readonly kind: "refused"; readonly errors: readonly string[] };

type Reader<T> = (value: Json, at: string) => T;

/** Reads the settings of a platform. `env` looks up variables for `defaultEnvVarsFromEnv`. Names every wrong member. */
export function readPodConfig(file: Json, env: (name: string) => string | undefined): PodConfigOutcome {
  if (!isJsonObject(file)) return { kind: "refused", errors: ["must be an object"] };
  const { value, spelling, notes, errors: wrongWords } = inOurWords(file);
  const errors = [...wrongWords];
  const read = new PodConfigReader(errors, spelling);
  const gpu = value["gpuResourceName"];
  const gpuResourceName = typeof gpu === "string" && gpu !== "" ? gpu : PLAIN_POD_CONFIG.gpuResourceName;
  const fromEnv: Record<string, string> = {};
  const takeFromEnv: Reader<undefined> = (names, at) => {
    for (const [name, from] of Object.entries(read.texts(names, at))) fromEnv[name] = env(from) ?? "";
    return undefined;
  };
  const members = {
    ...read.members(gpuResourceName),
    defaultEnvVarsFromEnv: takeFromEnv,
  } satisfies Readonly<Record<string, Reader<unknown>>>;
  const config = read.object(value, "", members);
  if (errors.length > 0) return { kind: "refused", errors };
  const { defaultEnvVarsFromEnv: _taken, ...ofPods } = config;
  const { pending, given } = pendingApart(ofPods);
  const defaultEnvVars = { ...fromEnv, ...given.defaultEnvVars };
  return { kind: "read", config: { ...PLAIN_POD_CONFIG, ...given, defaultEnvVars, pending, notes } };
}

type PendingWords = {
  readonly createContainerErrorGracePeriod?: number;
  readonly createContainerConfigErrorGracePeriod?: number;
  readonly imagePullBackoffGracePeriod?: number;
  readonly podPendingTimeout?: number;
};

/** Puts how long pods may be pending apart from what pods get. */
function pendingApart<T extends PendingWords>(config: T) {
  const {
    createContainerErrorGracePeriod: error,
    createContainerConfigErrorGracePeriod: configError,
    imagePullBackoffGracePeriod: imagePull,
    podPendingTimeout: timeout,
    ...given
  } = config;
  const pending: PendingConfig = {
    ...(error === undefined ? {} : { createContainerErrorGraceMs: error }),
    ...(configError === undefined ? {} : { createContainerConfigErrorGraceMs: configError }),
    ...(imagePull === undefined ? {} : { imagePullBackoffGraceMs: imagePull }),
    ...(timeout === undefined ? {} : { podPendingTimeoutMs: timeout }),
  };
  return { pending, given };
}

type ReadMembers<M extends Readonly<Record<string, Reader<unknown>>>> = { [Name in keyof M]?: ReturnType<M[Name]> };

/** Reads members by their type. Collects errors; a wrong member reads as empty. */
class PodConfigReader {
  readonly #errors: string[];
  readonly #spelling: ReadonlyMap<string, string>;

  constructor(errors: string[], spelling: ReadonlyMap<string, string>) {
    this.#errors = errors;
    this.#spelling = spelling;
  }

  members(gpuResourceName: string) {
    const { text, requirement, raw, texts, list, words, quantity, duration } = this;
    const resources: Reader<PlatformResources> = (value, at) => this.resources(value, at, gpuResourceName);
    const namespace: Reader<NamespaceConfig> = (value, at) =>
      this.object(value, at, { resources, serviceAccount: text }) as NamespaceConfig;
    return {
      gpuResourceName: text,
      gpuDeviceNodeLabel: text,
      gpuPartitionSizeNodeLabel: text,
      gpuUnpartitionedNodeSelectorRequirement: requirement,
      gpuUnpartitionedToleration: raw,
      resources,
      defaultCPURequest: quantity,
      defaultMemoryRequest: quantity,
      defaultTolerations: list,
      resourceTolerations: this.mapOf(list),
      interruptibleTolerations: list,
      defaultNodeSelector: texts,
      interruptibleNodeSelector: texts,
      interruptibleNodeSelectorRequirement: requirement,
      nonInterruptibleNodeSelectorRequirement: requirement,
      preferredNodes: this.listOf((value, at) => this.preference(value, at)),
      defaultAffinity: raw,
      defaultPodSecurityContext: raw,
      defaultSecurityContext: raw,
      defaultPodDNSConfig: raw,
      enableHostNetworkingPod: this.flag,
      schedulerName: text,
      serviceAccount: text,
      defaultLabels: this.labelsOf((value) => SYNTAX.labelValue.fits(value) || SYNTAX.labelValue.allowed),
      defaultAnnotations: this.labelsOf(() => true),
      imagePullPolicy: this.choice(["Always", "IfNotPresent", "Never"]),
      createContainerErrorGracePeriod: duration,
      createContainerConfigErrorGracePeriod: duration,
      imagePullBackoffGracePeriod: duration,
      podPendingTimeout: duration,
      defaultEnvVars: texts,
      defaultEnvFromSecrets: words,
      defaultEnvFromConfigMaps: words,
      defaultPodTemplateName: text,
      podTemplateNamespace: text,
      podTemplates: this.listOf((value, at) => this.template(value, at)),
      logs: this.listOf((value, at) => this.required(value, at, { name: text, uri: text })),
      coPilot: (value: Json, at: string) => this.coPilot(value, at),
      namespaces: this.mapOf(namespace),
    } satisfies Readonly<Record<string, Reader<unknown>>>;
  }

  object<M extends Readonly<Record<string, Reader<unknown>>>>(value: Json, at: string, members: M): ReadMembers<M> {
    const given: Record<string, unknown> = {};
    for (const [name, inner] of Object.entries(this.raw(value, at))) {
      const path = at === "" ? name : `${at}.${name}`;
      const reader = Object.hasOwn(members, name) ? members[name] : undefined;
      if (reader === undefined) this.#fail(path, unknown(name, Object.keys(members), at === ""));
      else if (inner !== undefined && inner !== null) given[name] = reader(inner, path);
    }
    return given as ReadMembers<M>;
  }

  required<M extends Readonly<Record<string, Reader<unknown>>>>(
    value: Json,
    at: string,
    members: M,
  ): Required<ReadMembers<M>> {
    const given = this.object(value, at, members);
    for (const name of Object.keys(members)) if (given[name] === undefined) this.#fail(`${at}.${name}`, "is required");
    return given as Required<ReadMembers<M>>;
  }

  readonly raw = (value: Json, at: string): JsonObject =>
    isJsonObject(value) ? value : this.#fail(at, "must be an object", {});

  readonly text = (value: Json, at: string): string =>
    typeof value === "string" && value !== "" ? value : this.#fail(at, "must be text", "");

  readonly flag = (value: Json, at: string): boolean =>
    typeof value === "boolean" ? value : this.#fail(at, "must be true or false", false);

  readonly quantity = (value: Json, at: string): string => {
    const text = typeof value === "number" ? String(value) : value;
    if (typeof text === "string" && (parseQuantity(text)?.nano ?? -1n) >= 0n) return text;
    return this.#fail(at, `is ${JSON.stringify(value)}: must be a quantity such as 500m, 2 or 8Gi`, "0");
  };

  readonly duration = (value: Json, at: string): number => {
    const ms = typeof value === "string" ? parseDurationMs(value) : null;
    if (ms !== null && ms <= DURATION_MS_MAX) return ms;
    return this.#fail(at, `is ${JSON.stringify(value)}: must be a duration such as 3m0s, at most 24h`, 0);
  };

  choice(allowed: readonly string[]): Reader<string> {
    return (value, at) =>
      allowed.find((one) => one === value) ?? this.#fail(at, `must be one of ${allowed.join(", ")}`, "");
  }

  /** Labels or annotations. `check` returns true, or what a value must be. */
  labelsOf(check: (value: string) => true | string): Reader<Readonly<Record<string, string>>> {
    return (value, at) => {
      const labels = this.texts(value, at);
      for (const [key, text] of Object.entries(labels)) {
        const fits = check(text);
        if (key.startsWith(OWN_PREFIX)) this.#fail(`${at}.${key}`, `must not be set: ${OWN_PREFIX} is Gangway's own`);
        else if (!SYNTAX.labelKey.fits(key)) this.#fail(`${at}.${key}`, `its key ${SYNTAX.labelKey.allowed}`);
        else if (fits !== true) this.#fail(`${at}.${key}`, fits);
      }
      return labels;
    };
  }

  preference(value: Json, at: string): NodePreference {
    const weight: Reader<number> = (given, path) =>
      typeof given === "number" && Number.isInteger(given) && given >= 1 && given <= 100
        ? given
        : this.#fail(path, "must be a whole number from 1 to 100", 1);
    const members = { weight, matchExpressions: this.listOf(this.requirement) };
    const { weight: given, matchExpressions = [] } = this.object(value, at, members);
    if (given === undefined) this.#fail(`${at}.weight`, "is required: a whole number from 1 to 100");
    if (matchExpressions.length === 0)
      this.#fail(`${at}.matchExpressions`, "is required: requirements of labels of nodes");
    return { weight: given ?? 1, matchExpressions };
  }

  readonly requirement = (value: Json, at: string): JsonObject => {
    const operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    const { key, operator } = this.raw(value, at);
    if (typeof key !== "string" || key === "") this.#fail(`${at}.key`, "is required");
    if (typeof operator !== "string" || !operators.includes(operator)) {
      this.#fail(`${at}.operator`, `must be one of ${operators.join(", ")}`);
    }
    return this.raw(value, at);
  };

  readonly list = (value: Json, at: string): readonly JsonObject[] => this.listOf(this.raw)(value, at);

  readonly words = (value: Json, at: string): readonly string[] => this.listOf(this.text)(value, at);

  readonly texts = (value: Json, at: string): Readonly<Record<string, string>> =>
    this.mapOf((inner, path) => (typeof inner === "string" ? inner : this.#fail(path, "must be text", "")))(value, at);

  listOf<T>(item: Reader<T>): Reader<readonly T[]> {
    return (value, at) => {
      if (!Array.isArray(value)) return this.#fail(at, "must be a list", []);
      return (value as readonly Json[]).map((one, index) => item(one, `${at}[${index}]`));
    };
  }

  mapOf<T>(item: Reader<T>): Reader<Readonly<Record<string, T>>> {
    return (value, at) =>
      Object.fromEntries(
        Object.entries(this.raw(value, at)).flatMap(([name, one]) =>
          one === undefined ? [] : [[name, item(one, `${at}.${name}`)]],
        ),
      );
  }

  resources(value: Json, at: string, gpuResourceName: string): PlatformResources {
    const list: Reader<ResourceList> = (inner, path) => {
      const entries = Object.entries(this.mapOf(this.quantity)(inner, path));
      const outcome = toResourceList(
        entries.map(([name, amount]) => ({ name, value: amount })),
        gpuResourceName,
      );
      return outcome.kind === "list" ? outcome.list : {};
    };
    return { defaults: {}, limits: {}, ...this.object(value, at, { defaults: list, limits: list }) };
  }

  /** A Kubernetes PodTemplate. */
  template(value: Json, at: string): PlatformTemplate {
    const { apiVersion: _version, kind: _kind, ...rest } = this.raw(value, at);
    const { metadata, template } = this.required(rest, at, { metadata: this.raw, template: this.raw });
    const of = (member: string) => {
      const name = metadata?.[member];
      return typeof name === "string" && name !== "" ? name : this.#fail(`${at}.metadata.${member}`, "is required", "");
    };
    return { name: of("name"), namespace: of("namespace"), template: template ?? {} };
  }

  coPilot(value: Json, at: string): CoPilotConfig {
    const { timeout = 0, ...given } = this.object(value, at, {
      image: this.text,
      command: this.words,
      uploadCommand: this.words,
      env: this.list,
      envFrom: this.list,
      inputPath: this.text,
      outputPath: this.text,
      cpu: this.quantity,
      memory: this.quantity,
      storage: this.quantity,
      timeout: this.duration,
      timeoutSeconds: (seconds: Json, path: string) =>
        typeof seconds === "number" && Number.isInteger(seconds) && seconds > 0
          ? seconds
          : this.#fail(path, "must be a whole number of 1 or more", 1),
    });
    if (given.image === undefined) this.#fail(`${at}.image`, "is required");
    if ((given.command?.length ?? 0) === 0)
      this.#fail(`${at}.command`, "is required: a command that copies {{ .From }} to {{ .To }}");
    return { ...CO_PILOT, ...(timeout === 0 ? {} : { timeoutSeconds: Math.ceil(timeout / 1000) }), ...given };
  }

  #fail(at: string, message: string): undefined;
  #fail<T>(at: string, message: string, instead: T): T;
  #fail(at: string, message: string, instead?: unknown): unknown {
    this.#errors.push(`${at === "" ? "it" : this.#spelled(at)} ${message}`);
    return instead;
  }

  /** A path as the file spells it: some of its words are those of Flyte. */
  #spelled(path: string): string {
    for (
      let end = path.length;
      end > 0;
      end = Math.max(path.lastIndexOf(".", end - 1), path.lastIndexOf("[", end - 1))
    ) {
      const written = this.#spelling.get(path.slice(0, end));
      if (written !== undefined) return written + path.slice(end);
    }
    return path;
  }
}

/** The bound of the variables that say the same. */
const DURATION_MS_MAX = 86_400_000;

function unknown(name: string, members: readonly string[], isTop: boolean): string {
  const near = isTop ? nearestWord(name, members) : nearestName(name, members);
  return near === null ? `is unknown; known are ${members.join(", ")}` : `is unknown: did you mean ${near}?`;
}

const CO_PILOT: CoPilotConfig = {
  image: "",
  command: [],
  env: [],
  envFrom: [],
  inputPath: "/var/inputs",
  outputPath: "/var/outputs",
  cpu: "500m",
  memory: "128Mi",
  timeoutSeconds: 300,
};
