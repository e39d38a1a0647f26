/** The rules for a pod spec as a whole, and for the metadata of a pod. */
import { arrayAt, isJsonObject, type Json, type JsonObject, stringAt } from "../../../../runtime/json.ts";
import { inside, type PodPlace } from "../place.ts";
import {
  evenEmpty,
  type MemberRule,
  type ObjectRule,
  oneOf,
  range,
  required,
  type TypeRules,
  text,
  texts,
} from "../rule.ts";
import { isAbsent } from "../set.ts";
import { SYNTAX } from "../syntax.ts";
import { CONTAINER_RULES } from "./container-rules.ts";
import { POD_RESOURCE_RULES } from "./resource-rules.ts";
import { NODE_SELECTOR, SCHEDULING_RULES, SPREAD_REPEATS } from "./scheduling-rules.ts";
import { HOST_RULE, SECURITY_RULES } from "./security-rules.ts";
import { VOLUME_NAMES, VOLUME_RULES } from "./volume-rules.ts";
import { SYSTEM_RULES } from "./windows-rules.ts";

const NAMES: ObjectRule = {
  says: "names of containers and init containers must be unique in a pod",
  judge: (spec, place, { findings }) => {
    const seen = new Set<string>();
    for (const list of ["containers", "initContainers"]) {
      for (const [index, container] of arrayAt(spec, list).entries()) {
        const name = stringAt(container, "name") ?? "";
        if (name === "") continue;
        const at = inside(inside(inside(place, list), index), "name");
        const allowed = `must be unique: another container is named ${name.slice(0, NAME_SHOWN_MAX)}`;
        if (seen.has(name)) findings.add({ kind: "duplicate", place: at, value: name, detail: "", allowed });
        seen.add(name);
      }
    }
  },
};

const NAME_SHOWN_MAX = 80;

type RuleContext = Parameters<ObjectRule["judge"]>[2];

/** Ports of the node: with `hostNetwork`, each port of a container is one. */
const HOST_PORTS: ObjectRule = {
  says: "ports of the node must be unique in a pod; with hostNetwork, hostPort must be the containerPort",
  judge: (spec, place, of) => {
    const shared = new Set<string>();
    for (const container of containersAt(spec, "containers", place)) judgePorts(container, shared, of);
    // Init containers run one after the other.
    for (const container of containersAt(spec, "initContainers", place)) judgePorts(container, new Set(), of);
  },
};

type PlacedContainer = { readonly container: Json; readonly list: string; readonly at: PodPlace };

function containersAt(spec: JsonObject, list: string, place: PodPlace): readonly PlacedContainer[] {
  const at = inside(place, list);
  return arrayAt(spec, list).flatMap((container, index) =>
    arrayAt(container, "ports").length === 0 ? [] : [{ container, list, at: inside(at, index) }],
  );
}

function judgePorts(
  { container, list, at }: PlacedContainer,
  taken: Set<string>,
  { pod, findings }: RuleContext,
): void {
  for (const [index, port] of arrayAt(container, "ports").entries()) {
    const number = numberOf(port, "containerPort");
    const hostPort = hostPortOf(port, pod);
    if (hostPort === 0) continue;
    const where = inside(inside(inside(at, "ports"), index), "hostPort");
    if (pod.hostNetwork && list === "containers" && hostPort !== number) {
      const detail = "must match `containerPort` when `hostNetwork` is true";
      findings.add({ kind: "invalid", place: where, value: hostPort, detail });
    }
    const value = `${stringAt(port, "protocol") || "TCP"}/${stringAt(port, "hostIP") ?? ""}/${hostPort}`;
    const allowed = "must be unique: another port of the pod takes this port of the node";
    if (taken.has(value)) findings.add({ kind: "duplicate", place: where, value, detail: "", allowed });
    taken.add(value);
  }
}

/** With `hostNetwork`, Kubernetes makes every port one of the node. 0: none. */
function hostPortOf(port: Json, { hostNetwork }: RuleContext["pod"]): number {
  return numberOf(port, "hostPort") || (hostNetwork ? numberOf(port, "containerPort") : 0);
}

