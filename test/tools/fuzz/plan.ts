/** Makes the calls of a run, one by one, from its seed and from what earlier answers taught. */
import { create, type DescMethod, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import type { Bank } from "./bank.ts";
import { Chance } from "./chance.ts";
import { generateMessage, type Maker } from "./generate.ts";
import { mutate } from "./mutate.ts";
import { SEEDS } from "./seeds.ts";
import { METHODS, registry, shortName } from "./surface.ts";
import { type Tree, treeOf } from "./tree.ts";
import { badBytes } from "./wire.ts";

export type Style = "valid" | "mutated" | "generated" | "bytes";

/** One call, which can be sent again. */
export type PlannedCall = {
  readonly number: number;
  readonly method: DescMethod;
  readonly style: Style;
  /** The request as sent, without the frame of gRPC. */
  readonly request: Buffer;
};

export type PlanOptions = { readonly seed: number; readonly bank: Bank; readonly methods: readonly DescMethod[] };

/** How often an RPC is called beside others. Creates are rarer than their number of fields deserves: they cost most. */
const WEIGHTS: Readonly<Record<string, number>> = {
  "JobService.CreateJob": 5,
  "JobService.UpdateJob": 3,
  "JobService.DeleteJob": 2,
  "ResourceManager.AllocateResource": 3,
  "ResourceManager.BatchAllocateResources": 2,
  "ResourceManager.ReleaseResource": 2,
  // Each of them reads every token.
  "ResourceManager.ReconcileQuota": 0.2,
  // It takes the clusters away that jobs run on.
  "ClusterService.DeleteCluster": 0.2,
  // They wait for answers of clusters.
  "ClusterService.CheckCluster": 0.2,
  "ClusterService.RegisterCluster": 0.4,
  "JobService.StreamJobLogs": 0.5,
};

/**
 * Several times what the service takes. Copies of copies become gigabytes, over which this process forgets the calls
 * that it makes beside them.
 */
const REQUEST_BYTES_MAX = 16 * 2 ** 20;

export function planCall({ seed, bank, methods }: PlanOptions, number: number, styles: readonly Style[]): PlannedCall {
  const chance = Chance.ofCall(seed, number);
  const method = chance.weighted(methods.map((one) => [WEIGHTS[shortName(one)] ?? 1, one]));
  const style = chance.pick(styles);
  const maker: Maker = { chance, bank, method };
  const good = SEEDS[shortName(method)];
  const make = () => (good === undefined || style === "generated" ? generateMessage(maker, method.input) : good(maker));
  const tree = make();
  if (style === "mutated") mutate(maker, method.input, tree);
  const made = encode(method, tree);
  const bytes = made.length <= REQUEST_BYTES_MAX ? made : encode(method, make());
  const request = style === "bytes" ? badBytes(chance, bytes, method.input) : bytes;
  return { number, method, style, request };
}

export function encode(method: DescMethod, tree: Tree): Buffer {
  return Buffer.from(toBinary(method.input, create(method.input, tree)));
}

/** The request as plain data; null if it does not decode. */
export function decode({ method, request }: Pick<PlannedCall, "method" | "request">): Tree | null {
  try {
    return treeOf(fromBinary(method.input, request));
  } catch {
    return null;
  }
}

/** The request as JSON of protobuf; null if it has none. */
export function jsonOf({ method, request }: Pick<PlannedCall, "method" | "request">): unknown {
  try {
    return toJson(method.input, fromBinary(method.input, request), { registry });
  } catch {
    return null;
  }
}

export function methodsNamed(names: readonly string[]): readonly DescMethod[] {
  const missing = names.find((name) => !METHODS.some((method) => shortName(method).startsWith(name)));
  if (missing !== undefined)
    throw new Error(`there is no RPC ${missing}; there are ${METHODS.map(shortName).join(", ")}`);
  return METHODS.filter((method) => names.length === 0 || names.some((name) => shortName(method).startsWith(name)));
}
