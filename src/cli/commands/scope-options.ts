import { create } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { type AccessScope, AccessScopeSchema } from "../../gen/gangway/v1/access_service_pb.ts";
import type { Run } from "../run/run-command.ts";
import { usageFailure } from "../shell/exit.ts";

/** The flags that name a scope, beside --namespace, which every command has. */
export type ScopeOptions = {
  readonly project?: string;
  readonly queue?: string;
  readonly poolPrefix?: string;
  readonly cluster?: string;
  readonly installation?: boolean;
};

const FLAGS = {
  project: "--project",
  namespace: "--namespace",
  queue: "--queue",
  poolPrefix: "--pool-prefix",
  cluster: "--cluster",
} as const;

type Kind = keyof typeof FLAGS;
const KINDS = Object.keys(FLAGS) as readonly Kind[];
/** The kinds of scopes that a robot may belong to. */
export const ROBOT_KINDS: readonly Kind[] = ["project", "namespace"];

/** Adds these flags to a command. */
export function addScopeOptions(command: Command): Command {
  return command
    .option("--project <name>", "at a project, with its namespaces")
    .option("--queue <name>", "at a queue, with the queues below it")
    .option("--pool-prefix <prefix>", "at a pool, and the pools below it: ex:team has ex:team:adhoc, not ex:team2")
    .option("--cluster <name>", "at a cluster")
    .addOption(installationOption());
}

/** `--installation`, for contexts that have a namespace. */
export function installationOption(): Option {
  return new Option("--installation", "at the whole installation, also if the context has a namespace");
}

/**
 * The scope that the flags name; without a flag, the namespace of the environment or of the context; without one, the
 * installation. `kinds`: those that the command has flags for.
 */
export function scopeOf(
  { chosenNamespace, isNamespaceGiven }: Pick<Run, "chosenNamespace" | "isNamespaceGiven">,
  { project, queue, poolPrefix, cluster, installation = false }: ScopeOptions,
  kinds = KINDS,
): AccessScope {
  const given = isNamespaceGiven ? (chosenNamespace ?? undefined) : undefined;
  const named = { project, queue, poolPrefix, cluster, namespace: given };
  const [kind, more] = KINDS.filter((one) => named[one] !== undefined);
  if (more !== undefined || (installation && kind !== undefined)) {
    const flags = [...kinds.map((one) => FLAGS[one]), ...(installation ? ["--installation"] : [])];
    throw usageFailure(`give at most one of ${flags.slice(0, -1).join(", ")} and ${flags.at(-1)}`);
  }
  if (kind !== undefined) return create(AccessScopeSchema, { of: { case: kind, value: named[kind] ?? "" } });
  if (installation || chosenNamespace === null) return create(AccessScopeSchema);
  return create(AccessScopeSchema, { of: { case: "namespace", value: chosenNamespace } });
}

/** Says a scope that the command line does not show: that of the environment or of the context. */
export function noteContextScope({ deps, isNamespaceGiven }: Run, scope: AccessScope): void {
  if (scope.of.case === "namespace" && !isNamespaceGiven)
    deps.stderr(`at ${scopeText(scope)}, which the context or the environment says\n`);
}

/** `namespace/nlp`, or `installation`. */
export function scopeText(scope: AccessScope | undefined): string {
  const of = scope?.of;
  if (of?.case === undefined) return "installation";
  return `${of.case === "poolPrefix" ? "pool" : of.case}/${of.value}`;
}
