import { InvalidArgumentError, Option } from "commander";
import { type Cluster, GangScheduler, type Topology } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import type { Run } from "../../run/run-command.ts";
import { usageFailure } from "../../shell/exit.ts";

/** A flavor of a cluster's nodes, as `--flavor` gives it. */
export type FlavorFlag = {
  readonly name: string;
  readonly resource: string;
  readonly nodeLabels: Record<string, string>;
};

/** Reads `gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=H100,zone=a`, and appends it to the flavors before it. */
export function parseFlavor(text: string, before: readonly FlavorFlag[] | undefined): readonly FlavorFlag[] {
  const [, name, resource, labels = ""] = /^([^=:]+)=([^=:]+)(?::(.+))?$/.exec(text) ?? [];
  if (name === undefined || resource === undefined) {
    throw new InvalidArgumentError("It must be POOL=RESOURCE:LABEL=VALUE, e.g. gpu/h100=nvidia.com/gpu:zone=a.");
  }
  return [...(before ?? []), { name, resource, nodeLabels: labelsOf(labels === "" ? [] : labels.split(",")) }];
}

/** The levels of nodes, as `--topology` gives them. */
export type TopologyFlag = { readonly levels: { readonly name: string; readonly label: string }[] };

const NO_LEVELS = "none";

/** Reads `block=example.com/block,rack=example.com/rack`, coarse to fine; `none` names no level. */
export function parseTopology(text: string): TopologyFlag {
  if (text === NO_LEVELS) return { levels: [] };
  const levels = text.split(",").map((level) => {
    const at = level.indexOf("=");
    if (at < 1 || at === level.length - 1) {
      throw new InvalidArgumentError(
        `It must be LEVEL=LABEL,… from coarse to fine, e.g. rack=example.com/rack, or ${NO_LEVELS}. "${level}" is not.`,
      );
    }
    return { name: level.slice(0, at), label: level.slice(at + 1) };
  });
  return { levels };
}

/** The levels of one flavor, as `--flavor-topology` gives them. */
export type FlavorTopologyFlag = { readonly flavor: string; readonly topology: TopologyFlag };

/** Reads `gpu/h100:rack=example.com/rack`, and appends it to those before it. */
export function parseFlavorTopology(
  text: string,
  before: readonly FlavorTopologyFlag[] | undefined,
): readonly FlavorTopologyFlag[] {
  const at = text.indexOf(":");
  if (at < 1) throw new InvalidArgumentError("It must be POOL:LEVEL=LABEL,… or POOL:none.");
  return [...(before ?? []), { flavor: text.slice(0, at), topology: parseTopology(text.slice(at + 1)) }];
}

/** Gives flavors their levels. Throws for a flavor that the cluster does not have. */
export function withTopologies<F extends FlavorFlag>(
  flavors: readonly F[],
  topologies: readonly FlavorTopologyFlag[],
): (F | (FlavorFlag & { readonly topology: TopologyFlag }))[] {
  const unknown = topologies.find(({ flavor }) => flavors.every(({ name }) => name !== flavor));
  if (unknown !== undefined) {
    const names = flavors.map(({ name }) => name).join(", ");
    throw usageFailure(
      `--flavor-topology names ${unknown.flavor}, which is no flavor of the cluster; it has ${names || "none"}`,
    );
  }
  return flavors.map((flavor) => {
    const own = topologies.findLast(({ flavor: name }) => name === flavor.name);
    if (own === undefined) return flavor;
    const { name, resource, nodeLabels } = flavor;
    return { name, resource, nodeLabels, topology: own.topology };
  });
}

/** `block=example.com/block,rack=example.com/rack`, as `--topology` takes it; empty without levels. */
export function topologyText(topology: Topology | undefined): string {
  return (topology?.levels ?? []).map(({ name, label }) => `${name}=${label}`).join(",");
}

/** Prints a warning for each flavor that no node of its cluster belongs to. */
export function warnOfFlavors({ deps }: Run, { name, flavors }: Cluster): void {
  for (const flavor of flavors.filter(({ problem }) => problem !== "")) {
    deps.stderr(`warning: flavor ${flavor.name} of cluster ${name}: ${flavor.problem}\n`);
  }
}

/** Reads labels that are written KEY=VALUE. */
export function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw usageFailure(`a label must be KEY=VALUE, not ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

export const GANG_SCHEDULERS = {
  none: GangScheduler.NONE,
  volcano: GangScheduler.VOLCANO,
  "scheduler-plugins": GangScheduler.SCHEDULER_PLUGINS,
} as const;

export type GangSchedulerFlag = keyof typeof GANG_SCHEDULERS;

export function gangSchedulerOption(description: string): Option {
  return new Option("--gang-scheduler <name>", description).choices(Object.keys(GANG_SCHEDULERS));
}
