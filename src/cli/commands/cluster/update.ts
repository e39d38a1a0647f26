import { ClusterService, GangScheduler } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { EXIT, usageFailure } from "../../exit.ts";
import { repeated } from "../../options.ts";
import { printLines } from "../../output/print.ts";
import { examples, onRun, type Registrar } from "../../run-command.ts";
import {
  type FlavorFlag,
  GANG_SCHEDULERS,
  type GangSchedulerFlag,
  gangSchedulerOption,
  labelsOf,
  parseFlavor,
} from "./flags.ts";

export function registerUpdateCluster(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .summary("Change the labels, flavors or gang scheduler of a cluster")
    .description("Change the labels, flavors or gang scheduler of a cluster. Omitted options change nothing.")
    .argument("<name>", "name of the cluster")
    .option(
      "--flavor <flavor>",
      "POOL=RESOURCE:LABEL=VALUE,… of the cluster's nodes; replaces all its flavors; may be repeated",
      parseFlavor,
    )
    .option("--label <label>", "KEY=VALUE; replaces all labels of the cluster; may be repeated", repeated)
    .addOption(gangSchedulerOption("gang scheduler for gangs that are admitted from now on"))
    .addHelpText(
      "after",
      examples("gangway cluster update east --gang-scheduler volcano", "gangway cluster update east --label zone=a"),
    );
  type UpdateClusterOptions = {
    readonly flavor?: readonly FlavorFlag[];
    readonly label?: readonly string[];
    readonly gangScheduler?: GangSchedulerFlag;
  };
  onRun<UpdateClusterOptions>(registrar, command, async (run, [name = ""], { flavor, label, gangScheduler }) => {
    if (flavor === undefined && label === undefined && gangScheduler === undefined) {
      throw usageFailure("there is nothing to change; give --flavor, --label or --gang-scheduler");
    }
    const { cluster } = await run.client.call(ClusterService.method.getCluster, { name });
    const { resourceVersion = "", labels = {}, flavors = [] } = cluster ?? {};
    await run.client.call(ClusterService.method.updateCluster, {
      cluster: {
        name,
        resourceVersion,
        labels: label === undefined ? labels : labelsOf(label),
        flavors: [...(flavor ?? flavors)],
        gangScheduler: gangScheduler === undefined ? GangScheduler.UNSPECIFIED : GANG_SCHEDULERS[gangScheduler],
      },
    });
    printLines(run, [`cluster/${name} updated`]);
    return EXIT.ok;
  });
}
