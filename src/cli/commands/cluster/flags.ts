import { InvalidArgumentError, Option } from "commander";
import { type Cluster, GangScheduler } from "../../../gen/gangway/v1/cluster_service_pb.ts";
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
