import { ClusterService } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { printLines } from "../../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { repeated } from "../../shell/options.ts";
import { checkLines, hasErrors } from "./check.ts";
import {
  addCredentialOptions,
  type CredentialOptions,
  callOrUnknown,
  credentialsOf,
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

type AddClusterOptions = CredentialOptions & {
  readonly flavor?: readonly FlavorFlag[];
  readonly flavorTopology?: readonly FlavorTopologyFlag[];
  readonly label?: readonly string[];
  readonly topology?: TopologyFlag;
  readonly gangScheduler?: GangSchedulerFlag;
  readonly dryRun?: boolean;
};

const EXAMPLE_TOPOLOGY = "block=example.com/block,rack=example.com/rack";
const EXAMPLE_FLAVOR = "gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3";

export function registerAddCluster(registrar: Registrar): void {
  const command = registrar.program
    .command("add")
    .summary("Register a cluster")
    .description(
      "Register a cluster, and print what a check finds. A cluster that does not answer yet is registered, too.\n" +
        "Exit status: 0 if it can run gangs, 5 if it is registered and cannot run them yet, 3 if it is not " +
        "registered.",
    )
    .argument("<name>", "name for the new cluster");
  addCredentialOptions(command)
    .option("--flavor <flavor>", "POOL=RESOURCE:LABEL=VALUE,… of the cluster's nodes; may be repeated", parseFlavor)
    .option("--label <label>", "KEY=VALUE, for jobs that select clusters; may be repeated", repeated)
    .option("--topology <levels>", "LEVEL=LABEL,… of the nodes, coarse to fine (default: no levels)", parseTopology)
    .option(
      "--flavor-topology <levels>",
      "POOL:LEVEL=LABEL,… for a flavor whose nodes have levels of their own; may be repeated",
      parseFlavorTopology,
    )
    .addOption(gangSchedulerOption("gang scheduler that the cluster runs (default: none)"))
    .option("--dry-run", "only check the cluster, register nothing; exit status 3 if there are errors")
    .addHelpText(
      "after",
      examples(
        `gangway cluster add east --kubeconfig east.yaml --flavor ${EXAMPLE_FLAVOR}`,
        `gangway cluster add east --kubeconfig east.yaml --topology ${EXAMPLE_TOPOLOGY}`,
        "gangway cluster add east --kubeconfig fleet.yaml --kube-context east-admin --dry-run",
        "gangway cluster add west --secret fleet/west-kubeconfig/value --secret-cluster east",
      ),
    );
  refuseOwnContext(registrar, command, () => true);
  onRun<AddClusterOptions>(registrar, command, async (run, [name = ""], options) => {
    const isDryRun = options.dryRun === true;
    const request = {
      cluster: {
        name,
        labels: labelsOf(options.label ?? []),
        flavors: withTopologies(options.flavor ?? [], options.flavorTopology ?? []),
        ...(options.topology === undefined ? {} : { topology: options.topology }),
        gangScheduler: GANG_SCHEDULERS[options.gangScheduler ?? "none"],
      },
      credentials: await credentialsOf(run.deps, options),
      validateOnly: isDryRun,
    };
    const call = run.client.call(ClusterService.method.registerCluster, request);
    const { check, retired } = await callOrUnknown(run, name, call);
    if (!isDryRun) {
      const status = printChecked(run, { name, done: "registered", check });
      printRetired(run, retired);
      return status;
    }
    printLines(run, [`cluster/${name} checked (dry run)`, ...checkLines(check)]);
    return hasErrors(check) ? EXIT.refused : EXIT.ok;
  });
}

function printRetired(run: Run, retired: readonly string[]): void {
  if (retired.length === 0) return;
  const names = retired.join(", ");
  printLines(run, [`simulated clusters take no more gangs, and go away once theirs have ended: ${names}`]);
}
