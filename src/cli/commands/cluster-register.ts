import { InvalidArgumentError, Option } from "commander";
import {
  CheckClusterResponseSchema,
  type ClusterCheck,
  ClusterCheck_Severity,
  ClusterService,
  GangScheduler,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { readSources } from "../manifest/sources.ts";
import { printLines, show } from "../output.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar, type Run, repeated } from "../shell.ts";

type Flavor = { readonly name: string; readonly resource: string; readonly nodeLabels: Record<string, string> };

/** `gangway cluster add|update|check|remove`: which clusters there are. */
export function registerClusterChanges(registrar: Registrar): void {
  registerAdd(registrar);
  registerUpdate(registrar);
  registerCheck(registrar);
  registerRemove(registrar);
}

type AddOptions = {
  readonly kubeconfig?: string;
  readonly serverFile?: string;
  readonly context?: string;
  readonly flavor?: readonly Flavor[];
  readonly label?: readonly string[];
  readonly gangScheduler?: GangSchedulerName;
  readonly dryRun?: boolean;
};

const ADD_EXAMPLE =
  "gangway cluster add east --kubeconfig east.yaml --flavor gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3";

function registerAdd(registrar: Registrar): void {
  const command = registrar.program
    .command("add")
    .description("register a cluster, and say what a check of it finds")
    .argument("<name>", "a new name")
    .option("--kubeconfig <file>", "how to reach it; - reads stdin; stored encrypted")
    .option("--server-file <path>", "a kubeconfig on the server's own disk, where the server allows that")
    .option("--context <name>", "a context of the kubeconfig other than the current one")
    .option("--flavor <flavor>", "POOL=RESOURCE:LABEL=VALUE,… of its nodes; may be repeated", parseFlavor)
    .option("--label <label>", "KEY=VALUE, for jobs that select clusters; may be repeated", repeated)
    .addOption(gangSchedulerOption("what places a gang's pods together there (default: none)"))
    .option("--dry-run", "only check")
    .addHelpText("after", examples(ADD_EXAMPLE));
  onRun<AddOptions>(registrar, command, async (run, [name = ""], options) => {
    const request = {
      cluster: {
        name,
        labels: labelsOf(options.label ?? []),
        flavors: [...(options.flavor ?? [])],
        gangScheduler: GANG_SCHEDULERS[options.gangScheduler ?? "none"],
      },
      credentials: { kubeconfig: await kubeconfigOf(run, options), context: options.context ?? "" },
      validateOnly: options.dryRun === true,
    };
    const { check } = await run.client.call(ClusterService.method.registerCluster, request);
    const lines = check === undefined ? [] : checkLines(check);
    printLines(run, [options.dryRun ? `cluster/${name} checked (dry run)` : `cluster/${name} registered`, ...lines]);
    return options.dryRun && hasErrors(check) ? EXIT.refused : EXIT.ok;
  });
}

type UpdateOptions = Omit<AddOptions, "dryRun" | "kubeconfig" | "serverFile" | "context">;

function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .description("change labels, flavors or gang scheduler of a cluster; what is not named stays")
    .argument("<name>", "name of the cluster")
    .option("--flavor <flavor>", "POOL=RESOURCE:LABEL=VALUE,… of its nodes, instead of those it has", parseFlavor)
    .option("--label <label>", "KEY=VALUE, instead of those it has; may be repeated", repeated)
    .addOption(gangSchedulerOption("what places a gang's pods together there; admitted gangs keep to what they have"))
    .addHelpText("after", examples("gangway cluster update east --gang-scheduler volcano"));
  onRun<UpdateOptions>(registrar, command, async (run, [name = ""], { flavor, label, gangScheduler }) => {
    if (flavor === undefined && label === undefined && gangScheduler === undefined) {
      throw usageFailure("name what to change: --flavor, --label or --gang-scheduler");
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

const GANG_SCHEDULERS = {
  none: GangScheduler.NONE,
  volcano: GangScheduler.VOLCANO,
  "scheduler-plugins": GangScheduler.SCHEDULER_PLUGINS,
} as const;

type GangSchedulerName = keyof typeof GANG_SCHEDULERS;

function gangSchedulerOption(description: string): Option {
  return new Option("--gang-scheduler <name>", description).choices(Object.keys(GANG_SCHEDULERS));
}

function registerCheck(registrar: Registrar): void {
  const command = registrar.program
    .command("check")
    .description("ask a cluster for its version, its clock, what we may do there, and who else queues pods")
    .argument("<name>", "name of the cluster")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway cluster check east"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, [name = ""], { output }) => {
    const message = await run.client.call(ClusterService.method.checkCluster, { name });
    const { check } = message;
    if (output === "table") printLines(run, check === undefined ? [] : checkLines(check));
    else {
      const names = [`cluster/${name}`];
      show(run, output, { schema: CheckClusterResponseSchema, message, names, columns: [], rows: [], none: "" });
    }
    return hasErrors(check) ? EXIT.refused : EXIT.ok;
  });
}

function registerRemove(registrar: Registrar): void {
  const command = registrar.program
    .command("remove")
    .description("remove a cluster that nothing is placed on")
    .argument("<name>", "name of the cluster")
    .option("--forget", "it is gone for good: what ran there counts as gone, and boards another cluster")
    .addHelpText("after", examples("gangway cluster remove east", "gangway cluster remove east --forget"));
  onRun<{ forget?: boolean }>(registrar, command, async (run, [name = ""], { forget = false }) => {
    await run.client.call(ClusterService.method.deleteCluster, { name, forget });
    printLines(run, [`cluster/${name} ${forget ? "forgotten" : "removed"}`]);
    return EXIT.ok;
  });
}

/** `gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=H100,zone=a`. */
function parseFlavor(text: string, before: readonly Flavor[] | undefined): readonly Flavor[] {
  const [, name, resource, labels = ""] = /^([^=:]+)=([^=:]+)(?::(.+))?$/.exec(text) ?? [];
  if (name === undefined || resource === undefined) {
    throw new InvalidArgumentError("It must be POOL=RESOURCE:LABEL=VALUE, e.g. gpu/h100=nvidia.com/gpu:zone=a.");
  }
  return [...(before ?? []), { name, resource, nodeLabels: labelsOf(labels === "" ? [] : labels.split(",")) }];
}

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw usageFailure(`a label must be KEY=VALUE, not ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}

async function kubeconfigOf({ deps }: Run, { kubeconfig, serverFile }: AddOptions) {
  if ((kubeconfig === undefined) === (serverFile === undefined)) {
    throw usageFailure("name either a --kubeconfig to send or a --server-file");
  }
  if (serverFile !== undefined) return { case: "path", value: serverFile } as const;
  const [file, ...more] = await readSources([kubeconfig ?? ""], deps);
  if (file === undefined || more.length > 0) throw usageFailure(`--kubeconfig must name one file, not ${kubeconfig}`);
  return { case: "text", value: file.text } as const;
}

/** One line for each finding, and one for what is well. */
function checkLines({ kubernetesVersion, clockSkew, findings }: ClusterCheck): readonly string[] {
  const skew = clockSkew === undefined ? "" : `, clock within ${Math.abs(Number(clockSkew.seconds)) + 1} s`;
  const reached = kubernetesVersion === "" ? [] : [`ok: answers, Kubernetes ${kubernetesVersion}${skew}`];
  const lines = findings.map(({ severity, code, message }) => {
    return `${severity === ClusterCheck_Severity.ERROR ? "error" : "warning"}: ${code}: ${message}`;
  });
  return [...reached, ...lines];
}

function hasErrors(check: ClusterCheck | undefined): boolean {
  return check?.findings.some(({ severity }) => severity === ClusterCheck_Severity.ERROR) ?? false;
}