function numberOf(value: Json, member: string): number {
  const number = isJsonObject(value) ? value[member] : undefined;
  return typeof number === "number" ? number : 0;
}

const HOSTNAME_CHARS_MAX = 64;

const HOSTNAME: ObjectRule = {
  says: "hostnameOverride excludes setHostnameAsFQDN and hostNetwork",
  judge: (spec, place, { findings }) => {
    if (isAbsent(spec["hostnameOverride"])) return;
    const at = inside(place, "hostnameOverride");
    for (const member of ["setHostnameAsFQDN", "hostNetwork"]) {
      if (spec[member] !== true) continue;
      findings.add({ kind: "forbidden", place: at, detail: `may not be specified when ${member} is true` });
    }
  },
};

const HOSTNAME_SYNTAX: MemberRule = {
  ...text(SYNTAX.subdomain),
  says: "must be at most 64 lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
  check: (value, place, findings) => {
    if (typeof value === "string" && value.length > HOSTNAME_CHARS_MAX) {
      findings.add({ kind: "tooLong", place, detail: `may not be more than ${HOSTNAME_CHARS_MAX} bytes` });
    }
    text(SYNTAX.subdomain).check?.(value, place, findings);
  },
};

const SERVERS_MAX = 3;
const SEARCHES_MAX = 32;
const SEARCH_CHARS_MAX = 2048;

const DNS: ObjectRule = {
  says:
    `the dnsPolicy None needs a nameserver; at most ${SERVERS_MAX} nameservers, ` +
    `${SEARCHES_MAX} searches of ${SEARCH_CHARS_MAX} characters in all`,
  judge: (spec, place, { findings }) => {
    const config = spec["dnsConfig"];
    const at = inside(place, "dnsConfig");
    const servers = arrayAt(config, "nameservers");
    if (spec["dnsPolicy"] === "None" && servers.length === 0) {
      const isMissing = !isJsonObject(config);
      const where = isMissing ? at : inside(at, "nameservers");
      const what = isMissing ? "provide `dnsConfig`" : "provide at least one DNS nameserver";
      findings.add({ kind: "required", place: where, detail: `must ${what} when \`dnsPolicy\` is None` });
    }
    const invalid = (member: string, value: Json, detail: string) =>
      findings.add({ kind: "invalid", place: inside(at, member), value, detail });
    if (servers.length > SERVERS_MAX) {
      invalid("nameservers", servers, `must not have more than ${SERVERS_MAX} nameservers`);
    }
    const searches = arrayAt(config, "searches");
    if (searches.length > SEARCHES_MAX) {
      invalid("searches", searches, `must not have more than ${SEARCHES_MAX} search paths`);
    }
    if (searches.map((one) => (typeof one === "string" ? one : "")).join(" ").length <= SEARCH_CHARS_MAX) return;
    const detail = `must not have more than ${SEARCH_CHARS_MAX} characters (including spaces) in the search list`;
    invalid("searches", searches, detail);
  },
};

const CLAIM_NAMES: ObjectRule = {
  says: "names of resourceClaims must be unique",
  judge: (spec, place, { findings }) => {
    const seen = new Set<string>();
    for (const [index, claim] of arrayAt(spec, "resourceClaims").entries()) {
      const name = stringAt(claim, "name") ?? "";
      const at = inside(inside(inside(place, "resourceClaims"), index), "name");
      const allowed = "must be unique: another claim of the pod has this name";
      if (name !== "" && seen.has(name))
        findings.add({ kind: "duplicate", place: at, value: name, detail: "", allowed });
      seen.add(name);
    }
  },
};

const CLAIM_SOURCE: ObjectRule = {
  says: "must have exactly one of resourceClaimName, resourceClaimTemplateName",
  judge: (claim, place, { findings }) => {
    const count = ["resourceClaimName", "resourceClaimTemplateName"].filter((name) => !isAbsent(claim[name])).length;
    if (count === 1) return;
    const detail =
      count === 0
        ? "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        : "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
    findings.add({ kind: "invalid", place, value: claim, detail });
  },
};

/** The classes that every cluster has, with their values. */
const SYSTEM_CLASSES: Readonly<Record<string, number>> = {
  "system-cluster-critical": 2_000_000_000,
  "system-node-critical": 2_000_001_000,
};

