import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { AccessScope, AccessScopeSchema } from "../../gen/gangway/v1/access_service_pb.ts";
import { usageFailure } from "../exit.ts";
import type { Run } from "../run-command.ts";

/** The flags that name a scope, beside --namespace, which every command has. */
export type ScopeOptions = {
  readonly project?: string;
  readonly queue?: string;
  readonly poolPrefix?: string;
  readonly cluster?: string;
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
    .option("--cluster <name>", "at a cluster");
}

/** The scope that the flags name; without a flag, the installation. `kinds`: those that the command has flags for. */
export function scopeOf(
  { namespace, isNamespaceGiven }: Pick<Run, "namespace" | "isNamespaceGiven">,
  { project, queue, poolPrefix, cluster }: ScopeOptions,
  kinds = KINDS,
): MessageInitShape<typeof AccessScopeSchema> {
  const named = { project, queue, poolPrefix, cluster, namespace: isNamespaceGiven ? namespace : undefined };
  const [kind, more] = KINDS.filter((one) => named[one] !== undefined);
  if (more !== undefined) {
    const flags = kinds.map((one) => FLAGS[one]);
    throw usageFailure(`give at most one of ${flags.slice(0, -1).join(", ")} and ${flags.at(-1)}`);
  }
  return kind === undefined ? {} : { of: { case: kind, value: named[kind] ?? "" } };
}

/** `namespace/nlp`, or `installation`. */
export function scopeText(scope: AccessScope | undefined): string {
  const of = scope?.of;
  if (of?.case === undefined) return "installation";
  return `${of.case === "poolPrefix" ? "pool" : of.case}/${of.value}`;
}
