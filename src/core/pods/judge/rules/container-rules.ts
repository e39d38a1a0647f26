/** The rules for containers and what they hold. Source: `pkg/apis/core/validation` of Kubernetes. */
import { arrayAt, isJsonObject, type JsonObject, numberAt, objectAt, stringAt } from "../../../../runtime/json.ts";
import { inside, type PodPlace } from "../place.ts";
import {
  evenEmpty,
  type MemberRule,
  NOT_NEGATIVE,
  numberRule,
  type ObjectRule,
  oneOf,
  range,
  required,
  type TypeRules,
  text,
} from "../rule.ts";
import { isAbsent, setAmong } from "../set.ts";
import { SYNTAX } from "../syntax.ts";
import { ENV_RULES } from "./env-rules.ts";
import { DEVICE_RULE, MOUNT_RULES } from "./mount-rules.ts";
import { RESOURCE_RULES } from "./resource-rules.ts";

const PULL_POLICIES = oneOf("Always", "IfNotPresent", "Never");
const PORT = range(1, 65_535);

const IMAGE: MemberRule = {
  says: "must not begin or end with white space",
  check: (value, place, findings) => {
    if (typeof value !== "string" || value.trim() === value) return;
    findings.add({ kind: "invalid", place, value, detail: "must not have leading or trailing whitespace" });
  },
};

/** A port by its number or by its name. */
const PORT_OR_NAME: MemberRule = {
  says: "must be a number between 1 and 65535, or the name of a port",
  check: (value, place, findings) => {
    const rule = typeof value === "string" ? text(SYNTAX.portName) : PORT;
    rule.check?.(value, place, findings);
  },
};

/** Kubernetes reads an absent port as 0, which is none. */
function needsPort(rule: MemberRule): MemberRule {
  return { ...required(rule, "must be between 1 and 65535, inclusive") };
}

const RESTART_POLICIES = oneOf("Always", "Never", "OnFailure");
const RESTART_RULES_MAX = 20;
const EXIT_CODES_MAX = 255;

function atMost(max: number): MemberRule {
  return {
    says: `must have at most ${max} items`,
    check: (value, place, findings) => {
      if (!Array.isArray(value) || value.length <= max) return;
      findings.add({ kind: "tooMany", place, value: value.length, detail: `must have at most ${max} items` });
    },
  };
}

/** The member that is set in vain, or too much, where exactly one of several must be. */
function exactlyOne(members: readonly string[], missing: string): ObjectRule {
  return {
    says: `must have exactly one of ${members.join(", ")}`,
    judge: (object, place, { findings }) => {
      const set = setAmong(object, members);
      if (set.length === 0) findings.add({ kind: "required", place, detail: missing });
      for (const member of set.slice(1)) {
        const detail = "may not specify more than 1 handler type";
        findings.add({ kind: "forbidden", place: inside(place, member), detail });
      }
    },
  };
}

const NO_HANDLER = "must specify a handler type";
const SLEEP_RULE: ObjectRule = {
  says: "seconds must be from 0 to the pod's terminationGracePeriodSeconds",
  judge: (sleep, place, { pod, findings }) => {
    const seconds = numberAt(sleep, "seconds") ?? 0;
    if (seconds >= 0 && seconds <= pod.graceSeconds) return;
    const detail = `must be non-negative and less than terminationGracePeriodSeconds (${pod.graceSeconds})`;
    findings.add({ kind: "invalid", place, value: seconds, detail });
  },
};

const PORT_NAMES_RULE: ObjectRule = {
  says: "names of ports must be unique in a container",
  judge: (container, place, { findings }) => {
    const seen = new Set<string>();
    for (const [index, port] of arrayAt(container, "ports").entries()) {
      const name = stringAt(port, "name") ?? "";
      if (name === "" || SYNTAX.portName.problems(name).length > 0) continue;
      const at = inside(inside(inside(place, "ports"), index), "name");
      if (seen.has(name)) {
        const allowed = "must be unique: another port of the container has this name";
        findings.add({ kind: "duplicate", place: at, value: name, detail: "", allowed });
      }
      seen.add(name);
    }
  },
};

const RESTART_RULE: ObjectRule = {
  says: "restartPolicyRules need a restartPolicy of the container",
  judge: (container, place, { findings }) => {
    if (!isAbsent(container["restartPolicy"]) || arrayAt(container, "restartPolicyRules").length === 0) return;
    const detail = "must specify restartPolicy when restart rules are used";
    findings.add({ kind: "required", place: inside(place, "restartPolicy"), detail });
  },
};

const PROBE_RULES: ObjectRule = {
  says:
    "livenessProbe and startupProbe must have a successThreshold of 1; a readinessProbe must not have " +
    "terminationGracePeriodSeconds; an init container needs the restartPolicy Always to have probes or a lifecycle",
  judge: (container, place, of) => {
    const isInit = listOf(place) === "initContainers";
    if (isInit && container["restartPolicy"] !== "Always") judgeInit(container, place, of);
    else judgeProbes(container, place, of);
  },
};

type RuleContext = Parameters<ObjectRule["judge"]>[2];

/** The list of a pod spec that holds a container. */
export function listOf(place: PodPlace): string {
  const step = place?.up?.step;
  return typeof step === "string" ? step : "";
}

