/** Every member of a pod template and every annotation that the service reads: what descriptors do not tell. */
import { POD_ANNOTATION } from "../../../../src/core/pods/pod-annotations.ts";
import type { Tree } from "../tree.ts";
import type { Place } from "./places.ts";
import { type Filling, longText, nameOf } from "./texts.ts";

/** A growth of a template, which is made of lists, maps and texts like a request. */
type Member = {
  readonly name: string;
  readonly itemBytes: number;
  readonly grow: (template: Template, size: number, filling: Filling) => void;
};

export type Template = {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: { containers: [Tree, ...Tree[]] } & Tree;
};

/** The smallest template, with room for what grows. */
export function smallTemplate(): Template {
  return { metadata: { labels: {}, annotations: {} }, spec: { containers: [{ name: "main", image: "x" }] } };
}

function many<T>(size: number, make: (at: number) => T): T[] {
  return Array.from({ length: size }, (_, at) => make(at));
}

type Item = (name: string, at: number) => unknown;

/** A list of the pod. */
function ofPod(member: string, itemBytes: number, item: Item): Member {
  const grow: Member["grow"] = ({ spec }, size, filling) => {
    spec[member] = many(size, (at) => item(nameOf(filling, at), at));
  };
  return { name: `spec.${member}[]`, itemBytes, grow };
}

/** A list of its first container. */
function ofContainer(member: string, itemBytes: number, item: Item): Member {
  const grow: Member["grow"] = ({ spec }, size, filling) => {
    spec.containers[0][member] = many(size, (at) => item(nameOf(filling, at), at));
  };
  return { name: `spec.containers[0].${member}[]`, itemBytes, grow };
}

function text(name: string, set: (template: Template, text: string) => void): Member {
  return { name, itemBytes: 1, grow: (template, size, filling) => set(template, longText(filling, size)) };
}

function map(
  name: string,
  itemBytes: number,
  set: (template: Template, value: Record<string, string>) => void,
): Member {
  const grow: Member["grow"] = (template, size, { unit }) =>
    set(template, Object.fromEntries(many(size, (at) => [`${unit}${at}`, "v"])));
  return { name, itemBytes, grow };
}

const term = (name: string) => ({ matchExpressions: [{ key: name, operator: "In", values: [name] }] });
const affinity = (name: string) => ({ labelSelector: { matchLabels: { [name]: name } }, topologyKey: "host" });
const USES = ["{{ .Annotations.k }}", "{{ .Inputs.k }}", "{{ .Namespace }}", "$(A)"];

const LISTS: readonly Member[] = [
  ofPod("containers", 28, (name, at) => ({ name: at === 0 ? "main" : name, image: "x" })),
  ofPod("initContainers", 28, (name) => ({ name, image: "x" })),
  ofPod("volumes", 30, (name) => ({ name, emptyDir: {} })),
  ofPod("tolerations", 40, (name) => ({ key: name, operator: "Exists" })),
  ofPod("imagePullSecrets", 16, (name) => ({ name })),
  ofPod("hostAliases", 40, (name) => ({ ip: "10.0.0.1", hostnames: [name] })),
  ofPod("readinessGates", 28, (name) => ({ conditionType: name })),
  ofPod("schedulingGates", 20, (name) => ({ name })),
  ofPod("topologySpreadConstraints", 80, (name) => ({
    maxSkew: 1,
    topologyKey: name,
    whenUnsatisfiable: "DoNotSchedule",
  })),
  ofPod("resourceClaims", 30, (name) => ({ name, resourceClaimName: name })),
  ofContainer("args", 10, (name) => name),
  ofContainer("command", 10, (name) => name),
  ofContainer("env", 26, (name) => ({ name, value: name })),
  ofContainer("envFrom", 40, (name) => ({ prefix: name, configMapRef: { name } })),
  ofContainer("ports", 32, (name, at) => ({ name, containerPort: 1 + at })),
  ofContainer("volumeMounts", 34, (name) => ({ name, mountPath: `/${name}` })),
  ofContainer("volumeDevices", 34, (name) => ({ name, devicePath: `/${name}` })),
  {
    name: "spec.containers[0].env[] that use each other",
    itemBytes: 30,
    grow: ({ spec }, size, { unit }) => {
      spec.containers[0]["env"] = many(size, (at) => ({ name: `A${at}`, value: `$(A${at - 1})${unit}` }));
    },
  },
  {
    name: "spec.affinity.nodeAffinity terms[]",
    itemBytes: 60,
    grow: ({ spec }, size, filling) => {
      const nodeSelectorTerms = many(size, (at) => term(nameOf(filling, at)));
      spec["affinity"] = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
    },
  },
  {
    name: "spec.affinity.nodeAffinity values[]",
    itemBytes: 10,
    grow: ({ spec }, size, filling) => {
      const values = many(size, (at) => nameOf(filling, at));
      const nodeSelectorTerms = [{ matchExpressions: [{ key: "a", operator: "In", values }] }];
      spec["affinity"] = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
    },
  },
  {
    name: "spec.affinity.podAntiAffinity terms[]",
    itemBytes: 80,
    grow: ({ spec }, size, filling) => {
      const terms = many(size, (at) => affinity(nameOf(filling, at)));
      spec["affinity"] = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } };
    },
  },
];

