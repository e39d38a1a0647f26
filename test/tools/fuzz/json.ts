/** JSON for fields of type Struct: pod templates with real structure, odd values, and changes of documents. */
import type { Chance } from "./chance.ts";
import { copies } from "./copies.ts";
import { oddText } from "./scalars.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonMap = { [key: string]: Json };

const NUMBERS = [0, -1, 1, 1.5, 65_535, 65_536, 2 ** 31, 2 ** 53, 1e308, -0];
const KEYS = ["spec", "metadata", "containers", "name", "image", "env", "resources", "limits", "cpu", "nvidia.com/gpu"];
const QUANTITIES = [
  "1",
  "2",
  "0",
  "-1",
  "100m",
  "1.5",
  "1Gi",
  "1e3",
  "1e400",
  "9".repeat(30),
  "Ki",
  "",
  "1 Gi",
  "0.0001",
];

/** Any document, at most `depth` deep. */
export function anyJson(chance: Chance, depth = 4): Json {
  const kind = depth <= 0 ? chance.int(0, 3) : chance.int(0, 5);
  if (kind === 0) return null;
  if (kind === 1) return chance.is(0.5);
  if (kind === 2) return chance.pick(NUMBERS);
  if (kind === 3) return chance.is(0.4) ? chance.pick(QUANTITIES) : oddText(chance);
  if (kind === 4) return Array.from({ length: chance.int(0, 4) }, () => anyJson(chance, depth - 1));
  return anyMap(chance, depth - 1);
}

export function anyMap(chance: Chance, depth = 3): JsonMap {
  const entries = Array.from({ length: chance.int(0, 4) }, () => {
    const key = chance.is(0.7) ? chance.pick(KEYS) : oddText(chance);
    return [key, anyJson(chance, depth)] as const;
  });
  return Object.fromEntries(entries);
}

/** A document that is `depth` deep: lists or maps within each other. */
export function deepJson(chance: Chance, depth: number): JsonMap {
  const inList = chance.is(0.5);
  let value: Json = 1;
  for (let level = 0; level < depth; level += 1) value = inList ? [value] : { a: value };
  return { spec: value };
}

/** A PodTemplateSpec with a few of the fields that pods have. */
export function podTemplate(chance: Chance): JsonMap {
  const maybe = (probability: number, value: JsonMap) => (chance.is(probability) ? value : {});
  const resources = () => ({
    limits: {
      cpu: chance.pick(QUANTITIES.slice(0, 6)),
      ...maybe(0.3, { "nvidia.com/gpu": chance.pick(["1", "2", "8"]) }),
      ...maybe(0.1, { memory: chance.pick(QUANTITIES) }),
    },
  });
  const container = (name: string): JsonMap => ({
    name,
    image: "registry.example/train:1",
    ...maybe(0.5, { resources: resources() }),
    ...maybe(0.2, {
      env: [
        { name: "A", value: chance.is(0.9) ? "1" : 1 },
        { name: "B", valueFrom: { fieldRef: {} } },
      ],
    }),
    ...maybe(0.2, { command: ["sh", "-c", "echo {{ .Inputs.x }}"] }),
    ...maybe(0.1, { ports: [{ name: "pytorchjob-port", containerPort: chance.pick([1, 23_456, 0, 70_000]) }] }),
    ...maybe(0.1, { volumeMounts: [{ name: "data", mountPath: "/data" }] }),
  });
  const names = chance.pick([["main"], ["pytorch"], ["main", "main"], ["tensorflow", "side"], []]);
  return {
    ...maybe(0.6, {
      metadata: { annotations: { "sim.gangway.dev/run": chance.pick(["1ms", "200ms", "1s", "x", ""]) } },
    }),
    spec: {
      containers: names.map(container),
      ...maybe(0.1, { initContainers: [container("init")] }),
      ...maybe(0.1, { volumes: [{ name: "data", emptyDir: {} }] }),
      ...maybe(0.1, { nodeSelector: { "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3" } }),
      ...maybe(0.1, { tolerations: [{ operator: "Exists" }] }),
      ...maybe(0.1, { affinity: { nodeAffinity: anyMap(chance, 4) } }),
      ...maybe(0.1, { restartPolicy: chance.pick(["Never", "Always", "x"]) }),
      ...maybe(0.05, { schedulerName: oddText(chance) }),
    },
  };
}

/** The same document with one part changed, removed, added or repeated. */
export function changedJson(chance: Chance, document: Json): Json {
  if (Array.isArray(document)) return changedList(chance, document);
  if (typeof document !== "object" || document === null || chance.is(0.1)) return anyJson(chance);
  const keys = Object.keys(document);
  if (keys.length === 0 || chance.is(0.15)) {
    const key = chance.is(0.5) ? chance.pick(KEYS) : oddText(chance);
    return { ...document, [key]: anyJson(chance) };
  }
  const key = chance.pick(keys);
  const { [key]: value = null, ...others } = document as JsonMap;
  if (chance.is(0.1)) return others;
  return { ...document, [key]: changedJson(chance, value) };
}

function changedList(chance: Chance, list: readonly Json[]): Json {
  if (list.length === 0) return [anyJson(chance)];
  const at = chance.int(0, list.length - 1);
  const item = list[at] ?? null;
  if (chance.is(0.1)) return [...list, item];
  if (chance.is(0.02)) return copies(item, chance.pick([50, 300, 2000]));
  if (chance.is(0.1)) return list.toSpliced(at, 1);
  return list.with(at, changedJson(chance, item));
}
