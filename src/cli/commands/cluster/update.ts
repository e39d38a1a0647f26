import { type Cluster, ClusterService, GangScheduler } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { usageFailure } from "../../shell/exit.ts";
import { repeated } from "../../shell/options.ts";
import {
  addCredentialOptions,
  type CredentialOptions,
  callOrUnknown,
  credentialsOf,
  hasCredentials,
  printChecked,
  refuseOwnContext,
} from "./credentials.ts";
import {
  type FlavorFlag,
  type FlavorTopologyFlag,
  GANG_SCHEDULERS,
  type GangSchedulerFlag,
  gangSchedulerOption,
  labelsOf,
  parseFlavor,
  parseFlavorTopology,
  parseTopology,
  type TopologyFlag,
  withTopologies,
} from "./flags.ts";

type UpdateClusterOptions = CredentialOptions & {
  readonly flavor?: readonly FlavorFlag[];
  readonly flavorTopology?: readonly FlavorTopologyFlag[];
  readonly label?: readonly string[];
  readonly topology?: TopologyFlag;
  readonly gangScheduler?: GangSchedulerFlag;
};

export function registerUpdateCluster(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .summary("Change the labels, flavors, levels, gang scheduler or kubeconfig of a cluster")
    .description(
      "Change the labels, flavors, levels, gang scheduler or kubeconfig of a cluster.\n" +
        "Omitted options change nothing. " +
        "A new kubeconfig must lead to the same Kubernetes cluster, and is checked.\n" +
        "Exit status: 5 if the kubeconfig is stored and the cluster cannot run gangs with it.",
    )
    .argument("<name>", "name of the cluster");
  addCredentialOptions(command)
    .option(
      "--flavor <flavor>",
      "POOL=RESOURCE:LABEL=VALUE,… of the cluster's nodes; replaces all its flavors; may be repeated",
      parseFlavor,
    )
    .option("--label <label>", "KEY=VALUE; replaces all labels of the cluster; may be repeated", repeated)
    .option(
      "--topology <levels>",
      "LEVEL=LABEL,… of the nodes, coarse to fine; replaces all levels; none: no levels",
      parseTopology,
    )
    .option(
      "--flavor-topology <levels>",
      "POOL:LEVEL=LABEL,… replaces the levels of a flavor's nodes; POOL:none: no levels; may be repeated",
      parseFlavorTopology,
    )
    .addOption(gangSchedulerOption("gang scheduler for gangs that are admitted from now on"))
    .addHelpText(
      "after",
      examples(
        "gangway cluster update east --gang-scheduler volcano",
        "gangway cluster update east --label zone=a",
        "gangway cluster update east --topology rack=example.com/rack,host=kubernetes.io/hostname",
        "gangway cluster update east --topology none",
        "gangway cluster update east --kubeconfig east.yaml",
      ),
    );
  refuseOwnContext(registrar, command, (options) => hasCredentials(options) || !hasOthers(options));
  onRun<UpdateClusterOptions>(registrar, command, async (run, [name = ""], options) => {
    if (!hasOthers(options) && !hasCredentials(options)) {
      throw usageFailure(
        "there is nothing to change; give --flavor, --label, --topology, --gang-scheduler, --kubeconfig or --secret",
      );
    }
    const sent = hasCredentials(options) ? { credentials: await credentialsOf(run.deps, options) } : {};
    const { cluster } = await run.client.call(ClusterService.method.getCluster, { name });
    const changedCluster = { name, ...changed(cluster, options) };
    const call = run.client.call(ClusterService.method.updateCluster, { cluster: changedCluster, ...sent });
    const { check, cluster: updated } = await callOrUnknown(run, name, call);
    return printChecked(run, { name, done: "updated", check, cluster: updated });
  });
}

/** The settings of a cluster after the options. Those that may be omitted in a call stay as they are. */
function changed(cluster: Cluster | undefined, options: UpdateClusterOptions) {
  const { flavor, flavorTopology = [], label, topology, gangScheduler } = options;
  const { resourceVersion = "", labels = {}, flavors = [] } = cluster ?? {};
  return {
    resourceVersion,
    labels: label === undefined ? labels : labelsOf(label),
    flavors: withTopologies(flavor ?? flavors, flavorTopology),
    ...(topology === undefined ? {} : { topology }),
    gangScheduler: gangScheduler === undefined ? GangScheduler.UNSPECIFIED : GANG_SCHEDULERS[gangScheduler],
  };
}

/** True if an option changes something other than how to reach the cluster. */
function hasOthers(options: UpdateClusterOptions): boolean {
  const { flavor, flavorTopology, label, topology, gangScheduler } = options;
  return [flavor, flavorTopology, label, topology, gangScheduler].some((option) => option !== undefined);
}