const MAPS: readonly Member[] = [
  map("metadata.labels{}", 14, ({ metadata }, labels) => Object.assign(metadata.labels, labels)),
  map("metadata.annotations{}", 14, ({ metadata }, annotations) => Object.assign(metadata.annotations, annotations)),
  map("spec.nodeSelector{}", 14, ({ spec }, value) => Object.assign(spec, { nodeSelector: value })),
  map("spec.containers[0].resources.limits{}", 14, ({ spec }, limits) => {
    spec.containers[0]["resources"] = { limits: Object.fromEntries(Object.keys(limits).map((key) => [key, "1"])) };
  }),
  map("unknown members{}", 14, (template, value) => Object.assign(template, value)),
  map("spec unknown members{}", 14, ({ spec }, value) => Object.assign(spec, value)),
  map("spec.containers[0] unknown members{}", 14, ({ spec }, value) => Object.assign(spec.containers[0], value)),
];

const TEXTS: readonly Member[] = [
  text("spec.containers[0].image", ({ spec }, value) => Object.assign(spec.containers[0], { image: value })),
  text("spec.containers[0].name", ({ spec }, value) => Object.assign(spec.containers[0], { name: value })),
  text("spec.containers[0].args[0]", ({ spec }, value) => Object.assign(spec.containers[0], { args: [value] })),
  text("spec.containers[0].command[0]", ({ spec }, value) => Object.assign(spec.containers[0], { command: [value] })),
  text("spec.containers[0].env[0].value", ({ spec }, value) =>
    Object.assign(spec.containers[0], { env: [{ name: "A", value }] }),
  ),
  text("spec.containers[0].env[0].name", ({ spec }, name) =>
    Object.assign(spec.containers[0], { env: [{ name, value: "1" }] }),
  ),
  text("spec.containers[0].workingDir", ({ spec }, value) => Object.assign(spec.containers[0], { workingDir: value })),
  text("spec.containers[0].resources.limits.cpu", ({ spec }, cpu) =>
    Object.assign(spec.containers[0], { resources: { limits: { cpu } } }),
  ),
  text("spec.nodeSelector.a", ({ spec }, a) => Object.assign(spec, { nodeSelector: { a } })),
  text("spec.serviceAccountName", ({ spec }, value) => Object.assign(spec, { serviceAccountName: value })),
  text("spec.schedulerName", ({ spec }, value) => Object.assign(spec, { schedulerName: value })),
  text("spec.restartPolicy", ({ spec }, value) => Object.assign(spec, { restartPolicy: value })),
  text("spec.volumes[0].hostPath.path", ({ spec }, path) =>
    Object.assign(spec, { volumes: [{ name: "v", hostPath: { path } }] }),
  ),
  text("metadata.labels.a", ({ metadata }, a) => Object.assign(metadata.labels, { a })),
  text("metadata.name", ({ metadata }, name) => Object.assign(metadata, { name })),
  ...[...Object.values(POD_ANNOTATION), "primary_container_name", "k", "sim.gangway.dev/run"].map((key) =>
    text(`metadata.annotations[${key}]`, ({ metadata }, value) =>
      Object.assign(metadata.annotations, { [key]: value }),
    ),
  ),
];

/** What multiplies: many containers or arguments, each of which takes over something long. */
const PRODUCTS: readonly Member[] = [
  {
    name: "containers[] that use secrets",
    itemBytes: 60,
    grow: ({ metadata, spec }, size) => {
      const half = Math.ceil(size / 2);
      metadata.annotations[POD_ANNOTATION.secrets] = many(half, (at) => `s/k${at}`).join(",");
      const others = many(Math.min(half, 127), (at) => ({ name: `c${at}`, image: "x" }));
      spec.containers = [{ name: "main", image: "x" }, ...others];
    },
  },
  ...USES.map(
    (use): Member => ({
      name: `args[] of ${use} and a long k`,
      itemBytes: 30,
      grow: ({ metadata, spec }, size, filling) => {
        const half = Math.ceil(size / 2);
        metadata.annotations["k"] = longText(filling, half * 10);
        spec.containers[0]["args"] = many(half, () => use);
      },
    }),
  ),
  {
    name: "one args[0] of many placeholders and a long k",
    itemBytes: 30,
    grow: ({ metadata, spec }, size, filling) => {
      const half = Math.ceil(size / 2);
      metadata.annotations["k"] = longText(filling, half * 10);
      spec.containers[0]["args"] = ["{{ .Annotations.k }}".repeat(half)];
    },
  },
];

export const MEMBERS: readonly Member[] = [...LISTS, ...MAPS, ...TEXTS, ...PRODUCTS];

/** The same as places of a request, whose template `of` finds. */
export function memberPlaces(prefix: string, of: (request: Tree) => Template): readonly Place[] {
  return MEMBERS.map(({ name, itemBytes, grow }) => ({
    name: `${prefix}${name}`,
    limit: null,
    itemBytes,
    grow: (request, size, filling) => grow(of(request), size, filling),
  }));
}
