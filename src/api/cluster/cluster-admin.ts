/** Registers, changes and checks clusters while the service runs: decides which kubeconfigs are accepted and stored. */
import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import {
  type ClusterCheck,
  type ClusterFinding,
  type ClusterRecord,
  type CredentialsRefusal,
  describeUidRefusal,
  type RegistrationOutcome,
  type SecretReference,
  type SentCluster,
  type SentCredentials,
  type SourceRefusal,
  type UidRefusal,
} from "../../core/admin/cluster.ts";
import type { ClusterFlavor } from "../../core/plan/model/snapshot.ts";
import type { Topology } from "../../core/plan/model/topology.ts";
import { type GangScheduler, gangSchedulerOf } from "../../core/pods/build/pod-group.ts";
import type { JsonObject } from "../../runtime/json.ts";
import type { ClusterAdmin } from "../ports.ts";

/** Clusters as the database keeps them. */
export type ClusterTable = {
  /** The cluster gets its uid. Omitted: it has told none yet. */
  readonly register: (
    cluster: SentCluster & { readonly credentials: JsonObject; readonly uid?: string },
  ) => Promise<RegistrationOutcome>;
  /** `version` 0: any version. Null credentials: keeps the stored ones. */
  readonly update: (
    cluster: SentCluster & {
      readonly version: number;
      readonly credentials: JsonObject | null;
      readonly uid?: string;
    },
  ) => Promise<ChangeOutcome<ClusterRecord> | UidRefusal | SourceRefusal>;
  /** Why the kubeconfig of a cluster cannot be in the Secret to which credentials refer. Null: it can. */
  readonly sourceRefusal: (of: {
    readonly cluster: string;
    readonly credentials: JsonObject;
  }) => Promise<SourceRefusal | null>;
  /** Why a cluster cannot have a uid. Null: it can. */
  readonly uidRefusal: (of: { readonly cluster: string; readonly uid: string }) => Promise<UidRefusal | null>;
  readonly remove: (name: string, forget: boolean) => Promise<ChangeOutcome<null>>;
  readonly credentialsOf: (name: string) => Promise<JsonObject | null>;
  readonly getCluster: (name: string) => Promise<ClusterRecord | null>;
};

export type ClusterAdminPorts = {
  readonly table: ClusterTable;
  /** Connects this process to the clusters that the table now names. */
  readonly refresh: () => Promise<void>;
  /** Why this process cannot connect to a cluster. Null: it can. Omitted: it is not known. */
  readonly problemOf?: (name: string) => string | null;
  /** Allows kubeconfigs that are files of this machine, name files, or run programs. */
  readonly allowLocal: boolean;
  /** The text of a file of this machine; null if it cannot be read. */
  readonly readFile: (path: string) => Promise<string | null>;
  /** The text of a value in a Secret. Throws an error that says why it cannot be read, without any content. */
  readonly readSecret: (of: SecretReference) => Promise<string>;
  /** Judges a kubeconfig, and takes one context out of it; an empty name means the current context. */
  readonly pickContext: (text: string, context: string) => Promise<PickedKubeconfig>;
  /** Encrypts a kubeconfig for the table. Null: this process has no key. */
  readonly seal: (cluster: string, kubeconfig: string) => Promise<JsonObject | null>;
  /** The kubeconfig behind stored credentials. Throws if they do not open; the message holds no credential. */
  readonly open: (cluster: string, stored: JsonObject) => Promise<string>;
  /** Asks a cluster whether it can serve Gangway. Does not throw if the cluster does not answer. */
  readonly check: (
    kubeconfig: string,
    registered: {
      readonly gangScheduler: GangScheduler | null;
      readonly flavors: readonly ClusterFlavor[];
      readonly topology: Topology;
      /** Empty: it is not known under a name. */
      readonly name: string;
    },
  ) => Promise<ClusterCheck>;
  /** The kubeconfig of a cluster that this process simulates; null for any other cluster. */
  readonly simulated: (name: string) => string | null;
  readonly keys: Pick<ClusterAdmin, "listKeys" | "rotateKeys">;
};

export type PickedKubeconfig =
  /** The kubeconfig as it is stored, and as connections use it. Omitted: the same. */
  | { readonly kind: "ok"; readonly kubeconfig: string; readonly usable?: string }
  | { readonly kind: "refused"; readonly problems: readonly string[] };

/** The settings of a cluster that a check depends on. Omitted: none. */
type CheckedSettings = {
  readonly name?: string;
  readonly gangScheduler?: string | undefined;
  readonly flavors?: readonly ClusterFlavor[];
  readonly topology?: Topology | undefined;
};

type Prepared = { readonly kind: "ready"; readonly stored: JsonObject; readonly kubeconfig: string };

