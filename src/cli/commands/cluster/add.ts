import { KUBECONFIG_BYTES_MAX } from "../../../core/admin/cluster.ts";
import { ClusterService } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { EXIT, usageFailure } from "../../exit.ts";
import { readSources, type SourceIo } from "../../manifest/sources.ts";
import { repeated } from "../../options.ts";
import { printLines } from "../../output/print.ts";
import { examples, onRun, type Registrar } from "../../run-command.ts";
import { checkLines, hasErrors } from "./check.ts";
import {
  type FlavorFlag,
  GANG_SCHEDULERS,
  type GangSchedulerFlag,
  gangSchedulerOption,
  labelsOf,
  parseFlavor,
} from "./flags.ts";

type AddClusterOptions = {
  readonly kubeconfig?: string;
  readonly serverFile?: string;
  readonly context?: string;
  readonly flavor?: readonly FlavorFlag[];
  readonly label?: readonly string[];
  readonly gangScheduler?: GangSchedulerFlag;
  readonly dryRun?: boolean;
};

const EXAMPLE_FLAVOR = "gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3";

export function registerAddCluster(registrar: Registrar): void {
  const command = registrar.program
    .command("add")
    .summary("Register a cluster")
    .description("Register a cluster, and print what a check of it finds.")
    .argument("<name>", "name for the new cluster")
    .option("--kubeconfig <file>", "kubeconfig to send, or - for stdin; the service stores it encrypted")
    .option("--server-file <path>", "path of a kubeconfig on the server's disk, if the server allows that")
    .option("--context <name>", "context of the kubeconfig (default: its current context)")
    .option("--flavor <flavor>", "POOL=RESOURCE:LABEL=VALUE,… of the cluster's nodes; may be repeated", parseFlavor)
    .option("--label <label>", "KEY=VALUE, for jobs that select clusters; may be repeated", repeated)
    .addOption(gangSchedulerOption("gang scheduler that the cluster runs (default: none)"))
    .option("--dry-run", "only check the cluster, register nothing; exit status 3 if there are errors")
    .addHelpText(
      "after",
      examples(
        `gangway cluster add east --kubeconfig east.yaml --flavor ${EXAMPLE_FLAVOR}`,
        "gangway cluster add east --kubeconfig east.yaml --dry-run",
      ),
    );
  onRun<AddClusterOptions>(registrar, command, async (run, [name = ""], options) => {
    const isDryRun = options.dryRun === true;
    const request = {
      cluster: {
        name,
        labels: labelsOf(options.label ?? []),
        flavors: [...(options.flavor ?? [])],
        gangScheduler: GANG_SCHEDULERS[options.gangScheduler ?? "none"],
      },
      credentials: { kubeconfig: await kubeconfigOf(run.deps, options), context: options.context ?? "" },
      validateOnly: isDryRun,
    };
    const { check } = await run.client.call(ClusterService.method.registerCluster, request);
    const line = isDryRun ? `cluster/${name} checked (dry run)` : `cluster/${name} registered`;
    printLines(run, [line, ...checkLines(check)]);
    return isDryRun && hasErrors(check) ? EXIT.refused : EXIT.ok;
  });
}

async function kubeconfigOf(io: SourceIo, { kubeconfig, serverFile }: AddClusterOptions) {
  if ((kubeconfig === undefined) === (serverFile === undefined)) {
    throw usageFailure("give either --kubeconfig or --server-file");
  }
  if (serverFile !== undefined) return { case: "path", value: serverFile } as const;
  const [file, ...more] = await readSources([kubeconfig ?? ""], io, KUBECONFIG_BYTES_MAX);
  if (file === undefined || more.length > 0) throw usageFailure(`--kubeconfig must name one file, not ${kubeconfig}`);
  return { case: "text", value: file.text } as const;
}
