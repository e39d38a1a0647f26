/** The options that say how to reach a cluster, and what a command says after it has registered or changed one. */
import { type Command, InvalidArgumentError } from "commander";
import { KUBECONFIG_BYTES_MAX } from "../../../core/admin/cluster.ts";
import type { Cluster, ClusterCheck } from "../../../gen/gangway/v1/cluster_service_pb.ts";
import { readSources, type SourceIo } from "../../manifest/sources.ts";
import { printLines } from "../../output/print.ts";
import { CallError } from "../../rpc/call-error.ts";
import { rpcFailure } from "../../rpc/rpc-failure.ts";
import type { GlobalOptions, Registrar, Run } from "../../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../../shell/exit.ts";
import { checkLines, hasErrors } from "./check.ts";
import { warnOfFlavors } from "./flags.ts";

export type CredentialOptions = {
  readonly kubeconfig?: string;
  readonly serverFile?: string;
  readonly secret?: SecretFlag;
  readonly secretCluster?: string;
  readonly kubeContext?: string;
};

type SecretFlag = { readonly namespace: string; readonly name: string; readonly key: string };

export function addCredentialOptions(command: Command): Command {
  return command
    .option("--kubeconfig <file>", "kubeconfig to send, or - for stdin; the service stores it encrypted")
    .option("--server-file <path>", "path of a kubeconfig on the server's disk, if the server allows that")
    .option("--secret <namespace/name[/key]>", "Secret that holds a kubeconfig (default key: kubeconfig)", parseSecret)
    .option("--secret-cluster <name>", "registered cluster that has the Secret (default: the one the service runs in)")
    .option("--kube-context <name>", "context of the kubeconfig (default: its current context)");
}

/**
 * Refuses `--context` after the name of a command that takes a kubeconfig: the user may mean the kubeconfig's context,
 * and Gangway would take its own. `isMeant`: whether the options leave that open.
 */
export function refuseOwnContext(
  { argv }: Pick<Registrar, "argv">,
  command: Command,
  isMeant: (options: CredentialOptions) => boolean,
): void {
  command.hook("preAction", () => {
    const options = command.opts<CredentialOptions>();
    if (options.kubeContext !== undefined || !isMeant(options)) return;
    const verb = `${command.parent?.name()} ${command.name()}`;
    const after = argv.slice(argv.indexOf(command.name(), argv.indexOf(command.parent?.name() ?? "")));
    if (!after.some((word) => word === "--context" || word.startsWith("--context="))) return;
    const { context: name } = command.optsWithGlobals<GlobalOptions>();
    throw usageFailure(
      `--context is Gangway's own context, not one of the kubeconfig: for the kubeconfig's context give ` +
        `--kube-context ${name}; for Gangway's, write it first: gangway --context ${name} ${verb} …`,
    );
  });
}

function parseSecret(text: string): SecretFlag {
  const [namespace = "", name = "", key = "", ...more] = text.split("/");
  if (namespace === "" || name === "" || more.length > 0) {
    throw new InvalidArgumentError("It must be NAMESPACE/NAME or NAMESPACE/NAME/KEY.");
  }
  return { namespace, name, key };
}

/** True if an option says how to reach a cluster. */
export function hasCredentials(options: CredentialOptions): boolean {
  const { kubeconfig, serverFile, secret, secretCluster, kubeContext } = options;
  return [kubeconfig, serverFile, secret, secretCluster, kubeContext].some((option) => option !== undefined);
}

/** Reads the credentials of the options, of which there must be exactly one. */
export async function credentialsOf(io: SourceIo, options: CredentialOptions) {
  const { kubeconfig, serverFile, secret, secretCluster: cluster = "", kubeContext: context = "" } = options;
  if ([kubeconfig, serverFile, secret].filter((option) => option !== undefined).length !== 1) {
    throw usageFailure("give one of --kubeconfig, --secret and --server-file");
  }
  if (cluster !== "" && secret === undefined) throw usageFailure("--secret-cluster needs --secret");
  if (secret !== undefined) return { kubeconfig: { case: "secret", value: { ...secret, cluster } } as const, context };
  if (serverFile !== undefined) return { kubeconfig: { case: "path", value: serverFile } as const, context };
  const [file, ...more] = await readSources([kubeconfig ?? ""], io, KUBECONFIG_BYTES_MAX);
  if (file === undefined || more.length > 0) throw usageFailure(`--kubeconfig must name one file, not ${kubeconfig}`);
  return { kubeconfig: { case: "text", value: file.text } as const, context };
}

/** Prints that a cluster was registered or updated, and what a check found. Returns the exit status. */
export function printChecked(
  run: Run,
  {
    name,
    done,
    check,
    cluster,
  }: {
    readonly name: string;
    readonly done: "registered" | "updated";
    readonly check: ClusterCheck | undefined;
    /** The cluster afterwards, with its nodes as they were observed. */
    readonly cluster?: Cluster | undefined;
  },
): number {
  // A check has asked the cluster for its nodes itself.
  if (check === undefined && cluster !== undefined) warnOfFlavors(run, cluster);
  const isUsable = !hasErrors(check);
  printLines(run, [`cluster/${name} ${done}${isUsable ? "" : ", but it cannot run gangs yet"}`, ...checkLines(check)]);
  if (isUsable) return EXIT.ok;
  const undo = done === "registered" ? ` Or remove it again: gangway cluster remove ${name}` : "";
  run.deps.stderr(`Repair it, and check it again: gangway cluster check ${name}.${undo}\n`);
  return EXIT.unusable;
}

/** Calls the service, and says of a failure without an answer that the change may have been made. */
export async function callOrUnknown<T>(run: Run, name: string, call: Promise<T>): Promise<T> {
  return call.catch((error: unknown) => {
    if (!(error instanceof CallError)) throw error;
    const failure = rpcFailure(error, run.client.address);
    if (failure.exitCode !== EXIT.unavailable || !error.isSent) throw failure;
    const line = `  The service may have made the change: see "gangway cluster get ${name}".`;
    throw new CommandFailure(failure.exitCode, [...failure.lines, line]);
  });
}
