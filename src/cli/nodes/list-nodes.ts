/** Fetches nodes: all that options select, or those that arguments name. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { nearestName } from "../../core/pods/nearest-name.ts";
import {
  ClusterService,
  type GetCapacityRequestSchema,
  type GetCapacityResponse,
  GetCapacityResponseSchema,
  type Node,
  NodeView,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { labelSelectorOf, passes } from "../jobs/label-selector.ts";
import { formatSpan } from "../output/duration.ts";
import { pagesUpTo } from "../rpc/pages.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";
import { splitCommas } from "../shell/options.ts";
import type { NodeSelection } from "./node-options.ts";
import { stateNumber } from "./node-options.ts";

type CapacityInit = Exclude<MessageInitShape<typeof GetCapacityRequestSchema>, { readonly $typeName: string }>;

/** The nodes that were found, as one answer of the service. `isCut`: there are more than the limit. */
export type FoundNodes = { readonly answer: GetCapacityResponse; readonly isCut: boolean };

type NodeRequest = {
  readonly names: readonly string[];
  readonly orderBy: string;
  readonly limit: number;
  readonly view: NodeView;
};

/** Fetches the pages of the nodes that options select. */
export async function listNodes(run: Run, options: NodeSelection, request: NodeRequest): Promise<FoundNodes> {
  const { names, orderBy, limit, view } = request;
  const requirements = requirementsOf(options);
  const sent: CapacityInit = {
    name: options.cluster ?? "",
    filter: { names: [...names], flavors: [...(options.flavor ?? [])], states: (options.state ?? []).map(stateNumber) },
    orderBy,
    // Labels are compared here.
    view: requirements.length > 0 ? NodeView.FULL : view,
  };
  let last = create(GetCapacityResponseSchema);
  const { items, isCut } = await pagesUpTo(limit, async ({ pageSize, pageToken }) => {
    last = await run.client.call(ClusterService.method.getCapacity, { ...sent, pageSize, pageToken });
    return { items: last.nodes.filter(({ labels }) => passes(labels, requirements)), next: last.nextPageToken };
  });
  const nodes = items.slice(0, limit);
  const total = requirements.length > 0 ? nodes.length : last.total;
  return {
    answer: create(GetCapacityResponseSchema, { ...last, nodes, total, nextPageToken: "", version: "" }),
    isCut: isCut || items.length > nodes.length,
  };
}

function requirementsOf({ selector = [] }: NodeSelection) {
  const { labels, others } = labelSelectorOf(selector);
  return [...Object.entries(labels).map(([key, value]) => ({ key, is: "in" as const, values: [value] })), ...others];
}

/** The most names that one request has. */
const NAMES_MAX = 1_000;

/** The names in arguments: `gpu-1`, `node/gpu-1`, and lists with commas. */
export function nodeNames(args: readonly string[]): readonly string[] {
  const names = [...new Set(args.flatMap(splitCommas).map((word) => word.replace(/^(nodes?|no)\//, "")))];
  const wrong = names.find((name) => name === "" || name.includes("/"));
  if (wrong !== undefined)
    throw usageFailure(`a node must be NAME or node/NAME, not ${wrong === "" ? "node/" : wrong}`);
  if (names.length > NAMES_MAX) throw usageFailure(`give at most ${NAMES_MAX} names of nodes`);
  return names;
}

/** Fetches the nodes with these names, of each name those of all clusters. Fails if a name has none. */
export async function namedNodes(run: Run, options: NodeSelection, request: NodeRequest): Promise<FoundNodes> {
  const found = await listNodes(run, options, request);
  const known = new Set(found.answer.nodes.map(({ name }) => name));
  const missing = request.names.filter((name) => !known.has(name));
  if (missing.length === 0) return found;
  const others = await listNodes(run, { ...options, state: [], flavor: [], selector: [] }, ANY);
  const names = others.answer.nodes.map(({ name }) => name);
  throw new CommandFailure(
    EXIT.refused,
    missing.slice(0, SHOWN_MAX).map((name) => missingText(name, names, options)),
  );
}

/** A failure names so many missing nodes. */
const SHOWN_MAX = 10;
const ANY: NodeRequest = { names: [], orderBy: "name", limit: 1_000, view: NodeView.BASIC };

function missingText(name: string, names: readonly string[], options: NodeSelection): string {
  const { cluster, state = [], flavor = [], selector = [] } = options;
  const where = cluster === undefined ? "" : ` in cluster ${cluster}`;
  const isSelected = state.length + flavor.length + selector.length > 0;
  if (isSelected && names.includes(name))
    return `error: node ${name}${where} does not pass the options that select nodes`;
  const near = names.includes(name) ? null : nearestName(name, names);
  return `error: node ${name} does not exist${where}${near === null ? "" : `; did you mean ${near}?`}`;
}

/** Says on stderr which clusters are not shown as they are now, and that there are more nodes. */
export function noteGaps(run: Run, { answer, isCut }: FoundNodes, limit: number): void {
  const nowMs = run.deps.clock.nowMs();
  for (const { name, reachable, observeTime } of answer.clusters) {
    if (observeTime === undefined) run.deps.stderr(`cluster ${name} was not observed yet: its nodes are not known\n`);
    else if (!reachable) {
      const ago = formatSpan(nowMs - timestampMs(observeTime));
      run.deps.stderr(`cluster ${name} does not answer: its nodes are shown as last seen, and changed ${ago} ago\n`);
    }
  }
  if (!isCut) return;
  const of = answer.total > limit ? ` of ${answer.total}` : "";
  run.deps.stderr(`only the first ${limit}${of} nodes are shown; use --limit to see more\n`);
}

/** The GPUs of a node over all its resources of GPUs. Null: it has none. */
export function gpusOf({ gpus }: Node): { readonly held: bigint; readonly free: bigint; readonly all: bigint } | null {
  if (gpus.length === 0) return null;
  const sum = (of: "held" | "free" | "allocatable") => gpus.reduce((total, one) => total + one[of], 0n);
  return { held: sum("held"), free: sum("free"), all: sum("allocatable") };
}