export function createClusterAdmin(ports: ClusterAdminPorts): ClusterAdmin {
  const { table, refresh } = ports;
  const check = (kubeconfig: string, { gangScheduler, name = "", ...settings }: CheckedSettings) => {
    const { flavors = [], topology = [] } = settings;
    const registered = { name, gangScheduler: gangSchedulerOf(gangScheduler), flavors, topology };
    return ports.check(kubeconfig, registered).catch(badCredentials);
  };
  /** The same, with a finding if the uid is that of another cluster. */
  const checkAs = async (name: string, ...of: Parameters<typeof check>) => {
    const checked = await check(...of);
    const refusal = checked.uid === null ? null : await table.uidRefusal({ cluster: name, uid: checked.uid });
    return refusal === null ? checked : { ...checked, findings: [wrongCluster(name, refusal), ...checked.findings] };
  };
  return {
    ...ports.keys,
    problemOf: (name) => ports.problemOf?.(name) ?? null,
    async register(cluster, sent) {
      const prepared = await prepare(ports, cluster.name, sent);
      if (prepared.kind !== "ready") return prepared;
      // The check comes first: it tells which cluster this is, which decides whether it may be registered.
      const checked = await check(prepared.kubeconfig, cluster);
      const outcome = await table.register({ ...cluster, credentials: prepared.stored, ...uidOf(checked) });
      if (outcome.kind !== "done") return outcome;
      await refresh();
      return { ...outcome, check: checked };
    },
    async tryOut(cluster, sent) {
      const prepared = await prepare(ports, cluster.name, sent);
      return prepared.kind === "ready" ? checkAs(cluster.name, prepared.kubeconfig, cluster) : prepared;
    },
    async update(cluster, sent) {
      const prepared = sent === null ? null : await prepare(ports, cluster.name, sent);
      if (prepared !== null && prepared.kind !== "ready") return prepared;
      const checked = prepared && (await check(prepared.kubeconfig, await settingsAfter(table, cluster)));
      const credentials = prepared?.stored ?? null;
      const outcome = await table.update({ ...cluster, credentials, ...uidOf(checked) });
      if (outcome.kind !== "done") return outcome;
      await refresh();
      return checked === null ? outcome : { ...outcome, check: checked };
    },
    async check(name) {
      const simulated = ports.simulated(name);
      if (simulated !== null) return check(simulated, (await table.getCluster(name)) ?? {});
      const stored = await table.credentialsOf(name);
      if (stored === null) return "notFound";
      try {
        const registered = await table.getCluster(name);
        return await checkAs(name, await ports.open(name, stored), registered ?? {});
      } catch (error) {
        return badCredentials(error);
      }
    },
    async remove(name, forget) {
      const outcome = await table.remove(name, forget);
      if (outcome.kind === "done") await refresh();
      return outcome;
    },
  };
}

/** The settings of a cluster after an update. Those that the update omits stay. */
async function settingsAfter(table: ClusterTable, update: SentCluster): Promise<CheckedSettings> {
  const before = await table.getCluster(update.name);
  const { flavors, gangScheduler = before?.gangScheduler, topology = before?.topology } = update;
  return { name: update.name, flavors, gangScheduler, topology };
}

/** A kubeconfig that cannot be used is a finding: the cluster may be registered already. */
function badCredentials(error: unknown): ClusterCheck {
  const message = error instanceof Error ? error.message : String(error);
  const finding = { severity: "ERROR", code: "BadCredentials", message } as const;
  return { kubernetesVersion: "", clockSkewMs: null, uid: null, findings: [finding] };
}

function wrongCluster(name: string, refusal: UidRefusal): ClusterFinding {
  const code = refusal.kind === "sameCluster" ? "SameCluster" : "OtherCluster";
  return { severity: "ERROR", code, message: `cluster ${name} ${describeUidRefusal(refusal)}` };
}

function uidOf(check: ClusterCheck | null): { readonly uid?: string } {
  return typeof check?.uid === "string" ? { uid: check.uid } : {};
}

/** Returns the form in which credentials are stored and the kubeconfig to use, or why they are refused. */
async function prepare(
  ports: ClusterAdminPorts,
  cluster: string,
  { kubeconfig, context }: SentCredentials,
): Promise<Prepared | CredentialsRefusal> {
  const read = await readSent(ports, cluster, { kubeconfig, context });
  if (read.kind !== "read") return read;
  const picked = await ports.pickContext(read.text, context);
  if (picked.kind === "refused") return { kind: "refusedCredentials", problems: picked.problems };
  const stored = read.stored ?? (await ports.seal(cluster, picked.kubeconfig));
  return stored === null
    ? { kind: "noKey" }
    : { kind: "ready", stored, kubeconfig: picked.usable ?? picked.kubeconfig };
}

type ReadCredentials = {
  readonly kind: "read";
  readonly text: string;
  /** What is stored of a reference. Null: the text itself, encrypted. */
  readonly stored: JsonObject | null;
};

async function readSent(
  { allowLocal, readFile, readSecret, table }: ClusterAdminPorts,
  cluster: string,
  { kubeconfig, context }: SentCredentials,
): Promise<ReadCredentials | CredentialsRefusal> {
  if (kubeconfig.kind === "text") return { kind: "read", text: kubeconfig.text, stored: null };
  if (kubeconfig.kind === "path") {
    if (!allowLocal) return refused("names a file of the server's machine, which this server does not allow");
    const text = await readFile(kubeconfig.path);
    if (text === null) return refused(`the server cannot read the file ${kubeconfig.path}`);
    return { kind: "read", text, stored: { kind: "file", path: kubeconfig.path, context } };
  }
  const stored = { ...kubeconfig, context };
  const unfit = await table.sourceRefusal({ cluster, credentials: stored });
  if (unfit !== null) return unfit;
  try {
    return { kind: "read", text: await readSecret(kubeconfig), stored };
  } catch (error) {
    return { kind: "unreadSecret", problem: error instanceof Error ? error.message : String(error) };
  }
}

function refused(problem: string): CredentialsRefusal {
  return { kind: "refusedCredentials", problems: [problem] };
}
