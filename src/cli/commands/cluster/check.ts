import {
  CheckClusterResponseSchema,
  type ClusterCheck,
  ClusterCheck_Severity,
  ClusterService,
} from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { printLines, printResponse } from "../../output/print.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { isTable, type OutputFormat, outputOption } from "../../shell/options.ts";

export function registerCheckCluster(registrar: Registrar): void {
  const command = registrar.program
    .command("check")
    .summary("Check that the service can use a cluster")
    .description(
      "Check a cluster: its version, its clock, the service's permissions, and other systems that queue pods there.\n" +
        "Exit status: 0 without errors, 3 with errors. Warnings do not change it.",
    )
    .argument("<name>", "name of the cluster")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway cluster check east"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, [name = ""], { output }) => {
    const message = await run.client.call(ClusterService.method.checkCluster, { name });
    const { check } = message;
    if (isTable(output)) printLines(run, checkLines(check));
    else {
      const response = { schema: CheckClusterResponseSchema, message, names: [`cluster/${name}`] };
      printResponse(run, output, { ...response, columns: [], rows: [], none: "" });
    }
    return hasErrors(check) ? EXIT.refused : EXIT.ok;
  });
}

/** Returns a line with the cluster's version if it answers, then a line for each finding. */
export function checkLines(check: ClusterCheck | undefined): readonly string[] {
  if (check === undefined) return [];
  const { kubernetesVersion, clockSkew, findings } = check;
  const skew = clockSkew === undefined ? "" : `, clock within ${Math.abs(Number(clockSkew.seconds)) + 1} s`;
  const reached = kubernetesVersion === "" ? [] : [`ok: answers, Kubernetes ${kubernetesVersion}${skew}`];
  const lines = findings.map(({ severity, code, message }) => {
    return `${severity === ClusterCheck_Severity.ERROR ? "error" : "warning"}: ${code}: ${message}`;
  });
  return [...reached, ...lines];
}

export function hasErrors(check: ClusterCheck | undefined): boolean {
  return check?.findings.some(({ severity }) => severity === ClusterCheck_Severity.ERROR) ?? false;
}