function judgeProbes(container: JsonObject, place: PodPlace, { findings }: RuleContext): void {
  for (const name of ["livenessProbe", "startupProbe"]) {
    const threshold = numberAt(objectAt(container, name), "successThreshold") || 1;
    if (threshold === 1) continue;
    const at = inside(inside(place, name), "successThreshold");
    findings.add({ kind: "invalid", place: at, value: threshold, detail: "must be 1" });
  }
  const grace = objectAt(container, "readinessProbe")["terminationGracePeriodSeconds"];
  if (isAbsent(grace)) return;
  const at = inside(inside(place, "readinessProbe"), "terminationGracePeriodSeconds");
  findings.add({ kind: "invalid", place: at, value: grace, detail: "must not be set for readinessProbes" });
}

function judgeInit(container: JsonObject, place: PodPlace, { findings }: RuleContext): void {
  const lifecycle = container["lifecycle"];
  // Kubernetes drops a stop signal before it judges, and the lifecycle with it if nothing else is in it.
  const isDropped =
    isJsonObject(lifecycle) &&
    !isAbsent(lifecycle["stopSignal"]) &&
    setAmong(lifecycle, ["postStart", "preStop"]).length === 0;
  for (const name of ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"]) {
    if (isAbsent(container[name]) || (name === "lifecycle" && isDropped)) continue;
    const detail = "may not be set for init containers without restartPolicy=Always";
    findings.add({ kind: "forbidden", place: inside(place, name), detail });
  }
  for (const [index, policy] of arrayAt(container, "resizePolicy").entries()) {
    if (stringAt(policy, "restartPolicy") !== "RestartContainer") continue;
    const at = inside(inside(inside(place, "resizePolicy"), index), "restartPolicy");
    const detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
    findings.add({ kind: "invalid", place: at, value: "RestartContainer", detail });
  }
}

const RESIZE_RULE: ObjectRule = {
  says: "resizePolicy must name each resource once, and must be NotRequired if the pod's restartPolicy is Never",
  judge: (container, place, { pod, findings }) => {
    const seen = new Set<string>();
    const at = inside(place, "resizePolicy");
    for (const [index, policy] of arrayAt(container, "resizePolicy").entries()) {
      const resource = stringAt(policy, "resourceName") ?? "";
      const restart = stringAt(policy, "restartPolicy") ?? "";
      const item = inside(at, index);
      if (seen.has(resource)) {
        const allowed = "must be unique: another item of the list names this resource";
        findings.add({ kind: "duplicate", place: item, value: resource, detail: "", allowed });
      }
      seen.add(resource);
      if (pod.restartPolicy !== "Never" || restart === "NotRequired") continue;
      const detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
      findings.add({ kind: "invalid", place: inside(item, "restartPolicy"), field: at, value: restart, detail });
    }
  },
};

export const CONTAINER_RULES: TypeRules = {
  Container: {
    members: {
      name: required(text(SYNTAX.label)),
      image: required(IMAGE),
      imagePullPolicy: PULL_POLICIES,
      terminationMessagePolicy: oneOf("File", "FallbackToLogsOnError"),
      restartPolicy: evenEmpty(RESTART_POLICIES),
      restartPolicyRules: atMost(RESTART_RULES_MAX),
    },
    whole: [...MOUNT_RULES, PORT_NAMES_RULE, RESTART_RULE, PROBE_RULES, RESIZE_RULE],
  },
  ContainerPort: {
    members: {
      name: text(SYNTAX.portName),
      containerPort: required(PORT),
      hostPort: PORT,
      protocol: oneOf("SCTP", "TCP", "UDP"),
    },
  },
  ContainerResizePolicy: {
    members: {
      resourceName: required(oneOf("cpu", "memory")),
      restartPolicy: required(oneOf("NotRequired", "RestartContainer")),
    },
  },
  ContainerRestartRule: {
    members: { action: required(oneOf("Restart", "RestartAllContainers")) },
    whole: [
      {
        says: "must have exitCodes",
        judge: (rule, place, { findings }) => {
          if (!isAbsent(rule["exitCodes"])) return;
          findings.add({ kind: "required", place: inside(place, "exitCodes"), detail: "must be specified" });
        },
      },
    ],
  },
  ContainerRestartRuleOnExitCodes: {
    members: { operator: required(oneOf("In", "NotIn")), values: atMost(EXIT_CODES_MAX) },
  },
  ...ENV_RULES,
  VolumeMount: { members: { name: required(), mountPath: required() } },
  VolumeDevice: { members: { name: required(), devicePath: required() }, whole: [DEVICE_RULE] },
  Probe: {
    members: {
      initialDelaySeconds: NOT_NEGATIVE,
      timeoutSeconds: NOT_NEGATIVE,
      periodSeconds: NOT_NEGATIVE,
      successThreshold: NOT_NEGATIVE,
      failureThreshold: NOT_NEGATIVE,
      terminationGracePeriodSeconds: evenEmpty(numberRule("must be greater than 0", (value) => value > 0)),
    },
    whole: [exactlyOne(["exec", "httpGet", "tcpSocket", "grpc"], NO_HANDLER)],
  },
  LifecycleHandler: { whole: [exactlyOne(["exec", "httpGet", "tcpSocket", "sleep"], NO_HANDLER)] },
  ExecAction: { members: { command: required() } },
  HTTPGetAction: { members: { port: needsPort(PORT_OR_NAME), scheme: oneOf("HTTP", "HTTPS") } },
  HTTPHeader: { members: { name: required(text(SYNTAX.headerName)) } },
  TCPSocketAction: { members: { port: needsPort(PORT_OR_NAME) } },
  GRPCAction: { members: { port: needsPort(PORT) } },
  SleepAction: { whole: [SLEEP_RULE] },
  ...RESOURCE_RULES,
};
