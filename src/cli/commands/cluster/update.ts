import { ClusterService, GangScheduler } from "../../../gen/gangway/v1/cluster_service_pb.ts";
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
  GANG_SCHEDULERS,
  type GangSchedulerFlag,
  gangSchedulerOption,
  labelsOf,
  parseFlavor,
} from "./flags.ts";

type UpdateClusterOptions = CredentialOptions & {
  readonly flavor?: readonly FlavorFlag[];
  readonly label?: readonly string[];
  readonly gangScheduler?: GangSchedulerFlag;
};

export function registerUpdateCluster(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .summary("Change the labels, flavors, gang scheduler or kubeconfig of a cluster")
    .description(
      "Change the labels, flavors, gang scheduler or kubeconfig of a cluster. Omitted options change nothing.\n" +
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
    .addOption(gangSchedulerOption("gang scheduler for gangs that are admitted from now on"))
    .addHelpText(
      "after",
      examples(
        "gangway cluster update east --gang-scheduler volcano",
        "gangway cluster update east --label zone=a",
        "gangway cluster update east --kubeconfig east.yaml",
      ),
    );
  refuseOwnContext(registrar, command, (options) => hasCredentials(options) || !hasOthers(options));
  onRun<UpdateClusterOptions>(registrar, command, async (run, [name = ""], options) => {
    const { flavor, label, gangScheduler } = options;
    if (!hasOthers(options) && !hasCredentials(options)) {
      throw usageFailure(
        "there is nothing to change; give --flavor, --label, --gang-scheduler, --kubeconfig or --secret",
      );
    }
    const sent = hasCredentials(options) ? { credentials: await credentialsOf(run.deps, options) } : {};
    const { cluster } = await run.client.call(ClusterService.method.getCluster, { name });
    const { resourceVersion = "", labels = {}, flavors = [] } = cluster ?? {};
    const call = run.client.call(ClusterService.method.updateCluster, {
      cluster: {
        name,
        resourceVersion,
        labels: label === undefined ? labels : labelsOf(label),
        flavors: [...(flavor ?? flavors)],
        gangScheduler: gangScheduler === undefined ? GangScheduler.UNSPECIFIED : GANG_SCHEDULERS[gangScheduler],
      },
      ...sent,
    });
    const { check, cluster: updated } = await callOrUnknown(run, name, call);
    return printChecked(run, { name, done: "updated", check, cluster: updated });
  });
}

/** True if an option changes something other than how to reach the cluster. */
function hasOthers({ flavor, label, gangScheduler }: UpdateClusterOptions): boolean {
  return [flavor, label, gangScheduler].some((option) => option !== undefined);
}