const PRIORITY: ObjectRule = {
  says: "priority must not be set, unless it is the value of the class; priorityClassName gives it",
  judge: (spec, place, { findings }) => {
    const { priority } = spec;
    const name = stringAt(spec, "priorityClassName") ?? "";
    const value = name === "" ? 0 : SYSTEM_CLASSES[name];
    if (typeof priority !== "number" || value === undefined || priority === value) return;
    const detail =
      `the integer value of priority (${priority}) must not be provided in pod spec; ` +
      `priority admission controller computed ${value} from the given PriorityClass name`;
    const allowed = "name a priorityClassName, whose value the pod gets";
    findings.add({ kind: "forbidden", place: inside(place, "priority"), detail, allowed });
  },
};

const OS: ObjectRule = {
  says: "os.name must be linux or windows",
  judge: (spec, place, { pod, findings }) => {
    if (!isJsonObject(spec["os"])) return;
    const at = inside(place, "os");
    if (pod.os === "") findings.add({ kind: "required", place: inside(at, "name"), detail: "" });
    else oneOf("linux", "windows").check?.(pod.os, inside(at, "name"), findings);
  },
};

const ON_CREATE: ObjectRule = {
  says: "ephemeralContainers must not be set",
  judge: (spec, place, { findings }) => {
    if (arrayAt(spec, "ephemeralContainers").length === 0) return;
    findings.add({ kind: "forbidden", place: inside(place, "ephemeralContainers"), detail: "cannot be set on create" });
  },
};

/** An alias of `serviceAccountName`. */
const ACCOUNT: ObjectRule = {
  says: "serviceAccount counts without a serviceAccountName",
  judge: (spec, place, { findings }) => {
    const alias = stringAt(spec, "serviceAccount") ?? "";
    if (alias === "" || stringAt(spec, "serviceAccountName")) return;
    const at = inside(place, "serviceAccount");
    text(SYNTAX.subdomain).check?.(alias, at, findings);
  },
};

const SUBDOMAIN = text(SYNTAX.subdomain);

const POD_SPEC_RULES: TypeRules = {
  PodSpec: {
    members: {
      containers: required(),
      restartPolicy: oneOf("Always", "OnFailure", "Never"),
      dnsPolicy: oneOf("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
      activeDeadlineSeconds: evenEmpty(range(1, 2 ** 31 - 1)),
      hostname: text(SYNTAX.label),
      subdomain: text(SYNTAX.label),
      hostnameOverride: evenEmpty(HOSTNAME_SYNTAX),
      serviceAccountName: SUBDOMAIN,
      nodeName: SUBDOMAIN,
      priorityClassName: SUBDOMAIN,
      runtimeClassName: evenEmpty(SUBDOMAIN),
      preemptionPolicy: evenEmpty(oneOf("PreemptLowerPriority", "Never")),
    },
    whole: [
      ...[NAMES, VOLUME_NAMES, CLAIM_NAMES, HOST_PORTS, NODE_SELECTOR, SPREAD_REPEATS, HOST_RULE, HOSTNAME, DNS],
      ...[PRIORITY, OS, ON_CREATE, ACCOUNT, ...POD_RESOURCE_RULES, ...SYSTEM_RULES],
    ],
  },
  PodResourceClaim: {
    members: {
      name: required(text(SYNTAX.label)),
      resourceClaimName: evenEmpty(SUBDOMAIN),
      resourceClaimTemplateName: evenEmpty(SUBDOMAIN),
    },
    whole: [CLAIM_SOURCE],
  },
  PodDNSConfig: { members: { nameservers: texts(SYNTAX.address), searches: texts(SYNTAX.searchDomain) } },
  PodDNSConfigOption: { members: { name: required(undefined, "must not be empty") } },
  HostAlias: { members: { ip: required(text(SYNTAX.address)), hostnames: texts(SYNTAX.subdomain) } },
};

/** The rules of all types that a pod reaches. */
export const POD_RULES: TypeRules = {
  ...POD_SPEC_RULES,
  ...CONTAINER_RULES,
  ...VOLUME_RULES,
  ...SCHEDULING_RULES,
  ...SECURITY_RULES,
};
